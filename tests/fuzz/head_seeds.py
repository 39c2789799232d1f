#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for head_fuzz: heads of every form for its models, good ones and some that are refused.

usage: head_seeds.py FOLDER
"""
import pathlib
import random
import struct
import sys

from gguf_seeds import gguf

WIDTH, HEADS, KV_HEADS, HEAD, FEED_FORWARD, VOCAB = 32, 2, 1, 16, 32, 20  # of the model
F32, I64 = 0, 27


def tensor(name, *dims):
    r = random.Random(name)
    count = 1
    for n in dims:
        count *= n
    around = 1.0 if len(dims) == 1 else 0.0
    return name, F32, dims, b"".join(struct.pack("<f", around + r.uniform(-0.5, 0.5)) for _ in range(count))


def tokens(ids):
    return "d2t", I64, (len(ids),), struct.pack(f"<{len(ids)}q", *ids)


def keys(architecture, *more):
    sizes = {"context_length": 32, "embedding_length": WIDTH, "block_count": 1, "feed_forward_length": FEED_FORWARD,
             "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS}
    return ([("general.architecture", "string", architecture)]
            + [(f"{architecture}.{key}", "u32", n) for key, n in sizes.items()]
            + [(f"{architecture}.attention.layer_norm_rms_epsilon", "f32", 1e-5)]
            + [(f"{architecture}.{key}", kind, value) for key, kind, value in more])


def layer(inputs, block="blk.0."):
    return [tensor(block + "attn_q.weight", inputs, HEADS * HEAD), tensor(block + "attn_k.weight", inputs, KV_HEADS * HEAD),
            tensor(block + "attn_v.weight", inputs, KV_HEADS * HEAD), tensor(block + "attn_output.weight", HEADS * HEAD, WIDTH),
            tensor(block + "ffn_gate.weight", WIDTH, FEED_FORWARD), tensor(block + "ffn_up.weight", WIDTH, FEED_FORWARD),
            tensor(block + "ffn_down.weight", FEED_FORWARD, WIDTH)]


def eagle3(*more, layers=(0, 1, 2), extra=(), without=""):
    all_keys = keys("eagle3", ("target_layers", "[u32]", list(layers)), ("target_hidden_size", "u32", WIDTH), *more)
    tensors = [tensor("fc.weight", 3 * WIDTH, WIDTH), tensor("blk.0.attn_norm.weight", WIDTH),
               tensor("blk.0.attn_norm_2.weight", WIDTH), tensor("blk.0.ffn_norm.weight", WIDTH),
               tensor("output_norm.weight", WIDTH), *layer(2 * WIDTH), *extra]
    return gguf(all_keys, [t for t in tensors if t[0] != without])


def eagle1():
    return gguf(keys("eagle"), [tensor("fc.weight", 2 * WIDTH, WIDTH), tensor("fc.bias", WIDTH),
                                tensor("blk.0.ffn_norm.weight", WIDTH), *layer(WIDTH)])


def mlp(prefix, without=""):
    names = {"norm.weight": (WIDTH,), "norm.bias": (WIDTH,), "fc1.weight": (WIDTH, WIDTH), "fc2.weight": (WIDTH, WIDTH)}
    return gguf([("general.architecture", "string", "eagle")],
                [tensor(prefix + name, *dims) for name, dims in names.items() if name != without])


def nextn(vocab=VOCAB, blocks=1):
    """Blocks behind the one layer of a model whose norms are after attention and feed-forward."""
    all_keys = [e for e in keys("exaone4", ("nextn_predict_layers", "u32", blocks)) if e[0] != "exaone4.block_count"]
    tensors = [tensor("token_embd.weight", WIDTH, vocab), tensor("output.weight", WIDTH, vocab), tensor("output_norm.weight", WIDTH)]
    for i in range(blocks):
        block = f"blk.{1 + i}."
        tensors += [*layer(WIDTH, block), tensor(block + "attn_q_norm.weight", HEAD), tensor(block + "attn_k_norm.weight", HEAD),
                    tensor(block + "post_attention_norm.weight", WIDTH), tensor(block + "post_ffw_norm.weight", WIDTH),
                    tensor(block + "nextn.eh_proj.weight", 2 * WIDTH, WIDTH), tensor(block + "nextn.enorm.weight", WIDTH),
                    tensor(block + "nextn.hnorm.weight", WIDTH), tensor(block + "nextn.shared_head_norm.weight", WIDTH)]
    return gguf(all_keys + [("exaone4.block_count", "u32", 1 + blocks)], tensors)


def assistant(*more, local=(1, 0), without=""):
    """Layers that read the cache of a model of gemma4 with a window of 4 in its first layer."""
    name = "gemma4-assistant"
    width = 24
    sizes = {"context_length": 32, "embedding_length": width, "embedding_length_out": WIDTH, "block_count": len(local),
             "nextn_predict_layers": len(local), "feed_forward_length": 16, "attention.head_count": HEADS,
             "attention.head_count_kv": KV_HEADS, "attention.key_length": HEAD, "attention.value_length": HEAD,
             "attention.sliding_window": 4}
    all_keys = ([("general.architecture", "string", name)] + [(f"{name}.{key}", "u32", n) for key, n in sizes.items()]
                + [(f"{name}.attention.layer_norm_rms_epsilon", "f32", 1e-5),
                   (f"{name}.attention.sliding_window_pattern", "[bool]", [bool(each) for each in local])]
                + [(f"{name}.{key}", kind, value) for key, kind, value in more])
    tensors = [tensor("token_embd.weight", width, VOCAB), tensor("output_norm.weight", width),
               tensor("nextn.pre_projection.weight", 2 * WIDTH, width), tensor("nextn.post_projection.weight", width, WIDTH)]
    for i in range(len(local)):
        block = f"blk.{i}."
        tensors += [tensor(block + norm + ".weight", width)
                    for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")]
        tensors += [tensor(block + "attn_q.weight", width, HEADS * HEAD), tensor(block + "attn_q_norm.weight", HEAD),
                    tensor(block + "attn_output.weight", HEADS * HEAD, width), tensor(block + "ffn_gate.weight", width, 16),
                    tensor(block + "ffn_up.weight", width, 16), tensor(block + "ffn_down.weight", 16, width),
                    tensor(block + "layer_output_scale.weight", 1)]
    return gguf(all_keys, [t for t in tensors if t[0] != without])


OWN = [19, 0, 3, 3, 14, 15, 9, 2]
own_output = tensor("output.weight", WIDTH, len(OWN))
SEEDS = {
    "eagle3": eagle3(),
    "eagle3_tokens": eagle3(extra=[own_output, tokens(OWN)]),
    "eagle3_norms": eagle3(("norm_before_residual", "bool", True), ("norm_before_fc", "bool", True), layers=(2, 0, 0),
                           extra=[tensor("enc.output_norm.weight", 3 * WIDTH)]),
    "eagle3_embedding": eagle3(extra=[tensor("token_embd.weight", WIDTH, VOCAB), tensor("output.weight", WIDTH, VOCAB)]),
    "eagle3_two": eagle3(layers=(0, 1)),
    "eagle3_above": eagle3(layers=(0, 1, 3)),
    "eagle3_outside": eagle3(extra=[own_output, tokens([VOCAB] + OWN[1:])]),
    "eagle3_short": eagle3(extra=[own_output, tokens(OWN[1:])]),
    "eagle3_no_fc": eagle3(without="fc.weight"),
    "eagle": eagle1(),
    "mlp": mlp("eagle."),
    "mlp_bare": mlp(""),
    "mlp_no_norm": mlp("eagle.", "norm.weight"),
    "assistant": assistant(),
    "assistant_global": assistant(local=(0,)),
    "assistant_cap": assistant(("final_logit_softcapping", "f32", 30.0), local=(0, 1, 1)),
    "assistant_angles": assistant(("rope.freq_base", "f32", 5000.0)),
    "assistant_window": assistant(("attention.key_length_swa", "u32", 8)),
    "assistant_no_projection": assistant(without="nextn.post_projection.weight"),
    "nextn": nextn(),
    "nextn_three": nextn(blocks=3),
    "nextn_vocabulary": nextn(VOCAB + 1),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
