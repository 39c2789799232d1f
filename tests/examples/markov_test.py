#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/markov.c: each word it says followed the one before it somewhere in the text, as often as there.

usage: markov_test.py PROGRAM SOURCE_DIR
"""
import collections
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
TEXT = os.path.join(SOURCE, "examples/demo_model/heldout.txt")


def markov(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)


class Markov(unittest.TestCase):
    def test_words_follow_as_in_the_text(self):
        with open(TEXT, encoding="ascii") as file:
            text = file.read().split()[:16384]
        pairs = set(zip(text, text[1:] + text[:1]))
        said = set()
        for seed in range(5):
            done = markov(TEXT, "The", str(seed))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            words = done.stdout.split()
            self.assertEqual(len(words), 49)
            self.assertLessEqual(set(zip(["The"] + words, words)), pairs)
            self.assertEqual(markov(TEXT, "The", str(seed)).stdout, done.stdout)
            said.add(done.stdout)
        self.assertEqual(len(said), 5)

    def test_shares_are_those_of_the_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "text")
            with open(path, "w", encoding="ascii") as file:
                file.write("a b a b a b a c")  # after a: b in 3 of 4
            said = collections.Counter()
            for seed in range(60):
                said.update(markov(path, "a", str(seed)).stdout.split()[0::2])
        total = said["b"] + said["c"]
        self.assertEqual(total, 60 * 25)
        self.assertLess(abs(said["b"] - 0.75 * total), 4 * (total * 0.75 * 0.25) ** 0.5)

    def test_what_it_cannot_do(self):
        self.assertEqual(markov().returncode, 2)
        self.assertEqual(markov("/nowhere", "a").returncode, 2)
        done = markov(TEXT, "xylophones")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^token \d+ outside vocabulary of \d+\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
