# SPDX-License-Identifier: Apache-2.0
"""What a head's drafts are worth: the target's greedy continuations of held-out prompts, and how a head does on them.

usage: measure_heads.py continue --target story.gguf --vocabulary BUILD/vocabulary.model --heldout heldout.txt
                                 --out BUILD/greedy.pt
       measure_heads.py measure --target story.gguf --greedy BUILD/greedy.pt HEAD.gguf...

A prompt is the first PROMPT tokens of a paragraph of heldout.txt. Since the continuation is what the target says,
a row that reads the true tokens predicts what a draft would: up to the first wrong token both see the same.
Figures by position count drafts whose predecessors were right, from every position of the continuations; tokens a
step come from walking through them as generation does: the accepted drafts and one token of the target's.
"""
import argparse
import collections

import sentencepiece
import torch
import torch.nn.functional as F

import export_heads
import head_model as heads
import model as net
import sample

PROMPT, CONTINUATION, PROMPTS = 32, 224, 48
DRAFTS, POSITIONS = 4, 5
EOS = 2

Figures = collections.namedtuple("Figures", "by_position tokens_a_step steps")


@torch.no_grad()
def continuations(target, vocabulary, heldout):
    """A list of (ids, length of the prompt)."""
    sp = sentencepiece.SentencePieceProcessor(model_file=vocabulary)
    pieces = target.meta["tokenizer.ggml.tokens"]
    assert [sp.id_to_piece(n) for n in range(sp.get_piece_size())] == pieces, vocabulary + " is not the target's"
    with open(heldout, encoding="utf-8", newline="") as file:
        texts = [x for x in (sp.encode(part) for part in file.read().split("\n\n")) if len(x) >= PROMPT]
    out = []
    for index in range(PROMPTS):
        ids = [sp.bos_id()] + texts[index * len(texts) // PROMPTS][:PROMPT - 1]
        more = sample.generate(target.weights, target.shape, target.tables, ids, CONTINUATION, 0, (EOS,), None)
        out.append((ids + more, len(ids)))
    return out


@torch.no_grad()
def right(name, weights, tokens, target, ids):
    """[T, POSITIONS]: whether the draft of step s from position r is the token at r + s + 2."""
    row = torch.tensor([ids])
    kept, _ = target.states(row)
    length = len(ids) - POSITIONS - 1
    if name == "eagle3":
        output = weights["output"]
        steps = heads.Eagle3.steps(weights, target.weights["embed"], [x[:, :-1] for x in kept], row[:, :-1], POSITIONS,
                                   target.tables)
    else:
        output = target.weights["embed"]
        steps = heads.Mlp.steps(weights, kept, length, POSITIONS)
    out = []
    for n, hidden in enumerate(steps):
        best = F.linear(hidden, output).argmax(-1)
        best = best if tokens is None else tokens[best]
        out.append(best == row[0, n + 2:n + 2 + length])
    return torch.stack(out, 1)


def measure(name, weights, tokens, target, texts):
    weights = {k: v.detach() for k, v in weights.items()}
    narrow, net.COMPUTE = net.COMPUTE, torch.float32
    tried, good = torch.zeros(POSITIONS), torch.zeros(POSITIONS)
    accepted = steps = 0
    for ids, prompt in texts:
        if len(ids) < prompt + POSITIONS + 2:
            continue
        rows = right(name, weights, tokens, target, ids)[prompt - 1:].long().cumprod(1)
        tried += torch.cat((torch.full((1,), len(rows)), rows[:, :-1].sum(0)))
        good += rows.sum(0)
        at = 0
        while at < len(rows):
            count = int(rows[at, :DRAFTS].sum())
            accepted, steps, at = accepted + count, steps + 1, at + count + 1
    net.COMPUTE = narrow
    return Figures((good / tried.clamp(min=1)).tolist(), 1 + accepted / max(1, steps), steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("continue", "measure"))
    parser.add_argument("--target", required=True)
    parser.add_argument("--vocabulary")
    parser.add_argument("--heldout")
    parser.add_argument("--out")
    parser.add_argument("--greedy")
    parser.add_argument("heads", nargs="*")
    args = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    target = heads.Target(args.target)
    if args.what == "continue":
        texts = continuations(target, args.vocabulary, args.heldout)
        torch.save(texts, args.out)
        print(f"{len(texts)} prompts, {sum(len(ids) - prompt for ids, prompt in texts)} tokens of continuation")
        return
    texts = torch.load(args.greedy)
    for path in args.heads:
        name, weights, tokens = export_heads.read_head(path)
        figures = measure(name, weights, tokens, target, texts)
        print(f"{path}: {figures.tokens_a_step:.3f} tokens a step with {DRAFTS} drafts ({figures.steps} steps); "
              "by position " + " ".join(f"{x:.3f}" for x in figures.by_position))


if __name__ == "__main__":
    main()
