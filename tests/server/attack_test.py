#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server against clients that mean harm or behave oddly: requests that two readers understand in two ways, web pages
from elsewhere, connections that send slowly or nothing, prompts that cannot fit. Who behaves is answered meanwhile.

usage: attack_test.py SERVER GENERATE SOURCE_DIR
"""
import json
import os
import random
import re
import select
import socket
import sys
import threading
import unittest

from server_client import ENDLESS, WITH_ENDLESS, Server, large_schema, of_answer

SERVER, _, SOURCE = sys.argv[1:4]
SANITIZED = "GEN_TRIALS" in os.environ
TEXT, CHAT = "/v1/completions", "/v1/chat/completions"
BODY = json.dumps({"prompt": "Once", "max_tokens": 5, "seed": 1}).encode()
NEXT = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"


def head(method, path, *lines, host="localhost", version="1.1"):
    first = [f"{method} {path} HTTP/{version}"] + ([f"Host: {host}"] if host else [])
    return "\r\n".join([*first, *lines, "", ""]).encode()


def post(*lines, body=BODY, host="localhost"):
    return head("POST", TEXT, f"Content-Length: {len(body)}", *lines, host=host) + body


def statuses(answer):
    """The statuses of all responses in what came back."""
    return [int(status) for status in re.findall(rb"(?:^|\n|\})HTTP/1\.1 (\d{3}) ", answer)]


class Requests(unittest.TestCase):
    """Each with one server, whose options do not matter."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(SERVER, SOURCE, "--max-body", "64", "--max-tokens", "1000")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_what_has_two_readings_is_refused(self):
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
        length = f"Content-Length: {len(BODY)}"
        attacks = {
            "a body of GET": head("GET", "/health", f"Content-Length: {len(NEXT)}"),
            "a chunked body of GET": head("GET", "/health", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
            "a length in letters": head("POST", TEXT, "Content-Length: abc"),
            "a length with a sign": head("POST", TEXT, f"Content-Length: +{len(BODY)}") + BODY,
            "a negative length": head("POST", TEXT, "Content-Length: -1"),
            "an empty length": head("POST", TEXT, "Content-Length:"),
            "a length in hexadecimal": head("POST", TEXT, f"Content-Length: {len(BODY):#x}") + BODY,
            "a length of 2 to the 64": head("POST", TEXT, "Content-Length: 18446744073709551616"),
            "a list of lengths": head("POST", TEXT, f"Content-Length: {len(BODY)}, {len(BODY)}") + BODY,
            "two lengths": head("POST", TEXT, length, "Content-Length: 0") + BODY,
            "the same length twice": head("POST", TEXT, length, length) + BODY,
            "two codings": head("POST", TEXT, "Transfer-Encoding: gzip, chunked") + chunks,
            "an unknown coding": head("POST", TEXT, "Transfer-Encoding: xchunked") + chunks,
            "a coding twice": head("POST", TEXT, *["Transfer-Encoding: chunked"] * 2) + chunks,
            "a length and a coding": head("POST", TEXT, length, "Transfer-Encoding: chunked") + chunks,
            "a space before the colon": head("POST", TEXT, length, "Transfer-Encoding : chunked") + chunks,
            "a tab before the colon": head("POST", TEXT, "Content-Length\t: 0"),
            "a folded line": head("POST", TEXT, "X: a", " Transfer-Encoding: chunked", length) + BODY,
            "a line without a colon": head("POST", TEXT, "Content-Length"),
            "a lone line feed": head("GET", "/health").replace(b"\r\n\r\n", b"\nX: a\r\n\r\n"),
            "only line feeds": head("GET", "/health").replace(b"\r\n", b"\n"),
            "a lone carriage return": head("GET", "/health", "X: a\rContent-Length: 5"),
            "a NUL": head("GET", "/health", "X: a\0b"),
            "no Host": head("GET", "/health", host=None),
            "two Hosts": head("GET", "/health", "Host: localhost"),
            "a target with a name": head("GET", "http://localhost/health"),
            "two spaces": head("GET ", "/health"),
            "a small method": head("get", "/health"),
            "a chunked body of HTTP/1.0": head("POST", TEXT, "Transfer-Encoding: chunked", version="1.0") + chunks,
            "a chunk's size with a sign": head("POST", TEXT, "Transfer-Encoding: chunked") + b"+" + chunks,
            "a chunk's size with 0x": head("POST", TEXT, "Transfer-Encoding: chunked") + b"0x" + chunks,
            "a chunk's size after a space": head("POST", TEXT, "Transfer-Encoding: chunked") + b" " + chunks,
            "a chunk that is longer": head("POST", TEXT, "Transfer-Encoding: chunked") + chunks.replace(b"}", b"} "),
            "a chunk's size beyond numbers": head("POST", TEXT, "Transfer-Encoding: chunked") + b"f" * 17 + b"\r\n",
            "a line feed after a size": head("POST", TEXT, "Transfer-Encoding: chunked") + chunks.replace(b"\r", b"", 1),
        }
        for name, attack in attacks.items():
            answer = self.server.raw(attack + NEXT)
            self.assertEqual(statuses(answer), [400], (name, answer))
            self.assertIn(b"\r\nConnection: close\r\n", answer, name)
        self.assertEqual(statuses(self.server.raw(NEXT)), [200])

    def test_too_much_of_a_head(self):
        self.assertEqual(statuses(self.server.raw(head("GET", "/health", "X: " + "a" * 20000))), [431])
        self.assertEqual(statuses(self.server.raw(head("GET", "/health", *["X: a"] * 101))), [431])
        self.assertEqual(statuses(self.server.raw(head("GET", "/health", *["X: a"] * 99))), [200])

    def test_requests_one_behind_the_other(self):
        chunked = head("POST", TEXT, "Transfer-Encoding: chunked") + b"%x;a=b\r\n%s\r\n0\r\nX: a\r\n\r\n" % (len(BODY), BODY)
        answer = self.server.raw(post() + NEXT + b"\r\n" + chunked + NEXT)
        self.assertEqual(statuses(answer), [200] * 4, answer)
        texts = [json.loads(text) for text in re.findall(rb"\r\n(\{\"id\":.*?\})\r\n0\r\n\r\n", answer)]
        self.assertEqual(len(texts), 2, answer)
        self.assertEqual(*map(of_answer, texts))
        self.assertEqual(statuses(self.server.raw(head("GET", "/health", "Connection: keep-alive, Close") + NEXT)), [200])

    def test_who_closes_only_its_direction_is_answered(self):
        whole = of_answer(self.server.post(TEXT, BODY)[1])
        answer = self.server.raw(post())
        self.assertTrue(answer.endswith(b"\r\n0\r\n\r\n"), answer)
        body = b"".join(re.findall(rb"(?:^|\r\n)[0-9a-f]+\r\n(.*?)(?=\r\n)", answer.split(b"\r\n\r\n", 1)[1]))
        self.assertEqual(of_answer(json.loads(body)), whole)
        long = json.dumps({**json.loads(BODY), "max_tokens": 500, "ignore_eos": True, "stream": True}).encode()
        self.assertIn(b"data: [DONE]", self.server.raw(post(body=long)))

    def test_a_client_that_asks_before_it_sends(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=120) as client:
            client.sendall(head("POST", TEXT, f"Content-Length: {len(BODY)}", "Expect: 100-continue"))
            self.assertEqual(client.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            client.sendall(BODY)
            self.assertEqual(client.recv(13), b"HTTP/1.1 200 ")
            client.shutdown(socket.SHUT_RDWR)
        answer = self.server.raw(head("POST", TEXT, "Content-Length: 99999999", "Expect: 100-continue"))
        self.assertEqual(statuses(answer), [413])

    def test_mutations(self):
        draw = random.Random(1)
        pieces = [b"\r\n", b"\n", b"\0", b":", b" ", b"\t", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
                  b"0\r\n\r\n", b"ffffffffffffffff", b"-1", b"\xff", b"Host: a\r\n", b"HTTP/1.1", b"Expect: 100-continue\r\n"]
        for _ in range(100 if SANITIZED else 400):
            data = bytearray(draw.choice((post(), NEXT, post() + NEXT)))
            for _ in range(draw.randrange(1, 4)):
                start = draw.randrange(len(data))
                data[start:start + draw.choice((0, 0, 1, 5))] = draw.choice(pieces)
            answer = self.server.raw(bytes(data))
            self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 "), (data, answer))
        self.server.wait_until_idle()
        self.assertEqual(self.server.post(TEXT, BODY)[0], 200)


class Pages(unittest.TestCase):
    def expect(self, server, request, status, field=None):
        answer = server.raw(request)
        self.assertEqual(statuses(answer), [status], (request, answer))
        if field:
            self.assertIn(f"\r\n{field}\r\n", answer.split(b"\r\n\r\n")[0].decode() + "\r\n")
        elif field is None:
            self.assertNotIn(b"Access-Control-", answer)
        return answer

    def test_pages_from_elsewhere_are_refused(self):
        with Server(SERVER, SOURCE) as server:
            json_type, here = "Content-Type: application/json", f"localhost:{server.port}"
            self.expect(server, post(json_type), 200)
            # By another name: a page whose name resolves to this machine could read what it gets.
            for host in ("evil.example", f"evil.example:{server.port}", "localhost.evil.example", "127.0.0.1.evil.example"):
                self.expect(server, post(json_type, host=host), 403)
                self.expect(server, head("GET", "/health", host=host), 403)
            for host in ("", "local host", "localhost:x", "[::1", "localhost:123456"):
                self.assertIn(statuses(server.raw(head("GET", "/health", f"Host: {host}", host=None)))[0], (400, 403))
            for host in (here, "LOCALHOST", "127.0.0.1", f"127.0.0.1:{server.port}", "[::1]:80", "192.168.1.5:8080", "a.localhost"):
                self.expect(server, head("GET", "/health", host=host), 200)
            # From a page of somewhere else.
            for origin in ("http://evil.example", "null", "http://localhost", "http://localhost:1", "https://evil.example:8080"):
                for kind in (json_type, "Content-Type: text/plain", "X: a"):
                    self.expect(server, post(kind, f"Origin: {origin}", host=here), 403)
                asks = head("OPTIONS", TEXT, f"Origin: {origin}", "Access-Control-Request-Method: POST", host=here)
                self.expect(server, asks, 403)
            self.expect(server, post(json_type, f"Origin: http://{here}", host=here), 200)
            self.expect(server, post(json_type, f"Origin: https://{here}", host=here), 200)

    def test_bodies_that_are_not_said_to_be_json(self):
        with Server(SERVER, SOURCE) as server:
            form = "Content-Type: application/x-www-form-urlencoded"  # what curl -d says
            for lines in ([], [form], ["Content-Type: application/json; charset=utf-8"], ["Content-Type: Application/JSON"]):
                self.expect(server, post(*lines), 200)
            for kind in ("text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x", "application/jsonx",
                         "text/plain, application/json", ""):
                self.expect(server, post(f"Content-Type: {kind}"), 415)
            # A page may send these anywhere without asking.
            for lines in ([form, "Sec-Fetch-Site: cross-site"], ["Sec-Fetch-Site: same-origin"],
                          [form, "Origin: http://localhost"]):
                self.expect(server, post(*lines), 415)

    def test_pages_that_are_allowed(self):
        page = "https://chat.example"
        with Server(SERVER, SOURCE, "--allow-origin", page, "--allow-host", "Model.example") as server:
            origin, allowed = f"Origin: {page}", f"Access-Control-Allow-Origin: {page}"
            self.expect(server, post("Content-Type: application/json", origin, host="model.example:80"), 200, allowed)
            self.expect(server, post("Content-Type: application/json", "Origin: https://chat.example:444"), 403)
            asks = head("OPTIONS", CHAT, origin, "Access-Control-Request-Method: POST",
                        "Access-Control-Request-Headers: content-type,authorization,x-stainless-os")
            answer = self.expect(server, asks, 204, allowed)
            self.assertIn(b"\r\nAccess-Control-Allow-Headers: content-type,authorization,x-stainless-os\r\n", answer)
            self.assertIn(b"\r\nAccess-Control-Allow-Methods: GET, POST\r\n", answer)
            # An error can be read by the page, too.
            self.expect(server, post("Content-Type: application/json", origin, body=b"{"), 400, allowed)
            self.expect(server, head("GET", "/health", host="other.example"), 403)
        with Server(SERVER, SOURCE, "--allow-origin", "*", "--allow-host", "*") as server:
            self.expect(server, post("Content-Type: application/json", "Origin: http://any", host="any.example"), 200,
                        "Access-Control-Allow-Origin: http://any")


class Places(unittest.TestCase):
    def test_idle_connections_keep_nobody_out(self):
        # Nothing here waits for a clock: the deadline is an hour.
        with Server(SERVER, SOURCE, "--connections", "4", "--request-timeout", "3600") as server:
            idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
            for number, client in enumerate(idle):
                client.sendall((b"GET /he", post()[:-5])[number % 2])
            left = set(idle)
            while len(left) > 4:  # the others have had to go
                for client in select.select(left, [], [])[0]:
                    left.discard(client)
            self.assertEqual(server.get("/health")[0], 200)
            self.assertEqual(server.post(TEXT, BODY)[0], 200)
            for client in idle:
                client.close()

    def test_a_request_has_to_come_in_time(self):
        with Server(SERVER, SOURCE, "--request-timeout", "1") as server:
            for begun in (b"GET /health HTTP/1.1\r\n", head("POST", TEXT, "Content-Length: 1000000")):
                with socket.create_connection(("127.0.0.1", server.port), timeout=120) as client:
                    client.sendall(begun)
                    client.settimeout(0.05)
                    answer = b""
                    while not answer:  # a byte now and then, for ever
                        try:
                            client.sendall(b"A")
                            answer = client.recv(65536)
                        except TimeoutError:
                            pass
                    self.assertEqual(statuses(answer), [408])

    def test_a_place_is_kept_for_who_asks_how_it_is(self):
        with Server(SERVER, SOURCE, "--connections", "3", *WITH_ENDLESS) as server:
            streams = []
            for _ in range(2):
                streams.append(server.connect())
                streams[-1].request("POST", TEXT, json.dumps({**ENDLESS, "stream": True}))
                streams[-1].getresponse().readline()
            status, answer = server.post(TEXT, BODY)
            self.assertEqual((status, answer["error"]["code"]), (503, "overloaded"))
            self.assertEqual(server.json("/health")["clients"], 2)
            for stream in streams:
                stream.sock.close() if stream.sock else stream.close()


class Memory(unittest.TestCase):
    def peak(self, server, figure):
        with open(f"/proc/{server.process.pid}/status") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith(figure))

    @unittest.skipIf(SANITIZED or not os.path.exists("/proc/self/status"), "no figures of memory")
    def test_prompts_that_cannot_fit_take_no_memory(self):
        size = 4000000
        bodies = [(TEXT, {"prompt": "a" * size}), (CHAT, {"messages": [{"role": "user", "content": "a" * size}]})] * 4
        with Server(SERVER, SOURCE) as server:
            self.assertEqual(server.post(TEXT, BODY)[0], 200)
            before = self.peak(server, "VmHWM")
            refused = []

            def send(path, body):
                refused.append(server.post(path, body))

            threads = [threading.Thread(target=send, args=one) for one in bodies]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for status, answer in refused:
                self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"), answer)
            self.assertEqual(len(refused), len(bodies))
            # Each body is there as it came, as text, and as a prompt; half as much again for the allocator.
            self.assertLess(self.peak(server, "VmHWM") - before, 8 * size * 5)

    @unittest.skipIf(SANITIZED or not os.path.exists("/proc/self/status"), "no figures of memory")
    def test_names_that_are_no_strings_are_not_read(self):
        size = 4000000
        bodies = [b"{" + b"[" * (size // 2) + b"]" * (size // 2) + b":1}", b"{[" + b'{"":0},' * (size // 7) + b"0]:1}"]
        for body in bodies:
            with Server(SERVER, SOURCE) as server:
                self.assertEqual(server.post(TEXT, BODY)[0], 200)
                before = self.peak(server, "VmHWM")
                status, answer = server.post(TEXT, body)
                self.assertEqual((status, answer["error"]["code"]), (400, "invalid_json"))
                self.assertLess(self.peak(server, "VmHWM") - before, 3 * size)

    @unittest.skipIf(SANITIZED or not os.path.exists("/proc/self/status"), "no figures of memory")
    def test_numbers_take_little_memory(self):
        size = 4000000
        with Server(SERVER, SOURCE) as server:
            self.assertEqual(server.post(TEXT, BODY)[0], 200)
            before = self.peak(server, "VmHWM")
            self.assertEqual(server.post(TEXT, b'{"x":[' + b"0," * (size // 2) + b"0]}")[0], 400)
            self.assertLess(self.peak(server, "VmHWM") - before, 3 * size)

    @unittest.skipIf(SANITIZED or not os.path.exists("/proc/self/status"), "no figures of memory")
    def test_large_grammars_give_their_memory_back(self):
        with Server(SERVER, SOURCE) as server:
            self.assertEqual(server.post(TEXT, BODY)[0], 200)
            before = self.peak(server, "VmRSS")
            threads = [threading.Thread(target=server.post, args=(TEXT, {
                "prompt": "a", "max_tokens": 2, "response_format": large_schema(number)})) for number in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            server.wait_until_idle()
            # The server keeps 64 MiB of them, and the allocator as much; ten take five times that while they are made.
            self.assertLess(self.peak(server, "VmRSS") - before, 192 << 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
