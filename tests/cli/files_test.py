#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that the generate program is given: none that it reads is overwritten, parts of models, numbers and names of types.

usage: files_test.py PROGRAM SOURCE_DIR RANDOM_MODEL
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE, RANDOM_MODEL = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tests/fuzz"))
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))

from adapter_files import write_adapter  # noqa: E402
from gguf_seeds import gguf  # noqa: E402

DRAFT = os.path.join(SOURCE, "examples/demo_model/draft.gguf")


def generate(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, made, name="file.gguf"):
        with open(self.path(name), "wb") as out:
            out.write(made)
        return self.path(name)

    def copy(self, name, of=DRAFT):
        return shutil.copy(of, self.path(name))

    def refused(self, part, *arguments, code=1):
        done = generate(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, b""), done)
        self.assertIn(part, done.stderr.decode())
        return done.stderr.decode()


class Outputs(Files):
    """No option writes over a file that the command reads."""

    def kept(self, read, *arguments):
        before = content(read)
        self.refused("is the file to read", *arguments)
        self.assertEqual(content(read), before)

    def test_the_model(self):
        model = self.copy("m.dot")
        os.link(model, self.path("hard.dot"))
        os.symlink(model, self.path("soft.dot"))
        for out in (model, self.path("hard.dot"), self.path("soft.dot"), self.path("./m.dot")):
            self.kept(model, "inspect", model, "--graph", out)
            self.kept(model, "inspect", model, "--in-place", "--graph", out)
            self.kept(model, "run", "-m", model, "-p", "Once", "-n", "1", "--save-session", out)
            self.kept(model, "run", "-m", model, "-p", "Once", "-n", "1", "--draft-svg", out)
            self.kept(model, "bench", "-m", model, "-p", "1", "-n", "1", "-r", "1", "--profile-svg", out)
            self.kept(model, "features", "-m", model, "--text", os.path.join(SOURCE, "LICENSE"), "--layers", "0", "-o", out)
            self.kept(model, "imatrix", "-m", model, "-f", os.path.join(SOURCE, "LICENSE"), "-o", out)

    def test_other_parts_of_the_model(self):
        parts = [self.copy(f"m-0000{n}-of-00002.gguf") for n in (1, 2)]
        self.kept(parts[1], "run", "-m", parts[0], "-p", "Once", "-n", "1", "--save-session", parts[1])
        self.kept(parts[0], "features", "-m", parts[1], "--text", os.path.join(SOURCE, "LICENSE"), "--layers", "0", "-o",
                  parts[0])

    def test_what_drafts_and_adapters_and_grammars(self):
        model = self.copy("model.gguf")
        words = ("-m", model, "-p", "Once", "-n", "1")
        parts = [self.copy(f"d-0000{n}-of-00002.gguf") for n in (1, 2)]
        adapter, grammar, text = self.path("a:1"), self.file(b'root ::= "a"', "a.gbnf"), self.file(b"Once upon a time" * 9, "text")
        write_adapter(adapter, [("blk.0.attn_q.weight", 128, 128)])
        session = self.path("session")
        self.assertEqual(generate("run", *words, "--save-session", session).returncode, 0)
        for option, given, read in (("--draft", parts[0], parts[1]), ("--draft", "lookup," + parts[1], parts[0]),
                                    ("--eagle", parts[0], parts[0]), ("--lora", adapter, adapter),
                                    ("--lora", adapter + ":0.5", adapter), ("--grammar", grammar, grammar),
                                    ("--resolve", "a:b=" + grammar, grammar)):
            self.kept(read, "run", *words, option, given, "--save-session", read)
            self.kept(read, "run", *words, option, given, "--draft-svg", read)
        self.kept(session, "run", *words, "--load-session", session, "--draft-svg", session)
        self.kept(text, "bench", *words[:2], "-p", "1", "-n", "1", "-r", "1", "--draft", "lookup", "--text", text, "--profile-svg",
                  text)

    def test_a_session_is_saved_where_it_was_loaded(self):
        session = self.path("session")
        for more in ((), ("--load-session", session)):
            done = generate("run", "-m", DRAFT, "-p", "Once", "-n", "2", *more, "--save-session", session)
            self.assertEqual(done.returncode, 0, done.stderr)


class Parts(Files):
    def told(self, command, *arguments):
        done = generate(command, *arguments, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return json.loads(done.stdout)

    def test_a_whole_file_with_the_name_of_a_part(self):
        whole = self.told("inspect", DRAFT)
        for name in ("w-00002-of-00003.gguf", "w-00001-of-00009.gguf"):
            model = self.copy(name)
            told = self.told("inspect", model)
            self.assertTrue(told["loads"])
            self.assertEqual([told[key] for key in ("types", "tensors", "metadata")],
                             [whole[key] for key in ("types", "tensors", "metadata")])
            self.assertNotIn("missing", told)
            self.assertNotIn("missing", generate("inspect", model).stdout.decode())
            self.assertEqual(self.told("estimate", model), self.told("estimate", DRAFT))
            self.assertEqual(self.told("estimate", model, "--fit", "1G")["context"], 1024)

    def test_parts_that_do_not_say_so(self):
        entries = [("general.architecture", "string", "later"), ("later.block_count", "u32", 3), ("split.no", "u16", 0),
                   ("split.count", "u16", 0)]
        named = r"warning: the file name says part {} of 3, the file that it is whole \(split.count\): no other part is read\n"
        layer = r"warning: the model has 3 layers, the file nothing of layer {}: is it whole\?\n"
        for name, layers, warned in (("m-00001-of-00003.gguf", [0], named.format(1) + layer.format(1)), ("m.gguf", [0, 2], layer.format(1)),
                                     ("m-00002-of-00003.gguf", [0, 1, 2], named.format(2)), ("n.gguf", [0, 1, 2], ""), ("o.gguf", [], "")):
            part = self.file(gguf(entries, [(f"blk.{i}.attn_q.weight", 0, [32, 2], bytes(256)) for i in layers] +
                                  [("other.weight", 0, [32, 2], bytes(256))]), name)
            done = generate("quantize", part, self.path("out.gguf"), "Q4_0")
            self.assertEqual(done.returncode, 0, done)
            self.assertRegex(done.stderr.decode(), f"^{warned}$")
            odd = "\nodd_name: one of 3 parts, but split.count is not above 1\n"
            self.assertEqual(odd in generate("inspect", part).stdout.decode(), "-of-" in name)
            self.assertEqual("odd_name" in self.told("inspect", part), "-of-" in name)

    def test_a_name_is_said_once(self):
        for number, says in ((1, 1), (2, 0), (3, 2)):
            self.file(gguf([("general.architecture", "string", "llama"), ("split.no", "u16", says), ("split.count", "u16", 3)]),
                      f"m-0000{number}-of-00003.gguf")
        first, third = (self.path(f"m-0000{number}-of-00003.gguf") for number in (1, 3))
        wrong = "metadata 'split.no': 1 (from 0), but the file name says part 1\n"
        self.assertEqual(self.refused("", "tokenize", first, "a"), f"generate: {first}: {wrong}")
        self.assertEqual(self.refused("", "tokenize", third, "a"), f"generate: {third}: 'm-00001-of-00003.gguf': {wrong}")


class Fits(Files):
    """estimate --fit."""

    def test_what_is_no_model(self):
        matrix = self.file(gguf([("general.type", "string", "imatrix"), ("general.architecture", "string", "imatrix")]))
        for more in ((), ("--fit", "1G")):
            self.refused(f"{matrix}: the file is no model but an importance matrix", "estimate", matrix, *more)

    def test_numbers(self):
        for number in ("0", "0G", "-1G", "1.5G", "G", "x"):
            said = self.refused("is not a whole number above 0, of bytes or with a unit: 8G, 512M\n", "estimate", DRAFT, "--fit=" + number,
                                code=2)
            self.assertIn(f"--fit: '{number}' is", said)
            self.assertLess(len(said), 200)
        self.refused("multiplied by g factor would cause", "estimate", DRAFT, "--fit", "99999999999G", code=2)
        self.refused("unit not recognized", "estimate", DRAFT, "--fit", "1X", code=2)
        self.refused("--fit 1.00 KiB: the model with one position takes ", "estimate", DRAFT, "--fit", "1K")
        for number in ("1G", "1 g", "1GiB", "1073741824"):
            self.assertEqual(generate("estimate", DRAFT, "--fit", number).returncode, 0)


class Windows(Files):
    def test_a_context_without_room(self):
        for more in ((), ("--chunks", "1")):
            self.refused("a context of 1 has no token that others precede\n", "imatrix", "-m", DRAFT, "-f", os.path.join(SOURCE, "LICENSE"),
                         "-o", self.path("out"), "--ctx", "1", *more)
        self.assertEqual(os.listdir(self.folder), [])


class Types(Files):
    def test_a_matrix_that_keeps_its_type(self):
        tensors = [(f"blk.0.{name}.weight", 0, [32, 2], bytes(256)) for name in ("attn_q", "shortconv.conv", "ffn_gate_inp")]
        model = self.file(gguf([("general.architecture", "string", "later")], tensors))
        for pattern, name in (("blk.*.shortconv.conv.weight", "shortconv.conv"), ("*.ffn_gate*", "ffn_gate_inp")):
            self.refused(f"\"{pattern}\" matches no matrix that may change: blk.0.{name}.weight always keeps its type\n", "quantize", model,
                         self.path("out.gguf"), "Q8_0", "--type", pattern + "=F16")
        self.assertEqual(generate("quantize", model, self.path("out.gguf"), "Q8_0", "--type", "blk.0.*=F16").returncode, 0)

    def test_names_of_types(self):
        adapter = self.path("adapter.gguf")
        write_adapter(adapter, [("blk.0.attn_q.weight", 64, 64)], width=64)
        for command in (("quantize", DRAFT, self.path("out.gguf")), ("merge", DRAFT, adapter, self.path("out.gguf"), "--type")):
            for name, near in (("Q4_K", "Q4_K_M or Q4_K_S"), ("q5_k", "Q5_K_M or Q5_K_S"), ("MXFP4", "MXFP4_MOE")):
                self.refused(f"type '{name}': did you mean {near}?\n", *command, name, code=2)
            for name in ("Q9", "Q", "Q4_K_"):
                self.refused(f"type '{name}' is not one of F32, ", *command, name, code=2)
        self.refused("is not one of", "quantize", DRAFT, self.path("out.gguf"), "Q8_0", "--type", "*=Q4_K_M", code=2)
        self.assertEqual(os.listdir(self.folder), ["adapter.gguf"])


class Graphs(Files):
    def test_a_graph_is_drawn_instead(self):
        self.refused("--graph excludes --json", "inspect", DRAFT, "--json", "--graph", self.path("out.dot"), code=2)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn(b"draw the forward pass of a token instead", generate("help", "inspect").stdout)


class Importance(Files):
    def test_a_text_is_none(self):
        text = os.path.join(SOURCE, "LICENSE")
        self.assertEqual(self.refused("", "quantize", DRAFT, self.path("out.gguf"), "Q4_0", "--importance", text),
                         f"generate: {text}: not an importance matrix\n")


class Arguments(Files):
    def test_one_that_is_long_is_cut(self):
        for long in ("(" * 3000, "é" * 3000):
            said = self.refused("The following argument was not expected: " + long[:9], "inspect", DRAFT, "--json", long,
                                code=2)
            self.assertLess(len(said.splitlines()[0]), 1100)
            self.assertIn(long[0] + "…\n", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
