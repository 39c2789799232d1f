#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/chat.c: what it says is what the generate program says, and its commands edit the conversation.

usage: chat_test.py PROGRAM SOURCE_DIR
"""
import json
import os
import subprocess
import sys
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
MODEL = os.path.join(SOURCE, "examples/demo_model/story.gguf")


def chat(*lines, system=()):
    done = subprocess.run([PROGRAM, MODEL, *system], input="".join(line + "\n" for line in lines), capture_output=True,
                          text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def messages(shown):
    """Of the last line that is JSON."""
    return json.loads([line for line in shown.split("\n") if line.startswith('{"messages":')][-1])["messages"]


class ChatExample(unittest.TestCase):
    def test_a_conversation(self):
        status, out, err = chat("Tell me of the fox.", "And then?", "/show", system=["You tell stories."])
        self.assertEqual((status, err), (0, ""))
        said = messages(out)
        self.assertEqual([m["role"] for m in said], ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual(said[3]["content"], "And then?")
        # Both answers stand in what was printed while they came.
        self.assertTrue(out.startswith(said[2]["content"] + "\n" + said[4]["content"] + "\n"))

    def test_again_draws_another_answer_to_the_same(self):
        status, out, err = chat("Tell me of the fox.", "/show", "/again", "/show")
        self.assertEqual((status, err), (0, ""))
        first, second = [json.loads(l)["messages"] for l in out.split("\n") if l.startswith('{"messages":')]
        self.assertEqual(first[0], second[0])
        self.assertEqual(len(second), 2)
        self.assertNotEqual(first[1], second[1])

    def test_a_cut_answer_goes_on(self):
        _, once, _ = chat("Tell me of the fox.", "/show")
        status, out, err = chat("Tell me of the fox.", "/more", "/show")
        self.assertEqual(status, 0)
        before, after = messages(once)[1]["content"], messages(out)[1]["content"]
        self.assertTrue(after.startswith(before))
        # The first one has 60 tokens at most: one that ended by itself is not gone on with.
        self.assertEqual(after == before, "add a message" in err)

    def test_failures_are_told_and_it_goes_on(self):
        status, out, err = chat("/again", "/show")
        self.assertEqual((status, err), (0, "-1 messages of 0\n"))
        self.assertEqual(messages(out), [])
        self.assertEqual(subprocess.run([PROGRAM], capture_output=True, timeout=300).returncode, 2)
        done = subprocess.run([PROGRAM, "/nowhere"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
