#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate run, chat and bench with adapters, and generate merge: files with scales, and what is refused.

usage: lora_test.py <generate> <source root> <random_model>
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

GENERATE, ROOT, RANDOM_MODEL = sys.argv[1:4]
WIDTH = 256
sys.path.insert(0, os.path.join(ROOT, "tests/support"))

from adapter_files import write_adapter  # noqa: E402


class Lora(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = os.path.join(cls.folder.name, "model.gguf")
        shape = {"layers": 2, "width": WIDTH, "heads": 4, "kv-heads": 4, "ffn": 512, "vocab": 500, "context": 64}
        options = [part for name, value in shape.items() for part in ("--" + name, str(value))]
        subprocess.run([RANDOM_MODEL, cls.model, "--type", "Q8_0", *options], check=True, capture_output=True)
        cls.one, cls.two = (os.path.join(cls.folder.name, name) for name in ("one.gguf", "t:2"))
        write_adapter(cls.one, [("blk.0.attn_q.weight", WIDTH, WIDTH), ("blk.1.ffn_up.weight", WIDTH, 512)])
        write_adapter(cls.two, [("blk.1.attn_output.weight", WIDTH, WIDTH), ("output.weight", WIDTH, 500)], 2)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_with(self, *files):
        options = [part for file in files for part in ("--lora", file)]
        return subprocess.run([GENERATE, "run", "-m", self.model, "-p", "a b c", "-n", "12", "--temp", "0", *options],
                              capture_output=True)

    def said(self, *files):
        done = self.run_with(*files)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_scales(self):
        base, one, two = self.said(), self.said(self.one), self.said(self.two)
        self.assertEqual(len({base, one, two, self.said(self.one, self.two)}), 4)
        self.assertEqual(self.said(self.one + ":0"), base)
        self.assertEqual(self.said(self.one + ":1"), one)
        self.assertEqual(self.said(self.two + ":1.0"), two)  # a file whose name has a colon
        self.assertEqual(self.said(self.one, self.two + ":0"), one)
        self.assertEqual(self.said(self.one, self.two), self.said(self.two, self.one))
        self.assertNotEqual(self.said(self.one + ":0.25", self.one + ":0.75"), base)

    def test_chat(self):
        answers = [subprocess.run([GENERATE, "chat", "-m", self.model, "-n", "8", "--temp", "0", "--chat-template", "chatml",
                                   *options], input=b"a b\n", capture_output=True) for options in ([], ["--lora", self.one])]
        self.assertEqual([done.returncode for done in answers], [0, 0], answers[0].stderr)
        self.assertNotEqual(answers[0].stdout, answers[1].stdout)

    def bench(self, *options, json=True):
        return subprocess.run([GENERATE, "bench", "-m", self.model, "-p", "8", "-n", "4", "-r", "1", "-t", "1",
                               *["--json"][:json], *options], capture_output=True)

    def test_bench(self):
        # One more token than in a case without adapters: 64 - 8 - 4 - 1.
        for options, key in ((["--depth", "0,51", "--batch", "1,3"], "decode_tps"), (["--sessions", "2"], "order"),
                             (["--sessions", "3", "--lora-each"], "order"), (["--sessions", "2", "--mixed"], "order"),
                             (["--draft", "lookup", "--sessions", "2"], "pass_ms")):
            done = self.bench("--lora", self.one, "--lora", self.two + ":0.5", *options)
            self.assertEqual(done.returncode, 0, (options, done.stderr))
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertIn(key, rows[0])
            for row in rows[options[0] == "--draft":]:  # the costs of passes are the model's alone
                self.assertEqual(row["adapters"], [{"name": "one.gguf", "scale": 1}, {"name": "t:2", "scale": 0.5}])
                self.assertEqual(row.get("lora_each"), True if "--lora-each" in options else None)
            told = self.bench("--lora", self.one, "--lora", self.two + ":0.1", *options, json=False)
            each = ", one for each session in turns" if "--lora-each" in options else ""
            self.assertIn(f"\nadapters{each}: one.gguf, t:2 (scale 0.1)\n", "\n" + told.stdout.decode())
            if options[0] == "--depth":
                self.assertEqual([(row["depth"], row["batch"]) for row in rows], [(d, b) for d in (0, 51) for b in (1, 3)])
                self.assertTrue(all(row["prefill_tps"][0] > 0 and row["decode_tps"][0] > 0 for row in rows))
        self.assertNotIn("adapters", json.loads(self.bench().stdout))
        # Five adapters are too many for one session, but not for five.
        five = [part for _ in range(5) for part in ("--lora", self.one)]
        for options in ([], ["--sessions", "5"], ["--draft", "lookup", "--sessions", "1"]):
            done = self.bench(*options, *five)
            self.assertEqual((done.returncode, b"at most 4" in done.stderr), (1, True), (options, done.stderr))
        done = self.bench("--sessions", "5", "--lora-each", *five)
        self.assertEqual(done.returncode, 0, done.stderr)
        for options, message in ((["--lora", self.one, "--depth", "52"], "do not fit the context of 64"),
                                 (["--lora", self.one, "--lora-each"], "--lora-each requires --sessions"),
                                 (["--sessions", "2", "--lora-each"], "--lora-each requires --lora"),
                                 (["--lora", self.one, "--profile"], "excludes"), (["--lora", "gone"], "--lora: "),
                                 (["--lora", self.one, "--sessions", "2", "--lora-each", "--draft", "lookup"], "excludes")):
            done = self.bench(*options)
            self.assertNotEqual(done.returncode, 0, options)
            self.assertIn(message, done.stderr.decode())

    def test_names(self):
        """A message about an adapter names its file, with a number where two are called the same."""
        other = os.path.join(self.folder.name, "other")
        os.mkdir(other)
        same = os.path.join(other, "one.gguf")
        write_adapter(same, [("blk.0.attn_q.weight", WIDTH, WIDTH)], tokens=[3, 4])
        for files, name in (([same, self.one], '"one.gguf"'), ([self.one, same], '"one.gguf (2)"'), ([same, same], '"one.gguf"')):
            done = self.run_with(*files)
            self.assertEqual((done.returncode, done.stdout), (1, b""), files)
            self.assertIn(f"adapter {name} is activated", done.stderr.decode())
        # Names that adapters cannot have: not UTF-8, and 255 bytes, to which a number is added.
        for name in (b"\xff\xc3.gguf", b"a" * 255):
            path = os.path.join(other.encode(), name)
            shutil.copy(self.one, path)
            done = subprocess.run([GENERATE, "run", "-m", self.model, "-p", "a b c", "-n", "12", "--temp", "0", "--lora", path,
                                   "--lora", path + b":-1"], capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (0, self.said(self.one, self.one + ":-1")), done.stderr)
        shutil.rmtree(other)

    def test_inspect(self):
        path = os.path.join(self.folder.name, "seen.gguf")
        write_adapter(path, [("blk.0.attn_q.weight", WIDTH, WIDTH), ("blk.1.ffn_up.weight", WIDTH, 512)], rank=6, tokens=[9, 4],
                      architecture="qwen3", alpha=12)
        with open(path, "rb") as file:
            whole = file.read()
        numbers = 6 * (4 * WIDTH) + 6 * (512 - WIDTH)
        done = subprocess.run([GENERATE, "inspect", path, "--json"], capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        told = json.loads(done.stdout)
        self.assertEqual({**told, "metadata": None}, {
            "type": "adapter", "architecture": "qwen3", "adapter": "lora", "alpha": 12, "ranks": [6], "pairs": 2,
            "parameters": numbers, "memory": {"file": len(whole), "weights": 4 * numbers}, "metadata": None,
            "types": {"F32": {"tensors": 4, "weights": numbers, "bytes": 4 * numbers}}, "tensors": told["tensors"]})
        self.assertEqual([one["name"] for one in told["tensors"]][:2], ["blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b"])
        self.assertEqual(told["metadata"]["adapter.alora.invocation_tokens"], [9, 4])
        done = subprocess.run([GENERATE, "inspect", path], capture_output=True)
        for line in ("architecture: qwen3", "alpha: 12.0", "ranks: [6]", "pairs: 2", "  general.type: adapter"):
            self.assertIn("\n" + line + "\n", "\n" + done.stdout.decode())
        done = subprocess.run([GENERATE, "inspect", path, "--graph", path + ".dot"], capture_output=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        # The older form: a rank and an alpha of all pairs, and the halves before the names.
        def part(name, form, *values):
            return struct.pack("<Q", len(name)) + name.encode() + struct.pack(form, *values)

        with open(path, "wb") as file:
            file.write(struct.pack("<4sIQQ", b"GGUF", 3, 2, 2) + part("lora.rank", "<II", 4, 3) + part("lora.alpha", "<If", 6, 1.5)
                       + part("lora_a.blk.0.attn_q", "<IQQIQ", 2, 8, 3, 0, 0) + part("lora_b.blk.0.attn_q", "<IQQIQ", 2, 3, 16, 0, 96))
        told = json.loads(subprocess.run([GENERATE, "inspect", path, "--json"], capture_output=True, check=True).stdout)
        self.assertEqual([told[key] for key in ("architecture", "alpha", "ranks", "pairs", "parameters")], [None, 1.5, [3], 1, 72])
        # A file that ends within its metadata is refused, as one that is no GGUF is; behind that it is told what is missing.
        head = whole.index(b"blk.0.attn_q") - 8
        for size in (head, head + 30, len(whole) - 1):
            with open(path, "wb") as file:
                file.write(whole[:size])
            told = json.loads(subprocess.run([GENERATE, "inspect", path, "--json"], capture_output=True, check=True).stdout)
            self.assertEqual((told["type"], told["missing"]["ends_at"], told["missing"]["tensors"]), ("adapter", size, 4))
        for size in (*range(0, head, 7), 3):
            with open(path, "wb") as file:
                file.write(whole[:size])
            done = subprocess.run([GENERATE, "inspect", path], capture_output=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (1, b"", 1), size)

    def test_estimate(self):
        """"weights" has the float32 of the adapters, device or not, and the peak has it, too; the scales do not matter."""
        def figures(*files):
            options = [part for file in files for part in ("--lora", file)]
            done = subprocess.run([GENERATE, "estimate", self.model, "--json", *options], capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        base, two = figures(), figures(self.one, self.two + ":0.5")
        sizes = [4 * 4 * sum(WIDTH + out for out in outs) for outs in ((WIDTH, 512), (WIDTH, 500))]
        self.assertEqual({key: two[key] - base[key] for key in base if two[key] != base[key]}, {"weights": sum(sizes), "peak": sum(sizes)})
        done = subprocess.run([GENERATE, "estimate", self.model, "--lora", self.model], capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("general.type", done.stderr.decode())

    def merged(self, *arguments):
        out = os.path.join(self.folder.name, "merged.gguf")
        done = subprocess.run([GENERATE, "merge", self.model, self.one, out, *arguments], capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode(), f"{out}: {os.path.getsize(out)} bytes\n")
        said = subprocess.run([GENERATE, "run", "-m", out, "-p", "a b c", "-n", "12", "--temp", "0"], capture_output=True)
        with open(out, "rb") as file:
            bytes_of_it = file.read()
        os.remove(out)
        return bytes_of_it, said.stdout

    def test_merge(self):
        for scale in ("1", "-2"):
            whole, said = self.merged("--scale", scale, "--type", "f32")
            self.assertEqual(said, self.said(f"{self.one}:{scale}"))
            kept, _ = self.merged("--scale", scale)
            self.assertEqual(len(kept), os.path.getsize(self.model))
            self.assertGreater(len(whole), 3 * len(kept))
        with open(self.model, "rb") as file:
            self.assertEqual(self.merged("--scale", "0"), (file.read(), self.said()))
        self.assertEqual(self.merged(), self.merged("--scale", "1", "--type", ""))

    def test_merge_refuses(self):
        out = os.path.join(self.folder.name, "merged.gguf")
        norm = os.path.join(self.folder.name, "norm.gguf")
        write_adapter(norm, [("blk.0.attn_norm.weight", WIDTH, 1)])
        before = sorted(os.listdir(self.folder.name))
        for arguments, message in (([self.model, self.one + "x", out], "one.ggufx"), ([self.model, self.model, out], "general.type"),
                                   ([self.model, self.one, self.one], "is the file to read"), ([self.model, norm, out], "one dimension"),
                                   ([self.model, self.one, out, "--scale", "nan"], "finite"),
                                   ([self.model, self.one, out, "--type", "Q9"], "Q4_K_M"), ([self.model, self.one], "OUT")):
            done = subprocess.run([GENERATE, "merge", *arguments], capture_output=True)
            self.assertEqual(done.returncode, 2 if message in ("OUT", "Q4_K_M") else 1, done.stderr)
            self.assertIn(message, done.stderr.decode())
            self.assertEqual(done.stdout, b"")
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)

    def test_refusals(self):
        other = os.path.join(self.folder.name, "other.gguf")
        write_adapter(other, [("blk.0.attn_q.weight", WIDTH, WIDTH)], architecture="qwen3")
        wide = os.path.join(self.folder.name, "wide.gguf")
        write_adapter(wide, [("blk.0.attn_q.weight", WIDTH, WIDTH + 1)])
        gone = self.one + "x"
        for files, code, message in (([gone], 1, f"--lora: cannot open '{gone}'"), ([gone + ":1x"], 1, f"'{gone}:1x'"),
                                     ([gone + ":2"], 1, f"'{gone}'"), ([""], 1, "--lora: "),
                                     ([self.model], 1, f"--lora: {self.model}: "), ([self.model], 1, "general.type"),
                                     ([other], 1, 'architecture "qwen3" for a model of "llama"'),
                                     ([wide], 1, "blk.0.attn_q.weight.lora_b"), ([self.one] * 5, 1, "at most 4"),
                                     ([self.one + ":abc"], 2, f"--lora: {self.one}: the scale abc is not a number"),
                                     ([self.one + ":1x"], 2, f"--lora: {self.one}: the scale 1x is not a number"),
                                     ([self.one + ":"], 2, f"--lora: {self.one}: the scale  is not a number"),
                                     ([self.two + ":-nan"], 2, f"--lora: {self.two}: the scale -nan is outside the finite numbers"),
                                     ([self.one + ":inf"], 2, f"--lora: {self.one}: the scale inf is outside the finite numbers"),
                                     ([self.one + ":1e39"], 2, f"--lora: {self.one}: the scale 1e39 is outside the finite numbers")):
            done = self.run_with(*files)
            self.assertEqual(done.returncode, code, (files, done.stderr))
            self.assertIn(message, done.stderr.decode())
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
