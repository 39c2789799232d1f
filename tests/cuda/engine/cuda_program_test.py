#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program and the Python example say on the emulated device what they say on the CPU, with all layers there and with some.

usage: cuda_program_test.py GENERATE MODEL [PYTHON_EXAMPLES]    (GENERATE_LIBRARY is the library)
"""
import json
import subprocess
import sys
import unittest

PROGRAM, MODEL, EXAMPLES = sys.argv[1], sys.argv[2], sys.argv[3:]
ON_DEVICE = ["--backend", "cuda", "--device", "0"]


def generate(command, *arguments):
    return subprocess.run([PROGRAM, command, "-m", MODEL, "-t", "1", *arguments], capture_output=True, text=True)


class Program(unittest.TestCase):
    def test_layers(self):
        say = ["-p", "Once", "-n", "2", "--ctx", "32", "--temp", "0"]
        want = generate("run", *say)
        self.assertEqual(want.returncode, 0, want.stderr)
        for layers in ("all", "auto", "1"):
            got = generate("run", *say, *ON_DEVICE, "--gpu-layers", layers)
            self.assertEqual((got.returncode, got.stdout), (0, want.stdout), got.stderr)

    def test_refusals(self):
        for arguments, message in (
            (["--backend", "abacus"], "--backend: unknown backend"),
            (["--backend", "cuda", "--device", "1"], "device 1 of backend cuda, which has 1"),
            ([*ON_DEVICE, "--gpu-layers", "most"], "--gpu-layers: "),
            (["--gpu-layers", "1"], "and backend cpu has none"),
        ):
            done = generate("run", "-p", "x", *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)

    def test_estimate(self):
        figures = json.loads(generate("estimate", "--json", "--ctx", "32", *ON_DEVICE).stdout)
        self.assertGreater(figures["weights"], 0)


@unittest.skipUnless(EXAMPLES, "no Python examples")
class Example(unittest.TestCase):
    def test_layers(self):
        sys.path.insert(0, EXAMPLES[0])
        from libgenerate import Error, Generator, Model, Session
        said = []
        for options in ({}, {"backend": "cuda", "gpu_layers": 1}):
            with Model(MODEL, threads=1, max_seq_len=32, **options) as model, Generator(model) as generator, \
                    Session(generator) as session:
                said.append(session.generate("Once", temperature=0, max_new_tokens=2).tokens)
        self.assertEqual(said[0], said[1])
        with self.assertRaisesRegex(Error, "gpu_layers"):
            Model(MODEL, gpu_layers=-3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
