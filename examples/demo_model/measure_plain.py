# SPDX-License-Identifier: Apache-2.0
"""How well a model answers without tools: a few questions, and sums and differences as talk.py asks them, greedy.

usage: GENERATE_LIBRARY=libgenerate.so.0 measure_plain.py [story.gguf] [--count 100] [--seed 1000010] [--show 0]

Each question opens a conversation of its own. An answer is right if the last number in it is that of the answer that
talk.py would give. Such questions are in the corpus, since there are only so many. --show prints failures.
"""
import argparse
import os
import random
import re
import sys

import talk

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "python"))
import libgenerate  # noqa: E402

TABLE = ["What is two plus three?", "What is 7 + 5?", "What is 9 minus 4?", "Sam has 3 apples and gets 4 more. How many apples does Sam have now?",
         "What colour is the sky?", "How many legs does a spider have?"]
OTHERS = ("times", "*", "bigger")  # products and comparisons


def sums(count, seed):
    r = random.Random(seed)
    while count:
        question, answer = talk.sums(r)
        if not any(x in question for x in OTHERS):
            count -= 1
            yield question, answer


def last_number(text):
    return (re.findall(r"\d+", text) or [None])[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default=os.path.join(HERE, "story.gguf"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1000010)
    parser.add_argument("--show", type=int, default=0)
    args = parser.parse_args()
    with libgenerate.Model(args.model) as model, libgenerate.Generator(model) as generator:
        def say(text):
            with libgenerate.Chat() as chat, libgenerate.ChatSession(generator, chat) as session:
                return "".join(token.text for token in session.stream(text, temperature=0, max_new_tokens=40))

        for question in TABLE:
            print(f"{question} {say(question)}")
        right = shown = 0
        for question, answer in sums(args.count, args.seed):
            said = say(question)
            fits = last_number(said) == last_number(answer)
            right += fits
            if not fits and shown < args.show:
                shown += 1
                print(f"  {question} {said}")
        print(f"sums and differences: {right} of {args.count}")


if __name__ == "__main__":
    main()
