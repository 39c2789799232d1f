# SPDX-License-Identifier: Apache-2.0
"""Turns corpus.jsonl and the held-out text into files of 16-bit token ids: OUT.train.bin, OUT.held.bin.

usage: tokenise.py --build BUILD --heldout heldout.txt --out OUT

Each document is <s> ... </s>. In a dialogue the markers <|im_start|> and <|im_end|> are single ids, and the text
between them is encoded by itself. Programs differ in whether text after a marker gets the space that opens a text
("_user" or "user"), so the model sees both, the first (llama.cpp's way) more often.

In conversations with tools only the assistant's words are learnt: the questions and lists of tools are too random
to be worth the model's effort. The other tokens have the bit UNLEARNT of their 16 set.
"""
import argparse
import json
import os
import random

import numpy
import sentencepiece

UNLEARNT = 0x8000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--heldout", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(args.build, "vocabulary.model"))
    start, end = sp.piece_to_id("<|im_start|>"), sp.piece_to_id("<|im_end|>")
    marker = sp.encode("\n")  # [space, newline]
    space, newline = marker
    r = random.Random(5)

    def after_marker(text, spaced):
        """Ids of text that follows a marker: with the opening space, or without it."""
        ids = sp.encode(text)
        if spaced:
            return ids
        # a newline opens no word, so text behind one is encoded without the space
        return sp.encode("\n" + text)[2:]

    train = []
    with open(os.path.join(args.build, "corpus.jsonl"), encoding="utf-8") as lines:
        for line in lines:
            kind, body = json.loads(line)
            ids = [sp.bos_id()]
            if kind == "text":
                ids += sp.encode(body)
            else:
                spaced = r.random() < 0.7
                for role, content in body:
                    mark = UNLEARNT if kind == "tools" else 0
                    turn = [start] + after_marker(role + "\n", spaced)
                    ids += [x | mark for x in turn]
                    turn = after_marker(role + "\n" + content, spaced)[len(turn) - 1:] + [end]
                    ids += [x | mark for x in turn] if role != "assistant" else turn
                    ids += [x | mark for x in ([space, newline] if spaced else [newline])]
            ids.append(sp.eos_id())
            train.append(numpy.array(ids, dtype=numpy.uint16))
    train = numpy.concatenate(train)
    train.tofile(args.out + ".train.bin")
    with open(args.heldout, encoding="utf-8", newline="") as file:
        text = file.read()
    held = numpy.array([sp.bos_id()] + sp.encode(text), dtype=numpy.uint16)
    held.tofile(args.out + ".held.bin")
    print(f"{len(train)} training tokens, {len(held)} held-out tokens, {len(text) / len(held):.2f} characters a token")


if __name__ == "__main__":
    main()
