#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program and the Python example say on the emulated device what they say on the CPU, with all layers there and with some.

usage: cuda_program_test.py GENERATE RANDOM_MODEL MODEL [PYTHON_EXAMPLES]    (GENERATE_LIBRARY is the library)
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, RANDOM_MODEL, MODEL, EXAMPLES = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
BUNDLED = pathlib.Path(MODEL).parent
ON_DEVICE = ["--backend", "cuda", "--device", "0"]


def generate(command, *arguments, model=MODEL):
    return subprocess.run([PROGRAM, command, "-m", model, "-t", "1", *arguments], capture_output=True, text=True)


class Program(unittest.TestCase):
    def test_layers(self):
        say = ["-p", "Once", "-n", "2", "--ctx", "32", "--temp", "0"]
        want = generate("run", *say)
        self.assertEqual(want.returncode, 0, want.stderr)
        for layers in ("all", "auto", "1"):
            got = generate("run", *say, *ON_DEVICE, "--gpu-layers", layers)
            self.assertEqual((got.returncode, got.stdout), (0, want.stdout), got.stderr)

    def test_a_text_is_as_likely(self):
        """Teacher-forced, in steps of 20 rows: the bundled models and a random one of quantised weights to the last digit, random
        ones of F16 and BF16 within the rounding of rows to the weights' type."""
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "text")
            text.write_bytes((BUNDLED / "heldout.txt").read_bytes()[:64])

            def perplexity(model, *arguments):
                done = generate("perplexity", "--json", "-f", str(text), *arguments, model=str(model))
                self.assertEqual(done.returncode, 0, done.stderr)
                return json.loads(done.stdout)

            models = [(BUNDLED / "story.gguf", 0), (BUNDLED / "draft.gguf", 0)]
            for kind, allowed in (("Q4_K", 0), ("F16", 2e-4), ("BF16", 2e-3)):
                made = pathlib.Path(folder, kind)
                subprocess.run([RANDOM_MODEL, made, "--type", kind, *"--layers 2 --width 256 --heads 4 --kv-heads 2".split(),
                                *"--ffn 512 --vocab 500".split()], check=True, capture_output=True)
                models.append((made, allowed))
            for model, allowed in models:
                want = perplexity(model, "--window", "20")
                got = perplexity(model, "--window", "20", *ON_DEVICE)
                self.assertEqual(got["tokens"], want["tokens"])
                self.assertLessEqual(abs(got["perplexity"] / want["perplexity"] - 1), allowed, model.name)

    def test_experts_on_the_cpu(self):
        """With all, some and none of its experts on the device a model says the same, and the estimate moves their bytes."""
        with tempfile.TemporaryDirectory() as folder:
            made = str(pathlib.Path(folder, "experts.gguf"))
            subprocess.run([RANDOM_MODEL, made, "--type", "Q4_K", *"--layers 3 --width 256 --heads 4 --kv-heads 2 --ffn 256".split(),
                            *"--vocab 500 --experts 6 --used 2".split()], check=True, capture_output=True)
            say = ["-p", "a b", "-n", "2", "--ctx", "32", "--temp", "0"]
            want = generate("run", *say, model=made)
            self.assertEqual(want.returncode, 0, want.stderr)
            sides = []
            for layers in ("all", "1", "0"):
                where = [*ON_DEVICE, "--gpu-expert-layers", layers]
                got = generate("run", *say, *where, model=made)
                self.assertEqual((got.returncode, got.stdout), (0, want.stdout), got.stderr)
                figures = json.loads(generate("estimate", "--json", "--ctx", "32", *where, model=made).stdout)
                sides.append((figures["weights"], figures["device_weights"]))
            stacks = 3 * 6 * 256 * 256 * 144 // 256  # of a layer, in blocks of 256 weights; both engines pad them
            for before, after, layers in ((0, 1, 2), (1, 2, 1)):
                for moved in (sides[after][0] - sides[before][0], sides[before][1] - sides[after][1]):
                    self.assertTrue(layers * stacks <= moved <= 1.1 * layers * stacks, (moved, stacks))

    def test_refusals(self):
        for arguments, message in (
            (["--backend", "abacus"], "--backend: unknown backend"),
            (["--backend", "cuda", "--device", "1"], "device 1 of backend cuda, which has 1"),
            ([*ON_DEVICE, "--gpu-layers", "most"], "--gpu-layers: "),
            ([*ON_DEVICE, "--gpu-expert-layers", "most"], "--gpu-expert-layers: "),
            (["--gpu-expert-layers", "1"], "--gpu-expert-layers is 1, and backend cpu has no device"),
            (["--gpu-layers", "1"], "--gpu-layers is 1, and backend cpu has no device"),
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
