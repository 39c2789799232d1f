# SPDX-License-Identifier: Apache-2.0
"""Reads a bundled GGUF file back: its keys, and its weights as model.py names and orders them.

What a quantised file stands for is what the heads must fit, so they are trained on these values and not on a
checkpoint. Only the types that export_gguf.py writes are known: F32, F16, Q8_0, I64.
"""
import struct

import numpy
import torch

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
F32, F16, Q8_0, I64 = 0, 1, 8, 27
ALIGNMENT = 32
NAMES = {"attn_norm": "attn_norm", "attn_q": "q", "attn_k": "k", "attn_v": "v", "attn_output": "o",
         "ffn_norm": "ffn_norm", "ffn_gate": "gate", "ffn_up": "up", "ffn_down": "down"}


class Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def scalar(self, form):
        (x,) = struct.unpack_from(form, self.raw, self.at)
        self.at += struct.calcsize(form)
        return x

    def string(self):
        size = self.scalar("<Q")
        self.at += size
        return self.raw[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.scalar("<I"), self.scalar("<Q")
            return [self.value(kind) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def tensor(raw, kind, shape, at):
    count = int(numpy.prod(shape))
    if kind == Q8_0:
        block = numpy.frombuffer(raw, numpy.uint8, count // 32 * 34, at).reshape(-1, 34)
        scale = block[:, :2].copy().view("<f2").astype(numpy.float32)
        flat = scale * block[:, 2:].view(numpy.int8)
    else:
        flat = numpy.frombuffer(raw, {F32: "<f4", F16: "<f2", I64: "<i8"}[kind], count, at)
        flat = flat.astype(numpy.int64 if kind == I64 else numpy.float32)
    return torch.from_numpy(flat.reshape(shape).copy())


def read(path):
    """(keys, tensors) of a file; shapes have the contiguous dimension last."""
    with open(path, "rb") as file:
        raw = file.read()
    r = Reader(raw)
    assert raw[:4] == b"GGUF" and struct.unpack_from("<I", raw, 4) == (3,), path
    r.at = 8
    tensors, keys = r.scalar("<Q"), r.scalar("<Q")
    meta = {}
    for _ in range(keys):
        name = r.string()
        meta[name] = r.value(r.scalar("<I"))
    infos = []
    for _ in range(tensors):
        name = r.string()
        shape = [r.scalar("<Q") for _ in range(r.scalar("<I"))]
        infos.append((name, shape[::-1], r.scalar("<I"), r.scalar("<Q")))
    base = -(-r.at // ALIGNMENT) * ALIGNMENT
    return meta, {name: tensor(raw, kind, shape, base + at) for name, shape, kind, at in infos}


def halves(weight, head_dim):
    """Rows of Q or K moved from adjacent pairs (2 i, 2 i + 1) to two halves (i, i + half)."""
    rows = weight.reshape(-1, head_dim // 2, 2, weight.shape[1])
    return rows.transpose(1, 2).reshape(weight.shape).contiguous()


def read_target(path):
    """(keys, weights, shape) of a bundled Llama for model.py."""
    meta, tensors = read(path)
    shape = dict(dim=meta["llama.embedding_length"], ffn=meta["llama.feed_forward_length"],
                 layers=meta["llama.block_count"], heads=meta["llama.attention.head_count"],
                 kv_heads=meta["llama.attention.head_count_kv"], head_dim=meta["llama.attention.key_length"])
    weights = {"embed": tensors["token_embd.weight"], "norm": tensors["output_norm.weight"]}
    for n in range(shape["layers"]):
        for theirs, ours in NAMES.items():
            weight = tensors[f"blk.{n}.{theirs}.weight"]
            weights[f"{n}.{ours}"] = halves(weight, shape["head_dim"]) if ours in ("q", "k") else weight
    return meta, weights, shape
