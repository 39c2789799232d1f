#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for adapter_fuzz: adapters of both forms, good ones and some that are refused.

usage: adapter_seeds.py FOLDER
"""
import pathlib
import struct
import sys

from gguf_seeds import gguf

KEYS = [("general.type", "string", "adapter"), ("general.architecture", "string", "llama"),
        ("adapter.type", "string", "lora"), ("adapter.lora.alpha", "f32", 4.0)]
LAYER_KEYS = [("lora.rank", "u32", 2), ("lora.alpha", "f32", 1.0)]
QKV, EXPERTS, EMBEDDING = "blk.0.attn_qkv.weight", "blk.0.ffn_down_exps.weight", "token_embd.weight"


def floats(dims, value=0.25):
    count = 1
    for n in dims:
        count *= n
    return struct.pack(f"<{count}f", *[value * (i % 7 - 3) for i in range(count)])


def pair(name, a, b, by_layer=False, value=0.25):
    names = (f"lora_a.{name}", f"lora_b.{name}") if by_layer else (f"{name}.lora_a", f"{name}.lora_b")
    return [(full, 0, dims, floats(dims, value)) for full, dims in zip(names, (a, b))]


def half(name, a, b):
    return [(f"{name}.lora_{side}", 1, dims, bytes(2 * dims[0] * dims[1])) for side, dims in (("a", a), ("b", b))]


plain = pair(QKV, (8, 2), (2, 12))
SEEDS = {
    "plain": gguf(KEYS, plain),
    "all": gguf(KEYS, plain + pair(EXPERTS, (8, 3, 3), (3, 4, 3)) + pair(EMBEDDING, (2, 9), (2, 8))),
    "half": gguf(KEYS, half(QKV, (8, 1), (1, 12))),
    "no_alpha": gguf(KEYS[:3], plain),
    "activated": gguf(KEYS + [("adapter.alora.invocation_tokens", "[u32]", [3, 4])], plain),
    "by_layer": gguf(LAYER_KEYS, pair(QKV, (8, 2), (2, 12), True)),
    "bare_name": gguf(LAYER_KEYS, pair("blk.0.attn_qkv", (8, 2), (2, 12), True)),
    "norm": gguf(KEYS, pair("blk.0.attn_norm.weight", (8, 2), (2, 1))),
    "unknown": gguf(KEYS, pair("blk.9.attn_qkv.weight", (8, 2), (2, 12))),
    "one_half": gguf(KEYS, plain[:1]),
    "too_large": gguf(KEYS[:3] + [("adapter.lora.alpha", "f32", 3e38)], pair(QKV, (8, 1), (1, 12), value=1e30)),
    "shapes": gguf(KEYS, pair(QKV, (8, 2), (3, 12))),
    "outside": gguf(KEYS + [("adapter.alora.invocation_tokens", "[u32]", [9])], plain),
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, data in SEEDS.items():
    (folder / name).write_bytes(data)
