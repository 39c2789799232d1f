#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate inspect on files of every kind: models, what lies beside them, what the library does not load, what is cut off.

usage: inspect_test.py PROGRAM SOURCE_DIR RANDOM_MODEL
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE, RANDOM_MODEL = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tests/fuzz"))

from gguf_seeds import gguf  # noqa: E402

DRAFT = os.path.join(SOURCE, "examples/demo_model/draft.gguf")
DATA = os.path.join(SOURCE, "tests/tokenizer/data")


def run(*arguments):
    return subprocess.run([PROGRAM, "inspect", *arguments], capture_output=True, timeout=300)


class Inspect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, content, name="file.gguf"):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as out:
            out.write(content)
        return path

    def told(self, path):
        done = run(path, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stderr)
        return json.loads(done.stdout)

    def shown(self, path):
        done = run(path)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stderr)
        return done.stdout.decode()

    def refused(self, path):
        done = run(path)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (1, b"", 1), done)
        return done.stderr.decode()

    def test_numbers_are_numbers(self):
        told = self.told(DRAFT)
        for key, kind in (("general.file_type", int), ("llama.block_count", int), ("llama.rope.freq_base", float),
                          ("llama.attention.layer_norm_rms_epsilon", float), ("tokenizer.ggml.add_bos_token", bool),
                          ("general.name", str), ("tokenizer.ggml.tokens", dict)):
            self.assertIs(type(told["metadata"][key]), kind, key)
        self.assertEqual(told["metadata"]["llama.attention.layer_norm_rms_epsilon"], 1e-5)
        self.assertEqual(told["metadata"]["tokenizer.ggml.tokens"]["count"], told["vocab_size"])
        self.assertEqual(told["metadata"]["tokenizer.ggml.tokens"]["first"][:3], ["<unk>", "<s>", "</s>"])
        for key in ("parameters", "num_layers", "gguf_version", "threads", "num_experts"):
            self.assertIs(type(told[key]), int, key)
        self.assertEqual(told["memory"]["file"], os.path.getsize(DRAFT))

        def no_text_is_a_number(value, path):
            for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
                self.assertFalse(isinstance(one, str) and re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", one), (path, key, one))
                no_text_is_a_number(one, path + [key])

        no_text_is_a_number({key: value for key, value in told.items() if key != "metadata"}, [])

    def test_memory_is_that_of_the_loaded_model(self):
        with_copies, in_place = self.told(DRAFT)["memory"], json.loads(run(DRAFT, "--json", "--in-place").stdout)["memory"]
        self.assertGreater(with_copies["weights"], 400000)
        self.assertLess(in_place["weights"], 100000)
        self.assertEqual(with_copies["mapped"], os.path.getsize(DRAFT))

    def test_tensors_by_name_and_by_type(self):
        told = self.told(DRAFT)
        tensors = {one["name"]: one for one in told["tensors"]}
        self.assertEqual(len(tensors), 4 * 9 + 2)
        self.assertEqual(tensors["blk.2.ffn_up.weight"],
                         {"name": "blk.2.ffn_up.weight", "type": "Q8_0", "type_id": 8, "shape": [64, 192], "weights": 64 * 192,
                          "bytes": 64 * 192 // 32 * 34, "layer": 2})
        self.assertNotIn("layer", tensors["token_embd.weight"])
        self.assertEqual(sum(one["weights"] for one in told["tensors"]), told["parameters"])
        for field in ("tensors", "weights", "bytes"):
            whole = len(tensors) if field == "tensors" else sum(one[field] for one in told["tensors"])
            self.assertEqual(sum(one[field] for one in told["types"].values()), whole)
        self.assertEqual(told["unused"], {})
        shown = self.shown(DRAFT)
        self.assertIn("\n  blk 0-3 (4): ", shown)
        self.assertRegex(shown, r"\n    Q8_0 +[0-9.]+ KiB  attn_k attn_output attn_q attn_v ffn_down ffn_gate ffn_up\n")
        self.assertRegex(shown, r"\n  Q8_0 +272.00 KiB  token_embd.weight  64 x 4096\n")
        self.assertIn("\nparameters: 459.3 K\n", shown)
        self.assertRegex(shown, r"\n  file: 570\.97 KiB\n")
        self.assertIs(told["loads"], True)
        self.assertIn("\n  general.file_type: 7 (Q8_0)\n", shown)
        self.assertEqual(told["metadata"]["general.file_type"], 7)

    def test_long_texts_are_cut(self):
        for length, whole in ((100, True), (101, False)):
            entries = [("general.architecture", "string", "later"), ("general.name", "string", "ä" * length)]
            path = self.file(gguf(entries, [("a", 0, [2], bytes(8))]))
            self.assertEqual("\n  general.name: " + "ä" * 100 + ("\n" if whole else "… 101 characters in all\n") in self.shown(path), True)
            self.assertEqual(self.told(path)["metadata"]["general.name"], "ä" * length)
            self.assertRegex(self.shown(path), r"\n  F32 +8 B 100.0 % +1 tensor\n")

    def test_types_come_by_their_bytes(self):
        tensors = [("a", 0, [256], bytes(1024)), ("b", 1, [256], bytes(512)), ("mm.0.weight", 30, [4096], bytes(8192))]
        told = self.told(self.file(gguf([("general.architecture", "string", "later")], tensors)))
        self.assertEqual(list(told["types"]), ["BF16", "F32", "F16"])
        self.assertFalse([one for one in told["tensors"] if "layer" in one])

    def test_layers_that_differ(self):
        tensors = []
        for layer in range(12):
            for role in ("attn_q", "ffn_up"):
                kind = 14 if role == "ffn_up" and layer in (0, 1, 5, 11) else 12
                tensors.append((f"blk.{layer}.{role}.weight", kind, [256, 2], bytes(2 * (210 if kind == 14 else 144))))
        shown = self.shown(self.file(gguf([("general.architecture", "string", "later")], tensors)))
        self.assertIn("  blk 0-1, 5, 11 (4): 708 B each\n    Q6_K            420 B  ffn_up\n"
                      "    Q4_K            288 B  attn_q\n  blk 2-4, 6-10 (8): 576 B each\n"
                      "    Q4_K            576 B  attn_q ffn_up\n", shown)

    def test_an_architecture_that_is_not_known(self):
        with open(DRAFT, "rb") as file:
            model = file.read()
        told = self.told(self.file(model.replace(b"llama", b"llamb", 1)))
        self.assertEqual((told["architecture"], told["loads"], len(told["tensors"])), ("llamb", False, 38))
        self.assertIn("llamb", told["why"])
        self.assertEqual(told["parameters"], 459328)
        self.assertNotIn("unused", told)  # nobody knows
        self.assertNotIn("missing", told)

    def test_types_that_are_not_known(self):
        tensors = [("blk.0.attn_q.weight", 133, [32, 2], bytes(100)), ("blk.0.attn_k.weight", 77, [32, 2], bytes(52)),
                   ("blk.0.attn_v.weight", 700, [32, 2], bytes(64)), ("output.weight", 0, [32, 2], bytes(256))]
        path = self.file(gguf([("general.architecture", "string", "llama")], tensors))
        told = self.told(path)
        self.assertEqual([(one["type"], one["bytes"]) for one in told["tensors"]],
                         [("Q6_0 (133)", 128), ("type 77", 64), ("type 700", 64), ("F32", 256)])
        self.assertFalse(told["loads"])
        self.assertIn("133", told["why"])
        self.assertIn("type 77", self.shown(path))

    def test_files_that_are_cut_off(self):
        with open(DRAFT, "rb") as file:
            model = file.read()
        whole = self.told(DRAFT)["tensors"]
        first = model.index(whole[0]["name"].encode()) - 8
        last = model.index(whole[-1]["name"].encode())
        # Within the metadata nothing is known.
        for size in (0, 3):
            self.refused(self.file(model[:size]))
        for size in (6, 20, 100, first // 2):
            self.assertIn("is the download complete?", self.refused(self.file(model[:size])))
        # In the list of tensors.
        told = self.told(self.file(model[:last]))
        self.assertEqual((told["missing"]["tensors"], told["missing"]["listed"], told["loads"]), (38, 37, False))
        self.assertEqual(told["missing"]["ends_at"], last)
        self.assertIn("in its list of tensors, which has 37 of 38\n", self.shown(self.file(model[:last])))
        # In the tensors.
        for size in (len(model) - 1, len(model) // 2, len(model) - sum(one["bytes"] for one in whole) + 640):
            path = self.file(model[:size])
            missing = self.told(path)["missing"]
            self.assertEqual((missing["ends_at"], missing["needed"], missing["tensors"], missing["listed"]),
                             (size, len(model), 38, 38))
            there = [one for one in self.told(path)["tensors"] if "there" not in one]
            self.assertEqual(missing["whole"], len(there))
            self.assertEqual(missing["first"], next(one["name"] for one in self.told(path)["tensors"] if "there" in one))
            self.assertRegex(self.shown(path), r"\nincomplete: the file ends at .* of 570\.97 KiB, .* of 38 tensors are whole, the "
                                               f"first that is not: {re.escape(missing['first'])}\n")
        self.assertEqual(self.told(self.file(model[:len(model) // 2]))["loads"], False)

    def test_parts_of_a_split_model(self):
        def part(number, tensors):
            entries = [("general.architecture", "string", "later")] if number == 0 else []
            entries += [("split.no", "u16", number), ("split.count", "u16", 3)]
            return self.file(gguf(entries, tensors), f"model-{number + 1:05}-of-00003.gguf")

        first = part(0, [("blk.0.a", 0, [2], bytes(8))])
        third = part(2, [("blk.1.a", 0, [2], bytes(8))])
        told = self.told(first)
        self.assertEqual([one["name"] for one in told["tensors"]], ["blk.0.a", "blk.1.a"])
        self.assertEqual([os.path.basename(path) for path in told["missing"]["parts"]], ["model-00002-of-00003.gguf"])
        self.assertIn("model-00002-of-00003.gguf\n", self.shown(first).split("missing part: ")[1])
        self.assertNotIn("incomplete", self.shown(first))  # the others are whole
        second = part(1, [("blk.0.b", 0, [2], bytes(8))])
        self.assertEqual([one["name"] for one in self.told(first)["tensors"]], ["blk.0.a", "blk.0.b", "blk.1.a"])
        self.assertNotIn("missing", self.told(first))
        self.assertEqual(self.told(first)["memory"]["file"], sum(map(os.path.getsize, (first, second, third))))

    def test_what_is_no_model(self):
        imatrix = [("general.type", "string", "imatrix"), ("imatrix.datasets", "[string]", ["text.txt"]),
                   ("imatrix.chunk_count", "u32", 7), ("imatrix.chunk_size", "u32", 512)]
        sums = [("blk.0.attn_q.weight.in_sum2", 0, [4], bytes(16)), ("blk.0.attn_q.weight.counts", 0, [1], bytes(4))]
        told = self.told(self.file(gguf(imatrix, sums)))
        self.assertEqual([told[key] for key in ("type", "datasets", "chunks", "chunk_size", "matrices")],
                         ["importance matrix", ["text.txt"], 7, 512, 1])
        shown = self.shown(self.file(gguf(imatrix, sums)))
        self.assertIn("\ntensors: 2, 20 B\n", shown)
        self.assertNotIn("null", shown)
        older = struct.pack("<ii", 1, 19) + b"blk.0.attn_q.weight" + struct.pack("<ii4f", 1, 4, 1, 2, 3, 4)
        self.assertIn("file.dat' is an importance matrix of the older binary form", self.refused(self.file(older, "file.dat")))
        projector = [("general.architecture", "string", "clip"), ("general.type", "string", "mmproj")]
        told = self.told(self.file(gguf(projector, [("v.blk.0.attn_q.weight", 0, [4, 4], bytes(64))])))
        self.assertEqual((told["type"], told["parameters"]), ("projector of pictures or sound", 16))
        told = self.told(os.path.join(DATA, "rwkv.gguf"))
        self.assertEqual([told[key] for key in ("type", "tokenizer", "tokens", "tensors")],
                         ["vocabulary, for generate tokenize", "rwkv", 648, []])

    def test_a_head_in_the_file_drafts(self):
        path = os.path.join(self.folder.name, "model.gguf")
        subprocess.run([RANDOM_MODEL, path, "--family", "qwen35", "--layers", "4", "--width", "256", "--heads", "2",
                        "--kv-heads", "1", "--ffn", "256", "--vocab", "500", "--context", "64"], check=True, capture_output=True)
        told = self.told(path)
        names = [one["name"] for one in told["tensors"] if "drafts" in one]
        self.assertTrue(names)
        self.assertEqual(names, [one["name"] for one in told["tensors"] if one["name"].startswith("blk.4.")])
        self.assertEqual(sorted(names), sorted(told["unused_tensors"]))
        self.assertEqual(told["unused"], {})
        size = sum(one["bytes"] for one in told["tensors"] if one["name"] in names)
        self.assertEqual((told["head"]["tensors"], told["head"]["bytes"]), (len(names), size))
        shown = self.shown(path)
        self.assertRegex(shown, rf"\na head that drafts: {len(names)} tensors, [0-9.]+ [KM]iB\n")
        self.assertNotIn("\nunused:\n", shown)

    def test_many_tensors(self):
        count = 100000
        head = b"GGUF" + struct.pack("<IQQ", 3, count, 1) + struct.pack("<Q", 20) + b"general.architecture"
        head += struct.pack("<IQ", 8, 5) + b"later"
        infos = []
        for i in range(count):
            name = f"blk.{i // 100}.t{i % 100}.weight".encode()
            infos.append(struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 1, 0, 32 * i))
        head += b"".join(infos)
        path = self.file(head + bytes(-len(head) % 32 + 32 * count))
        self.assertEqual(len(self.told(path)["tensors"]), count)
        self.assertIn("  blk 0-999 (1000): 400 B each\n", self.shown(path))

    def test_headers_that_lie(self):
        def head(tensors, entries, rest=b""):
            return self.file(b"GGUF" + struct.pack("<IQQ", 3, tensors, entries) + rest)

        key = struct.pack("<Q", 1) + b"k"
        for path in (head(0, 2**63), head(0, 1, struct.pack("<Q", 2**62)), head(0, 1, key + struct.pack("<IIQ", 9, 8, 2**61)),
                     head(0, 1, key + struct.pack("<IIQ", 9, 9, 1)), head(0, 1, key + struct.pack("<IQ", 8, 2**60)),
                     head(0, 1, key + struct.pack("<II", 99, 1))):
            self.refused(path)
        for rest in (b"", struct.pack("<Q", 2**62), struct.pack("<Q", 1) + b"a" + struct.pack("<I", 2**31)):
            told = self.told(head(2**62, 0, rest))
            self.assertEqual((told["tensors"], told["missing"]["tensors"]), ([], 2**62))
        huge = struct.pack("<Q", 1) + b"a" + struct.pack("<IQQIQ", 2, 2**63, 2**63, 0, 2**64 - 1)
        self.assertEqual(self.told(head(1, 0, huge))["tensors"][0]["weights"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
