# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus: BUILD/corpus.jsonl, BUILD/vocabulary.txt and a held-out text.

usage: make_corpus.py --out BUILD [--megabytes 110] [--seed 1] [--heldout FILE] [--drill | --tools]

A line of corpus.jsonl is a JSON list: ["text", TEXT] for a plain document, ["chat", [[role, content], ...]]
for a dialogue, ["tools", ...] for one with tools. vocabulary.txt has the same sentences one a line, for spm_train. The held-out text (stories
and JSON, documents separated by a blank line) is made first, and no document of it is ever repeated in the
training part. With --drill most documents are dialogues, and those practise what a small model
finds hard: sums, and stories about what was asked for. With --tools every second document is a conversation with tools in the
form of the chat template; the others are sums without tools, stories and the drill, so that nothing is forgotten.
"""
import argparse
import json
import os
import random

import stories
import talk
import tool_talk


def document(r):
    """One plain document: a story with or without a title, or JSON."""
    if r.random() < 0.12:
        return talk.text_json(r)
    title, text = stories.story(r)
    return title + "\n\n" + text if r.random() < 0.3 else text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--megabytes", type=float, default=110)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heldout")
    parser.add_argument("--drill", action="store_true")
    parser.add_argument("--tools", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)

    held = []
    r = random.Random(1000010)  # the same text whatever the training part is
    while sum(map(len, held)) < 100000:
        held.append(document(r))
    with open(args.heldout or os.path.join(args.out, "heldout.txt"), "w", encoding="utf-8") as out:
        out.write("\n\n".join(held) + "\n")
    held = set(held)

    r = random.Random(args.seed)
    size, lines = 0, 0
    with open(os.path.join(args.out, "corpus.jsonl"), "w", encoding="utf-8") as out, \
            open(os.path.join(args.out, "vocabulary.txt"), "w", encoding="utf-8") as words:
        while size < args.megabytes * 1e6:
            if args.tools and r.random() < 0.5:
                value = ["tools", tool_talk.conversation(r)]
                texts = [content for _, content in value[1]]
            elif args.tools and r.random() < 0.45:
                value = ["chat", talk.practice(r)]
                texts = [content for _, content in value[1]]
            elif r.random() < (0.35 if args.tools else 0.8 if args.drill else 0.42):
                value = ["chat", talk.chat(r, args.drill or args.tools, not args.tools)]
                texts = [content for _, content in value[1]] + [role for role, _ in value[1][:1]]
            else:
                # some documents stand together, as they do in the held-out text
                texts = [document(r) for _ in range(1 if r.random() < 0.75 else r.randint(2, 4))]
                texts = [x for x in texts if x not in held]
                value = ["text", "\n\n".join(texts)]
                if not texts:
                    continue
            out.write(json.dumps(value) + "\n")
            size += sum(map(len, texts))
            if lines < 20000:
                for x in texts:
                    words.write("\n".join(filter(None, x.split("\n"))) + "\n")
            lines += 1


if __name__ == "__main__":
    main()
