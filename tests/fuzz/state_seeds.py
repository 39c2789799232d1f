# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for state_fuzz into the folder given: saved caches, by docs/state-format.md. Sums are the target's work.

usage: state_seeds.py FOLDER
"""
import os
import random
import struct
import sys


def section(name, payload):
    filled = payload + bytes(-len(payload) % 8)
    return name + struct.pack("<IQ", 0, len(payload)) + filled


def frame(kind, sections):
    body = b"".join(sections)
    return b"GENSTATE" + struct.pack("<IIQ", 1, kind, 32 + len(body)) + body + bytes(8)


def numbers(*values):
    return struct.pack(f"<{len(values)}i", *values)


def tensors(r, form, parameter, lengths, layer_bytes):
    out = [section(b"TENS", form.ljust(8, b"\0") + numbers(parameter, len(lengths), min(lengths)))]
    for length in lengths:
        payload = bytes(r.randrange(64) for _ in range(layer_bytes(length)))
        out.append(section(b"LAYR", numbers(*((2, length, 6) if length else (0, 0, 0)), 0) + payload))
    return frame(1, out)


def grouped(scale, code_bytes):
    """Two lanes of groups of 128, keys and values: scales, codes, then float32 of what makes no group."""
    def size(length):
        full, rest = divmod(length * 6, 128)
        return 4 * (full * (scale + code_bytes) + 4 * rest)
    return size


def entries_of(r, entries, formats, form, row, rope=(2, 16)):
    tiles = (entries + 15) // 16
    out = [section(b"CACH", numbers(2, entries, entries))]
    for _ in range(2):
        head = numbers(2, 16, 8, 0, *rope, formats[0], formats[1], form, 0)
        out.append(section(b"LAYR", head + bytes(r.randrange(64) for _ in range(tiles * row))))
    return out


def model_cache(*arguments):
    return frame(2, entries_of(*arguments))


def pooled(r, length, kept, row):
    head = [section(b"POOL", numbers(4, length))]
    return frame(2, head + entries_of(r, length // 4 + length % 4, (0, 0), 0, row, (0, 0)) +
                 entries_of(r, kept, (0, 0), 0, row, (0, 0)))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    r = random.Random(1)
    seeds = {
        "f32": tensors(r, b"f32", 0, (7, 9), lambda n: 2 * 2 * n * 6 * 4),
        "f16": tensors(r, b"f16", 0, (7, 7), lambda n: 2 * 2 * n * 6 * 2),
        "fp8": tensors(r, b"fp8", 0, (3, 0), lambda n: 2 * 2 * n * (4 + 6)),
        "q4": tensors(r, b"q4", 0, (22, 5), grouped(4, 64)),
        "q3": tensors(r, b"q3", 0, (22, 22), grouped(16, 48)),
        "mean": tensors(r, b"mean", 4, (11, 8), lambda n: 2 * 2 * (n // 4 + n % 4) * 6 * 4),
        "empty": tensors(r, b"f32", 0, (0, 0), lambda n: 0),
        # Tiles of sixteen: keys of two heads of 16 elements, values of two of 8.
        "model-fp32": model_cache(r, 19, (0, 0), 0, 16 * 2 * (16 + 8) * 4),
        "model-q4": model_cache(r, 19, (3, 3), 2, 16 * 2 * ((2 + 8) + (2 + 16))),
        "pooled": pooled(r, 11, 4, 16 * 2 * (16 + 8) * 4),
        "pooled-cut": pooled(r, 9, 0, 16 * 2 * (16 + 8) * 4),
        "model-q3": model_cache(r, 16, (4, 4), 2, 16 * (2 * (6 + 3) + 16 + 16)),
    }
    for name, seed in seeds.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(seed)


if __name__ == "__main__":
    main()
