# SPDX-License-Identifier: Apache-2.0
"""The weighted mean of several states of one model: a checkpoint that export_gguf.py and train.py --start read.

usage: average.py WEIGHT MODEL [WEIGHT MODEL ...] --out MEAN.pt

A MODEL is a checkpoint of train.py or a bundled GGUF file. Weights are divided by their sum. States that came from one
another by a little more training lie in one valley of the loss, so their mean is a model, and it keeps most of what
each of them knows. States that were trained apart have no such mean.
"""
import argparse

import torch

import model as net
import read_gguf


def read(path):
    """(name of the model, its weights)"""
    if not path.endswith(".gguf"):
        saved = torch.load(path)
        return saved["name"], {k: v.detach().float() for k, v in saved["weights"].items()}
    _, weights, shape = read_gguf.read_target(path)
    return next(name for name, of_it in net.SHAPES.items() if of_it == shape), weights


def mean(states):
    """Of (weight, tensors) pairs with the same names and shapes."""
    whole = sum(weight for weight, _ in states)
    return {k: sum(weight / whole * tensors[k] for weight, tensors in states) for k in states[0][1]}


def main():
    parser = argparse.ArgumentParser(usage="average.py WEIGHT MODEL [WEIGHT MODEL ...] --out MEAN.pt")
    parser.add_argument("parts", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    if len(args.parts) % 2:
        parser.error("each model needs a weight before it")
    states = [read(path) for path in args.parts[1::2]]
    names = {name for name, _ in states}
    if len(names) > 1:
        parser.error("models differ: " + ", ".join(sorted(names)))
    weights = mean([(float(weight), tensors) for weight, (_, tensors) in zip(args.parts[::2], states)])
    torch.save({"name": names.pop(), "weights": weights}, args.out)


if __name__ == "__main__":
    main()
