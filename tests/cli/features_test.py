#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate features: the hidden states that it writes are those of a plain forward pass in double precision.

usage: features_test.py PROGRAM SOURCE_DIR
"""
import ast
import json
import math
import os
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
DRAFT = os.path.join(SOURCE, "examples/demo_model/draft.gguf")
TEXT = "Once upon a time, a fox lived in a small house."
BOS = 1


def generate(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=300)


def read_gguf(path):
    """(keys, tensors as flat lists) of a file with tensors of the types F32 and Q8_0."""
    scalars = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
    with open(path, "rb") as file:
        raw = file.read()
    at = 8

    def take(form):
        nonlocal at
        (value,) = struct.unpack_from(form, raw, at)
        at += struct.calcsize(form)
        return value

    def string():
        nonlocal at
        size = take("<Q")
        at += size
        return raw[at - size:at].decode()

    def value(kind):
        if kind == 8:
            return string()
        if kind == 9:
            kind, count = take("<I"), take("<Q")
            return [value(kind) for _ in range(count)]
        return take(scalars[kind])

    tensors, keys = take("<Q"), take("<Q")
    meta = {}
    for _ in range(keys):
        name = string()
        meta[name] = value(take("<I"))
    infos = [(string(), [take("<Q") for _ in range(take("<I"))], take("<I"), take("<Q")) for _ in range(tensors)]
    base = -(-at // 32) * 32

    def tensor(shape, kind, offset):
        count, begin = math.prod(shape), base + offset
        if kind == 0:
            return struct.unpack_from(f"<{count}f", raw, begin)
        assert kind == 8, kind
        out = []
        for block in range(count // 32):
            scale, *rest = struct.unpack_from("<e32b", raw, begin + 34 * block)
            out += [scale * x for x in rest]
        return out

    return meta, {name: tensor(shape, kind, offset) for name, shape, kind, offset in infos}


class Model:
    """A forward pass of the bundled draft model, one token at a time."""

    def __init__(self, path):
        self.meta, self.t = read_gguf(path)
        key = lambda name: self.meta["llama." + name]
        self.width, self.layers = key("embedding_length"), key("block_count")
        self.heads, self.kv_heads = key("attention.head_count"), key("attention.head_count_kv")
        self.head, self.base = key("attention.key_length"), key("rope.freq_base")
        self.eps = key("attention.layer_norm_rms_epsilon")

    def times(self, name, x):
        w, n = self.t[name], len(x)
        return [math.fsum(map(float.__mul__, w[row:row + n], x)) for row in range(0, len(w), n)]

    def norm(self, name, x):
        scale = 1 / math.sqrt(math.fsum(v * v for v in x) / len(x) + self.eps)
        return [v * scale * w for v, w in zip(x, self.t[name])]

    def turned(self, x, position):
        """Element 2 i of a head pairs with 2 i + 1."""
        out = []
        for at in range(0, len(x), 2):
            angle = position * self.base ** (-(at % self.head) / self.head)
            a, b = x[at:at + 2]
            out += [a * math.cos(angle) - b * math.sin(angle), b * math.cos(angle) + a * math.sin(angle)]
        return out

    def states(self, tokens):
        """For each token: what enters each layer, what leaves the last, and that after the final norm."""
        keys, values = [[] for _ in range(self.layers)], [[] for _ in range(self.layers)]
        out = []
        for position, token in enumerate(tokens):
            x = list(self.t["token_embd.weight"][token * self.width:(token + 1) * self.width])
            row = []
            for n in range(self.layers):
                row.append(x)
                name = f"blk.{n}.%s.weight"
                h = self.norm(name % "attn_norm", x)
                q = self.turned(self.times(name % "attn_q", h), position)
                keys[n].append(self.turned(self.times(name % "attn_k", h), position))
                values[n].append(self.times(name % "attn_v", h))
                found = []
                for head in range(self.heads):
                    mine = slice(head * self.head, (head + 1) * self.head)
                    source = head * self.kv_heads // self.heads * self.head
                    theirs = slice(source, source + self.head)
                    score = [sum(map(float.__mul__, q[mine], k[theirs])) / math.sqrt(self.head) for k in keys[n]]
                    weight = [math.exp(s - max(score)) for s in score]
                    found += [math.fsum(w * v[theirs][i] for w, v in zip(weight, values[n])) / sum(weight)
                              for i in range(self.head)]
                x = [a + b for a, b in zip(x, self.times(name % "attn_output", found))]
                h = self.norm(name % "ffn_norm", x)
                gate, up = self.times(name % "ffn_gate", h), self.times(name % "ffn_up", h)
                h = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
                x = [a + b for a, b in zip(x, self.times(name % "ffn_down", h))]
            out.append(row + [x, self.norm("output_norm.weight", x)])
        return out


def read_npy(path):
    """The records of an array with named fields, as numpy reads it."""
    with open(path, "rb") as file:
        raw = file.read()
    magic, size = struct.unpack_from("<8sH", raw)
    assert magic == b"\x93NUMPY\x01\x00" and (10 + size) % 64 == 0 and raw[9 + size:10 + size] == b"\n"
    header = ast.literal_eval(raw[10:10 + size].decode())
    assert header["fortran_order"] is False
    codes = {"<i4": "i", "<f4": "f", "<f2": "e"}
    fields = [(name, codes[kind], shape[0][0] if shape else 1) for name, kind, *shape in header["descr"]]
    form = "<" + "".join(f"{count}{code}" for _, code, count in fields)
    assert len(raw) == 10 + size + header["shape"][0] * struct.calcsize(form), "the shape does not fit"
    records = []
    for values in struct.iter_unpack(form, raw[10 + size:]):
        record, at = {}, 0
        for name, _, count in fields:
            record[name] = values[at] if count == 1 else values[at:at + count]
            at += count
        records.append(record)
    return records


def distance(got, expected):
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(got, expected)) / math.fsum(b * b for b in expected))


class Features(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.text = self.path("text.txt")
        with open(self.text, "w") as file:
            file.write(TEXT)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def records(self, *options, model=DRAFT):
        out = self.path("states.npy")
        done = generate("features", model, "-o", out, *options)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return read_npy(out)

    def tokens(self):
        done = subprocess.run([PROGRAM, "tokenize", "-m", DRAFT, "--json"], input=TEXT.encode(), capture_output=True, timeout=300)
        return json.loads(done.stdout)["tokens"]

    def test_states_are_those_of_a_plain_forward_pass(self):
        model = Model(DRAFT)
        self.assertEqual(model.layers, 4)
        records = self.records("--text", self.text, "--layers", "3,0,4,1", "--normed", "--window", "12")
        self.assertEqual(list(records[0]), ["token", "position", "layer_3", "layer_0", "layer_4", "layer_1", "normed"])
        tokens, windows = self.tokens(), []
        for begin in range(0, len(tokens), 11):
            windows.append([BOS] + tokens[begin:begin + 11])
        self.assertGreater(len(windows), 1)
        self.assertEqual([(r["token"], r["position"]) for r in records],
                         [(token, n) for window in windows for n, token in enumerate(window)])
        expected = [row for window in windows for row in model.states(window)]
        for record, row in zip(records, expected):
            for field, at in (("layer_0", 0), ("layer_1", 1), ("layer_3", 3), ("layer_4", 4), ("normed", 5)):
                # Products of Q8_0 weights round their other side to 8 bits, too.
                self.assertLess(distance(record[field], row[at]), 1e-6 if at == 0 else 0.03, (field, record["position"]))

    def test_chunks_and_long_windows_change_nothing(self):
        with open(self.text, "w") as file:
            file.write(TEXT * 20)
        records = self.records("--text", self.text, "--layers", "2")
        self.assertGreater(len(records), 256)  # several passes of one window
        self.assertEqual([r["position"] for r in records], list(range(len(records))))
        short = self.records("--text", self.text, "--layers", "2", "--window", "100")
        self.assertEqual(records[:100], short[:100])
        self.assertEqual(short[100]["position"], 0)

    def test_halves_are_the_nearest(self):
        whole = self.records("--text", self.text, "--layers", "0,4")
        halves = self.records("--text", self.text, "--layers", "0,4", "--type", "f16")
        for a, b in zip(whole, halves):
            for field in ("layer_0", "layer_4"):
                rounded = struct.unpack(f"<{len(a[field])}e", struct.pack(f"<{len(a[field])}e", *a[field]))
                self.assertEqual(rounded, b[field])

    def test_texts_follow_one_another(self):
        other = self.path("other.txt")
        with open(other, "w") as file:
            file.write("The end.")
        with open(self.path("empty.txt"), "w"):
            pass
        one = self.records("--text", self.text, "--normed")
        two = self.records("--text", other, "--normed")
        self.assertEqual(self.records("--text", self.text, self.path("empty.txt"), other, "--normed"), one + two)
        self.assertEqual(self.records("--text", self.path("empty.txt"), "--normed"), [])

    def test_what_cannot_be_is_refused_and_leaves_nothing(self):
        out = self.path("states.npy")
        with open(out, "w") as file:
            file.write("what was there")
        broken = self.path("broken.txt")
        with open(broken, "wb") as file:
            file.write(TEXT.encode() + b"\xff")
        before = sorted(os.listdir(self.folder.name))
        for part, code, options in (
                ("--layers N,... or --normed", 2, ["--text", self.text]),
                ("--layers: 5 outside [0, 4]", 2, ["--text", self.text, "--layers", "5"]),
                ("--layers: -1 outside [0, 4]", 2, ["--text", self.text, "--layers=-1"]),
                ("--layers: 2 comes twice", 2, ["--text", self.text, "--layers", "2,1,2"]),
                ("--text", 2, ["--normed"]), ("--type", 2, ["--text", self.text, "--normed", "--type", "f8"]),
                ("--window", 2, ["--text", self.text, "--normed", "--window", "1"]),
                ("cannot read '/no/such.txt'", 1, ["--text", self.text, "/no/such.txt", "--normed"]),
                ("byte", 1, ["--text", self.text, broken, "--normed"])):
            done = generate("features", DRAFT, "-o", out, *options)
            self.assertEqual((done.returncode, done.stdout), (code, b""), done.stderr)
            self.assertIn(part, done.stderr.decode())
            self.assertEqual(sorted(os.listdir(self.folder.name)), before)
        with open(out) as file:
            self.assertEqual(file.read(), "what was there")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
        for field in ([], ["--layers", "0,1,2,3"]):  # the limit is met while records are written, or the last of them
            done = subprocess.run([PROGRAM, "features", DRAFT, "-o", out, "--text", self.text, "--normed", *field],
                                  capture_output=True, timeout=300, preexec_fn=limit)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(f"cannot write {out}: File too large", done.stderr.decode())
            self.assertEqual(sorted(os.listdir(self.folder.name)), before)
        done = generate("features", DRAFT, "-o", self.path("no/such"), "--text", self.text, "--normed")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--output", done.stderr)

    def test_inputs_and_devices_are_not_replaced(self):
        model, pipe, link = self.path("model.gguf"), self.path("pipe"), self.path("link.txt")
        shutil.copy(DRAFT, model)
        os.mkfifo(pipe)
        os.symlink(self.text, link)
        with open(model, "rb") as file:
            weights = file.read()
        for out, part in ((model, "is the file to read"), (self.text, "is the file to read"),
                          (link, "is the file to read"), (pipe, "not a file")):
            done = generate("features", model, "-o", out, "--text", self.text, "--normed")
            self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
            self.assertIn(f"--output {out}", done.stderr.decode())
            self.assertIn(part, done.stderr.decode())
        with open(model, "rb") as file:
            self.assertEqual(file.read(), weights)
        with open(self.text) as file:
            self.assertEqual(file.read(), TEXT)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["link.txt", "model.gguf", "pipe", "text.txt"])

    def test_an_interrupt_leaves_nothing(self):
        with open(self.text, "w") as file:
            file.write(TEXT * 20000)
        running = subprocess.Popen([PROGRAM, "features", DRAFT, "-o", self.path("states.npy"), "--text", self.text, "--normed"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        part = self.path("states.npy.part")
        while running.poll() is None and not (os.path.exists(part) and os.path.getsize(part) > 100000):
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=300)
        self.assertEqual((running.returncode, out, err), (130, b"", b"generate: stopped\n"))
        self.assertEqual(os.listdir(self.folder.name), ["text.txt"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
