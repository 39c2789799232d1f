#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for model_fuzz into the folder given: a model of two layers of every family, and some with keys that are odd.

usage: model_seeds.py FOLDER
"""
import pathlib
import random
import struct
import sys

from gguf_seeds import gguf, low_bit_tensors

WIDTH, HEADS, KV_HEADS, HEAD, FEED_FORWARD, VOCAB = 32, 2, 1, 16, 32, 20
INNER, STATE, STATE_HEADS, GROUPS = 32, 16, 4, 2
# What of a family differs from a llama: norms (before, after), q and k norms, a gate, the feed-forward, biases.
FAMILIES = {
    "llama": {}, "granite": {}, "smollm3": {}, "ernie4_5": {}, "gemma": {}, "qwen2": {"bias": True}, "qwen3": {"norms": HEAD},
    "gemma2": {"after": True}, "gemma3": {"after": True, "norms": HEAD},
    "olmo2": {"before": False, "after": True, "norms": None}, "exaone4": {"before": False, "after": True, "norms": HEAD},
    "glm4": {"after": True, "fused": True}, "phi3": {"fused": True}, "arcee": {"plain": True},
    "seed_oss": {"ffn_norm": "post_attention_norm"}, "minicpm": {}, "mistral3": {}, "qwen2vl": {"bias": True},
    "hunyuan-dense": {"norms": HEAD}, "qwen3vl": {"norms": HEAD}, "muse-glimmer": {"after": True, "norms": HEAD, "gate": True},
    "gemma4": {"after": True, "norms": HEAD}, "internlm2": {},
    "mamba": {"mamba": 1, "only": True}, "mamba2": {"mamba": 2, "only": True}, "granitehybrid": {"mamba": 2},
    "falcon-h1": {"mamba": 2, "beside": True}, "nemotron_h": {"mamba": 2, "alone": True, "plain": True},
    "jamba": {"mamba": 1, "part_norms": True},
}
ODD = [
    [("attention.sliding_window", "u32", 3), ("attention.sliding_window_pattern", "[u32]", [1, 0])],
    [("rope.scaling.type", "string", "yarn"), ("rope.scaling.factor", "f32", 4.0),
     ("rope.scaling.original_context_length", "u32", 8)],
    [("rope.scaling.type", "string", "llama3"), ("rope.scaling.factor", "f32", 4.0), ("attention.scale", "f32", 0.5)],
    [("rope.scaling.factor", "f32", 2e-6), ("attention.chunk_size", "u32", 2)],
    [("attention.temperature_scale", "f32", 0.5), ("rope.scaling.original_context_length", "u32", 4)],
    [("attention.shared_kv_layers", "u32", 1), ("attention.key_length_swa", "u32", 8), ("attention.value_length_swa", "u32", 8)],
    [("attn_logit_softcapping", "f32", 2.0), ("final_logit_softcapping", "f32", 0.0), ("rope.dimension_sections", "[u32]", [4, 4])],
]


# In the form of ollama's own engine: the architecture's name, or more tensors.
OLLAMAS = {"qwen2vl": ("qwen25vl", []), "olmo2": ("olmo3", []), "gemma3": ("gemma3", ["mm.0", "v.blk.0.x"]),
           "mistral3": ("mistral3", ["mm.0"]), "nemotron_h": ("nemotron_h_omni", ["a.x"])}


def model(family, odd=(), name=None, more=(), change=None):
    """change: gets the list of tensors before the file is made."""
    has = FAMILIES[family]
    r = random.Random(family)
    tensors = []

    def add(name, *dims):
        count = 1
        for n in dims:
            count *= n
        tensors.append((name, 0, list(dims), b"".join(struct.pack("<f", r.uniform(-0.5, 0.5)) for _ in range(count))))

    def mamba(block):
        """The tensors of a recurrence with INNER channels."""
        first = has["mamba"] == 1
        channels = INNER if first else INNER + 2 * GROUPS * STATE
        heads = INNER if first else STATE_HEADS
        add(block + "ssm_in.weight", WIDTH, INNER + channels + (0 if first else STATE_HEADS))
        add(block + "ssm_conv1d.weight", 3, channels)
        add(block + "ssm_conv1d.bias", channels)
        if first:
            add(block + "ssm_x.weight", INNER, STATE_HEADS + 2 * STATE)
            add(block + "ssm_dt.weight", STATE_HEADS, INNER)
        add(block + "ssm_dt.bias", heads)
        add(block + "ssm_a", STATE if first else 1, heads)
        add(block + "ssm_d", *([heads] if first else [1, heads]))
        if not first:
            add(block + "ssm_norm.weight", INNER // GROUPS, GROUPS)
        if has.get("part_norms"):
            for part, size in (("dt", STATE_HEADS), ("b", STATE), ("c", STATE)):
                add(f"{block}ssm_{part}_norm.weight", size)
        add(block + "ssm_out.weight", INNER, WIDTH)

    # Of two blocks the first recurs and the other attends, unless all do both or only one.
    recurs = [i == 0 or "only" in has or "beside" in has if "mamba" in has else False for i in range(2)]
    attends = [not recurs[i] or "beside" in has for i in range(2)]
    feeds = ["only" not in has and "alone" not in has for i in range(2)]
    q, kv = HEADS * HEAD, KV_HEADS * HEAD
    add("token_embd.weight", WIDTH, VOCAB)
    add("output_norm.weight", WIDTH)
    for i in range(2):
        block = f"blk.{i}."
        if has.get("before", True):
            add(block + "attn_norm.weight", WIDTH)
        if has.get("before", True) and feeds[i]:
            add(block + has.get("ffn_norm", "ffn_norm") + ("" if "beside" in has else ".weight"), WIDTH)
        if recurs[i]:
            mamba(block)
        for name, rows in (("q", q), ("k", kv), ("v", kv)) if attends[i] else ():
            add(f"{block}attn_{name}.weight", WIDTH, rows)
            if has.get("bias"):
                add(f"{block}attn_{name}.bias", rows)
        if "norms" in has:
            add(block + "attn_q_norm.weight", has["norms"] or q)
            add(block + "attn_k_norm.weight", has["norms"] or kv)
        if has.get("gate"):
            add(block + "attn_gate.weight", WIDTH, q)
        if attends[i]:
            add(block + "attn_output.weight", q, WIDTH)
        if has.get("after"):
            add(block + "post_attention_norm.weight", WIDTH)
            add(block + "post_ffw_norm.weight", WIDTH)
        if not feeds[i]:
            continue
        if not has.get("fused") and not has.get("plain"):
            add(block + "ffn_gate.weight", WIDTH, FEED_FORWARD)
        add(block + "ffn_up.weight", WIDTH, FEED_FORWARD * (2 if has.get("fused") else 1))
        add(block + "ffn_down.weight", FEED_FORWARD, WIDTH)
    for tensor in more:
        add(tensor, 4)
    family = name or family
    keys = [("general.architecture", "string", family)]
    # Without it these are refused.
    windowed = family in ("gemma3", "gemma4") and not any(name == "attention.sliding_window" for name, _, _ in odd)
    needed = [("attention.sliding_window", "u32", 3)] if windowed else []
    keys += [(f"{family}.{name}", kind, value) for name, kind, value in [
        ("context_length", "u32", 16), ("block_count", "u32", 2), ("embedding_length", "u32", WIDTH),
        ("feed_forward_length", "[u32]", [FEED_FORWARD if fed else 0 for fed in feeds]) if "alone" in has
        else ("feed_forward_length", "u32", FEED_FORWARD),
        ("attention.head_count", "u32", HEADS),
        ("attention.head_count_kv", "[u32]", [KV_HEADS if seen else 0 for seen in attends]) if "mamba" in has
        else ("attention.head_count_kv", "u32", KV_HEADS),
        ("attention.layer_norm_rms_epsilon", "f32", 1e-5), *needed, *odd]]
    if "mamba" in has:
        keys += [(f"{family}.ssm.{name}", "u32", value) for name, value in [
            ("conv_kernel", 3), ("inner_size", INNER), ("state_size", STATE), ("time_step_rank", STATE_HEADS),
            ("group_count", GROUPS)]]
    if change is not None:
        change(tensors)
    return gguf(keys, tensors)


def retyped(name, number, weights, size):
    """Changes a matrix to a type of so many weights and bytes a block, with random blocks."""
    def change(tensors):
        r = random.Random(number)
        for i, (one, _, dims, _) in enumerate(tensors):
            if one == name:
                count = dims[0] * dims[1] // weights
                tensors[i] = (one, number, dims, bytes(r.randrange(256) for _ in range(count * size)))
    return change


def scaled(kind, dims, value, name="blk.0.ffn_up.scale"):
    """Adds a scale beside a matrix: of that type and shape, of that value."""
    def change(tensors):
        data = value if isinstance(value, bytes) else struct.pack("<f", value)
        tensors.append((name, kind, dims, data))
    return change


# Scales beside matrices: good ones, of other types and shapes, and numbers that scale nothing.
SCALES = {
    "one": scaled(0, [1], 0.5), "two": scaled(0, [2], bytes(8)), "matrix": scaled(0, [1, 1, 1, 1], 2.0),
    "half": scaled(1, [1], b"\x00\x3c"), "bfloat": scaled(30, [1], b"\x80\x3f"), "whole": scaled(26, [1], b"\x01\x00\x00\x00"),
    "double": scaled(28, [1], bytes(8)), "q8_0": scaled(8, [32], bytes(34)), "nvfp4": scaled(40, [64], bytes(36)),
    "zero": scaled(0, [1], 0.0), "nan": scaled(0, [1], float("nan")), "infinite": scaled(0, [1], float("inf")),
    "tiny": scaled(0, [1], 1e-42), "negative": scaled(0, [1], -3.0),
    "other_name": scaled(0, [1], 2.0, "blk.0.ffn_up.weight.scale"), "input": scaled(0, [1], 2.0, "blk.0.ffn_up.input_scale"),
    "input_of_text": scaled(24, [9], bytes(9), "blk.0.ffn_up.input_scale"), "norm": scaled(0, [1], 2.0, "blk.0.attn_norm.scale"),
    "nobody": scaled(0, [1], 2.0, "blk.9.ffn_up.scale"), "embedding": scaled(0, [1], 2.0, "token_embd.scale"),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, family in enumerate(FAMILIES):
        (folder / f"{family}.gguf").write_bytes(model(family))
        (folder / f"{family}_odd.gguf").write_bytes(model(family, ODD[number % len(ODD)]))
    for family, (name, more) in OLLAMAS.items():
        (folder / f"{family}_ollama.gguf").write_bytes(model(family, (), name, more))
    for number, odd in enumerate(ODD):
        (folder / f"gemma3_odd{number}.gguf").write_bytes(model("gemma3", odd))
    for name, change in SCALES.items():
        (folder / f"scale_{name}.gguf").write_bytes(model("llama", change=change))
    # Rows of 32 weights are too short for most types, which must be refused, and right for MXFP4.
    for name, number, weights, size in low_bit_tensors():
        for matrix in ("blk.0.ffn_up.weight", "token_embd.weight"):
            path = folder / f"{name}_{matrix.split('.')[-2]}.gguf"
            path.write_bytes(model("llama", change=retyped(matrix, number, weights, size)))


if __name__ == "__main__":
    main()
