#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The generate program as scripts see it: JSON forms, exit codes, one line on standard error after a failure.

usage: cli_test.py PROGRAM SOURCE_DIR RANDOM_MODEL
"""
import fcntl
import json
import math
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import xml.etree.ElementTree

PROGRAM, SOURCE, RANDOM_MODEL = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))

from adapter_files import write_adapter  # noqa: E402

DRAFT = os.path.join(SOURCE, "examples/demo_model/draft.gguf")


def generate(*arguments, stdin=b"", environment=None):
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=300,
                          env={**os.environ, **(environment or {})})


def answer(*arguments, stdin=b""):
    done = generate(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b"", done.stderr
    return json.loads(done.stdout)


class Forms(unittest.TestCase):
    def test_tokenize_takes_bytes_as_they_are(self):
        plain = answer("tokenize", "-m", DRAFT, "--json", stdin=b"Hello <|im_end|>\n")["tokens"]
        self.assertTrue(plain and all(isinstance(token, int) for token in plain))
        with_bos = answer("tokenize", "-m", DRAFT, "--json", "--bos", stdin=b"Hello <|im_end|>\n")["tokens"]
        self.assertEqual(with_bos, [1] + plain)
        special = answer("tokenize", "-m", DRAFT, "--json", "--special", stdin=b"Hello <|im_end|>\n")["tokens"]
        self.assertLess(len(special), len(plain))
        self.assertEqual(answer("tokenize", "-m", DRAFT, "--json")["tokens"], [])
        for text in ([DRAFT, "Hello there"], ["-m", DRAFT, "Hello there"], [DRAFT, "-p", "Hello there"]):
            self.assertEqual(answer("tokenize", *text, "--json"), answer("tokenize", DRAFT, "--json", stdin=b"Hello there"))
        self.assertEqual(answer("tokenize", DRAFT, "", "--json", stdin=b"Hello")["tokens"], [])
        main, other = pty.openpty()
        done = subprocess.run([PROGRAM, "tokenize", DRAFT], stdin=other, capture_output=True, timeout=300)
        os.close(main)
        os.close(other)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"no text: it comes from standard input", done.stderr)

    def test_tokenize_names_the_pre_tokenizer_and_what_is_odd(self):
        by_id = os.path.join(SOURCE, "tests/tokenizer/data/byid.gguf")
        odd = b"warning: metadata 'tokenizer.ggml.merges' is missing: tokens are merged in the order of their ids\n"
        tokens = {}
        for name in ("gpt-2", "llama-bpe"):
            done = generate("tokenize", by_id, "it's 1234567 'S", "--pre-tokenizer", name, "--json")
            self.assertEqual((done.returncode, done.stderr[:len(odd)]), (0, odd))
            tokens[name] = json.loads(done.stdout)["tokens"]
        self.assertNotEqual(tokens["gpt-2"], tokens["llama-bpe"])
        self.assertEqual(json.loads(generate("tokenize", by_id, "it's 1234567 'S", "--json").stdout)["tokens"], tokens["gpt-2"])
        rwkv = os.path.join(SOURCE, "tests/tokenizer/data/rwkv.gguf")
        for path, name, code, part in ((by_id, "nonsense", 1, b"'nonsense' is not known"), (rwkv, "gpt-2", 1, b"of kind 'rwkv', which has none")):
            done = generate("tokenize", path, "a", "--pre-tokenizer", name)
            self.assertEqual((done.returncode, done.stdout), (code, b""))
            self.assertIn(part, done.stderr.splitlines()[-1])

    def test_logits_are_probabilities(self):
        for kv in ("fp32", "fp16"):
            top = answer("logits", "-m", DRAFT, "--tokens", "1,300,301", "--top", "4096", "--json", "--kv", kv)["top"]
            self.assertEqual(len(top), 3)
            for position in top:
                values = [probability for _, probability in position]
                self.assertEqual(len(values), 4096)
                self.assertEqual(sorted(values, reverse=True), values)
                self.assertTrue(math.isclose(sum(values), 1, abs_tol=1e-6))
        self.assertEqual(len(answer("logits", "-m", DRAFT, "--tokens", "1", "--top", "3", "--json")["top"][0]), 3)

    def test_sessions_go_on_in_another_process(self):
        whole = answer("run", "-m", DRAFT, "-p", "Once upon a time", "-n", "24", "--temp", "0", "--json")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "session")
            first = answer("run", "-m", DRAFT, "-p", "Once upon a time", "-n", "10", "--temp", "0", "--json",
                           "--save-session", path)
            second = answer("run", "-m", DRAFT, "-n", "14", "--temp", "0", "--json", "--load-session", path)
            self.assertEqual(first["tokens"] + second["tokens"], whole["tokens"])
            self.assertLessEqual(second["usage"]["prompt"], 1)
            done = generate("run", "-m", DRAFT, "-n", "4", "--kv", "q4", "--load-session", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"key format fp32, the cache's has q4", done.stderr)
            self.assertEqual(os.listdir(folder), ["session"])

    def test_a_files_text_gives_a_terminal_no_commands(self):
        with open(DRAFT, "rb") as file:
            model = file.read()
        name = answer("inspect", "-m", DRAFT, "--json")["metadata"]["general.name"].encode()
        self.assertGreaterEqual(len(name), 8)
        evil = b"\x1b[2J\xc2\x9b\x7f\n".ljust(len(name), b"x")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            for change in ((name, evil), (b"llama", b"ll\x1b]a")):
                self.assertIn(change[0], model)
                with open(path, "wb") as file:
                    file.write(model.replace(*change, 1))
                done = generate("inspect", "-m", path)
                shown = done.stdout + done.stderr
                self.assertEqual(b"\\x1b[2J\\x9b\\x7f\\nx" in shown, change[0] == name)
                self.assertEqual(b"architecture: ll\\x1b]a\n" in shown, change[0] != name)
                self.assertFalse([byte for byte in shown if byte < 0x20 and byte != 0x0A or byte == 0x7F])
                self.assertNotIn(b"\xc2\x9b", shown)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_limit_on_files_is_an_error_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [PROGRAM, "run", "-m", DRAFT, "-p", "A fox", "-n", "4", "--save-session", os.path.join(folder, "session")],
                capture_output=True, timeout=300,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(b"beyond its limit", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_perplexity_compares_caches(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"Once upon a time, a fox lived in a small house. " * 20)
            file.flush()
            same = answer("perplexity", "-m", DRAFT, "-f", file.name, "--against", "fp32", "--json")
            self.assertEqual((same["kl_divergence"], same["top1_agreement"]), (0, 1))
            other = answer("perplexity", "-m", DRAFT, "-f", file.name, "--kv", "q3", "--against", "fp32", "--json")
            self.assertTrue(0 < other["kl_divergence"] < 1)
            self.assertTrue(0.5 < other["top1_agreement"] <= 1)
            plain = answer("perplexity", "-m", DRAFT, "-f", file.name, "--json")
            self.assertEqual(plain["perplexity"], same["perplexity"])
            self.assertNotIn("kl_divergence", plain)

    def test_inspect_counts_experts(self):
        layers, width, ffn, experts, used = 2, 256, 256, 6, 2
        shape = {"layers": layers, "width": width, "heads": 4, "kv-heads": 4, "ffn": ffn, "vocab": 500, "context": 64}
        options = [text for name, value in shape.items() for text in ("--" + name, str(value))]
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            for n, chosen in ((experts, used), (0, 0)):
                more = ["--experts", str(n), "--used", str(chosen)] if n else []
                subprocess.run([RANDOM_MODEL, file.name, *options, *more], check=True, capture_output=True)
                done = answer("inspect", "-m", file.name, "--json")
                self.assertEqual((done["num_experts"], done["num_experts_used"], done["gpu_expert_layers"]), (n, chosen, 0))
                self.assertEqual(done["parameters"] - done["active_parameters"],
                                 layers * 3 * width * ffn * (n - chosen))

    def test_inspect_draws_a_pass(self):
        layers = answer("inspect", "-m", DRAFT, "--json")["num_layers"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pass.json")
            self.assertEqual(generate("inspect", "-m", DRAFT, "--graph", path).returncode, 0)
            with open(path) as file:
                record = json.load(file)
            names = [op["name"] for op in record["ops"]]
            for name in ("rope_append", "KVCacheAppendK", "KVCacheGetV", "attention"):
                self.assertEqual(names.count(name), layers)
            shapes = {tensor["id"] for tensor in record["tensors"]}
            self.assertTrue(all(set(op["inputs"] + op["outputs"]) <= shapes for op in record["ops"]))
            path = os.path.join(folder, "pass.svg")
            # A Graphviz that is sure to be there.
            with open(os.path.join(folder, "dot"), "w") as file:
                file.write('#!/bin/sh\n[ "$1 $2" = "-Tsvg -o" ] && { echo "<svg>"; /bin/cat "$4"; } >"$3"\n')
            os.chmod(os.path.join(folder, "dot"), 0o755)
            with open(path + ".dot", "w") as file:
                file.write("somebody's")
            done = generate("inspect", "-m", DRAFT, "--graph", path, environment={"PATH": folder})
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            with open(path) as file:
                self.assertTrue(file.read().startswith("<svg>\ndigraph trace {"))
            with open(path + ".dot") as file:
                self.assertEqual(file.read(), "somebody's")
            os.remove(path + ".dot")
            with open(os.path.join(folder, "dot"), "w") as file:
                file.write("#!/bin/sh\nexit 3\n")
            done = generate("inspect", "-m", DRAFT, "--graph", path, environment={"PATH": folder})
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"dot could not draw", done.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["dot", "pass.json", "pass.svg"])
            os.remove(os.path.join(folder, "dot"))
            # Without Graphviz in the path.
            done = generate("inspect", "-m", DRAFT, "--graph", path, environment={"PATH": folder})
            self.assertEqual(done.returncode, 1)
            self.assertIn(b".svg needs Graphviz, which is not installed", done.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["pass.json", "pass.svg"])

    def test_run_gives_text_tokens_and_figures(self):
        done = answer("run", "-m", DRAFT, "-p", "Once upon a time", "-n", "12", "--temp", "0", "--json")
        self.assertEqual(set(done), {"text", "tokens", "finish_reason", "usage", "timings", "seed"})
        self.assertEqual(len(done["tokens"]), done["usage"]["completion"])
        self.assertIn(done["finish_reason"], ("length", "stop_token"))
        self.assertGreater(done["usage"]["prompt"], 1)
        self.assertEqual(done["usage"]["grammar_complete"], -1)  # there is none
        again = answer("run", "-m", DRAFT, "-p", "Once upon a time", "-n", "12", "--temp", "0", "--json", "-t", "1")
        self.assertEqual(again["text"], done["text"])
        # The first greedy token is the most probable one of logits.
        ids = answer("tokenize", "-m", DRAFT, "--json", "--bos", stdin=b"Once upon a time")["tokens"]
        top = answer("logits", "-m", DRAFT, "--tokens", ",".join(map(str, ids)), "--top", "1", "--json")["top"]
        self.assertEqual(top[-1][0][0], done["tokens"][0])

    def draft_svg(self, *options, model=DRAFT):
        """The picture's boxes as (text, colour, title), what is written beside them, and the answer."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "drafts.svg")
            said = answer("run", "-m", model, "--json", "--draft-policy", "always", "--draft-svg", path, *options)
            root = xml.etree.ElementTree.parse(path).getroot()
        space = "{http://www.w3.org/2000/svg}"
        boxes = [(group.find(space + "text").text, group.find(space + "rect").get("fill"), group.find(space + "title").text)
                 for group in root.iter(space + "g")]
        return boxes[4:], [text.text for text in root.findall(space + "text")], said, boxes[:4]

    def test_drafts_are_drawn(self):
        story = os.path.join(SOURCE, "examples/demo_model/story.gguf")
        eagle = os.path.join(SOURCE, "examples/demo_model/eagle3.gguf")
        boxes, beside, said, legend = self.draft_svg("-p", 'A <b> & "fox"', "-n", "120", "--temp", "0", "--eagle", eagle, model=story)
        accepted, rejected, own, plain = (colour for _, colour, _ in legend)
        usage = said["usage"]
        self.assertEqual(beside[0], 'A <b> & "fox"')
        self.assertTrue(any("tokens guessed" in text for text in beside))
        self.assertIn(f"head: {usage['accepted']} of {usage['drafted']} accepted", beside)
        self.assertTrue(0 < usage["accepted"] < usage["drafted"])
        drawn = [box for box in boxes if box[1] != rejected or "rejected" not in box[2]]
        wrong = [box for box in boxes if "rejected draft" in box[2]]
        self.assertEqual(len(wrong), usage["drafted"] - usage["accepted"])
        self.assertEqual(sum("accepted draft" in title and colour == accepted for _, colour, title in drawn), usage["accepted"])
        # The text is there, token by token, in order.
        self.assertEqual([int(re.search(r"\(id (\d+)\)", title)[1]) for _, _, title in drawn], said["tokens"])
        self.assertEqual("".join(text for text, _, _ in drawn), said["text"].replace(" ", "·").replace("\n", "↵"))
        self.assertTrue(all("by head" in title for _, _, title in wrong))

    def test_a_picture_of_a_long_answer_ends(self):
        boxes, beside, said, _ = self.draft_svg("-p", "The end", "-n", "9000", "--temp", "60", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--ignore-eos", "--context-policy", "shift",
                                                "--draft", "lookup")
        self.assertEqual(len(said["tokens"]), 9000)
        self.assertTrue(8000 <= len(boxes) < 8100, len(boxes))
        # Tokens of random draws are bytes and names of control tokens, too; all of it is XML, or it would not have been read.
        self.assertTrue(any(text.startswith("\\x") for text, _, _ in boxes))
        self.assertRegex(beside[-1], r"^the first \d+ of 9000 tokens$")

    def test_special_tokens_of_a_prompt_are_text_unless_asked_for(self):
        prompt = "Hello!<|im_end|>"
        story = os.path.join(SOURCE, "examples/demo_model/story.gguf")
        for flag in ([], ["--special"]):
            count = len(answer("tokenize", "-m", story, "--json", "--bos", *flag, stdin=prompt.encode())["tokens"])
            done = answer("run", "-m", story, "-p", prompt, "-n", "1", "--json", *flag)
            self.assertEqual(done["usage"]["prompt"], count)
        self.assertLess(count, len(prompt))

    def test_a_prefix_cache_does_not_show(self):
        line = ["run", "-m", DRAFT, "-p", "Once upon a time", "-n", "12", "--temp", "0", "--json"]
        plain = answer(*line)
        kept = answer(*line, "--paged", "8,4", "--prefix-cache", "100")
        self.assertEqual(kept["tokens"], plain["tokens"])
        self.assertEqual(kept["usage"]["prompt_cached"], 0)
        talk = generate("chat", "-m", DRAFT, "-n", "8", "--temp", "0", "--paged", "8,4", "--prefix-cache", "100",
                        stdin=b"Hello there.\n/reset\nHello there.\n")
        self.assertEqual(talk.returncode, 0)
        half = len(talk.stdout) // 2
        self.assertGreater(half, 1)
        self.assertEqual(talk.stdout[:half], talk.stdout[half:])

    def test_deterministic_changes_nothing_on_the_cpu(self):
        line = ["run", "-m", DRAFT, "-p", "Once upon a time", "-n", "12", "--temp", "0", "--json"]
        self.assertEqual(answer(*line, "--deterministic")["tokens"], answer(*line)["tokens"])
        talk = generate("chat", "-m", DRAFT, "-n", "4", "--temp", "0", "--deterministic", stdin=b"Hello there.\n")
        self.assertEqual(talk.returncode, 0)

    def test_a_full_context_stops_or_shifts(self):
        common = ("run", "-m", DRAFT, "-p", "Once upon a time", "-n", "90", "--ignore-eos", "--ctx", "40", "--json")
        stopped = answer(*common)
        self.assertEqual(stopped["finish_reason"], "context_full")
        shifted = answer(*common, "--context-policy", "shift,8")
        self.assertEqual(shifted["finish_reason"], "length")
        self.assertGreater(shifted["usage"]["dropped"], 40)
        n = len(stopped["tokens"])
        self.assertEqual(shifted["tokens"][:n], stopped["tokens"])

    def test_run_streams_the_same_text(self):
        whole = answer("run", "-m", DRAFT, "-p", "The dog", "-n", "30", "--seed", "3", "--json")
        streamed = generate("run", "-m", DRAFT, "-p", "-", "-n", "30", "--seed", "3", stdin=b"The dog")
        self.assertEqual(streamed.returncode, 0)
        self.assertEqual(streamed.stdout.decode(), whole["text"] + "\n")

    def test_bench_gives_one_figure_for_each_run(self):
        done = answer("bench", "-m", DRAFT, "-p", "16", "-n", "4", "-t", "2", "-r", "2", "--json")
        self.assertEqual(len(done["prefill_tps"]), 2)
        self.assertEqual(len(done["decode_tps"]), 2)
        for key in ("read_bandwidth_gbs", "decode_bandwidth_share", "peak_gops", "products_per_token"):
            self.assertGreater(done[key], 0)
        for part in ("prefill", "decode"):
            figures = done[part]
            self.assertLessEqual(figures["min"], figures["median"])
            self.assertLessEqual(figures["median"], figures["max"])
            for key in ("gbs", "bandwidth_share", "gops", "peak_share"):
                self.assertGreater(figures[key], 0)

    def test_bench_counts_what_a_model_multiplies(self):
        layers, width, heads, kv_heads, ffn, vocab = 2, 256, 4, 2, 512, 500
        shape = {"layers": layers, "width": width, "heads": heads, "kv-heads": kv_heads, "ffn": ffn, "vocab": vocab,
                 "context": 64}
        options = [text for name, value in shape.items() for text in ("--" + name, str(value))]
        kv = width // heads * kv_heads
        products = layers * (2 * width * width + 2 * width * kv + 3 * width * ffn) + width * vocab
        # Bytes of 256 weights, as the formats have them.
        for name, size in (("F32", 1024), ("F16", 512), ("BF16", 512), ("Q8_0", 272), ("Q4_K", 144), ("Q4_K_M", None)):
            with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
                subprocess.run([RANDOM_MODEL, file.name, "--type", name, *options], check=True, capture_output=True)
                done = answer("bench", "-m", file.name, "-p", "16", "-n", "4", "-t", "2", "-r", "1", "--depth", "10",
                              "--batch", "3", "--profile", "--json")
            self.assertEqual(done["products_per_token"], products, name)
            if size is not None:
                self.assertIn(name, done["weight_types"])
                self.assertGreaterEqual(done["stream_bytes_per_token"], products // 256 * size)
                self.assertLess(done["stream_bytes_per_token"], products // 256 * size * 1.1)
            # The steps see 27 to 30 entries, keys and values in float32.
            self.assertEqual(done["cache_bytes_per_step"], 3 * 28.5 * layers * 2 * kv * 4)
            self.assertTrue(0 < done["scale_ceiling"] <= 1 or os.environ.get("GEN_CPU") in ("scalar", "neon"))
            for part in ("prefill", "decode"):
                profile = done["profile"][part]
                kinds = {row["instruction"]: row for row in profile["instructions"]}
                self.assertEqual(kinds["attention"]["calls"], layers)
                self.assertEqual(kinds["linear output"]["calls"], 1)
                self.assertEqual(kinds["linear output"]["operations"],
                                 2 * width * vocab * (3 if part == "decode" else 1))
                spent = sum(row["seconds"] for row in profile["instructions"])
                self.assertTrue(0 < spent <= profile["seconds"])

    def test_bench_walks_cases_and_draws(self):
        done = generate("bench", "-m", DRAFT, "-p", "8", "-n", "2", "-r", "1", "-t", "1,2", "--depth", "0,4",
                        "--batch", "1,2", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(case["threads"], case["depth"], case["batch"]) for case in cases],
                         [(t, d, b) for t in (1, 2) for d in (0, 4) for b in (1, 2)])
        with tempfile.NamedTemporaryFile(suffix=".svg") as file:
            table = generate("bench", "-m", DRAFT, "-p", "8", "-n", "2", "-r", "1", "-t", "2", "--profile",
                             "--profile-svg", file.name)
            self.assertEqual(table.returncode, 0, table.stderr)
            for part in (b"decode 2", b"of peak", b"roofline", b"between instructions", b"linear attn_output"):
                self.assertIn(part, table.stdout)
            picture = xml.etree.ElementTree.parse(file.name).getroot()
            texts = "".join(picture.itertext())
            self.assertIn("linear attn_output", texts)
            self.assertIn("decode step", texts)

    def test_perplexity_agrees_with_logits(self):
        text = b"Once upon a time there was a dog."
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            done = answer("perplexity", "-m", DRAFT, "-f", file.name, "--json")
        ids = answer("tokenize", "-m", DRAFT, "--json", "--bos", stdin=text)["tokens"]
        top = answer("logits", "-m", DRAFT, "--tokens", ",".join(map(str, ids)), "--top", "4096", "--json")["top"]
        logs = [math.log(dict(map(tuple, position))[token]) for position, token in zip(top, ids[1:])]
        self.assertEqual(done["tokens"], len(ids) - 1)
        self.assertTrue(math.isclose(done["perplexity"], math.exp(-sum(logs) / len(logs)), rel_tol=1e-4))

    def test_imatrix_writes_a_file_of_sums(self):
        with tempfile.TemporaryDirectory() as folder:
            text, made, again = (os.path.join(folder, name) for name in ("a text.txt", "made.gguf", "again.gguf"))
            with open(text, "w") as file:
                file.write("Once upon a time there was a fox, and it ran. " * 40)
            done = generate("imatrix", "-m", DRAFT, "-f", text, "-o", made, "--window", "32")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(done.stdout.decode(), f"{made}: {os.path.getsize(made)} bytes\n")
            with open(made, "rb") as file:
                data = file.read()
            for name in (b"general.type", b"imatrix", b"a text.txt", b"blk.0.attn_q.weight.in_sum2", b"blk.1.ffn_down.weight.counts"):
                self.assertIn(name, data)
            self.assertEqual(generate("imatrix", "-m", DRAFT, "-f", text, "-o", again, "--window", "32", "-t", "1").returncode, 0)
            with open(again, "rb") as file:
                self.assertEqual(file.read(), data)
            windows = self.number_of(data, b"imatrix.chunk_count")
            self.assertGreater(windows, 3)
            self.assertEqual(generate("imatrix", "-m", DRAFT, "-f", text, "-o", again, "--window", "32", "--chunks", "2").returncode, 0)
            with open(again, "rb") as file:
                self.assertEqual(self.number_of(file.read(), b"imatrix.chunk_count"), 2)
            plain, weighted = (os.path.join(folder, name) for name in ("plain", "weighted"))
            for out, more in ((plain, []), (weighted, ["--importance", made])):
                self.assertEqual(generate("quantize", DRAFT, out, "Q4_0", *more).returncode, 0)
            with open(plain, "rb") as one, open(weighted, "rb") as other:
                self.assertNotEqual(one.read(), other.read())

    @staticmethod
    def number_of(data, key):
        """The u32 of a key in a GGUF file."""
        at = data.index(key) + len(key)
        return struct.unpack("<II", data[at:at + 8])[1]

    def test_quantize_makes_a_smaller_model_that_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made.gguf")
            done = generate("quantize", DRAFT, made, "Q4_K_M")
            self.assertEqual(done.returncode, 0)
            for line in done.stderr.decode().splitlines():  # its rows are short
                self.assertRegex(line, "^warning: .* rows of 64 are no multiple of 256$")
            self.assertEqual(done.stdout.decode(), f"{made}: {os.path.getsize(made)} bytes\n")
            self.assertLess(os.path.getsize(made), os.path.getsize(DRAFT))
            self.assertEqual(os.listdir(folder), ["made.gguf"])
            again = os.path.join(folder, "again.gguf")
            self.assertEqual(generate("quantize", DRAFT, again, "q4_k_m").returncode, 0)
            with open(made, "rb") as one, open(again, "rb") as other:
                self.assertEqual(one.read(), other.read())
            self.assertEqual(answer("inspect", "-m", made, "--json")["architecture"], "llama")
            self.assertEqual(generate("run", "-m", made, "-p", "Once", "-n", "4").returncode, 0)

    def test_quantize_says_which_rows_do_not_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made.gguf")
            given = os.path.join(folder, "given.gguf")
            self.write_narrow(given)
            done = generate("quantize", given, made, "Q4_K_M")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr.decode(), "warning: blk.0.attn_q.weight becomes F16, not Q4_K: "
                             "rows of 40 are no multiple of 256, nor of 32\n")
            self.assertEqual(generate("quantize", given, made, "F16").stderr, b"")

    def test_quantize_takes_types_and_importance(self):
        with tempfile.TemporaryDirectory() as folder:
            made, sums = os.path.join(folder, "made.gguf"), os.path.join(folder, "sums.dat")
            self.assertEqual(generate("quantize", DRAFT, made, "Q4_0").returncode, 0)
            small = os.path.getsize(made)
            done = generate("quantize", "--type", "blk.0.*=F16", DRAFT, made, "Q4_0", "--type", "token_embd.*=Q8_0")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertGreater(os.path.getsize(made), small)
            name = b"blk.0.attn_q.weight"
            with open(sums, "wb") as file:  # the older form: one matrix, of whose columns the first counts
                file.write(struct.pack("<ii", 1, len(name)) + name + struct.pack("<ii64f", 1, 64, 1, *[0] * 63))
            done = generate("quantize", DRAFT, made, "Q4_0", "--importance", sums, "--type", "token_embd.*=Q4_1")
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stderr.decode(), r"^warning: .* are not in the importance matrix: all columns count alike\n$")
            done = generate("quantize", DRAFT, made, "F16", "--importance", sums)
            self.assertEqual((done.returncode, done.stderr.decode()),
                             (0, "warning: blk.0.attn_q.weight is not quantised: the importance matrix changes nothing\n"))
            for arguments, code, message in (
                    (("--type", "nothing*=F16"), 1, '"nothing*" matches no matrix of the model\n'),
                    (("--type", "blk.*.attn_v=F16"), 1, "model; a pattern is a whole name: with .weight behind it, it matches"),
                    (("--type", "output.*=F16"), 1, "model; its output is its embedding, token_embd.weight\n"),
                    (("--type", "*=Q4_K_M"), 2, '--type: "Q4_K_M" is not one of F32, '),
                    (("--type", "*"), 2, '--type: "*" is not PATTERN=TYPE'),
                    (("--importance", DRAFT), 1, "draft.gguf"),
                    (("--importance", os.path.join(folder, "none")), 1, "none")):
                done = generate("quantize", DRAFT, made, "Q4_0", *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                self.assertIn(message, done.stderr.decode())

    @staticmethod
    def write_narrow(path):
        """A GGUF file with one matrix of two rows of 40 floats."""
        name = b"blk.0.attn_q.weight"
        header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
        header += struct.pack("<IQQIQ", 2, 40, 2, 0, 0)
        with open(path, "wb") as file:
            file.write(header + bytes(-len(header) % 32) + struct.pack("<80f", *range(80)))

    def test_a_turn_that_was_cut_is_closed(self):
        # What the second answer goes on from is the whole conversation as the model's form lays it out.
        story = os.path.join(SOURCE, "examples/demo_model/story.gguf")
        opening = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
        for limit in ("4", "40"):  # cut by the limit, and ended by the model
            turns = ("Hello!", "Tell me a story." if limit == "4" else "How much is 2 + 3?")
            talk = generate("chat", "-m", story, "-n", limit, "--temp", "0", "--top-k", "0", stdin="\n".join(turns).encode())
            self.assertEqual((talk.returncode, talk.stderr), (0, b""))
            first, second = talk.stdout.decode().splitlines()
            before = opening.format(turns[0]) + first + "<|im_end|>\n" + opening.format(turns[1])
            count = len(answer("tokenize", "-m", story, "--json", "--bos", "--special", stdin=before.encode())["tokens"])
            ids = answer("tokenize", "-m", story, "--json", "--bos", "--special", stdin=(before + second).encode())["tokens"]
            self.assertGreater(len(ids), count)
            top = answer("logits", "-m", story, "--tokens", ",".join(map(str, ids)), "--top", "1", "--json")["top"]
            self.assertEqual([top[at - 1][0][0] for at in range(count, len(ids))], ids[count:])

    def test_template_lays_conversations_out(self):
        request = json.dumps({"messages": [{"role": "user", "content": "Hi <|im_end|>", "x": 1}], "add_generation_prompt": True})
        made = answer("template", "-m", DRAFT, "--json", stdin=request.encode())
        text = "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
        self.assertEqual(made["text"], text)
        self.assertEqual([(s["text"], s["special"]) for s in made["segments"]],
                         [("<|im_start|>user\n", True), ("Hi <|im_end|>", False), ("<|im_end|>\n<|im_start|>assistant\n", True)])
        self.assertEqual(generate("template", "-m", DRAFT, stdin=request.encode()).stdout.decode(), text)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "form.jinja")
            with open(path, "w") as file:
                file.write("{{ bos_token }}{{ level }}{{ (tools or []) | tojson }}{{ strftime_now('%H:%M') }}{% if bad %}{{ raise_exception('no') }}"
                           "{% endif %}")
            request = {"messages": [], "tools": [{"b": 1, "a": "\u00e9"}], "bos_token": "<s>", "variables": {"level": [1]},
                       "now": "2026-01-02T03:04:05"}
            made = answer("template", "--template", path, "--json", stdin=json.dumps(request).encode())
            self.assertEqual(made["text"], '<s>[1][{"b": 1, "a": "\u00e9"}]03:04')
            for bad, part in (({"messages": [], "variables": {"bad": 1}}, "no"), ({"messages": [], "x": 1}, "'x'"), ({}, "messages"),
                              ({"messages": 5}, "messages"), ({"messages": [1]}, "a message"), ({"messages": [], "now": "x"}, "x"),
                              ({"messages": [], "variables": {"tools": 1}}, "tools"), ([], "the request"),
                              ({"messages": [], "tools": 1}, "tools"), ({"messages": [], "add_generation_prompt": 1}, "add_"),
                              ({"messages": [], "bos_token": 1}, "bos_token"), ({"messages": [], "variables": 1}, "variables")):
                done = generate("template", "--template", path, "--json", stdin=json.dumps(bad).encode())
                self.assertEqual(done.returncode, 1)
                self.assertIn(part, json.loads(done.stdout)["error"])
            with open(path, "w") as file:
                file.write("{{ x | frobnicate }}")
            done = generate("template", "--template", path, stdin=b'{"messages":[]}')
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(b"frobnicate", done.stderr)

    def test_chat_goes_on_after_a_bad_line(self):
        talk = generate("chat", "-m", DRAFT, "-n", "4", stdin=b"Hello\n\n/hlep\n\xff\nHi\r\n/exit\r\nnot this\n")
        self.assertEqual(talk.returncode, 1)
        self.assertIn(b"no command /hlep", talk.stderr)
        self.assertIn(b"UTF-8", talk.stderr)
        self.assertIn(b"\ngenerate: 1 of 3 messages not answered; first message 2: ", talk.stderr)
        self.assertEqual(talk.stdout.count(b"\n"), 3)

    def test_a_chat_outlives_its_context(self):
        lines = b"Tell me a story about a fox.\n" * 6
        talk = generate("chat", "-m", DRAFT, "--ctx", "48", "-n", "12", "--ignore-eos", stdin=lines)
        self.assertEqual((talk.returncode, talk.stderr), (0, b""))
        talk = generate("chat", "-m", DRAFT, "--ctx", "48", "-n", "12", "--ignore-eos", "--context-policy", "stop", stdin=lines)
        self.assertEqual(talk.returncode, 1)
        self.assertRegex(talk.stderr.decode().splitlines()[-1], r"^generate: \d of 6 messages not answered; first message \d: .*context")

    def test_what_helps_a_full_chat_is_what_is_said(self):
        # A message that no context of this size holds goes in neither way; the one before it only needs its room.
        too_long = b"word " * 90 + b"\n"
        talk = generate("chat", "-m", DRAFT, "--ctx", "64", "-n", "4", stdin=too_long + b"Hi\n")
        said = talk.stderr.decode().splitlines()[0]
        self.assertRegex(said, r"^generate: message 1: .*context of 64; .*--ctx")
        self.assertNotIn("shift", said)
        self.assertNotIn("/reset", said)
        lines = b"Tell me a story about a fox.\n" * 6
        talk = generate("chat", "-m", DRAFT, "--ctx", "48", "-n", "12", "--ignore-eos", "--context-policy", "stop", stdin=lines)
        self.assertIn("; /reset restarts, --context-policy shift makes room", talk.stderr.decode().splitlines()[0])

    def test_chat_takes_a_template_tools_and_variables(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = os.path.join(folder, "tools.json")
            form = os.path.join(folder, "form.jinja")
            with open(tools, "w") as file:
                json.dump([{"name": "f"}], file)
            with open(form, "w") as file:
                file.write("{% if tools[0].name != 'f' or level != 'high' %}{{ raise_exception('not told') }}{% endif %}"
                           "{{ messages[0].content }}")
            base = ["chat", "-m", DRAFT, "-n", "4", "--chat-template", form]
            told = generate(*base, "--tools", tools, "--variable", 'level="high"', stdin=b"Hi\n")
            self.assertEqual((told.returncode, told.stderr), (0, b""))
            self.assertIn(b"not told", generate(*base, "--tools", tools, stdin=b"Hi\n").stderr)
            for wrong, part in ((["--variable", "x"], b"has no '='"), (["--variable", "x=y"], b"--variable"),
                                (["--tools", form], b"not a JSON array"), (["--chat-template", "alpaca"], b"alpaca")):
                done = generate("chat", "-m", DRAFT, *wrong, stdin=b"")
                self.assertEqual(done.returncode, 2)
                self.assertIn(part, done.stderr)

    def test_inspect_and_chat_answer(self):
        done = answer("inspect", "-m", DRAFT, "--json")
        self.assertEqual(done["architecture"], "llama")
        self.assertEqual(done["memory"]["file"], os.path.getsize(DRAFT))
        chat = generate("chat", "-m", DRAFT, "-n", "8", stdin=b"Hello\n/reset\nHi\n/exit\n")
        self.assertEqual(chat.returncode, 0)
        self.assertEqual(chat.stderr, b"")
        self.assertGreaterEqual(chat.stdout.count(b"\n"), 2)


class Grammar(unittest.TestCase):
    LIST = 'root ::= "[" item ("," item)* "]"\nitem ::= root | [1-9][0-9]*\n'

    def test_texts_follow_a_grammar(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "list.gbnf")
            with open(path, "w") as file:
                file.write(self.LIST)
            for seed in range(5):
                said = answer("run", "-m", DRAFT, "-p", "Once", "-n", "60", "--json", "--seed", str(seed), "--grammar", path)
                if said["finish_reason"] == "grammar_complete":
                    self.assertIsInstance(json.loads(said["text"]), list)
                checked = answer("grammar", "check", "--gbnf", path, "-m", DRAFT, "--json", stdin=said["text"].encode())
                self.assertEqual(checked["results"], [said["finish_reason"] == "grammar_complete"])
                self.assertEqual(checked["results"], [said["usage"]["grammar_complete"] == 1])
        dated = answer("run", "-m", DRAFT, "-p", "On", "--json", "--regex", "[12][0-9]{3}-[01][0-9]")
        self.assertRegex(dated["text"], r"^[12][0-9]{3}-[01][0-9]$")
        talk = generate("chat", "-m", DRAFT, "--regex", "yes|no", stdin=b"Is it?\n/exit\n")
        self.assertRegex(talk.stdout, rb"\b(yes|no)\n")

    def test_check_says_who_is_a_member(self):
        documents = b"[1,2]\n[1,\n{\"a\":[]}\nx\n\n"
        wanted = [True, False, True, False, False]
        for model in ([], ["-m", DRAFT]):
            found = answer("grammar", "check", "--any-json", "--json", *model, stdin=documents)
            self.assertEqual(found, {"compiled": True, "error": None, "relaxed": [], "unknown_formats": [], "results": wanted})
        lines = generate("grammar", "check", "--any-json", stdin=documents).stdout
        self.assertEqual(lines, b"yes\nno\nyes\nno\nno\n")
        wrong = answer("grammar", "check", "--regex", "a(", "--json")
        self.assertEqual((wrong["compiled"], wrong["results"]), (False, []))
        self.assertIn("line 1, column", wrong["error"])

    def test_documents_above_a_limit_are_neither(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ambiguous.gbnf")
            with open(path, "w") as file:
                file.write('root ::= "b" | a{0,40} a{40}\na ::= "x"{1,40}\n')
            options = ["--gbnf", path, "--grammar-set", "max_items=10"]
            documents = b"b\n" + b"x" * 60 + b"\nc\n"
            lines = generate("grammar", "check", *options, stdin=documents).stdout.decode().splitlines()
            self.assertEqual((lines[0], lines[2]), ("yes", "no"))
            self.assertRegex(lines[1], "^not known: .*more than 10 items")
            for model in ([], ["-m", DRAFT]):
                found = answer("grammar", "check", *options, "--json", *model, stdin=documents)
                self.assertEqual((found["compiled"], found["results"]), (True, [True, None, False]))
                self.assertRegex(found["error"], "^document 2: .*more than 10 items")
            done = generate("grammar", "test", *options, stdin=b"x" * 60)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(b"more than 10 items", done.stderr)

    def test_schemas_are_checked_line_by_line(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, schema):
                path = os.path.join(folder, name)
                with open(path, "wb") as file:
                    file.write(schema if isinstance(schema, bytes) else json.dumps(schema).encode())
                return path

            point = write("point.json", {"$defs": {"n": {"type": ["integer", "string"], "format": "odd"}}, "type": "object",
                                         "additionalProperties": {"$ref": "#/$defs/n"}})
            schema = write("schema.json", {"items": {"oneOf": [{"$ref": "http://a.b/p?q=1"}, {"type": "object"}, {"type": "string"}],
                                                     "maxLength": 3}, "type": "array"})
            # Blank, no UTF-8, huge, spaces and escapes, a carriage return, and no line feed at the end.
            documents = [b'[{"x": 1}]', b"", b'["\xff"]', b'["abc", "' + b"x" * 300000 + b'"]', b" [" + b" " * 100000 + b'"\\u0061"]',
                         b'["abcd"]\r', b'["\\ud83e"]', b"[1]", b'["abc"]\r', b'["a"]']
            strict = [False, False, False, False, True, False, False, False, True, True]
            for model in ([], ["-m", DRAFT]):
                found = answer("grammar", "check", "--schema", schema, "--resolve", "http://a.b/p?q=1=" + point, "--json", *model,
                               stdin=b"\n".join(documents))
                self.assertEqual(found, {"compiled": True, "error": None, "relaxed": [], "unknown_formats": ["odd"],
                                         "results": strict})
            loose = answer("grammar", "check", "--schema", schema, "--resolve", "http://a.b/p?q=1=" + point, "--json",
                           "--grammar-set", "json_one_of=any_of", "--grammar-set", "json_ignore=maxLength", stdin=b"\n".join(documents))
            self.assertEqual(loose["relaxed"], ["/items/maxLength: ignored", "/items/oneOf: as anyOf"])
            self.assertEqual(loose["results"], [True, False, False, True, True, True, False, False, True, True])
            for text, why in (({"$ref": "http://a.b/c"}, "/$ref: unresolved reference http://a.b/c"), (b'{"a": ', "line 1"),
                              ({"properties": {"a/b": {"pattern": "(a)\\1"}}}, "/properties/a~1b/pattern"), (b"\xff", "UTF-8"),
                              ({"type": "string", "minLength": 2, "maxLength": 1}, "no value is valid")):
                wrong = answer("grammar", "check", "--schema", write("wrong.json", text), "--json", stdin=b"1\n")
                self.assertEqual((wrong["compiled"], wrong["results"]), (False, []), text)
                self.assertIn(why, wrong["error"])
            for options in (["--resolve", "nothing"], ["--resolve", "a=" + folder + "/none"], ["--grammar-set", "json_ignore=patern"],
                            ["--grammar-set", "json_order=random"]):
                done = generate("grammar", "check", "--schema", schema, "--json", *options, stdin=b"")
                self.assertIn(done.returncode, (1, 2), options)
                self.assertEqual(done.stdout, b"")
                self.assertTrue(done.stderr)
            ordered = write("ordered.json", {"type": "object", "properties": {"z": {"type": "boolean"}, "a": {"type": "boolean"}},
                                             "required": ["z", "a"], "additionalProperties": False})
            for seed in range(3):
                said = answer("run", "-m", DRAFT, "-p", "Once", "--json", "--seed", str(seed), "--json-schema", ordered)
                self.assertEqual(list(json.loads(said["text"])), ["z", "a"])

    def test_json_comes_to_its_end(self):
        story = os.path.join(SOURCE, "examples/demo_model/story.gguf")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "order.json")
            with open(path, "w") as file:
                json.dump({"type": "object", "required": ["id", "placed", "total", "lines"], "properties": {
                    "id": {"type": "integer"}, "placed": {"type": "string", "format": "date-time"}, "total": {"type": "number"},
                    "lines": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}},
                                                         "required": ["name"]}}}}, file)
            common = ("run", "-m", story, "-p", "Once upon a time", "--json", "--json-schema", path, "-t", "1")
            for seed in range(8):
                for n in ([], ["-n", "1500"]):
                    value = json.loads(answer(*common, "--seed", str(seed), *n)["text"])
                    self.assertEqual(list(value)[:4], ["id", "placed", "total", "lines"])
                    self.assertIsInstance(value["id"], int)
            # What cannot fit is said.
            for options, why in ((["-n", "9"], "-n ends it after 9 tokens, and the shortest text takes "),
                                 (["--ctx", "16"], "the context is full after ")):
                done = generate(*common, *options)
                self.assertEqual(done.returncode, 3, options)
                self.assertIn("cut off before it follows the grammar: " + why, done.stderr.decode())
                self.assertEqual(done.stderr.count(b"\n"), 1)
                self.assertIn(json.loads(done.stdout)["finish_reason"], ("length", "context_full"))
            self.assertEqual(generate(*common, "-n", "9", "--no-fit-grammar").returncode, 3)
            done = generate("chat", "-m", story, "--json-schema", path, "-n", "9", "-t", "1", stdin=b"Hi\n")
            self.assertEqual(done.returncode, 3)
            self.assertIn(b"cut off before it follows the grammar", done.stderr)
        done = generate("run", "-m", DRAFT, "-p", "On", "-n", "3", "--regex", "[a-z]*", "--temp", "0")
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_settings_by_name_act(self):
        plain = answer("run", "-m", DRAFT, "-p", "On", "-n", "12", "--json", "--temp", "1")["tokens"]
        for options in (["--gumbel"], ["--top-n-sigma", "0.5"], ["--xtc-probability", "1", "--xtc-threshold", "0.01"],
                        ["--mirostat-tau", "1", "--mirostat-eta", "0.5"]):
            other = answer("run", "-m", DRAFT, "-p", "On", "-n", "12", "--json", "--temp", "1", *options)["tokens"]
            self.assertNotEqual(other, plain, options)
        for option, value in (("--xtc-probability", "2"), ("--dry-base", "x"), ("--min-tokens", "-1")):
            done = generate("run", "-m", DRAFT, "-p", "On", option, value)
            self.assertEqual((done.returncode, done.stdout), (2, b""), option)
            self.assertIn(option, done.stderr.decode())

    def test_lark_comes_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".lark") as file:
            file.write('start: "The " ANIMAL "."\nANIMAL: "cat" | "dog"\n')
            file.flush()
            found = answer("grammar", "check", "--lark", file.name, "--json", stdin=b"The cat.\nThe cow.\n")
            self.assertEqual(found["results"], [True, False])
            said = answer("run", "-m", DRAFT, "-p", "On", "-n", "40", "--json", "--lark", file.name)
            self.assertIn(said["text"], ("The cat.", "The dog."))
        for refused in ("--tags", "--regex", "--grammar", "--json-schema"):
            self.assertEqual(generate("grammar", "check", "--lark", file.name, refused, "x").returncode, 2)

    def test_tags_come_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"tags":[{"begin":"<n>","regex":"[0-9]+","end":"."}]}')
            file.flush()
            found = answer("grammar", "check", "--tags", file.name, "--json", stdin=b"free\n<n>12.\n<n>x\n")
            self.assertEqual(found["results"], [True, True, False])
            said = answer("run", "-m", DRAFT, "-p", "On", "-n", "5", "--json", "--tags", file.name)
            self.assertEqual(len(said["tokens"]), 5)

    def test_test_says_where_a_document_leaves(self):
        for document, wanted in ((b"[1]", ("member", 3, 1, 4)), (b"[1,\nx]", ("left", 4, 2, 1)), (b"[", ("unfinished", 1, 1, 2)),
                                 (b"\n\n [}", ("left", 4, 3, 3))):
            found = answer("grammar", "test", "--any-json", "--json", stdin=document)
            self.assertEqual((found["verdict"], found["byte"], found["line"], found["column"]), wanted)
        for document, verdict in ((b"ab\n", "member"), (b"ab\n\n", "left"), (b"a\n", "left")):
            found = answer("grammar", "test", "--regex", "ab", "--json", stdin=document)
            self.assertEqual((found["verdict"], found["byte"]), (verdict, document.index(b"\n")))
        found = answer("grammar", "test", "--regex", "ab\n", "--json", stdin=b"ab\n")
        self.assertEqual((found["verdict"], found["byte"]), ("member", 3))
        said = generate("grammar", "test", "--regex", "ab", stdin=b"ac").stdout
        self.assertEqual(said, b"not allowed at byte 1 (line 1, column 2); expected: 'b'\n")

    def test_settings_of_no_grammar_are_refused(self):
        for option, value in (("--grammar-set", "json_style=any"), ("--resolve", "http://a.b/c=" + os.devnull)):
            refused = generate("run", "-m", DRAFT, "-p", "On", "-n", "1", option, value)
            self.assertEqual((refused.returncode, refused.stdout), (2, b""))
            self.assertIn((option + ": no grammar is given").encode(), refused.stderr)

    def test_test_names_the_member(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as schema:
            schema.write('{"properties":{"customer":{"properties":{"email":{"format":"email"},"a/b~":{"items":{"type":"integer"}}}}}}')
            schema.flush()
            for document, pointer in ((b'{"customer":{"email":"no at"}}', "/customer/email"),
                                      (b'{"customer":{"a\\u002fb~": [1, 2,x]}}', "/customer/a~1b~0/2"),
                                      (b'{"customer":{"email":"a@b.c"},x', ""), (b'{"customer":{"a/b~":[0],x', "/customer"),
                                      (b'{"x":["]",{"y":{},"\\"":"a\\qb"', '/x/1/"'), (b'{"customer":', "/customer")):
                found = answer("grammar", "test", "--schema", schema.name, "--json", stdin=document)
                self.assertEqual(found["pointer"], pointer)
            said = generate("grammar", "test", "--schema", schema.name, stdin=b'{"customer":{"email":"no at"}}').stdout
            self.assertIn(b"column 25, in /customer/email); expected: ", said)

    def test_explain_and_bench(self):
        told = answer("grammar", "explain", "--regex", "[a-c]{2,4}x?", "-m", DRAFT, "--json")
        self.assertEqual((told["kind"], told["begins_with"], told["empty_text"]), ("regex", "'a' to 'c'", False))
        times = answer("grammar", "bench", "--any-json", "-m", DRAFT, "--json", stdin=b"[1]\n[\"abc\", 22]\n")
        self.assertGreater(times["tokens"], 4)
        self.assertLessEqual(times["p50_us"], times["worst_us"])

    def test_what_is_wrong_is_told(self):
        for part, code, line in (("give one of", 2, ["check"]), ("excludes", 2, ["check", "--regex", "a", "--any-json"]),
                                 ("cannot read", 1, ["check", "--gbnf", "/nowhere"]), ("ACTION", 2, ["chek", "--any-json"]),
                                 ("no token", 1, ["bench", "--any-json"])):
            done = generate("grammar", *line)
            self.assertEqual((done.returncode, done.stdout), (code, b""), line)
            self.assertIn(part, done.stderr.decode())


class Output(unittest.TestCase):
    """What cannot be written is an error, in every command."""
    COMMANDS = {
        "run": ["run", "-m", DRAFT, "-p", "Once", "-n", "4"],
        "run --json": ["run", "-m", DRAFT, "-p", "Once", "-n", "4", "--json"],
        "chat": ["chat", "-m", DRAFT, "-n", "4"],
        "template": ["template", "-m", DRAFT],
        "tokenize": ["tokenize", "-m", DRAFT],
        "logits": ["logits", "-m", DRAFT, "--tokens", "1"],
        "features": ["features", "-m", DRAFT, "--text", os.path.join(SOURCE, ".clang-format"), "--normed", "-o", "OUT"],
        "perplexity": ["perplexity", "-m", DRAFT, "-f", os.path.join(SOURCE, "LICENSE")],
        "inspect": ["inspect", "-m", DRAFT],
        "estimate": ["estimate", "-m", DRAFT],
        "bench": ["bench", "-m", DRAFT, "-p", "1", "-n", "1", "-r", "1", "-t", "1"],
        "grammar": ["grammar", "explain", "-m", DRAFT, "--any-json"],
        "grammar --json": ["grammar", "check", "-m", DRAFT, "--regex", "a+", "--json"],
        "imatrix": ["imatrix", "-m", DRAFT, "-f", os.path.join(SOURCE, ".clang-format"), "-o", "OUT"],
        "quantize": ["quantize", DRAFT, "OUT", "Q8_0"],
        "merge": ["merge", DRAFT, "ADAPTER", "OUT"],
        "--help": ["--help"],
        "--version": ["--version"],
        "help": ["help", "run"],
    }

    def test_commands_are_all_here(self):
        listed = generate("--help").stdout.decode().split("Subcommands:\n")[1]
        names = {line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "}
        self.assertEqual(names, {name for name in self.COMMANDS if " " not in name and "-" not in name} - {"help"})

    def test_what_cannot_be_written_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            adapter = os.path.join(folder, "adapter.gguf")
            write_adapter(adapter, [("blk.0.attn_q.weight", 64, 64)])
            for name, command in self.COMMANDS.items():
                line = [part.replace("OUT", os.path.join(folder, "made.gguf")).replace("ADAPTER", adapter) for part in command]
                given = b'{"messages":[],"add_generation_prompt":true}' if name == "template" else b"Hello\n"
                for target in (">/dev/full", ">&-"):
                    done = subprocess.run(["sh", "-c", f'"$@" {target}', "sh", PROGRAM, *line], input=given,
                                          stderr=subprocess.PIPE, timeout=300)
                    self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1), (name, target, done.stderr))
                    self.assertRegex(done.stderr, b"^generate: cannot write to standard output", (name, target))

    def test_a_closed_output_is_no_file_of_the_program(self):
        # Else the first file that is opened would be standard output.
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "session")
            answer("run", "-m", DRAFT, "-p", "Once", "-n", "4", "--json", "--save-session", path)
            with open(path, "rb") as file:
                expected = file.read()
            subprocess.run(["sh", "-c", '"$@" >&-', "sh", PROGRAM, "run", "-m", DRAFT, "-p", "Once", "-n", "4", "--json",
                            "--save-session", path], stderr=subprocess.PIPE, timeout=300)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), expected)

    def test_places_are_looked_at_before_the_work(self):
        with tempfile.TemporaryDirectory() as folder:
            for place in (folder, os.path.join(folder, "no", "such"), os.path.join(DRAFT, "x"), ""):
                for command in (["run", "-p", "x", "--save-session"], ["bench", "--profile-svg"], ["inspect", "--graph"],
                                ["run", "-p", "x", "--draft-svg"], ["features", "--text", DRAFT, "--normed", "--output"]):
                    done = generate(*command, place, "-m", "/no/such.gguf")  # which is work, and would be told
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(f"{command[-1]} {place or chr(39) * 2}: ".encode(), done.stderr)


class Seeds(unittest.TestCase):
    def text(self, *options, command="run"):
        prompt = {"run": ["-p", "Once"], "chat": []}[command]
        done = generate(command, "-m", DRAFT, "-n", "40", *prompt, *options, stdin=b"Hello\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr.decode()

    def test_run_repeats_and_chat_does_not(self):
        self.assertEqual(self.text(), self.text("--seed", "0"))
        hot = ("--temp", "3", "--min-p", "0", "--top-k", "0", "--top-p", "1")  # hardly any two alike
        self.assertNotEqual(self.text(*hot, command="chat")[0], self.text(*hot, command="chat")[0])
        self.assertEqual(self.text("--seed", "5", command="chat"), self.text("--seed", "5", command="chat"))

    def test_a_random_seed_is_told(self):
        for asked in ("random", "-1"):
            text, said = self.text("--seed", asked)
            self.assertRegex(said, r"^seed: \d+\n$")
            self.assertEqual(self.text("--seed", said.split()[1])[0], text)
        text, said = self.text("--stats", command="chat")
        seed = said.split("seed ")[1].split()[0]
        self.assertEqual(self.text("--seed", seed, command="chat")[0], text)
        line = ("run", "-m", DRAFT, "-p", "Once", "-n", "9", "--json")
        self.assertEqual(answer(*line)["seed"], 0)
        self.assertEqual(answer(*line, "--seed", str(2**64 - 1))["seed"], 2**64 - 1)

    def test_others_are_refused(self):
        for seed in ("-2", "1.5", "x", "", str(2**64), "1e3", " 1"):
            done = generate("run", "-m", DRAFT, "-p", "x", "--seed", seed)
            self.assertEqual((done.returncode, b"--seed" in done.stderr), (2, True), (seed, done.stderr))


class Interrupts(unittest.TestCase):
    def test_what_there_is_is_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "session")
            process = subprocess.Popen([PROGRAM, "run", "-m", DRAFT, "-p", "Once", "-n", "1000000", "--ignore-eos",
                                        "--context-policy", "shift,4", "--save-session", path],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            first = os.read(process.stdout.fileno(), 1)  # it has begun
            process.send_signal(signal.SIGINT)
            rest, said = process.communicate(timeout=300)
            self.assertEqual((process.returncode, said), (130, b"generate: stopped\n"))
            again = answer("run", "-m", DRAFT, "-p", "", "-n", "3", "--json", "--load-session", path)
            self.assertEqual(len(again["tokens"]), 3)
            self.assertTrue(first + rest)


    def test_an_interrupted_prompt_keeps_the_talk(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([PROGRAM, "chat", "-m", DRAFT, "--regex", "yes|no"], stdin=slave, stderr=slave,
                                   start_new_session=True, stdout=subprocess.PIPE,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

        def read_until(text):
            said = b""
            while not said.endswith(text):
                said += os.read(master, 1)
            return said

        notice = b"Ctrl-C again or /exit quits\r\n> "
        read_until(b"\n> ")
        for _ in range(20):
            os.write(master, b"not this\x03")  # while the prompt is being written
            read_until(notice)
            os.write(master, b"Hello\n")
            self.assertRegex(process.stdout.readline(), b"^(yes|no)\n$")
            os.write(master, b"\x03")  # behind the answer, perhaps before the prompt
            read_until(notice)
            os.write(master, b"Hello\n")
            self.assertRegex(process.stdout.readline(), b"^(yes|no)\n$")
            read_until(b"\n> ")
        os.write(master, b"\x03")
        read_until(notice)
        os.write(master, b"\x03")
        out, _ = process.communicate(timeout=300)
        os.close(master)
        self.assertEqual((process.returncode, out), (-signal.SIGINT, b""))


class Help(unittest.TestCase):
    def test_names_that_are_nearly_right(self):
        for wrong, right in (("rnu", "run"), ("Chat", "chat"), ("tokenise", "tokenize"), ("benchmark", "bench")):
            done = generate(wrong, "--json")
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertEqual(done.stderr.decode(),
                             f"generate: no command '{wrong}', did you mean '{right}'? 'generate help' lists them\n")
        self.assertNotIn(b"mean", generate("xyzzyx").stderr)

    def test_help_is_a_command(self):
        self.assertEqual(generate("help").stdout, generate("--help").stdout)
        self.assertEqual(generate("help", "inspect").stdout, generate("inspect", "--help").stdout)
        self.assertEqual(generate("help", "nothing").returncode, 2)
        shown = " ".join(generate("help", "run").stdout.decode().split())
        self.assertIn("--temp", shown)
        self.assertRegex(shown, r"--window-rewind \S+ layers with a window .* \(-1 and up; default 256\)")
        self.assertRegex(shown, r"--window-copies \S+ most copies of .* \(0 and up; default 2\)")
        self.assertNotIn("0: they are text", shown)

    def test_files_need_no_option(self):
        self.assertEqual(answer("inspect", DRAFT, "--json"), answer("inspect", "-m", DRAFT, "--json"))
        self.assertEqual(answer("estimate", "--json", DRAFT), answer("estimate", "-m", DRAFT, "--json"))

    def test_an_estimate_takes_what_a_run_takes(self):
        """Where there is no device "auto" layers, as many as it has room for, are none; a number is refused."""
        for options, status in ((["--gpu-layers", "auto"], 0), (["--backend", "cpu", "--gpu-layers", "auto"], 0),
                                (["--gpu-layers", "0"], 0), (["--gpu-layers", "all"], 0), (["--gpu-layers", "3"], 2),
                                (["--gpu-layers", "some"], 2), (["--device", "1"], 1)):
            run = generate("run", "-m", DRAFT, "-p", "hi", "-n", "1", *options)
            estimate = generate("estimate", "-m", DRAFT, *options)
            self.assertEqual((run.returncode, estimate.returncode), (status, status), options)
            if status != 0:
                self.assertEqual(run.stderr, estimate.stderr)

    def test_an_estimate_says_for_how_many_positions_it_is(self):
        context = answer("inspect", DRAFT, "--json")["max_seq_len"]
        self.assertEqual(answer("estimate", DRAFT, "--json")["context"], context)
        self.assertEqual(answer("estimate", DRAFT, "--json", "--ctx", "64")["context"], 64)
        shown = generate("estimate", DRAFT).stdout.decode()
        self.assertTrue(shown.startswith(f"context: {context} positions\n"), shown)
        self.assertRegex(shown, r"\npeak +[0-9]+\.[0-9]{2} MiB\n")
        self.assertRegex(shown.splitlines()[-1], "--ctx N and --kv TYPE change")
        self.assertNotIn("--ctx", generate("estimate", DRAFT, "--ctx", "64").stdout.decode())

    def test_an_estimate_says_how_many_positions_fit(self):
        own = answer("inspect", DRAFT, "--json")["max_seq_len"]
        for positions in (1, 2, 100, own - 1, own):
            exact = answer("estimate", DRAFT, "--json", "--ctx", str(positions))
            fits = answer("estimate", DRAFT, "--json", "--fit", str(exact["peak"]))
            self.assertGreaterEqual(fits["context"], positions)
            self.assertEqual(fits["peak"], exact["peak"])
            if fits["context"] < own:
                more = answer("estimate", DRAFT, "--json", "--ctx", str(fits["context"] + 1))
                self.assertGreater(more["peak"], exact["peak"])
        self.assertEqual(answer("estimate", DRAFT, "--json", "--fit", "1G"), answer("estimate", DRAFT, "--json"))
        shown = generate("estimate", DRAFT, "--fit", "1M").stdout.decode()
        self.assertRegex(shown, r"^context: [0-9]+ positions\n")
        done = generate("estimate", DRAFT, "--fit", "1K")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), r"^generate: --fit 1.00 KiB: the model with one position takes [0-9.]+ KiB\n$")
        for arguments in (("--fit", "much"), ("--fit", "0"), ("--fit", "-1"), ("--fit", "1G", "--ctx", "10")):
            self.assertEqual(generate("estimate", DRAFT, *arguments).returncode, 2, arguments)

    def test_an_estimate_counts_the_head(self):
        """2 heads of keys and of values of 64 floats each, for a context of 1024; and no head with drafts off."""
        story = os.path.join(SOURCE, "examples/demo_model/story.gguf")
        eagle = os.path.join(SOURCE, "examples/demo_model/eagle3.gguf")
        plain, head = answer("estimate", story, "--json"), answer("estimate", story, "--json", "--eagle", eagle)
        self.assertEqual(head["cache"] - plain["cache"], 1024 * 2 * 2 * 64 * 4)
        self.assertGreater(head["weights"] - plain["weights"], 1e6)
        off = answer("estimate", story, "--json", "--eagle", eagle, "--draft", "off")
        self.assertEqual(off, plain)
        self.assertEqual(answer("estimate", story, "--json", "--draft", "suffix,layers:2"), plain)
        done = generate("estimate", story, "--draft", DRAFT)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"estimate '{DRAFT}' as a model of its own".encode(), done.stderr)

    def test_the_manual_has_every_option(self):
        page = subprocess.run([PROGRAM, "help", "--man"], capture_output=True, check=True).stdout.decode()
        words = subprocess.run([PROGRAM, "help", "--bash"], capture_output=True, check=True).stdout.decode()
        self.assertTrue(page.startswith('.TH GENERATE 1 '))
        for command in ("run", "chat", "inspect", "quantize", "merge"):
            text = generate("help", command).stdout.decode()
            self.assertIn(f".SS generate {command}", page)
            for option in re.findall(r"(?<=[ ,])--[a-z-]+", text):
                self.assertIn(option.replace("-", "\\-"), page)
                self.assertIn(option, words)
        # What an option takes is shown, and what the environment may say.
        self.assertTrue("\n.BI \"\\-n, \\-\\-tokens \" N\n" in page)
        for name in ("GEN_MODEL", "GEN_CPU"):
            self.assertTrue(f"\n.B {name}\n" in page)
        # Lines that begin so would be taken for requests.
        for line in page.splitlines():
            self.assertFalse(line.startswith("'"), line)
        complete = 'source /dev/stdin; COMP_WORDS=(generate %s); COMP_CWORD=%d; _generate; printf "%%s\\n" "${COMPREPLY[@]}"'
        for typed, expected in (("ch", ["chat"]), ("inspect --gr", ["--graph"]), ("help quan", ["quantize"])):
            done = subprocess.run(["bash", "-c", complete % (typed, len(typed.split()))], input=words.encode(),
                                  capture_output=True, check=True)
            self.assertEqual(done.stdout.decode().split(), expected)


class Errors(unittest.TestCase):
    def refused(self, part, *arguments, stdin=b"", environment=None, code=1):
        done = generate(*arguments, stdin=stdin, environment=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, b"")
        lines = done.stderr.decode().splitlines()
        self.assertTrue(lines[0].startswith("generate: "), lines)
        if len(lines) > 1:  # only what the parser refuses says where the options are listed
            self.assertEqual(code, 2)
            self.assertRegex(lines.pop(), r"^'generate help( [a-z]+)?' lists the (options|commands)$")
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(part, lines[0])

    def test_bad_files(self):
        self.refused("no/such.gguf", "run", "-m", "no/such.gguf", "-p", "x")
        self.refused("directory", "run", "-m", SOURCE, "-p", "x")
        self.refused("magic", "inspect", "-m", os.path.join(SOURCE, "LICENSE"))
        with open(DRAFT, "rb") as file:
            model = file.read()
        with tempfile.NamedTemporaryFile() as file:
            file.write(model.replace(b"llama", b"lambo", 1))
            file.flush()
            self.refused("lambo", "run", "-m", file.name, "-p", "x")
        with tempfile.NamedTemporaryFile() as file:
            file.write(model[:len(model) // 2])
            file.flush()
            self.refused(file.name, "run", "-m", file.name, "-p", "x")

    def test_bad_input(self):
        self.refused("tokens, the context only 32", "run", "-m", DRAFT, "--ctx", "32", "-p", "many words " * 60)
        self.refused("byte", "run", "-m", DRAFT, "-p", "-", stdin=b"ab\xff")
        self.refused("byte", "tokenize", "-m", DRAFT, stdin=b"\xc3")
        self.refused("4096", "logits", "-m", DRAFT, "--tokens", "1,4096")
        self.refused("--temp", "run", "-m", DRAFT, "-p", "x", "--temp", "-1", code=2)
        self.refused("temperature", "run", "-m", DRAFT, "-p", "x", "--temp", "2e6", code=2)
        self.refused("--tokens", "run", "-m", DRAFT, "-p", "x", "-n", "0", code=2)
        self.refused("'lookup' comes twice", "run", "-m", DRAFT, "-p", "x", "--draft", "lookup,lookup", code=2)
        self.refused("'layers:2' comes twice", "run", "-m", DRAFT, "-p", "x", "--draft", "layers:1,layers:2", code=2)
        self.refused(f"'{DRAFT}' must come last", "run", "-m", DRAFT, "-p", "x", "--draft", f"{DRAFT},suffix", code=2)
        self.refused("--text: cannot read '/nowhere'", "bench", "-m", DRAFT, "--draft", "lookup", "--text", "/nowhere")
        self.refused("pentium", "run", "-m", DRAFT, "-p", "x", environment={"GEN_CPU": "pentium"})

    def test_a_text_in_place_of_a_file_is_recognised(self):
        for text in ("hi there", "hello"):
            self.refused(f"there is no file '{text}'; a text is given with -p", "tokenize", text)
        self.refused("cannot open 'no/such.gguf'", "tokenize", "no/such.gguf")

    def test_a_text_that_cannot_be_read_is_named(self):
        for path, reason in (("/no/such.txt", "No such file or directory"), (SOURCE, "Is a directory")):
            self.refused(f"cannot read '{path}': {reason}", "perplexity", "-m", DRAFT, "-f", path)

    def test_a_text_without_an_end_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made.gguf")
            self.refused("'/dev/zero' is too long: a text may have 256 MiB", "perplexity", "-m", DRAFT, "-f", "/dev/zero")
            self.refused("'/dev/zero' is too long", "imatrix", "-m", DRAFT, "-f", "/dev/zero", "-o", made)
            self.assertEqual(os.listdir(folder), [])

    def test_the_help_of_quantize_has_every_type(self):
        done = generate("quantize", DRAFT, "/no/such", "Q9")
        types = done.stderr.decode().strip().split("not one of ")[1].split(", ")
        self.assertGreater(len(types), 10)
        shown = generate("help", "quantize").stdout.decode()
        for name in types:
            self.assertRegex(shown, rf"\b{name}\b")

    def test_imatrix_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            made, text = os.path.join(folder, "made.gguf"), os.path.join(SOURCE, "LICENSE")
            self.refused("no/such.txt", "imatrix", "-m", DRAFT, "-f", "no/such.txt", "-o", made)
            self.refused("no/such/out", "imatrix", "-m", DRAFT, "-f", text, "-o", "no/such/out")
            self.refused("is the file to read", "imatrix", "-m", DRAFT, "-f", text, "-o", DRAFT)
            self.refused("is the file to read", "imatrix", "-m", DRAFT, "-f", text, "-o", text)
            self.refused("has no tokens", "imatrix", "-m", DRAFT, "-f", "/dev/null", "-o", made)
            self.refused("--window", "imatrix", "-m", DRAFT, "-f", text, "-o", made, "--window", "1", code=2)
            most = answer("inspect", DRAFT, "--json")["max_seq_len"]
            self.refused(f"--window {most + 1} above {most}, the model's context", "imatrix", "-m", DRAFT, "-f", text, "-o", made,
                         "--window", str(most + 1))
            self.refused(f"--window {most + 1} above {most}, the model's context", "perplexity", "-m", DRAFT, "-f", text,
                         "--window", str(most + 1))
            self.refused("--output", "imatrix", "-m", DRAFT, "-f", text, code=2)
            self.refused("a context of 1 has no token that others precede", "perplexity", "-m", DRAFT, "-f", text, "--ctx", "1")
            self.assertEqual(os.listdir(folder), [])
            parts = [os.path.join(folder, f"m-0000{n}-of-00002.gguf") for n in (1, 2)]
            for part in parts:
                shutil.copy(DRAFT, part)
            self.refused("is the file to read", "imatrix", "-m", parts[0], "-f", text, "-o", parts[1])

    def test_quantize_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made.gguf")
            self.refused("Q5_K_M", "quantize", DRAFT, made, "Q9", code=2)
            self.refused("no/such.gguf", "quantize", "no/such.gguf", made, "Q8_0")
            self.refused("no/such/out.gguf", "quantize", DRAFT, "no/such/out.gguf", "Q8_0")
            self.refused("draft.gguf", "quantize", DRAFT, DRAFT, "Q8_0")
            self.refused("--importance: an empty file name", "quantize", DRAFT, made, "Q8_0", "--importance", "", code=2)
            self.assertEqual(os.listdir(folder), [])

    def test_help_promises_what_is_taken(self):
        text = generate("run", "--help").stdout.decode()
        self.assertNotIn("2147483647", text)
        lines = [line for line in text.split("\n  -") if re.match(r"[-\w,]+ N\b", line)]
        self.assertGreater(len(lines), 3)
        for line in lines:
            self.assertNotIn("0 and up", line)
            self.assertNotRegex(line, r"[:;] 0\b|0 or less")

    def test_help_shows_what_is_so_without_an_option(self):
        text = generate("help", "run").stdout.decode()
        for option in ("--xtc-threshold NUMBER=0.1 ", "--dry-base NUMBER=1.75 ", "--min-tokens NUMBER=0 ", "--dry-breaker TEXT ..."):
            self.assertIn(option, text)
        self.assertNotIn("(0 to 1)", text.split("--ignore-eos")[1].split("--")[0])

    def test_help_of_grammar_lists_the_options_of_grammars(self):
        text = generate("help", "grammar").stdout.decode()
        for line in ("regex_match: whether a text must match", "(whole, search; default whole)", "  json_space: ", "(-1 and up; default -1)", "(plain, any; default plain)"):
            self.assertIn(line, text)

    def test_bad_command_lines(self):
        self.refused("threads", "run", "-m", DRAFT, "-p", "x", "-t", "-1", code=2)
        self.refused("--prefix-cache keeps blocks of a pool: it needs --paged", "run", "-m", DRAFT, "-p", "x", "--prefix-cache", "100", code=2)
        self.refused("--ctx 5000 is above the model's context of 1024", "run", "-m", DRAFT, "-p", "x", "--ctx",
                     "5000", code=2)
        self.refused("--against: unknown cache kind", "perplexity", "-m", DRAFT, "--against", "fp7", code=2)
        self.refused("--kv", "run", "-m", DRAFT, "-p", "x", "--kv", "fp7", code=2)
        self.refused("--prompt", "run", "-m", DRAFT, code=2)
        self.refused('-p "Once upon a time"', "run", "-m", DRAFT, "Once", "upon", "a", "time", code=2)
        self.refused("'upon a time' belongs to no option", "run", "-m", DRAFT, "-p", "Once", "upon", "a", "time", code=2)
        self.refused("--frobnicate", "run", "-m", DRAFT, "-p", "Once", "--frobnicate", "x", code=2)
        for option in ("--ctx", "--prefix-cache", "--compressed"):
            for value in ("0", "-1", "x", "99999999999"):
                done = generate("run", "-m", DRAFT, "-p", "x", option, value)
                self.assertEqual(done.returncode, 2)
                self.assertIn(option, done.stderr.decode())
                self.assertLess(len(done.stderr), 200, done.stderr)
        for option in ("--state-snapshot-every", "--state-snapshot-budget", "--window-rewind", "--window-copies"):
            for value in ("-2", "x", "99999999999"):
                self.refused(f"{option}: ", "run", "-m", DRAFT, "-p", "x", option, value, code=2)
            self.assertEqual(generate("run", "-m", DRAFT, "-p", "x", "-n", "1", option, "0").returncode, 0)
        for option in ("--paged", "--tiered", "--context-policy"):
            self.refused(f"{option}: ", "run", "-m", DRAFT, "-p", "x", option, "1,,x", code=2)
        for draft, named in (("lookup,suffix,x", "'x'"), ("x", "'x'"), ("suffix,a,b", "'a,b'"), ("layers", "layers:N"),
                             ("lookup,layers:", "layers:N"), ("layers:0", "layers:N"), ("layers:x", "layers:N"),
                             ("lookup,", "comma")):
            done = generate("run", "-m", DRAFT, "-p", "x", "--draft", draft)
            self.assertEqual(done.returncode, 2, draft)
            self.assertIn(named, done.stderr.decode())
            self.assertLess(len(done.stderr), 200, done.stderr)
        self.refused("--draft: an exit after 99 of 4 layers, outside [1, 3]", "run", "-m", DRAFT, "-p", "x", "--draft", "layers:99", code=2)
        for option in (("--text", DRAFT), ("--temp", "1"), ("--gumbel",)):
            self.refused(f"{option[0]} requires --draft or --eagle", "bench", "-m", DRAFT, *option, code=2)
        self.refused("the file has no head that drafts", "run", "-m", DRAFT, "-p", "x", "--eagle", DRAFT)
        self.refused("--eagle", "run", "-m", DRAFT, "-p", "x", "--eagle", "/nowhere", code=2)
        self.refused("has no head that drafts", "run", "-m", DRAFT, "-p", "x", "--draft", "heads")
        self.refused("--top-p: ", "run", "-m", DRAFT, "-p", "x", "--top-p", "nan", code=2)
        self.refused("--top-n-sigma", "run", "-m", DRAFT, "-p", "x", "--top-n-sigma", "1", "--top-n-sigma", "2", code=2)
        self.refused("slide", "run", "-m", DRAFT, "-p", "x", "--context-policy", "slide", code=2)
        for top in ("-1", "-5", "x", "99999999999"):
            self.refused("--top", "logits", "-m", DRAFT, "--tokens", "1", "--top", top, code=2)
        for ids in ("", "x", "1.5", "-1", "99999999999"):
            self.refused("--tokens", "logits", "-m", DRAFT, "--tokens", ids, code=2)
        self.refused("TYPE", "quantize", DRAFT, "out.gguf", code=2)
        self.refused("context of 1024", "bench", "-m", DRAFT, "--depth", "1000", "-p", "20", "-n", "5")
        self.refused("1020 tokens and 5 more are over the context of 1024", "bench", "-m", DRAFT, "--sessions", "2", "-p", "1020",
                     "-n", "5")
        self.refused("one case", "bench", "-m", DRAFT, "--depth", "0,1", "--profile-svg", "no.svg")
        self.refused("subcommand", code=2)

    def test_a_model_without_a_template_is_refused_at_once(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            subprocess.run([RANDOM_MODEL, file.name, "--layers", "1", "--width", "256", "--ffn", "256", "--vocab", "1000",
                            "--heads", "4", "--kv-heads", "2", "--context", "200"], check=True, capture_output=True)
            self.refused("the model has no chat template; choose one with --chat-template", "chat", "-m", file.name,
                         stdin=b"one\ntwo\n")
            talk = generate("chat", "-m", file.name, "-n", "2", "--chat-template", "chatml", stdin=b"one\ntwo\n")
            self.assertEqual((talk.returncode, talk.stderr), (0, b""))

    def test_the_bundled_model_is_looked_for(self):
        done = answer("inspect", "--json")
        self.assertEqual(done["vocab_size"], 4096)
        self.refused("nowhere.gguf", "inspect", environment={"GEN_MODEL": "nowhere.gguf"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
