# SPDX-License-Identifier: Apache-2.0
"""Drafts of a head in plain double precision, one row at a time from the file's own tensors, as an engine makes them.

usage: draft_plain.py HEAD.gguf --target story.gguf --greedy BUILD/greedy.pt [--texts 4] [--ids 1,2,3]

For each text it walks from the prompt on: drafts, accepts, moves. It fails if a draft differs from what
measure_heads.py finds by running the training network over the whole text; near ties apart, the two must agree.
With --ids it only prints the drafts after these tokens, the last of which the head pairs with the state before it.
"""
import argparse
import sys

import numpy
import torch

import export_heads
import head_model as heads
import measure_heads
import model as net
import read_gguf


def rms(x, weight):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + net.NORM_EPS) * weight


def silu(x):
    return x / (1 + numpy.exp(-x))


def turned(x, position):
    """Rotary position on [heads, d]: element i pairs with i + d / 2."""
    half = x.shape[-1] // 2
    angle = position * net.ROPE_THETA ** (-numpy.arange(half) / half)
    cos, sin = numpy.cos(angle), numpy.sin(angle)
    a, b = x[:, :half], x[:, half:]
    return numpy.concatenate((a * cos - b * sin, b * cos + a * sin), -1)


class Eagle3:
    def __init__(self, meta, tensors, embed):
        self.meta = {key.split(".", 1)[1]: x for key, x in meta.items() if key.startswith("eagle3.")}
        self.t, self.embed = tensors, embed
        self.keys, self.values = [], []

    def layer(self, token, g, position):
        """The next feature; the row's key and value become the cache's last."""
        t, heads_, kv_heads = self.t, self.meta["attention.head_count"], self.meta["attention.head_count_kv"]
        x = (rms(self.embed[token], t["blk.0.attn_norm.weight"]), rms(g, t["blk.0.attn_norm_2.weight"]))
        x = numpy.concatenate(x)
        q = turned((t["blk.0.attn_q.weight"] @ x).reshape(heads_, -1), position)
        del self.keys[position:], self.values[position:]
        self.keys.append(turned((t["blk.0.attn_k.weight"] @ x).reshape(kv_heads, -1), position))
        self.values.append((t["blk.0.attn_v.weight"] @ x).reshape(kv_heads, -1))
        keys, values = numpy.stack(self.keys), numpy.stack(self.values)
        out = []
        for head in range(heads_):
            source = head * kv_heads // heads_
            score = keys[:, source] @ q[head] / numpy.sqrt(q.shape[1])
            prob = numpy.exp(score - score.max())
            out.append(prob @ values[:, source] / prob.sum())
        g = g + t["blk.0.attn_output.weight"] @ numpy.concatenate(out)
        x = rms(g, t["blk.0.ffn_norm.weight"])
        return g + t["blk.0.ffn_down.weight"] @ (silu(t["blk.0.ffn_gate.weight"] @ x) * (t["blk.0.ffn_up.weight"] @ x))

    def draft(self, states, ids, at, count):
        """count tokens after ids[at + 1]; states: the target's, [T, dim] of each layer; rows up to at are known."""
        for position in range(len(self.keys), at + 1):
            g = self.t["fc.weight"] @ numpy.concatenate([states[n][position] for n in self.meta["target_layers"]])
            g = self.layer(ids[position + 1], g, position)
        out = []
        for n in range(count):
            logits = self.t["output.weight"] @ rms(g, self.t["output_norm.weight"])
            out.append(int(self.t["d2t"][logits.argmax()]))
            if n + 1 < count:
                g = self.layer(out[-1], g, at + 1 + n)
        del self.keys[at + 1:], self.values[at + 1:]  # rows of drafts: the true ones come with the next call
        return out


class Mlp:
    def __init__(self, meta, tensors, embed):
        self.t, self.embed = tensors, embed

    def draft(self, states, ids, at, count):
        t, x, out = self.t, states[-2][at], []
        for _ in range(count):
            centred = x - x.mean()
            hat = centred / numpy.sqrt((centred * centred).mean() + heads.LAYER_NORM_EPS)
            x = hat * t["eagle.norm.weight"] + t["eagle.norm.bias"]
            x = silu(x @ t["eagle.fc1.weight"]) @ t["eagle.fc2.weight"]
            out.append(int((self.embed @ x).argmax()))
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("head")
    parser.add_argument("--target", required=True)
    parser.add_argument("--greedy")
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--ids")
    args = parser.parse_args()
    torch.set_num_threads(1)
    net.COMPUTE = torch.float32
    target = heads.Target(args.target)
    meta, tensors = read_gguf.read(args.head)
    tensors = {k: v.numpy().astype(numpy.int64 if k == "d2t" else numpy.float64) for k, v in tensors.items()}
    embed = target.weights["embed"].numpy().astype(numpy.float64)
    kind = Eagle3 if meta["general.architecture"] == "eagle3" else Mlp

    def states_of(ids):
        return [x[0].numpy().astype(numpy.float64) for x in target.states(torch.tensor([ids]))[0]]

    if args.ids:
        ids = [int(x) for x in args.ids.split(",")]
        print(*kind(meta, tensors, embed).draft(states_of(ids), ids, len(ids) - 2, measure_heads.DRAFTS))
        return
    name, weights, tokens = export_heads.read_head(args.head)
    wrong = accepted = steps = 0
    for ids, prompt in torch.load(args.greedy)[:args.texts]:
        head, states = kind(meta, tensors, embed), states_of(ids)
        table = measure_heads.right(name, weights, tokens, target, ids).long().cumprod(1)
        at = prompt - 1
        while at < len(table):
            drafts = head.draft(states, ids, at, measure_heads.DRAFTS)
            truth = ids[at + 2:at + 2 + len(drafts)]
            count = next((n for n, (a, b) in enumerate(zip(drafts, truth)) if a != b), len(drafts))
            wrong += count != int(table[at, :measure_heads.DRAFTS].sum())
            accepted, steps, at = accepted + count, steps + 1, at + count + 1
    print(f"{args.head}: {steps} steps, {1 + accepted / steps:.3f} tokens a step; {wrong} steps unlike the network's")
    if wrong > steps // 100:
        sys.exit(1)


if __name__ == "__main__":
    main()
