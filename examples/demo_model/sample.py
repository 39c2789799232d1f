# SPDX-License-Identifier: Apache-2.0
"""Text from a checkpoint, its held-out perplexity, or both.

usage: sample.py BUILD/story.pt --vocabulary BUILD/vocabulary.model [--prompt TEXT | --chat TEXT] [--count 1]
                 [--temperature 0.7] [--heldout heldout.txt] [--quantised] [--top 0]

--quantised rounds the weights as the exported file does. Perplexity: <s> and the text in windows of 1024
tokens, each after the first opening with 512 tokens of the one before that are not counted again.
"""
import argparse
import json
import math

import sentencepiece
import torch

import export_gguf
import model as net


def generate(weights, shape, tables, ids, limit, temperature, stops, gen):
    cache, out = [], []
    step = ids
    while len(out) < limit:
        row = net.logits(weights, shape, step, tables, cache)[-1]
        if temperature <= 0:
            new = int(row.argmax())
        else:
            new = int(torch.multinomial((row / temperature).softmax(-1), 1, generator=gen))
        if new in stops:
            break
        out.append(new)
        step = [new]
    return out


def perplexity(weights, shape, tables, ids, window=1024, stride=512):
    total, count, end = 0.0, 0, 0
    start = 0
    while end < len(ids) - 1:
        stop = min(start + window, len(ids) - 1)
        rows = net.logits(weights, shape, ids[start:stop], tables).log_softmax(-1)
        want = torch.tensor(ids[start + 1:stop + 1])
        fresh = stop - end
        total -= float(rows[-fresh:].gather(1, want[-fresh:, None]).double().sum())
        count += fresh
        end = stop
        start += stride
    return math.exp(total / count), count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--vocabulary", required=True)
    parser.add_argument("--prompt")
    parser.add_argument("--chat")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--heldout")
    parser.add_argument("--quantised", action="store_true")
    parser.add_argument("--top", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    saved = torch.load(args.checkpoint)
    shape = net.SHAPES[saved["name"]]
    weights = {k: v.detach().float() for k, v in saved["weights"].items()}
    if args.quantised:
        weights = {k: export_gguf.q8_0(v)[1] if v.dim() == 2 else v for k, v in weights.items()}
    tables = net.rope_tables(shape["head_dim"], net.CONTEXT)
    sp = sentencepiece.SentencePieceProcessor(model_file=args.vocabulary)
    start, end = sp.piece_to_id("<|im_start|>"), sp.piece_to_id("<|im_end|>")
    if args.heldout:
        with open(args.heldout, encoding="utf-8", newline="") as file:
            ids = [sp.bos_id()] + sp.encode(file.read())
        print("perplexity %.4f over %d tokens" % perplexity(weights, shape, tables, ids))
    if args.prompt is None and args.chat is None:
        return
    if args.chat is not None:
        ids = [sp.bos_id(), start] + sp.encode("user\n" + args.chat) + [end] + sp.encode("\n") + [start] + sp.encode("assistant\n")
    else:
        ids = [sp.bos_id()] + (sp.encode(args.prompt) if args.prompt else [])
    if args.top:
        rows = net.logits(weights, shape, ids, tables).softmax(-1)
        top = rows.topk(args.top)
        print(json.dumps({"tokens": ids, "top": [[[i, round(p, 6)] for i, p in zip(a, b)] for a, b in zip(top.indices.tolist(), top.values.tolist())]}))
        return
    gen = torch.Generator().manual_seed(1)
    for _ in range(args.count):
        print((args.prompt or "") + "|", sp.decode(generate(weights, shape, tables, ids, args.limit, args.temperature, (end, sp.eos_id()), gen)))
        print()


if __name__ == "__main__":
    main()
