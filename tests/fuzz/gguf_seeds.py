#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for gguf_fuzz: small GGUF files, good ones of every kind and some broken ones.

usage: gguf_seeds.py FOLDER
"""
import pathlib
import struct
import sys

SCALARS = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
           "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}
STRING, ARRAY = 8, 9


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key, kind, value):
    """kind is a scalar's name, "string", or either in brackets for an array: "[f32]"."""
    if kind.startswith("["):
        kind = kind[1:-1]
        number = STRING if kind == "string" else SCALARS[kind][0]
        items = [string(v) if kind == "string" else struct.pack("<" + SCALARS[kind][1], v) for v in value]
        return string(key) + struct.pack("<IIQ", ARRAY, number, len(items)) + b"".join(items)
    if kind == "string":
        return string(key) + struct.pack("<I", STRING) + string(value)
    number, form = SCALARS[kind]
    return string(key) + struct.pack("<I" + form, number, value)


def gguf(entries=(), tensors=(), version=3, alignment=32):
    """tensors: (name, type number, dims, data)."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries))
    out += b"".join(entry(*e) for e in entries)
    offset = 0
    for name, number, dims, data in tensors:
        out += string(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        out += struct.pack("<IQ", number, offset)
        offset += -(-len(data) // alignment) * alignment
    for _, _, _, data in tensors:
        out += bytes(-len(out) % alignment) + data
    return out


SENTENCEPIECE = [
    ("general.architecture", "string", "llama"),
    ("tokenizer.ggml.model", "string", "llama"),
    ("tokenizer.ggml.tokens", "[string]",
     ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581", "a", "b", "\u2581a", "ab"]),
    ("tokenizer.ggml.scores", "[f32]", [0.0] * 259 + [-5.0, -6.0, -7.0, -1.0, -2.0]),
    ("tokenizer.ggml.token_type", "[i32]", [2, 3, 3] + [6] * 256 + [1] * 5),
    ("tokenizer.ggml.bos_token_id", "u32", 1),
    ("tokenizer.ggml.add_bos_token", "bool", True),
]
BYTES = [chr(b) if 33 <= b <= 126 else chr(256 + b) for b in range(128)]
BYTE_BPE = [
    ("tokenizer.ggml.model", "string", "gpt2"),
    ("tokenizer.ggml.pre", "string", "gpt-2"),
    ("tokenizer.ggml.tokens", "[string]", BYTES + ["ab", "<s>"]),
    ("tokenizer.ggml.token_type", "[i32]", [1] * 129 + [3]),
    ("tokenizer.ggml.merges", "[string]", ["a b"]),
    ("tokenizer.ggml.eos_token_id", "u32", 129),
]
WORDPIECE = [
    ("tokenizer.ggml.model", "string", "bert"),
    ("tokenizer.ggml.tokens", "[string]", ["[PAD]", "[UNK]", "[CLS]", "\u2581a", "\u2581", "e", "b", ""]),
    ("tokenizer.ggml.token_type", "[i32]", [3, 2, 3, 1, 1, 1, 1, 1]),
    ("tokenizer.ggml.unknown_token_id", "u32", 1),
    ("tokenizer.ggml.normalizer.lowercase", "bool", 1),
]
UNIGRAM = [
    ("tokenizer.ggml.model", "string", "t5"),
    ("tokenizer.ggml.tokens", "[string]", ["<pad>", "</s>", "<unk>", "\u2581", "a", "b"]),
    ("tokenizer.ggml.scores", "[f32]", [0, 0, 0, -1, -2, -3]),
    ("tokenizer.ggml.token_type", "[i32]", [3, 3, 2, 1, 1, 1]),
    ("tokenizer.ggml.precompiled_charsmap", "[u8]", [4, 0, 0, 0, 0, 0, 0, 0, 97, 0]),
]
RWKV = [
    ("tokenizer.ggml.model", "string", "rwkv"),
    ("tokenizer.ggml.tokens", "[string]", ["<s>", "a", "a b", "\\n", "\\xc3\\xa9", "\\x20", "b"]),
    ("tokenizer.ggml.token_type", "[i32]", [3, 1, 1, 1, 1, 1, 1]),
]
PLAMO2 = [
    ("tokenizer.ggml.model", "string", "plamo2"),
    ("tokenizer.ggml.tokens", "[string]",
     ["<|plamo:unk|>", "<|plamo:bos|>"] + [f"<0x{b:02X}>" for b in range(256)] + ["a", "b", "a b", "\u00e9", "\n"]),
    ("tokenizer.ggml.scores", "[f32]", [0.0] * 258 + [-3.0, -4.5, -7.0, -2000.0, -1e30]),
    ("tokenizer.ggml.token_type", "[i32]", [2, 3] + [6] * 256 + [1] * 5),
]
TEXT_BPE = [
    ("tokenizer.ggml.model", "string", "gemma4"),
    ("tokenizer.ggml.tokens", "[string]", ["<pad>", "<bos>", "a", "b", "ab", "\u2581", "\n", "\u00e9"]),
    ("tokenizer.ggml.token_type", "[i32]", [3, 3, 1, 1, 1, 1, 1, 1]),
    ("tokenizer.ggml.merges", "[string]", ["a b"]),
    ("tokenizer.ggml.suppress_tokens", "[i32]", [0]),
]
WHITESPACE = [
    ("tokenizer.ggml.model", "string", "whitespace"),
    ("tokenizer.ggml.tokens", "[string]", ["<s>", "<unk>", "a", "b", "ab", "\u00e9", "\u4f60"]),
    ("tokenizer.ggml.token_type", "[i32]", [3, 2, 1, 1, 1, 1, 1]),
    ("tokenizer.ggml.merges", "[string]", ["a b"]),
    ("tokenizer.ggml.unknown_token_id", "u32", 1),
]
HYBRID_DNA = [
    ("tokenizer.ggml.model", "string", "hybriddna"),
    ("tokenizer.ggml.pre", "string", "qwen2"),
    ("tokenizer.ggml.tokens", "[string]",
     BYTES + ["<dna>", "</dna>", "<oov>"] + [six + "\ue000" for six in ("AAAAAA", "ACGTAC", "CCCCCC")] + ["CC"]),
    ("tokenizer.ggml.token_type", "[i32]", [1] * 135),
    ("tokenizer.ggml.merges", "[string]", ["C C"]),
]


def with_value(entries, key, kind, value):
    """The entries with another value for tokenizer.ggml.KEY, or with it at their end."""
    key = "tokenizer.ggml." + key
    return [one for one in entries if one[0] != key] + [(key, kind, value)]


def odd_vocabularies():
    """Wrong types, lengths and numbers in the keys of every kind."""
    kinds = {"wordpiece": WORDPIECE, "unigram": UNIGRAM, "rwkv": RWKV, "plamo2": PLAMO2, "text_bpe": TEXT_BPE,
             "whitespace": WHITESPACE, "hybriddna": HYBRID_DNA,
             "without_merges": BYTE_BPE[:4], "sentencepiece": SENTENCEPIECE}
    for name, entries in kinds.items():
        count = len(next(value for key, _, value in entries if key.endswith(".tokens")))
        for what, key, kind, value in (
                ("whole_scores", "scores", "[i32]", [2**31 - 1 - i for i in range(count)]), ("few_scores", "scores", "[f32]", [1.0]),
                ("scores_of_text", "scores", "[string]", ["1"] * count), ("nan", "scores", "[f32]", [float("nan")] * count),
                ("infinite", "scores", "[f32]", [-float("inf")] * count), ("types", "token_type", "[i32]", [-1] * count),
                ("all_bytes", "token_type", "[i32]", [6] * count), ("all_control", "token_type", "[i32]", [3] * count),
                ("types_of_bytes", "token_type", "[u8]", [1] * count), ("empty", "tokens", "[string]", [""] * count),
                ("not_utf8", "tokens", "[string]", [b"\xff\xc3"] * count), ("numbers", "tokens", "[u32]", [1] * count),
                ("merges", "merges", "[string]", ["", " ", "a", "a b c", "b a"]), ("merges_of_numbers", "merges", "[u8]", [1, 2]),
                ("charsmap", "precompiled_charsmap", "[u8]", [255] * 40), ("bos", "bos_token_id", "u32", count),
                ("negative", "unknown_token_id", "i64", -2), ("suppressed", "suppress_tokens", "[i32]", [-1, count]),
                ("bos_text", "add_bos_token", "string", "true"), ("pre", "pre", "string", "\x1b]" * 40)):
            yield f"{name}_{what}", gguf(with_value(entries, key, kind, value))


def lies():
    """A few bytes that claim 2^40 tokens, scores, types, merges or bytes of a map."""
    for key, element in (("tokens", STRING), ("scores", 6), ("scores", 5), ("token_type", 5), ("merges", STRING),
                         ("precompiled_charsmap", 0), ("suppress_tokens", 5)):
        claim = struct.pack("<IIQ", ARRAY, element, 2**40)
        yield f"claims_{key}_{element}", (b"GGUF" + struct.pack("<IQQ", 3, 0, 2)
                                          + entry("tokenizer.ggml.model", "string", "t5")
                                          + string("tokenizer.ggml." + key) + claim + bytes(64))


def low_bit_tensors():
    """(name, type number, weights of a block, bytes of a block)"""
    return [("iq2_xxs", 16, 256, 66), ("iq2_xs", 17, 256, 74), ("iq3_xxs", 18, 256, 98), ("iq1_s", 19, 256, 50),
            ("iq3_s", 21, 256, 110), ("iq2_s", 22, 256, 82), ("iq1_m", 29, 256, 56), ("tq1_0", 34, 256, 54),
            ("tq2_0", 35, 256, 66), ("mxfp4", 39, 32, 17), ("nvfp4", 40, 64, 36), ("q1_0", 41, 128, 18), ("q2_0", 42, 64, 18)]


def seeds():
    every_scalar = [(f"s.{kind}", kind, 1) for kind in SCALARS] + [("s.string", "string", "text")]
    every_array = [(f"a.{kind}", f"[{kind}]", [0, 1]) for kind in SCALARS] + [("a.string", "[string]", ["x", ""])]
    tensors = [("f32", 0, [4, 2], bytes(32)), ("q8_0", 8, [32], bytes(34)), ("q4_k", 12, [256, 1, 1, 1], bytes(144))]
    yield "empty", gguf()
    yield "version2", gguf(version=2)
    yield "scalars", gguf(every_scalar)
    yield "arrays", gguf(every_array)
    yield "tensors", gguf(tensors=tensors)
    yield "alignment", gguf([("general.alignment", "u32", 64)], tensors, alignment=64)
    yield "split", gguf([("split.no", "u16", 0), ("split.count", "u16", 1), ("split.tensors.count", "i32", 0)])
    yield "sentencepiece", gguf(SENTENCEPIECE)
    yield "byte_bpe", gguf(BYTE_BPE)
    yield "without_merges", gguf(BYTE_BPE[:4])
    yield "missing_bos", gguf([("tokenizer.ggml.pre", "string", "llama3")] + BYTE_BPE[:1] + BYTE_BPE[2:])
    yield "wordpiece", gguf(WORDPIECE)
    yield "unigram", gguf(UNIGRAM[:4])
    yield "charsmap", gguf(UNIGRAM)
    yield "rwkv", gguf(RWKV)
    norm = struct.pack("<4f", 0, 1, 2, 3)
    yield "ollama_gptoss", gguf([("general.architecture", "string", "gptoss"), ("gptoss.block_count", "u32", 1)] + BYTE_BPE, [
        ("blk.0.attn_out.weight", 0, [4], norm), ("blk.0.attn_sinks", 0, [4], norm), ("blk.0.ffn_gate_exps.weight", 0, [2, 2], norm)])
    yield "ollama_gemma3", gguf(
        [("general.architecture", "string", "gemma3"), ("gemma3.context_length", "u32", 131072),
         ("gemma3.rope.local.freq_base", "f32", 1e4)] + SENTENCEPIECE[1:],
        [("token_embd.weight", 0, [1, 260], bytes(1040)), ("mm.x", 0, [4], norm)])
    yield "ollama_qwen35", gguf(
        [("general.architecture", "string", "qwen35"), ("qwen35.block_count", "u32", 3), ("qwen35.mrope_sections", "[i32]", [1, 2, 3]),
         ("qwen35.attention.head_count_kv", "[u32]", [0, 0, 2])],
        [("blk.0.ssm_dt", 0, [4], norm), ("mtp.fc.weight", 0, [4], norm), ("mtp.layers.0.attn_norm.weight", 0, [4], norm)])
    yield "ollama_omni", gguf([("general.architecture", "string", "nemotron_h_omni"), ("nemotron_h_omni.expert_count", "u32", 2)],
                              [("blk.0.ffn_latent_in.weight", 0, [2, 2], norm)])
    yield "plamo2", gguf(PLAMO2)
    yield "text_bpe", gguf(TEXT_BPE)
    yield "whitespace", gguf(WHITESPACE)
    yield "hybriddna", gguf(HYBRID_DNA)
    yield from odd_vocabularies()
    yield from lies()
    for name, number, weights, size in low_bit_tensors():
        yield name, gguf(tensors=[("a", number, [weights, 3], bytes(3 * size)), ("a.scale", 0, [1], bytes(4))])
        yield name + "_short", gguf(tensors=[("a", number, [weights, 3], bytes(3 * size - 1))])
        yield name + "_part", gguf(tensors=[("a", number, [weights // 2, 2], bytes(size))])
        yield name + "_huge", gguf(tensors=[("a", number, [weights, 2**54], bytes(size))])
    yield "everything", gguf(every_scalar + every_array + SENTENCEPIECE, tensors)
    good = gguf(every_scalar, tensors)
    yield "truncated", good[:-40]
    yield "huge_count", good[:8] + struct.pack("<QQ", 2**64 - 1, 2**63) + good[24:]
    yield "version1", gguf(version=1)
    yield "overlap", gguf(tensors=[("a", 0, [8], bytes(32)), ("b", 0, [8], bytes(1))])


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds():
        (folder / f"{name}.gguf").write_bytes(content)


if __name__ == "__main__":
    main()
