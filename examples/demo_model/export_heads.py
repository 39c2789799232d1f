# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint of train_heads.py as a GGUF file, and reads such a file back.

usage: export_heads.py BUILD/eagle3.pt --target story.gguf --out eagle3.gguf

EAGLE-3: matrices Q8_0, norms float32, d2t int64 (ids of the target). Rotary pairs are two halves in this
architecture, so the rows of Q and K stay as they are. MLP: everything float32, and matrices as [in, out] with the
outputs contiguous. Neither has a vocabulary or embedding of its own: both are the target's.
"""
import argparse

import numpy
import torch

import export_gguf as gguf
import head_model as heads
import model as net
import read_gguf

EAGLE3 = {"fc.weight": "fc", "blk.0.attn_norm.weight": "token_norm", "blk.0.attn_norm_2.weight": "feature_norm",
          "blk.0.attn_q.weight": "q", "blk.0.attn_k.weight": "k", "blk.0.attn_v.weight": "v",
          "blk.0.attn_output.weight": "o", "blk.0.ffn_norm.weight": "ffn_norm", "blk.0.ffn_gate.weight": "gate",
          "blk.0.ffn_up.weight": "up", "blk.0.ffn_down.weight": "down", "output_norm.weight": "norm",
          "output.weight": "output"}
EAGLE = {"eagle.norm.weight": "norm", "eagle.norm.bias": "norm_bias", "eagle.fc1.weight": "fc1",
         "eagle.fc2.weight": "fc2"}


def general(name, what, quantised):
    return [
        ("general.architecture", gguf.STRING, name),
        ("general.name", gguf.STRING, f"libgenerate demo {name}"),
        ("general.description", gguf.STRING,
         f"{what} that drafts for story.gguf, whose vocabulary and embedding it shares"),
        ("general.license", gguf.STRING, "Apache-2.0"),
        ("general.file_type", gguf.U32, 7 if quantised else 0),
        ("general.quantization_version", gguf.U32, 2),
        ("general.alignment", gguf.U32, gguf.ALIGNMENT),
    ]


def eagle3(weights, tokens, target):
    """(keys, tensors) of an EAGLE-3 head."""
    shape, dim = heads.Eagle3.SHAPE, target.shape["dim"]
    meta = general("eagle3", "a head of one layer", True) + [
        ("eagle3.target_layers", (gguf.ARRAY, gguf.I32), list(heads.Eagle3.LAYERS)),
        ("eagle3.target_hidden_size", gguf.U32, dim),
        ("eagle3.norm_before_residual", gguf.BOOL, False),
        ("eagle3.context_length", gguf.U32, net.CONTEXT),
        ("eagle3.embedding_length", gguf.U32, dim),
        ("eagle3.block_count", gguf.U32, 1),
        ("eagle3.feed_forward_length", gguf.U32, shape["ffn"]),
        ("eagle3.attention.head_count", gguf.U32, shape["heads"]),
        ("eagle3.attention.head_count_kv", gguf.U32, shape["kv_heads"]),
        ("eagle3.attention.key_length", gguf.U32, shape["head_dim"]),
        ("eagle3.attention.value_length", gguf.U32, shape["head_dim"]),
        ("eagle3.attention.layer_norm_rms_epsilon", gguf.F32, net.NORM_EPS),
        ("eagle3.rope.dimension_count", gguf.U32, shape["head_dim"]),
        ("eagle3.rope.freq_base", gguf.F32, net.ROPE_THETA),
        ("eagle3.vocab_size", gguf.U32, net.VOCAB),
    ]
    tensors = [(theirs, weights[ours].shape, *gguf.encoded(weights[ours])) for theirs, ours in EAGLE3.items()]
    return meta, tensors + [("d2t", tokens.shape, *gguf.encoded(tokens))]


def eagle(weights, target):
    """(keys, tensors) of an MLP head."""
    meta = general("eagle", "an MLP head", False) + [("eagle.hidden_dim", gguf.U32, target.shape["dim"])]
    tensors = []
    for theirs, ours in EAGLE.items():
        weight = weights[ours].t() if ours.startswith("fc") else weights[ours]
        raw = weight.contiguous().numpy().astype(numpy.dtype("<f4")).tobytes()
        tensors.append((theirs, weight.shape, gguf.TYPE_F32, raw))
    return meta, tensors


def read_head(path):
    """(name, weights, draft vocabulary or None) of a file, as train_heads.py has them."""
    meta, tensors = read_gguf.read(path)
    name = meta["general.architecture"]
    if name == "eagle3":
        assert meta["eagle3.target_layers"] == list(heads.Eagle3.LAYERS), path
        return name, {ours: tensors[theirs] for theirs, ours in EAGLE3.items()}, tensors["d2t"]
    weights = {ours: tensors[theirs] for theirs, ours in EAGLE.items()}
    return name, {k: v.t().contiguous() if k.startswith("fc") else v for k, v in weights.items()}, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    saved = torch.load(args.checkpoint)
    target, weights = heads.Target(args.target), saved["weights"]
    if saved["name"] == "eagle3":
        meta, tensors = eagle3(weights, saved["tokens"], target)
    else:
        meta, tensors = eagle(weights, target)
    size = gguf.write(args.out, meta, tensors)
    print(f"{args.out}: {sum(w.numel() for w in weights.values())} parameters, {size} bytes")


if __name__ == "__main__":
    main()
