#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the keys and tensors of a GGUF file of any family: what docs/new-model.md begins with.

usage: list_gguf.py MODEL.gguf
"""
import struct
import sys

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
SHOWN = 12  # elements of an array


def read(file, form):
    (value,) = struct.unpack("<" + form, file.read(struct.calcsize(form)))
    return value


def read_text(file):
    return file.read(read(file, "Q")).decode("utf-8", "replace")


def read_value(file, kind):
    if kind == STRING:
        return read_text(file)
    if kind == ARRAY:
        element, count = read(file, "I"), read(file, "Q")
        values = [read_value(file, element) for _ in range(count)]
        more = f", … {count} in all" if count > SHOWN else ""
        return "[" + ", ".join(repr(value) for value in values[:SHOWN]) + more + "]"
    return read(file, NUMBERS[kind])


def main():
    with open(sys.argv[1], "rb") as file:
        if file.read(4) != b"GGUF":
            sys.exit(f"{sys.argv[1]} is not a GGUF file")
        read(file, "I")
        tensors, keys = read(file, "Q"), read(file, "Q")
        for _ in range(keys):
            key = read_text(file)
            print(key, "=", str(read_value(file, read(file, "I")))[:400].replace("\n", "\\n"))
        for _ in range(tensors):
            name = read_text(file)
            shape = [read(file, "Q") for _ in range(read(file, "I"))]
            print(name, shape, "type", read(file, "I"))
            read(file, "Q")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
