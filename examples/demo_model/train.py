# SPDX-License-Identifier: Apache-2.0
"""Trains one of the bundled models on a token file and writes checkpoints.

usage: train.py {story,draft} --data BUILD/tokens --out BUILD [--minutes 60] [--tokens 30e6]
                [--decay-minutes 10] [--batch 4096] [--length 256] [--threads 2] [--start CHECKPOINT]

Windows of --length tokens at first, which is faster, and of the whole context in the last third.
Warm-up, constant rate, then a linear decay to nothing: the constant part can be cut short at any time, either
by the budget (--minutes or --tokens, whichever is reached first) or by creating OUT/<model>.decay. A run that
was killed goes on from OUT/<model>.pt when it is started again. Minutes are of processor time per thread, so
that a run that shares its machine, or is suspended for a while, still trains as long. Hidden matrices are trained with Muon
(momentum, orthogonalised), the embedding and the norms with AdamW. Loss goes to OUT/<model>.loss.csv.
"""
import argparse
import csv
import os
import signal
import time

import numpy
import torch

import model as net
import read_gguf
from tokenise import UNLEARNT

HELD_TOKENS = 8192
BOS = 1
LONG_FROM = 0.65  # share of the run after which windows are as long as the context


def orthogonal(grad):
    """Five Newton-Schulz steps bring a batch of matrices near to their orthogonal factor."""
    x = grad.to(net.COMPUTE)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(1, 2)
    x = (x / (x.float().flatten(1).norm(dim=1)[:, None, None] + 1e-7)).to(net.COMPUTE)
    for _ in range(5):
        a = torch.bmm(x, x.transpose(1, 2))
        b = -4.7750 * a + 2.0315 * torch.bmm(a, a)
        x = 3.4445 * x + torch.bmm(b, x)
    if tall:
        x = x.transpose(1, 2)
    return x.float()


class Optimiser:
    def __init__(self, weights, shape):
        self.w = weights
        self.step = 0
        self.state = {}
        self.size = {}  # root mean square at the start: Adam's steps are in proportion to it
        for name, value in weights.items():
            self.size[name] = float(value.square().mean().sqrt())
            self.state[name] = torch.zeros_like(value)
            if not self.is_hidden(name):
                self.state[name + "^2"] = torch.zeros_like(value)
        groups = {}
        for name, value in weights.items():
            if self.is_hidden(name):
                groups.setdefault(tuple(value.shape), []).append(name)
        self.groups = list(groups.values())

    @staticmethod
    def is_hidden(name):
        return name != "embed" and not name.endswith("norm")

    @torch.no_grad()
    def update(self, matrix_rate, adam_rate, decay=0.02):
        self.step += 1
        momentum = min(0.95, 0.85 + 0.1 * self.step / 300)
        for group in self.groups:
            moves = []
            for name in group:
                grad, buf = self.w[name].grad, self.state[name]
                buf.lerp_(grad, 1 - momentum)
                moves.append(grad.lerp(buf, momentum))
            for name, move in zip(group, orthogonal(torch.stack(moves))):
                value = self.w[name]
                value.mul_(1 - matrix_rate * decay)
                value.add_(move, alpha=-matrix_rate * max(1.0, value.shape[0] / value.shape[1]) ** 0.5)
        for name, value in self.w.items():
            if self.is_hidden(name):
                continue
            first, second, grad = self.state[name], self.state[name + "^2"], value.grad
            first.lerp_(grad, 0.1)
            second.mul_(0.98).addcmul_(grad, grad, value=0.02)
            top = first / (1 - 0.9 ** self.step)
            bottom = (second / (1 - 0.98 ** self.step)).sqrt_().add_(1e-10)
            value.addcdiv_(top, bottom, value=-adam_rate * self.size[name])


class Batches:
    """Windows of the token file in a random order, all of them once before any twice: (ids, targets).

    Each begins with a document: what stands before it is then never another story, whose names would only
    confuse while the model learns to take names from further up. Targets keep the mark of tokenise.py.
    """

    def __init__(self, tokens, length, seed):
        self.tokens, self.length = tokens, length
        self.random = numpy.random.default_rng(seed)
        self.starts = numpy.flatnonzero(tokens[:len(tokens) - length] == BOS)
        self.queue = []

    def next(self, count):
        rows = []
        while len(rows) < count:
            if not self.queue:
                self.queue = self.random.permutation(self.starts).tolist()
            start = self.queue.pop()
            rows.append(self.tokens[start:start + self.length + 1])
        block = torch.from_numpy(numpy.stack(rows).astype(numpy.int64))
        return (block[:, :-1] & ~UNLEARNT).contiguous(), block[:, 1:].reshape(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(net.SHAPES))
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--tokens", type=float, default=1e12)
    parser.add_argument("--decay-minutes", type=float, default=10)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start", help="a checkpoint, or a GGUF file, whose weights a new run begins with")
    parser.add_argument("--matrix-rate", type=float, default=0.02)
    parser.add_argument("--adam-rate", type=float, default=0.006)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    shape = net.SHAPES[args.name]
    path = os.path.join(args.out, args.name)
    data = numpy.memmap(args.data + ".train.bin", dtype=numpy.uint16, mode="r")
    held = numpy.memmap(args.data + ".held.bin", dtype=numpy.uint16, mode="r")
    count = HELD_TOKENS // 512
    held = torch.from_numpy(held[:count * 512 + 1].astype(numpy.int64))
    held = held[:-1].view(count, 512), held[1:]
    tables = net.rope_tables(shape["head_dim"], net.CONTEXT)

    weights = net.new_weights(shape, 1)
    optimiser = Optimiser(weights, shape)
    seen, spent = 0, 0.0
    if args.start and not os.path.exists(path + ".pt"):
        begin = read_gguf.read_target(args.start)[1] if args.start.endswith(".gguf") else torch.load(args.start)["weights"]
        for name, value in begin.items():
            weights[name].copy_(value)
    if os.path.exists(path + ".pt"):
        saved = torch.load(path + ".pt")
        for name in weights:
            weights[name].copy_(saved["weights"][name])
        optimiser.state, optimiser.step = saved["state"], saved["step"]
        seen, spent = saved["seen"], saved["spent"]
    for value in weights.values():
        value.requires_grad_(True)
    batches = Batches(data, args.length, 100 + optimiser.step)

    def save():
        torch.save(dict(weights={k: v.detach() for k, v in weights.items()}, state=optimiser.state,
                        step=optimiser.step, seen=seen, spent=spent, name=args.name), path + ".pt.new")
        os.replace(path + ".pt.new", path + ".pt")

    def loss_of(ids, target):
        hidden = net.hidden_states(weights, shape, ids, tables)
        learnt = target < UNLEARNT
        if not learnt.all():
            hidden, target = hidden[learnt], target[learnt]
        return net.Loss.apply(hidden, weights["embed"], target)

    def held_loss():
        with torch.no_grad():
            return float(loss_of(*held))

    fresh = not os.path.exists(path + ".loss.csv")
    log = open(path + ".loss.csv", "a", newline="")
    table = csv.writer(log, lineterminator="\n")
    if fresh:
        table.writerow(["step", "tokens", "minutes", "rate", "train_loss", "heldout_loss"])
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    begun, base, last_save = time.process_time(), spent, time.time()
    decay_from, running, print_every, length = None, None, 50, args.length
    while True:
        spent = base + (time.process_time() - begun) / args.threads
        done = max(spent / (60 * args.minutes), seen / args.tokens)
        want = net.CONTEXT if done > LONG_FROM or decay_from is not None else length
        if length != want:
            length = want
            batches = Batches(data, length, 200 + optimiser.step)
            print(f"windows of {length} tokens from here", flush=True)
        if decay_from is None and (spent >= 60 * (args.minutes - args.decay_minutes) or os.path.exists(path + ".decay")
                                   or seen >= 0.85 * args.tokens):
            decay_from = spent
            print("decay begins", flush=True)
        rate = min(1.0, (optimiser.step + 1) / 60)
        if decay_from is not None:
            rate *= 1 - (spent - decay_from) / (60 * args.decay_minutes)
        if rate <= 0:
            break
        if stop:
            save()
            print("stopped; start again to go on", flush=True)
            return
        ids, target = batches.next(args.batch // length)
        loss = loss_of(ids, target)
        loss.backward()
        optimiser.update(args.matrix_rate * rate, args.adam_rate * rate)
        for value in weights.values():
            value.grad = None
        seen += target.numel()
        running = float(loss) if running is None else 0.95 * running + 0.05 * float(loss)
        if optimiser.step % print_every == 0:
            row = [optimiser.step, seen, f"{spent / 60:.2f}", f"{rate:.3f}", f"{running:.4f}", f"{held_loss():.4f}"]
            table.writerow(row)
            log.flush()
            print(*row, f"{seen / max(1e-9, spent):.0f} tok/s", flush=True)
        if time.time() - last_save > 120:
            save()
            last_save = time.time()
    save()
    print("done", f"held-out loss {held_loss():.4f}", flush=True)


if __name__ == "__main__":
    main()
