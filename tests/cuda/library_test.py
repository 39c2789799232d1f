#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libgenerate-cuda.so exports one function, and loads and says how it is on any machine, with a driver or without.

usage: library_test.py <libgenerate-cuda.so>
"""
import ctypes
import subprocess
import sys

path = sys.argv[1]
lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout.splitlines()
names = [line.split()[-1] for line in lines]
if names != ["gen_backend_v1_get"]:
    sys.exit(f"{path} exports {' '.join(names[:20])}")


class Backend(ctypes.Structure):
    """The beginning of gen_backend_v1 (engine/backend/backend.h)."""
    _fields_ = [("struct_size", ctypes.c_uint32), ("build_id", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("why_not", ctypes.CFUNCTYPE(ctypes.c_char_p))]


get = ctypes.CDLL(path).gen_backend_v1_get
get.restype = ctypes.POINTER(Backend)
table = get().contents
reason = table.why_not()
print(table.name.decode(), "of build", table.build_id.decode(), "-", reason.decode() if reason else "available")
sys.exit(0 if table.name == b"cuda" and reason != b"" else 1)
