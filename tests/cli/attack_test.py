#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The generate program against hostile input: broken model files, senseless options and texts, full disks, little memory.

Whatever it is given, it ends by itself with a status that the manual names, says why in a line, and leaves no half-written file.

usage: attack_test.py PROGRAM SOURCE_DIR [FIRST_SEED]    (GEN_TRIALS: attacks of each kind)
"""
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))

from adapter_files import write_adapter  # noqa: E402

FIRST = int(sys.argv[3]) if len(sys.argv) > 3 else 0
TRIALS = int(os.environ.get("GEN_TRIALS", "40"))
with open(os.path.join(SOURCE, "examples/demo_model/draft.gguf"), "rb") as draft:
    DRAFT = draft.read()
with tempfile.NamedTemporaryFile() as adapter_file:
    write_adapter(adapter_file.name, [("blk.0.attn_q.weight", 64, 64), ("blk.1.ffn_up.weight", 64, 192)])
    ADAPTER = adapter_file.read()
TEXT = os.path.join(SOURCE, "LICENSE")
# The sanitizers reserve terabytes of addresses.
SANITIZED = b"__asan_" in open(PROGRAM, "rb").read()

COMMANDS = ("run", "chat", "template", "tokenize", "logits", "perplexity", "inspect", "estimate", "bench", "imatrix", "quantize", "merge", "grammar")
VALUES = ("", "0", "1", "2", "3", "7", "40", "-1", "99999999999999999999", "1e400", "nan", "inf", "0x10", "1.5", "1,2", ",", "a" * 5000,
          "\x1b[2J\x9b", "\n", "é\U0001f600", "%s%n", "auto", "shift", "stop,5", "lookup", "suffix", "layers:1", "layers:99",
          "fp16", "q4", "q3", "fp32/q8", "16,1", "4,1,/nowhere", "true", "=", "json_space=9", "max_work=1", "(a|b)*c{3}", "[", "((((",
          "(" * 3000, "/dev/null", "/dev/full", "/nowhere", ".", TEXT, "Q4_0", "q8_0", "chatml", "mistral", 'x="y"', "urn:a=" + TEXT)
PIECES = ("{", "}", "[", "]", '"', ":", ",", "null", "true", "1e9", '"role"', '"messages"', '"user"', '"content"', '"type"', '"object"', '"$ref"',
          '"#"', '"enum"', "{%", "%}", "{{", "}}", "for", "in", "range(9**9)", "if", "not", "|", "(", ")", "x", "'", "*", "**", "%", "root", "::=",
          "start", "/a+/", "\\u", "\\ud800", "\n", "\0", "\xff", "é", "<|im_start|>", "<|im_end|>", "/reset", "a" * 99)


def options_of(command):
    said = subprocess.run([PROGRAM, "help", command], capture_output=True, check=True).stdout.decode()
    return [name for name in re.findall(r"(?<=[ ,])--?[a-z][a-z-]*", said.split("Options:")[-1]) if name not in ("-h", "--help")]


OPTIONS = {command: options_of(command) for command in COMMANDS}


def text_of(chance):
    kind = chance.randrange(6)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(300)))
    if kind == 1:
        return chance.choice(("[", '{"a":', "(", "{{(", "{% if x %}", "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}")).encode() * chance.randrange(1, 9000)
    if kind == 2:
        return "\n".join(chance.choice(("Hello", "/reset", "/help", "/exit", "Who?", "\x1b[A")) for _ in range(5)).encode()
    if kind == 3:
        return json.dumps({"messages": [{"role": chance.choice(("user", "system", "x", "tool")), "content": chance.choice(("Hi", None, 3, [], {}))}
                                        for _ in range(3)], "add_generation_prompt": True}).encode()
    return "".join(chance.choice(PIECES) for _ in range(chance.randrange(60))).encode("latin-1", "ignore" if kind == 4 else "replace")


def broken(file, chance):
    """A file with bytes, numbers or its end changed, above all in what describes it."""
    model = bytearray(file)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 5, 50))):
        at = chance.randrange(min(chance.choice((64, 2000, 20000, len(model) - 8)), len(model) - 8))
        kind = chance.randrange(4)
        if kind == 0:
            model[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            model[at : at + 8] = chance.choice((0, 1, 2**31 - 1, 2**32, 2**63 - 1, 2**64 - 1)).to_bytes(8, "little")
        elif kind == 2:
            model[at : at + 4] = chance.choice((0, 1, 255, 2**31, 2**32 - 1)).to_bytes(4, "little")
        else:
            end = at + chance.randrange(1, 40)
            model[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
    if chance.randrange(6) == 0:
        del model[chance.randrange(len(model)) :]
    return bytes(model)


class Attack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.model = self.path("model.gguf", DRAFT)
        self.given = self.path("given", b"")

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def survives(self, arguments, stdin=b"", limits=(), stdout=subprocess.PIPE):
        """Runs the program, and gives its status."""
        def restrict():
            for what, most in limits:
                resource.setrlimit(what, (most, most))

        done = subprocess.run([PROGRAM, *arguments], input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=240, preexec_fn=restrict)
        if done.returncode == 127 and b"error while loading shared libraries" in done.stderr:
            return 1  # not even the loader had enough
        told = (arguments, limits, done.returncode, done.stderr[-2000:])
        self.assertIn(done.returncode, (0, 1, 2, 3), told)
        self.assertNotRegex(done.stderr, b"Sanitizer|runtime error|terminate called|bad_alloc|what\\(\\)", told)
        self.assertNotRegex(done.stderr, b"[\\x00-\\x08\\x0b-\\x1f\\x7f]", told)
        lines = done.stderr.decode("utf-8", "replace").splitlines()
        if done.returncode != 0:
            last = [line for line in lines if not line.startswith("'generate ")][-1]
            self.assertTrue(last.startswith("generate: "), told)
            self.assertLess(len(last), 1200, told)
        for name in sorted(set(os.listdir(self.folder.name)) - {"model.gguf", "given", "adapter"}):
            self.assertTrue(name.startswith(("made", "saved")), (name, told))
            self.assertIn(done.returncode, (0, 3), (name, told))  # a call that failed leaves nothing
            os.remove(os.path.join(self.folder.name, name))
        return done.returncode

    def with_model(self, command, model, chance):
        made = os.path.join(self.folder.name, "made")
        line = {"run": ["-p", "Once", "-n", "2"], "chat": ["-n", "2"], "tokenize": [], "logits": ["--tokens", "1,2"],
                "perplexity": ["-f", self.given, "--window", "8"], "inspect": [], "estimate": [],
                "bench": ["-p", "1", "-n", "1", "-r", "1", "-t", "1"], "template": [], "grammar": ["--any-json"], "imatrix": [], "quantize": [], "merge": []}[command]
        if command == "quantize":
            return [command, model, made, chance.choice(("Q4_0", "Q8_0", "F16", "Q4_K_M", "F32"))]
        if command == "imatrix":
            return [command, "-m", model, "-f", self.given, "-o", made]
        if command == "merge":
            adapter = self.path("adapter", broken(ADAPTER, chance))
            return [command, *chance.choice(((model, adapter), (self.model, adapter), (model, model))), made]
        if command == "grammar":
            return [command, chance.choice(("explain", "check", "test", "bench")), "-m", model, *line]
        return [command, "-m", model, *line]

    def test_broken_models(self):
        for seed in range(FIRST, FIRST + TRIALS):
            chance = random.Random(f"model {seed}")
            self.path("model.gguf", broken(DRAFT, chance))
            self.path("given", b"Once upon a time there was a fox, and it ran.")
            for command in chance.sample(COMMANDS, 3):
                with self.subTest(seed=seed, command=command):
                    self.survives(self.with_model(command, self.model, chance), text_of(chance))

    def test_senseless_options_and_texts(self):
        for seed in range(FIRST, FIRST + TRIALS):
            chance = random.Random(f"options {seed}")
            command = chance.choice(COMMANDS)
            line = self.with_model(command, self.model, chance)
            self.path("given", text_of(chance))
            for _ in range(chance.randrange(4) if OPTIONS[command] else 0):
                option = chance.choice(OPTIONS[command])
                if option in ("-n", "--tokens", "-r", "--repeat", "--sessions", "--depth", "--batch", "-m", "--model", "--tiered",
                              "-o", "--output"):
                    continue  # more work is no attack, nor is another place to write to
                if option == "--save-session":
                    value = os.path.join(self.folder.name, "saved")
                else:
                    value = chance.choice((self.given, chance.choice(VALUES), chance.choice(VALUES)))
                line.append(option)
                if chance.randrange(5):
                    line.append(value.replace("\0", ""))
            with self.subTest(seed=seed):
                self.survives(line, text_of(chance))

    def test_full_disks(self):
        saved, made = (os.path.join(self.folder.name, name) for name in ("saved", "made"))
        with open("/dev/full", "wb") as full:
            for arguments in (["run", "-m", self.model, "-p", "Once", "-n", "3"], ["chat", "-m", self.model, "-n", "3"], ["inspect", "-m", self.model],
                              ["estimate", "-m", self.model], ["perplexity", "-m", self.model, "-f", TEXT, "--window", "64"]):
                self.assertEqual(self.survives(arguments, b"Hello\n", stdout=full), 1)
        for most in (0, 1, 100, 4096, 70000, 300000):
            for arguments in (["quantize", self.model, made, "F32"], ["run", "-m", self.model, "-p", "Once upon a time", "-n", "20", "--save-session", saved],
                              ["inspect", "-m", self.model, "--graph", made + ".json"], ["inspect", "-m", self.model, "--graph", made + ".dot"],
                              ["bench", "-m", self.model, "-p", "1", "-n", "1", "-r", "1", "--profile-svg", made + ".svg"],
                              ["run", "-m", self.model, "-p", "Once upon a time", "-n", "200", "--ignore-eos", "--tiered", f"16,1,{self.folder.name}/tiers"]):
                self.survives(arguments, limits=[(resource.RLIMIT_FSIZE, most)])

    @unittest.skipIf(SANITIZED, "sanitizers need all addresses")
    def test_little_memory(self):
        self.path("given", b"Once upon a time there was a fox, and it ran.")
        statuses = set()
        for seed in range(FIRST, FIRST + TRIALS):
            chance = random.Random(f"memory {seed}")
            command = chance.choice(COMMANDS)
            most = chance.choice((12, 16, 20, 24, 28, 32, 40, 50, 64, 96, 128, 256)) << 20
            with self.subTest(seed=seed):
                statuses.add(self.survives(self.with_model(command, self.model, chance), b"Hello\n", limits=[(resource.RLIMIT_AS, most)]))
        self.assertTrue({0, 1} <= statuses or TRIALS < 20, statuses)

    @unittest.skipIf(SANITIZED, "sanitizers need all addresses")
    def test_memory_ends_anywhere(self):
        # From what the loader needs on, in small steps: also in a destructor that allocates, which no exception may leave.
        for command in ("inspect", "estimate"):
            statuses = [self.survives([command, self.model, "--json"], limits=[(resource.RLIMIT_AS, size << 17)])
                        for size in range(14 * 8, 24 * 8)]
            self.assertIn(1, statuses)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
