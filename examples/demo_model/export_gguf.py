# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint as a GGUF v3 file: 2-D weights Q8_0, norms float32, vocabulary and chat template inside.

The story model's template is chat_template.jinja, which knows tools. The draft writes plain turns in the same way.

usage: export_gguf.py BUILD/story.pt --vocabulary BUILD/vocabulary.vocab --out story.gguf

Q8_0 is blocks of 32 numbers: a float16 scale (largest magnitude / 127) and 32 signed bytes. This architecture's
GGUF rotates adjacent pairs, so the rows of Q and K are moved from (i, i + half) to (2 i, 2 i + 1).
"""
import argparse
import os
import struct

import numpy
import torch

import model as net

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TYPE_F32, TYPE_Q8_0, TYPE_I64 = 0, 8, 27
ALIGNMENT = 32
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
PLAIN_TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
                  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}").replace("\n", "\\n")


def q8_0(weight):
    """(bytes, the values they stand for) of a float32 matrix."""
    block = weight.numpy().astype(numpy.float32).reshape(-1, 32)
    scale = (numpy.abs(block).max(1) / numpy.float32(127)).astype(numpy.float32)
    inverse = numpy.divide(1, scale, out=numpy.zeros_like(scale), where=scale > 0)
    x = block * inverse[:, None]
    q = (numpy.sign(x) * numpy.floor(numpy.abs(x) + 0.5)).astype(numpy.int8)
    half = scale.astype("<f2")
    packed = numpy.concatenate((half.view(numpy.uint8).reshape(-1, 2), q.view(numpy.uint8)), 1)
    return packed.tobytes(), torch.from_numpy((q * half.astype(numpy.float32)[:, None]).reshape(weight.shape))


def adjacent_pairs(weight, head_dim):
    rows = weight.reshape(-1, 2, head_dim // 2, weight.shape[1])
    return rows.transpose(1, 2).reshape(weight.shape).contiguous()


def string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(kind, x):
    if kind == STRING:
        return string(x)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], x)


def read_vocabulary(path):
    """Pieces, scores and GGUF types from spm_train's .vocab file."""
    pieces, scores, types = [], [], []
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            piece, score = line.rstrip("\n").rsplit("\t", 1)
            kind = NORMAL
            if piece == "<unk>":
                kind = UNKNOWN
            elif piece in ("<s>", "</s>", "<|im_start|>", "<|im_end|>"):
                kind = CONTROL
            elif len(piece) == 6 and piece.startswith("<0x"):
                kind = BYTE
            pieces.append(piece)
            scores.append(float(score))
            types.append(kind)
    assert len(pieces) == net.VOCAB and pieces[:3] == ["<unk>", "<s>", "</s>"], path
    return pieces, scores, types


def encoded(weight):
    """(type, bytes): Q8_0 for matrices of whole blocks, int64 for integers, float32 for the rest."""
    if weight.dtype == torch.int64:
        return TYPE_I64, weight.numpy().astype("<i8").tobytes()
    if weight.dim() == 1 or weight.shape[-1] % 32:
        return TYPE_F32, weight.numpy().astype("<f4").tobytes()
    return TYPE_Q8_0, q8_0(weight)[0]


def write(path, meta, tensors):
    """Writes keys (name, type, value) and tensors (name, shape, type, bytes); the size of the file."""
    infos, data = b"", b""
    for name, shape, kind, raw in tensors:
        dims = list(reversed(shape))
        infos += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += raw + b"\0" * (-len(raw) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for key, kind, x in meta:
        head += string(key)
        if isinstance(kind, tuple):
            head += struct.pack("<IIQ", kind[0], kind[1], len(x)) + b"".join(value(kind[1], one) for one in x)
        else:
            head += struct.pack("<I", kind) + value(kind, x)
    head += infos
    head += b"\0" * (-len(head) % ALIGNMENT)
    with open(path, "wb") as out:
        out.write(head + data)
    return len(head) + len(data)


def chat_template(name):
    if name != "story":
        return PLAIN_TEMPLATE
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template.jinja"), encoding="utf-8") as file:
        return file.read().rstrip("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--vocabulary", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    saved = torch.load(args.checkpoint)
    name, weights = saved["name"], saved["weights"]
    shape = net.SHAPES[name]
    pieces, scores, types = read_vocabulary(args.vocabulary)

    meta = [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, f"libgenerate demo {name}"),
        ("general.description", STRING, "a small model of stories, dialogues and JSON, trained on generated text"),
        ("general.license", STRING, "Apache-2.0"),
        ("general.file_type", U32, 7),
        ("general.quantization_version", U32, 2),
        ("general.alignment", U32, ALIGNMENT),
        ("llama.context_length", U32, net.CONTEXT),
        ("llama.embedding_length", U32, shape["dim"]),
        ("llama.block_count", U32, shape["layers"]),
        ("llama.feed_forward_length", U32, shape["ffn"]),
        ("llama.attention.head_count", U32, shape["heads"]),
        ("llama.attention.head_count_kv", U32, shape["kv_heads"]),
        ("llama.attention.key_length", U32, shape["head_dim"]),
        ("llama.attention.value_length", U32, shape["head_dim"]),
        ("llama.attention.layer_norm_rms_epsilon", F32, net.NORM_EPS),
        ("llama.rope.dimension_count", U32, shape["head_dim"]),
        ("llama.rope.freq_base", F32, net.ROPE_THETA),
        ("llama.vocab_size", U32, net.VOCAB),
        ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.pre", STRING, "default"),
        ("tokenizer.ggml.tokens", (ARRAY, STRING), pieces),
        ("tokenizer.ggml.scores", (ARRAY, F32), scores),
        ("tokenizer.ggml.token_type", (ARRAY, I32), types),
        ("tokenizer.ggml.bos_token_id", U32, 1),
        ("tokenizer.ggml.eos_token_id", U32, 2),
        ("tokenizer.ggml.unknown_token_id", U32, 0),
        ("tokenizer.ggml.eot_token_id", U32, pieces.index("<|im_end|>")),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.ggml.add_eos_token", BOOL, False),
        ("tokenizer.ggml.add_space_prefix", BOOL, True),
        ("tokenizer.chat_template", STRING, chat_template(name)),
    ]

    order = [("token_embd.weight", "embed")]
    for n in range(shape["layers"]):
        for theirs, ours in (("attn_norm", "attn_norm"), ("attn_q", "q"), ("attn_k", "k"), ("attn_v", "v"), ("attn_output", "o"),
                             ("ffn_norm", "ffn_norm"), ("ffn_gate", "gate"), ("ffn_up", "up"), ("ffn_down", "down")):
            order.append((f"blk.{n}.{theirs}.weight", f"{n}.{ours}"))
    order.append(("output_norm.weight", "norm"))

    tensors = []
    for theirs, ours in order:
        weight = weights[ours].detach().float()
        if ours.endswith((".q", ".k")):
            weight = adjacent_pairs(weight, shape["head_dim"])
        tensors.append((theirs, weight.shape, *encoded(weight)))
    size = write(args.out, meta, tensors)
    count = sum(w.numel() for w in weights.values())
    print(f"{args.out}: {count} parameters, {size} bytes")


if __name__ == "__main__":
    main()
