#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for importance_fuzz: matrices of both forms, good ones and some that are refused.

usage: importance_seeds.py FOLDER
"""
import pathlib
import struct
import sys

from gguf_seeds import gguf

KEYS = [("general.type", "string", "imatrix"), ("imatrix.datasets", "[string]", ["text"]), ("imatrix.chunk_count", "u32", 2),
        ("imatrix.chunk_size", "u32", 512)]
Q, EXPERTS = "blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight"


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def sums(name, dims, values, counts):
    shape = (1, len(counts)) if len(counts) > 1 else (1,)
    return [(name + ".in_sum2", 0, dims, floats(*values)), (name + ".counts", 0, shape, floats(*counts))]


def entry(name, calls, values):
    return struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", calls, len(values)) + floats(*values)


def entries(*all_of, end=struct.pack("<ii4s", 2, 4, b"text"), count=None):
    return struct.pack("<i", len(all_of) if count is None else count) + b"".join(all_of) + end


plain = sums(Q, (4,), (1, 2, 3, 4), (8,))
stack = sums(EXPERTS, (2, 3), (1, 2, 0, 0, 5, 6), (4, 0, 2))
one = entry(Q, 2, (1, 2, 3, 4))
nan, infinite = float("nan"), float("inf")
SEEDS = {
    "plain": gguf(KEYS, plain),
    "experts": gguf(KEYS, plain + stack),
    "no_keys": gguf([], plain),
    "a_model": gguf([("general.type", "string", "model")], plain),
    "no_counts": gguf(KEYS, plain[:1]),
    "no_sums": gguf(KEYS, plain[1:]),
    "sizes": gguf(KEYS, sums(Q, (5,), (1, 2, 3, 4, 5), (1, 2))),
    "half": gguf(KEYS, [(Q + ".in_sum2", 1, (4,), bytes(8)), plain[1]]),
    "negative": gguf(KEYS, sums(Q, (2,), (1, -2), (8,))),
    "nan": gguf(KEYS, sums(Q, (2,), (1, nan), (8,))),
    "count": gguf(KEYS, sums(Q, (2,), (1, 2), (nan,))),
    "part_count": gguf(KEYS, sums(Q, (2,), (1, 2), (0.5,))),
    "nameless": gguf(KEYS, sums("", (2,), (1, 2), (3,))),
    "empty": gguf(KEYS, []),
    "old": entries(one, entry(EXPERTS, 0, (1, 1))),
    "old_short": entries(one, end=b""),
    "old_windows": entries(one, end=struct.pack("<i", 3)),
    "old_twice": entries(one, one),
    "old_infinite": entries(entry(Q, 1, (infinite,))),
    "old_many": entries(one, count=0x7FFFFFFF),
    "old_values": struct.pack("<ii1sii", 1, 1, b"a", 1, 0x7FFFFFFF),
    "old_name": struct.pack("<ii", 1, 0x7FFFFFFF) + b"a",
    "old_tail": entries(one, end=struct.pack("<iii", 1, 0, 7)),
    "zeros": bytes(64),
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, data in SEEDS.items():
    (folder / name).write_bytes(data)
