# SPDX-License-Identifier: Apache-2.0
"""Trains one of the heads that draft for story.gguf, on the target's own distributions, and writes a checkpoint.

usage: train_heads.py {eagle3,eagle} --target story.gguf --data BUILD/tokens --greedy BUILD/greedy.pt --out BUILD
                      [--minutes 20] [--batch 1024] [--length 256] [--threads 1] [--start HEAD.gguf]

The corpus only says where the target stands; what is to be predicted is what the target says there. A row of the
MLP head, which never sees the tokens in between, counts only as long as they are those the target would have
chosen. A row of the EAGLE-3 head counts where the target's first choice is in the draft vocabulary. Step s weighs
0.8^s; the first part of a run has two steps only. Windows have 512 tokens in the last third. With --start a head goes on
from a file, with all steps and at a lower rate: for a target that has moved a little. Minutes are of processor time per
thread. Loss, and tokens a step with four drafts on part of the held-out continuations (measure_heads.py makes
these), go to OUT/NAME.loss.csv; nothing is chosen by them.
"""
import argparse
import csv
import os
import time

import numpy
import torch
import torch.nn.functional as F

import export_heads
import head_model as heads
import measure_heads
import model as net
import train

SEED = 7
STEPS = {"eagle3": 5, "eagle": 4}
RATES = {"eagle3": (0.02, 0.006), "eagle": (0.02, 0.006)}  # of hidden matrices, of the rest
START_RATE = 0.4  # of those, with --start
STEP_WEIGHT = 0.8
FIRST_STEPS, FIRST = 2, {"eagle3": 0.5, "eagle": 0.3}  # in the first part of a run more text is worth more than steps
LONG = 512  # windows in the last part
WARM_UP = 40
DECAY_FROM = 0.4
EVERY = 200  # steps between rows of the log


class Optimiser(train.Optimiser):
    """Muon for the hidden matrices, Adam for the output matrix, norms and biases."""

    def __init__(self, weights, shape):
        super().__init__(weights, shape)
        for name, size in self.size.items():
            self.size[name] = size if size > 0 else 1.0  # a bias starts at nothing

    @staticmethod
    def is_hidden(name):
        return name != "output" and "norm" not in name


def frequent_tokens(data, count):
    """The ids that occur most often, in the order of ids."""
    often = numpy.bincount(data & ~numpy.uint16(train.UNLEARNT), minlength=net.VOCAB).argsort(kind="stable")[::-1][:count]
    return torch.from_numpy(numpy.sort(often).astype(numpy.int64))


def loss_of(name, weights, tokens, target, ids, count):
    """Mean loss over steps and rows; ids [batch, T + count]."""
    length = ids.shape[1] - count
    kept, logits = target.states(ids)
    top = logits.argmax(-1)
    if name == "eagle3":
        output = weights["output"]
        known = torch.zeros(net.VOCAB, dtype=torch.bool).index_fill_(0, tokens, True)[top]
        want = logits[..., tokens].softmax(-1)
        steps = heads.Eagle3.steps(weights, target.weights["embed"], kept, ids, count, target.tables)
    else:
        output = target.weights["embed"]
        want = logits.softmax(-1)
        chosen = F.pad(ids[:, 1:] == top[:, :-1], (0, 1))
        path = torch.ones(ids.shape[0], length, dtype=torch.bool)
        steps = heads.Mlp.steps(weights, kept, length, count)
    total, parts = 0.0, []
    for n, hidden in enumerate(steps):
        at = slice(n + 1, n + 1 + length)
        if name == "eagle3":
            counts = known[:, at]
        else:
            path = path & chosen[:, n:n + length]
            counts = path
        rows = counts.flatten().nonzero()[:, 0]
        one = heads.SoftLoss.apply(hidden[rows], output, want[:, at].flatten(0, 1)[rows])
        parts.append(float(one))
        total = total + one * STEP_WEIGHT ** n
    return total / sum(STEP_WEIGHT ** n for n in range(count)), parts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(STEPS))
    parser.add_argument("--target", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--greedy", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--start", help="a head whose weights a new run begins with")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    target = heads.Target(args.target)
    data = numpy.memmap(args.data + ".train.bin", dtype=numpy.uint16, mode="r")
    held = torch.load(args.greedy)[::4]
    tokens = None
    if args.start:
        name, weights, tokens = export_heads.read_head(args.start)
        assert name == args.name, args.start
    elif args.name == "eagle3":
        tokens = frequent_tokens(data, heads.Eagle3.DRAFT_VOCAB)
        weights = heads.Eagle3.new_weights(target.weights, tokens, SEED)
    else:
        weights = heads.Mlp.new_weights(target.weights, SEED)
    optimiser = Optimiser(weights, None)
    for value in weights.values():
        value.requires_grad_(True)
    count, length = STEPS[args.name], args.length
    batches = train.Batches(data, length + count, SEED)
    path = os.path.join(args.out, args.name)
    spent, seen, running = 0.0, 0, None
    with open(path + ".loss.csv", "w", newline="") as log:
        table = csv.writer(log, lineterminator="\n")
        table.writerow(["head", "step", "tokens", "minutes", "rate", "loss", "tokens_a_step"])
        while True:
            begun = time.process_time()
            done = spent / (60 * args.minutes)
            rate = min(1.0, (optimiser.step + 1) / WARM_UP, (1 - done) / (1 - DECAY_FROM))
            if done > train.LONG_FROM and length != LONG:
                length = LONG
                batches = train.Batches(data, length + count, SEED + 1)
            used = count if args.start or done > FIRST[args.name] else FIRST_STEPS
            if rate > 0:
                ids, _ = batches.next(max(1, args.batch // length))
                loss, parts = loss_of(args.name, weights, tokens, target, ids[:, :length + used], used)
                loss.backward()
                optimiser.update(*(x * rate * (START_RATE if args.start else 1) for x in RATES[args.name]))
                for value in weights.values():
                    value.grad = None
                seen += ids.shape[0] * length
                running = float(loss) if running is None else 0.95 * running + 0.05 * float(loss)
                spent += (time.process_time() - begun) / args.threads
            if optimiser.step % EVERY == 0 or rate <= 0:
                figures = measure_heads.measure(args.name, weights, tokens, target, held)
                row = [args.name, optimiser.step, seen, f"{spent / 60:.2f}", f"{max(0, rate):.3f}", f"{running:.4f}",
                       f"{figures.tokens_a_step:.3f}"]
                table.writerow(row)
                log.flush()
                print(*row, " ".join(f"{x:.3f}" for x in parts), "|", " ".join(f"{x:.3f}" for x in figures.by_position),
                      flush=True)
                torch.save(dict(name=args.name, tokens=tokens, weights={k: v.detach() for k, v in weights.items()}),
                           path + ".pt")
            if rate <= 0:
                break


if __name__ == "__main__":
    main()
