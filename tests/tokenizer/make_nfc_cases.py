#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/nfc.txt, what Python's unicodedata says of form C, for nfc_test.cpp.

usage: make_nfc_cases.py >data/nfc.txt

A line "t TEXT TEXT" is a text and its form C, both as code points in hexadecimal with dots between; a line
"b FIRST HASH" is 4096 code points from FIRST on: the FNV-1a hash of the forms C of "a", the character, U+0323, U+0301,
the character, U+0300 and "|", for each of them in turn, in UTF-8.
"""
import random
import unicodedata


def nfc(text):
    return unicodedata.normalize("NFC", text)


def codes(text):
    return ".".join(f"{ord(c):X}" for c in text)


print(f"# by make_nfc_cases.py from Unicode {unicodedata.unidata_version}")
for first in range(0, 0x110000, 0x1000):
    value = 14695981039346656037
    for i in range(first, first + 0x1000):
        if 0xD800 <= i <= 0xDFFF:
            continue
        for byte in nfc(f"a{chr(i)}\u0323\u0301{chr(i)}\u0300|").encode():
            value = (value ^ byte) * 1099511628211 % 2**64
    print(f"b {first:X} {value:016X}")

draw = random.Random(5)
changed = [chr(i) for i in range(0x110000) if unicodedata.decomposition(chr(i))[:1] not in ("", "<")]
marks = [chr(i) for i in range(0x110000) if unicodedata.combining(chr(i))]
pools = [changed, marks, ["\u0301", "\u0323", "\u0308", "\u031b"], list("aeioudAEIOUDs <\u00ea\u01b0"),
         [chr(i) for r in ((0x1100, 0x1113), (0x1161, 0x1176), (0x11A7, 0x11C3)) for i in range(*r)],
         [chr(0xAC00 + 28 * i) for i in range(399)], [chr(i) for i in range(0xAC00, 0xD7A4)],
         list("\U0001d15e\U0001d165\U0001d16e\u0344\u0958\u09c7\u09be\u0f71\u0f72\u212b\u2126\u1e9b\u0374\u304b\u3099")]
for _ in range(300):
    text = "".join(draw.choice(draw.choice(pools)) for _ in range(draw.randint(1, 9)))
    print("t", codes(text), codes(nfc(text)))
