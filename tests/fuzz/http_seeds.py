#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of HTTP with every field that http_fuzz looks at.

usage: http_seeds.py FOLDER
"""
import pathlib
import sys

SEEDS = {
    "get": "GET /health HTTP/1.1|Host: localhost:8080|Accept: */*||",
    "older": "GET /v1/models/a%20b?c HTTP/1.0||",
    "post": "POST /v1/completions HTTP/1.1|Host: [::1]|Content-Type: application/json|Content-Length: 2||{}",
    "chunks": "POST / HTTP/1.1|Host: name|Transfer-Encoding: chunked||2;a=b|{}|0|Trailer: a||",
    "page": "OPTIONS / HTTP/1.1|Host: 127.0.0.1|Origin: https://page|Access-Control-Request-Headers: a||",
    "asks": "POST / HTTP/1.1|Host: a.localhost|Expect: 100-continue|Connection: a, close|Content-Length: 0||",
    "two": "POST / HTTP/1.1|Host: a|Content-Length: 1|Transfer-Encoding : chunked|| 1|a|0||",
}
for name, text in SEEDS.items():
    (pathlib.Path(sys.argv[1]) / name).write_bytes(text.replace("|", "\r\n").encode())
