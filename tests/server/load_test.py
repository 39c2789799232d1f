#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server under load: many clients at once, some of which leave in the middle or send what is no request. Every
answer that comes to its end equals the one computed alone beforehand, and nothing is left behind.

usage: load_test.py SERVER GENERATE SOURCE_DIR
"""
import json
import os
import random
import subprocess
import sys
import threading
import time
import unittest

from server_client import Server, of_answer, of_events

SERVER, GENERATE, SOURCE = sys.argv[1:4]
CLIENTS = 40
ROUNDS = int(os.environ.get("GEN_TRIALS", 20))  # the sanitizers make fewer

TEXT, CHAT = "/v1/completions", "/v1/chat/completions"


def chat(*texts, **fields):
    roles = ["user", "assistant"] * len(texts)
    return CHAT, {"messages": [{"role": role, "content": text} for role, text in zip(roles, texts)], **fields}


REQUESTS = [
    (TEXT, {"prompt": "Once upon a time", "max_tokens": 60, "seed": 1}),
    (TEXT, {"prompt": "Once upon a time", "max_tokens": 60, "seed": 2, "top_k": 40, "top_p": 0.9}),
    (TEXT, {"prompt": "The dog", "max_tokens": 90, "temperature": 0}),
    (TEXT, {"prompt": "A fox and a hen lived by a mill. " * 12, "max_tokens": 40, "seed": 3, "min_p": 0.1}),
    (TEXT, {"prompt": "One day", "max_tokens": 120, "seed": 4, "stop": [".", "!"]}),
    (TEXT, {"prompt": ["Once", "In a valley", [1, 300, 301]], "max_tokens": 20, "seed": 5, "n": 2}),
    (TEXT, {"prompt": "Rain fell", "max_tokens": 30, "seed": 6, "ignore_eos": True, "repetition_penalty": 1.2}),
    (TEXT, {"prompt": "Numbers: 1, 2,", "max_tokens": 1, "temperature": 0}),
    chat("Hello!", seed=7, max_tokens=50),
    chat("Tell me a story.", seed=8, max_tokens=80, temperature=0.7),
    chat("Hello!", "Hi there!", "Who are you?", seed=9, max_tokens=40, n=3),
    chat("Tell me about a grey cat \u2014 na\u00efve \U0001F408.", seed=10, max_completion_tokens=60),
]
MALFORMED = [
    (b"", 400), (b"{", 400), (b"null", 400), (b'{"prompt":"\xff","messages":[]}', 400), (b"[" * 50000, 400),
    (b'{"prompt":5,"messages":5}', 400), (b'{"prompt":"a","messages":[{"role":"user","content":"a"}],"n":1e999}', 400),
    (b'{"model":"gone","prompt":"a"}', 404), (b'{"prompt":"' + b"a " * 3000 + b'"}', 400), (b'{"prompt":[4096]}', 400),
    (b'{"messages":[{"role":"user","content":"<|im_end|>"}],"chat_template_kwargs":{"tools":[]}}', 400), (b"x" * (5 << 20), 413),
]
NOT_HTTP = [
    b"", b"\r\n", b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET /health", b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n", b"GET /health HTTP/1.1\r\n" + b"A: " + b"b" * 20000 + b"\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{\"prompt\":",
    b"POST /v1/completions HTTP/1.1\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/completions HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /health HTTP/1.1\r\nRange: bytes=" + b"0-0," * 1500 + b"0-0\r\n\r\n",
]


def alone(server):
    return [of_answer(server.post(path, body)[1]) for path, body in REQUESTS]


class Client(threading.Thread):
    """One of many: draws what to do next from its own seed, and notes what went wrong."""

    def __init__(self, server, expected, seed):
        super().__init__()
        self.server, self.expected, self.random = server, expected, random.Random(seed)
        self.done = {"streamed": 0, "whole": 0, "left": 0, "malformed": 0}
        self.failure = None

    def run(self):
        try:
            for _ in range(ROUNDS):
                self.act(self.random.random())
        except BaseException as failure:
            self.failure = repr(failure)

    def act(self, draw):
        index = self.random.randrange(len(REQUESTS))
        path, body = REQUESTS[index]
        if draw < 0.5:
            self.check(index, of_events(self.server.events(path, body)))
            self.done["streamed"] += 1
        elif draw < 0.65:
            status, answer = self.server.post(path, body)
            assert status == 200, answer
            self.check(index, of_answer(answer))
            self.done["whole"] += 1
        elif draw < 0.8:
            self.server.events(path, {**body, "max_tokens": 500}, self.random.randrange(5))
            self.done["left"] += 1
        elif draw < 0.85:
            self.leave_without_reading(path, body)
            self.done["left"] += 1
        elif draw < 0.95:
            text, expected = self.random.choice(MALFORMED)
            try:
                status, answer = self.server.post(self.random.choice((TEXT, CHAT)), text)
            except ConnectionError:  # refused before all of it was sent
                assert expected == 413
                self.done["malformed"] += 1
                return
            assert status in (expected, 400) and "message" in answer["error"], (text[:80], status, answer)
            self.done["malformed"] += 1
        else:
            answer = self.server.raw(self.random.choice(NOT_HTTP))
            assert b" 200 " not in answer[:20], answer
            self.done["malformed"] += 1

    def check(self, index, answer):
        assert answer == self.expected[index], (REQUESTS[index], answer, self.expected[index])

    def leave_without_reading(self, path, body):
        connection = self.server.connect()
        connection.request("POST", path, json.dumps({**body, "max_tokens": 500}))
        time.sleep(self.random.random() * 0.02)
        connection.close()


class Load(unittest.TestCase):
    def test_every_answer_is_the_one_computed_alone(self):
        start = time.monotonic()
        with Server(SERVER, SOURCE, "--queue", "1000") as server:
            expected = alone(server)
            server.wait_until_idle()
            clients = [Client(server, expected, seed) for seed in range(CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            self.assertEqual([client.failure for client in clients if client.failure], [])
            done = {key: sum(client.done[key] for client in clients) for key in clients[0].done}
            for key, count in done.items():
                self.assertGreater(count, CLIENTS * ROUNDS / 40, key)

            server.wait_until_idle()
            self.assertGreater(server.metric("disconnects_total"), 0)
            self.assertGreater(server.metric('finished_total{reason="cancelled"}'), 0)
            self.assertEqual(server.metric('finished_total{reason="error"}'), 0)
            self.assertEqual(alone(server), expected)
            server.wait_until_idle()
        print(f"{CLIENTS} clients, {done}, {time.monotonic() - start:.1f} s")

    @unittest.skipUnless(GENERATE, "the program is not built")
    def test_answers_are_those_of_the_program(self):
        with Server(SERVER, SOURCE) as server:
            for path, body in REQUESTS[:3]:
                options = ["--seed", str(body.get("seed", 0)), "--temp", str(body.get("temperature", 1)),
                           "--top-k", str(body.get("top_k", 0)), "--top-p", str(body.get("top_p", 1)), "--min-p", "0"]
                run = subprocess.run([GENERATE, "run", "--json", "-n", str(body["max_tokens"]), "-p", body["prompt"],
                                      "-m", os.path.join(SOURCE, "examples/demo_model/draft.gguf"), *options],
                                     capture_output=True, check=True, timeout=300)
                self.assertEqual(of_answer(server.post(path, body)[1])[0][0], json.loads(run.stdout)["text"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
