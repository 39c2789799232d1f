#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's adapters: by a request's model and by its lora, with others at the same time, as lists, and refused.

usage: lora_test.py SERVER GENERATE SOURCE_DIR
"""
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

from server_client import Server, of_answer, of_events

SERVER, GENERATE, SOURCE = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))

from adapter_files import write_adapter  # noqa: E402

TEXT, CHAT = "/v1/completions", "/v1/chat/completions"
PROMPTS = ["Once upon a time", "The dog and the cat sat by the old mill. " * 12]
MODEL = os.path.join(SOURCE, "examples/demo_model/draft.gguf")


def text(prompt=PROMPTS[0], **fields):
    return TEXT, {"prompt": prompt, "max_tokens": 24, "temperature": 0, "ignore_eos": True, **fields}


def chat(**fields):
    return CHAT, {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 24, "temperature": 0, **fields}


class Lora(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # Names in an order that is no other's: not that of their files, nor of the alphabet.
        cls.names = ["tone", "a b/c", "half", "fourth", "fifth"]
        files = [os.path.join(cls.folder.name, name) for name in ("tone.gguf", "x=y.gguf", "third.gguf", "fourth.gguf", "fifth.gguf")]
        for seed, file in enumerate(files):
            write_adapter(file, [("blk.0.attn_q.weight", 64), ("blk.1.attn_output.weight", 64), ("blk.2.attn_k.weight", 32)], seed, 2,
                          width=64)
        cls.files = files
        options = [files[0], "a b/c=" + files[1], "half=" + files[2] + ":0.5", files[3], files[4]]
        cls.options = [part for option in options for part in ("--lora", option)]
        cls.server = Server(SERVER, SOURCE, *cls.options, "--paged", "2048", "--prefix-cache", "16384")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def said(self, path, body):
        status, answer = self.server.post(path, body)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["model"], body.get("model") or "draft")
        return of_answer(answer)

    def test_every_way_to_name_one(self):
        base = self.said(*text())
        by_model = {name: self.said(*text(model=name)) for name in self.names}
        self.assertEqual(len({str(answer) for answer in [base, *by_model.values()]}), 6)
        self.assertEqual(self.said(*text(model="draft")), base)
        for id, name in enumerate(self.names):
            for lora in ([{"id": id}], [{"name": name, "scale": 1}], [{"name": name}, {"id": (id + 1) % 5, "scale": 0}]):
                self.assertEqual(self.said(*text(lora=lora)), by_model[name], lora)
        # It replaces the model's choice, also by none.
        for lora, wanted in (([{"id": 1}], by_model["a b/c"]), ([], base), ([{"name": "tone", "scale": 0.0}], base),
                             (None, by_model["tone"])):
            self.assertEqual(self.said(*text(model="tone", lora=lora)), wanted, lora)
        # The file's scale multiplies the request's.
        both = self.said(*text(lora=[{"id": 0, "scale": 2}, {"id": 2, "scale": -1.5}]))
        self.assertEqual(both, self.said(*text(lora=[{"name": "half", "scale": -1.5}, {"name": "tone", "scale": 2.0}])))
        self.assertNotIn(both, [base, *by_model.values()])

    def test_the_scales_are_those_of_the_program(self):
        if not GENERATE:
            self.skipTest("the program is not built")
        for lora, files in (([{"id": 2}], [":0.5"]), ([{"id": 2, "scale": 3}], [":1.5"]), ([{"id": 2, "scale": -2}, {"id": 0}], [":-1", ""])):
            options = [part for file, scale in zip((self.files[2], self.files[0]), files) for part in ("--lora", file + scale)]
            done = subprocess.run([GENERATE, "run", "-m", MODEL, "-p", PROMPTS[0], "-n", "24", "--temp", "0", "--json", "--ignore-eos", *options],
                                  capture_output=True, check=True)
            self.assertEqual(self.said(*text(lora=lora))[0][0], json.loads(done.stdout)["text"], lora)

    def test_together_as_alone(self):
        """Base and adapters at once, in one batch and with shared prefixes: each has the answer that it has alone."""
        kinds = [{}, {"model": "tone"}, {"model": "a b/c"}, {"lora": [{"id": 0}, {"id": 1, "scale": 0.5}]}]
        requests = [make(**kind, **more) for kind in kinds
                    for make, more in ((text, {}), (text, {"prompt": PROMPTS, "n": 2, "temperature": 1, "seed": 3}), (chat, {}))]
        alone = []
        for option in ([], self.options):  # the base has the same without any adapter
            with Server(SERVER, SOURCE, *option) as server:
                for path, body in requests[:3] if not option else requests:
                    status, answer = server.post(path, body)
                    self.assertEqual(status, 200, answer)
                    alone.append(of_answer(answer))
        self.assertEqual(alone[:3], alone[3:6])
        alone = alone[3:]
        self.assertEqual(len({str(answer) for answer in alone}), len(alone))
        failures = []

        def ask(index, stream):
            path, body = requests[index]
            try:
                if stream:
                    events = self.server.events(path, body)
                    self.assertEqual({event["model"] for event in events}, {body.get("model") or "draft"})
                    self.assertEqual(of_events(events), alone[index], body)
                else:
                    self.assertEqual(self.said(path, body), alone[index], body)
            except BaseException as failure:
                failures.append(repr(failure))

        for _ in range(3):  # the later ones find prefixes
            threads = [threading.Thread(target=ask, args=(index, stream)) for index in range(len(requests)) for stream in (False, True)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        self.assertGreater(self.server.metric("prompt_cached_tokens_total"), 0)

    def test_lists(self):
        listed = self.server.json("/v1/models")
        model, *adapters = listed["data"]
        self.assertEqual((listed["object"], model["id"]), ("list", "draft"))
        self.assertNotIn("parent", model)
        self.assertEqual([one["id"] for one in adapters], self.names)
        for one in adapters:
            self.assertEqual(one, {**model, "id": one["id"], "parent": "draft"})
        self.assertEqual(self.server.json("/v1/models/a%20b%2Fc"), adapters[1])
        self.assertEqual(self.server.json("/v1/models/draft"), model)
        status, body = self.server.get("/v1/models/third")
        self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "model_not_found"))
        self.assertEqual(self.server.json("/lora-adapters"), [{"id": id, "name": name, "scale": 0} for id, name in enumerate(self.names)])
        self.assertEqual(self.server.post("/lora-adapters", [])[0], 405)

    def test_refused_requests(self):
        for fields, status, param, part in (
                ({"model": "third"}, 404, "model", "no model 'third'; there is 'draft'"),
                ({"model": ""}, 404, "model", "no model ''"),
                ({"model": self.files[0]}, 404, "model", "no model"),
                ({"lora": "tone"}, 400, "lora", "not a string"),
                ({"lora": [{"id": 5}]}, 400, "lora[0].id", "5, outside 0 to 4"),
                ({"lora": [{"id": 0}, {"name": "draft"}]}, 400, "lora[1].name", "'draft'"),
                ({"lora": [{"id": 0}, {"name": "tone", "scale": 0}]}, 400, "lora[1]", "'tone' for the second time"),
                ({"lora": [{"id": id} for id in range(5)]}, 400, "lora", "5 adapters"),
                ({"lora": [{"id": 0, "scale": 1e300}]}, 400, "lora[0].scale", "1e+300")):
            for path, body in (text(**fields), chat(**fields), text(**fields, stream=True)):
                got, answer = self.server.post(path, body)
                self.assertEqual((got, answer["error"]["param"]), (status, param), answer)
                self.assertIn(part, answer["error"]["message"])
        # Five fit if one of them has no effect.
        self.said(*text(lora=[{"id": id, "scale": 0 if id == 2 else 1} for id in range(5)]))
        with Server(SERVER, SOURCE) as server:
            status, answer = server.post(*text(lora=[{"id": 0}]))
            self.assertEqual((status, answer["error"]["param"]), (400, "lora"), answer)
            self.assertEqual(server.post(*text(lora=[]))[0], 200)
            self.assertEqual(server.json("/lora-adapters"), [])

    def test_refused_when_they_run(self):
        """Mixes that only the model can judge: the answer names 'lora', whole or streamed, beside others in the same steps."""
        with tempfile.TemporaryDirectory() as folder:
            late = os.path.join(folder, "late.gguf")
            write_adapter(late, [("blk.0.attn_q.weight", 64)], 9, 2, width=64, tokens=[7, 8])
            with Server(SERVER, SOURCE, "--lora", self.files[0] + ":2", "--lora", late) as server:
                base = of_answer(server.post(*text())[1])
                for lora, part in (([{"id": 0, "scale": 1e38}], "these adapters and scales logits of row"),
                                   ([{"id": 0, "scale": -1e15}], "not finite"), ([{"id": 0, "scale": 3e38}], "scales 2 and 3e+38"),
                                   ([{"id": 0}, {"id": 1}], '"late" is activated')):
                    others = []
                    thread = threading.Thread(target=lambda: others.extend(of_answer(server.post(*text())[1]) == base for _ in range(3)))
                    thread.start()
                    for path, body in (text(lora=lora), chat(lora=lora)):
                        status, answer = server.post(path, body)
                        self.assertEqual(status, 400, answer)
                        streamed = server.events(path, body)[-1]
                        for error in (answer["error"], streamed["error"]):
                            self.assertEqual((error["param"], error["type"]), ("lora", "invalid_request_error"), error)
                            self.assertIn(part, error["message"])
                    thread.join()
                    self.assertEqual(others, [True] * 3)
        # An adapter that fails alone is the server's.
        with Server(SERVER, SOURCE, "--lora", self.files[0] + ":1e38") as server:
            status, answer = server.post(*text(model="tone"))
            self.assertEqual((status, answer["error"]["param"]), (500, None), answer)

    def test_refused_options(self):
        tone, other = self.files[:2]
        for options, code, part in ((["--lora", tone, "--lora", tone], 2, "'tone'"),
                                    (["--lora", tone, "--lora", "tone=" + other], 2, "'tone'"),
                                    (["--lora", "draft=" + tone], 2, "'draft' is the model's name"),
                                    (["--lora", tone, "--name", "tone"], 2, "'tone' is the model's name"),
                                    (["--lora", "=" + tone], 2, "0 bytes"), (["--lora", "a=/nothing.gguf"], 1, "/nothing.gguf"),
                                    (["--lora", MODEL.replace("draft", "story")], 1, "story.gguf"),
                                    (["--lora", tone + ":x"], 2, f"--lora: {tone}: the scale x is not a number"),
                                    (["--lora", f"a={tone}:nan"], 2, f"--lora: {tone}: the scale nan is outside")):
            done = subprocess.run([SERVER, "-m", MODEL, "--port", "0", *options], capture_output=True)
            said = done.stderr.decode()
            self.assertEqual((done.returncode, done.stdout, said.count("\n")), (code, b"", 1), (options, said))
            self.assertIn(part, said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
