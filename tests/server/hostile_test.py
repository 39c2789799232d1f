#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server against requests drawn at random: all fields with right and wrong values, bytes that are changed, cut or sent in
pieces, clients that leave at every stage. Nothing is answered with 500, what is answered is whole and JSON, and afterwards
the server answers as before and ends well. It is meant for sanitizers; GEN_TRIALS says how much is sent.

usage: hostile_test.py SERVER GENERATE SOURCE_DIR
"""
import json
import os
import random
import re
import socket
import sys
import tempfile
import threading
import unittest

from server_client import Server, large_schema, of_answer

SERVER, _, SOURCE = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))

from adapter_files import write_adapter  # noqa: E402

TEXT, CHAT = "/v1/completions", "/v1/chat/completions"
TRIALS = int(os.environ.get("GEN_TRIALS", 20))
CLIENTS = 8
STATUSES = {200, 204, 400, 403, 404, 405, 408, 411, 413, 415, 416, 417, 431, 503, 505}

WORDS = ["", "a", "Once upon a time", "na\u00efve \U0001F408", "\u0000", "<|im_end|>", "\ud7ff\uffff", "x" * 3000, "e\u0301", "{", "null",
         "\\", "\"", "assistant", "text", "%s%n", "../", "1e400", " ", "\n\n"]
NUMBERS = [0, 1, -1, 2, 5, 20, 21, 4096, 2**31 - 1, 2**31, -2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**63, 0.5, -0.0, 1e-300,
           1e300, 1.5, 3.0, 99999999999999999999999999]
GRAMMARS = {
    "grammar": ['root ::= "a" | "b"', "root ::= root root | [a-z]", 'root ::= "x"{3,5000}', "root ::= <[5]> <[999999]>", "root ::= (",
                "root ::= <|im_end|>", "root ::= !<[3]>*", "root ::= [^\\x00-\\x7f]+", ""],
    "regex": ["[a-z]+", "(a|b)*c{2,9}", "(?=.*a.{9})(?=.*b.{9}).*", "\\p{L}+", "a{0,100000}", "(", "(?<!a)b", "[^]", "(a)\\1", ""],
    "lark": ['start: "a" /b+/', "start: start start | /[a-z]/", "start: %json {}", "%import common.NUMBER\nstart: NUMBER", "start:"],
    "tags": [{"tags": []}, {"tags": [{"begin": "e", "regex": "[0-9]", "end": "!"}]}, {"tags": [{"begin": "", "end": ""}]}, {"tags": 5}, {}],
}
SCHEMAS = [True, False, {}, {"type": "object"}, {"type": ["string", "null"], "maxLength": 5}, {"enum": [1, "a", None, {"b": []}]}, {"$ref": "#"},
           {"type": "array", "items": {"$ref": "#"}}, {"type": "string", "format": "uri", "maxLength": 100}, {"pattern": "^(a|b)*$"},
           {"type": "integer", "minimum": -5, "multipleOf": 3}, {"type": 5}, {"not": {}}, {"const": "x" * 500},
           {"type": "object", "properties": {"a": {"type": "number"}, "b": {"$ref": "#/properties/a"}}, "required": ["b"]},
           {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": {"type": "boolean"}}]}]


class Draw(random.Random):
    """Draws of requests."""

    def junk(self, depth=0):
        kind = self.randrange(8 if depth < 3 else 6)
        if kind == 6:
            return [self.junk(depth + 1) for _ in range(self.randrange(4))]
        if kind == 7:
            return {self.choice(WORDS)[:20]: self.junk(depth + 1) for _ in range(self.randrange(4))}
        return (None, self.random() < 0.5, self.choice(NUMBERS), self.choice(WORDS), self.uniform(-3, 3), self.randrange(-3, 30))[kind]

    def some(self, *right):
        """Mostly one of the right ones, called if it is a function; else anything."""
        value = self.choice(right) if self.random() < 0.97 else self.junk()
        return value() if callable(value) else value

    def tokens(self):
        return [self.randrange(4096) for _ in range(self.randrange(1, 6))]

    def message(self):
        out = {"role": self.some("user", "assistant", "system", "tool", "developer"),
               "content": self.some(lambda: self.choice(WORDS),
                                    lambda: [{"type": self.some("text"), "text": self.some(lambda: self.choice(WORDS))}])}
        for name, value in (("name", "Ann"), ("reasoning_content", "Hm"), ("tool_call_id", "x"), ("refusal", None), ("annotations", []),
                            ("tool_calls", [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}])):
            if self.random() < 0.05:
                out[name] = self.some(value)
        return out

    def request(self):
        """A path and the fields of a request to it, most of which are right."""
        chat = self.random() < 0.5
        body = {"messages": self.some(lambda: [self.message() for _ in range(self.randrange(1, 4))])} if chat else {
            "prompt": self.some(lambda: self.choice(WORDS), self.tokens, lambda: [self.choice(WORDS), self.tokens()])}
        sampling = {"temperature": (0, 0.7, 5), "top_p": (1, 0.9), "top_k": (0, 40), "min_p": (0, 0.1), "typical_p": (0.5, 1),
                    "presence_penalty": (0, 1), "frequency_penalty": (0, -1), "repetition_penalty": (1, 1.3), "mirostat_tau": (5,),
                    "xtc_probability": (0.5,), "dry_multiplier": (0.8,), "top_n_sigma": (1,), "min_new_tokens": (0, 3), "ignore_eos": (True,),
                    "fit_grammar": (True, False), "logit_bias": ({}, {"5": 100, "7": -100})}
        both = {"model": ("draft", "a"), "lora": ([], [{"id": 0}], [{"name": "a", "scale": 0.5}], [{"id": 1}]), "n": (1, 2), "seed": (1, -1, 2**64 - 1), "stop": ("a", ["a", "\n"], []), "stream": (True, False),
                "user": ("me",), "metadata": ({},)}
        of_chats = {"modalities": (["text"],), "tools": ([],), "tool_choice": ("auto", "none"), "logprobs": (True,),
                    "reasoning_effort": ("high",), "chat_template_kwargs": ({"enable_thinking": False}, {"a": [1]}),
                    "max_completion_tokens": (3,), "verbosity": ("medium",)}
        of_texts = {"echo": (False,), "best_of": (None,), "suffix": ("",), "logprobs": (0, 3, 20)}
        for fields in (sampling, both, of_chats if chat else of_texts):
            for name, values in fields.items():
                if self.random() < 0.1:
                    body[name] = self.some(*values)
        if body.get("stream") is True and self.random() < 0.5:
            body["stream_options"] = self.some({"include_usage": True}, {})
        if body.get("logprobs") is True:
            body["top_logprobs"] = self.some(0, 2, 20)
        if self.random() < 0.4:
            name = self.choice([*GRAMMARS, "response_format", "response_format", "response_format"])
            body[name] = self.some(*GRAMMARS[name]) if name in GRAMMARS else self.some(
                {"type": "json_object"}, lambda: large_schema(self.randrange(4), 300),
                lambda: {"type": "json_schema", "json_schema": {"name": "a", "schema": self.some(*SCHEMAS)}})
            for option, values in (("json_space", (0, 3)), ("json_order", ("any", "style")), ("json_style", ("any", "plain")),
                                   ("json_digits", (3,))):
                if self.random() < 0.1:
                    body[option] = self.some(*values)
        body["max_tokens"] = self.some(1, 5, 20)
        if self.random() < 0.03:
            body[self.choice(WORDS)[:30]] = self.junk()
        return (CHAT if chat else TEXT), json.dumps(body, ensure_ascii=self.random() < 0.5).encode(errors="replace")

    def mutated(self, data):
        data = bytearray(data)
        for _ in range(self.randrange(1, 4)):
            at = self.randrange(len(data) + 1)
            how = self.randrange(4)
            if how == 0:
                data[at:at + 1] = bytes([self.randrange(256)])
            elif how == 1:
                del data[at:at + self.randrange(1, 30)]
            elif how == 2:
                data[at:at] = bytes(self.randrange(256) for _ in range(self.randrange(1, 5)))
            else:
                part = data[at:at + self.randrange(1, 40)]
                data[at:at] = part * self.randrange(1, 50)
        return bytes(data)

    def http(self):
        """Bytes of a request, and whether they are a proper one of HTTP."""
        path, body = self.request()
        proper = True
        if self.random() < 0.1:
            body = self.mutated(body)
        lines = [self.some(f"POST {path} HTTP/1.1") if self.random() < 0.1 else f"POST {path} HTTP/1.1", "Host: localhost"]
        if self.random() < 0.3:
            lines.append(self.choice(["Content-Type: application/json", "Expect: 100-continue", "Connection: close", "X: " + "a" * 9000,
                                      "Accept-Encoding: gzip", "Content-Type: text/plain", "Origin: http://evil.example"]))
        if self.random() < 0.3:
            size = self.randrange(1, 200)
            lines.append("Transfer-Encoding: chunked")
            body = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + size]), body[i:i + size]) for i in range(0, len(body), size)) + b"0\r\n\r\n"
        else:
            lines.append(f"Content-Length: {len(body)}")
        data = "\r\n".join(map(str, [*lines, "", ""])).encode(errors="replace") + body
        if self.random() < 0.15:
            data, proper = self.mutated(data), False
        return data, proper


class Client(threading.Thread):
    def __init__(self, port, seed, rounds):
        super().__init__()
        self.port, self.draw, self.rounds = port, Draw(seed), rounds
        self.seen, self.failure = {}, None

    def run(self):
        for _ in range(self.rounds):
            data, proper = self.draw.http()
            try:
                self.act(data, proper)
            except ConnectionError:
                pass  # who sends nonsense may be left
            except BaseException as failure:
                self.failure = (repr(failure), data[:3000])
                return

    def act(self, data, proper):
        how = self.draw.randrange(8)
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
            if how == 0:  # leaves within the request
                connection.sendall(data[:self.draw.randrange(len(data) + 1)])
                return self.note("cut")
            if how == 1:  # leaves soon after
                connection.sendall(data)
                connection.settimeout(self.draw.random() * 0.03)
                try:
                    connection.recv(self.draw.randrange(1, 2000))
                except TimeoutError:
                    pass
                return self.note("left")
            if how == 2:  # in pieces
                for at in range(0, len(data), 200):
                    connection.sendall(data[at:at + 200])
            else:  # whole, once or twice
                connection.sendall(data * (2 if how == 3 and len(data) < 20000 else 1))
            try:
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # refused, and closed meanwhile
                return self.note("cut")
            answer = b""
            while part := connection.recv(65536):
                answer += part
        self.check(answer.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b""), proper, twice=how == 3)

    def note(self, what):
        self.seen[what] = self.seen.get(what, 0) + 1

    def check(self, answer, proper, twice):
        statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", answer)]
        assert STATUSES.issuperset(statuses), answer[:2000]
        assert statuses or not proper, "no answer"
        for status in statuses:
            self.note(status)
        if not proper or twice:
            return
        head, body = answer.split(b"\r\n\r\n", 1)
        if b"Transfer-Encoding: chunked" in head:
            data = b""
            while body:
                size, rest = body.split(b"\r\n", 1)
                data, body = data + rest[:int(size, 16)], rest[int(size, 16) + 2:]
            body = data
        if b"text/event-stream" in head:
            events = [event[6:] for event in body.replace(b":\n\n", b"").split(b"\n\n")[:-1]]
            assert events[-1] == b"[DONE]" or "error" in json.loads(events[-1]), answer[-2000:]
            for event in events[:-1]:
                json.loads(event)
        elif body.strip():  # one that fails after its first token is cut
            assert json.loads(body).keys() & {"choices", "error"}, answer[:2000]


class Hostile(unittest.TestCase):
    def test_nothing_hurts(self):
        seen = {}
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        adapter = os.path.join(folder.name, "a.gguf")
        write_adapter(adapter, [("blk.0.attn_q.weight", 64), ("blk.3.attn_output.weight", 64)], width=64)
        for options in ((), ("--paged", "4", "--prefix-cache", "64", "--lora", adapter), ("--draft", "lookup", "--kv", "q4", "--parallel", "3", "--queue", "5", "--lora", adapter)):
            with Server(SERVER, SOURCE, "--max-body", "64", "--max-tokens", "40", *options) as server:
                body = {"prompt": "Once upon a time", "max_tokens": 20, "seed": 1}
                expected = of_answer(server.post(TEXT, body)[1])
                clients = [Client(server.port, 1000 * len(options) + seed, TRIALS) for seed in range(CLIENTS)]
                for client in clients:
                    client.start()
                for client in clients:
                    client.join()
                self.assertEqual([client.failure for client in clients if client.failure], [])
                server.wait_until_idle()
                self.assertEqual(of_answer(server.post(TEXT, body)[1]), expected)
                for client in clients:
                    for what, count in client.seen.items():
                        seen[what] = seen.get(what, 0) + count
        print(dict(sorted(seen.items(), key=str)))
        self.assertTrue({200, 400, "cut", "left"} <= set(seen), seen)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
