# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for tokenizer_fuzz into the folder given: vocabularies and models in its own coding, two small models.

usage: tokenizer_seeds.py FOLDER
"""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["ab the  ab\n", "a<s>b \u65e5\u672c \U0001f999", "", " \t\r\n  x12345's", "<|im_end|>\u2581\u00e9"]


def tokens(r):
    """A count and that many tokens: length, text, type."""
    out = bytearray([6])
    for text in (b"the", b"<x>", b"\xc3\xa9", b" a", b"ba"):
        out += bytes([len(text)]) + text + bytes([r.choice([0, 163, 164, 161, 166])])
    return out + bytes([200, r.randrange(256), r.randrange(256), 0])


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    r = random.Random(1)
    for number in range(40):
        kind = number % 2
        body = bytearray([kind, r.choice([r.randrange(16), 160 + r.randrange(16)])]) + tokens(r)
        options = r.choice([1, 0, 33, 65, 7])
        body.append(options)
        if options & 64:
            body += bytes(r.choice([0, 130]) if i % 2 == 0 else r.randrange(8) for i in range(6))
        if kind == 0:
            body += bytes([0, number // 2 % 8 * 32])
            if number // 2 % 8 == 1:
                body.append(0)
        else:
            body += bytes([3] + [r.randrange(256) for _ in range(9)])
        body += r.choice(TEXTS).encode() * r.choice([1, 1, 60])
        with open(os.path.join(folder, f"vocabulary-{number:02}"), "wb") as out:
            out.write(body)
    for number in range(40):
        body = bytearray([3, r.randrange(32)]) + tokens(r) + r.choice(TEXTS).encode() * r.choice([1, 1, 60])
        with open(os.path.join(folder, f"model-{number:02}"), "wb") as out:
            out.write(body)
    for name in ("bpe", "unigram"):
        with open(os.path.join(HERE, "..", "tokenizer", "data", name + ".model"), "rb") as model:
            data = model.read()
        with open(os.path.join(folder, name), "wb") as out:
            out.write(b"\x02" + data)


if __name__ == "__main__":
    main()
