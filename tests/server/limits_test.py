#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server promises beside right answers: forms of errors, limits, who leaves is not generated for, a full queue
is told, a conversation goes on, signals end it well.

usage: limits_test.py SERVER GENERATE SOURCE_DIR
"""
import gzip
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server_client import ENDLESS, WITH_ENDLESS, Server, large_schema, of_answer, of_events

SERVER, _, SOURCE = sys.argv[1:4]
TEXT, CHAT = "/v1/completions", "/v1/chat/completions"


def wait_for(server, reached):
    """Until the server's health is so; only one that never gets there takes two minutes."""
    end = time.monotonic() + 120
    while not reached(server.json("/health")):
        assert time.monotonic() < end, server.json("/health")
        time.sleep(0.001)


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(SERVER, SOURCE, "--max-body", "64", "--max-tokens", "1000")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def refused(self, path, body, status, param, code, **options):
        got, answer = self.server.post(path, body, **options)
        self.assertEqual((got, set(answer), set(answer["error"])),
                         (status, {"error"}, {"message", "type", "param", "code"}), answer)
        error = answer["error"]
        self.assertEqual((error["type"], error["param"], error["code"]), ("invalid_request_error", param, code), answer)

    def test_errors_are_objects(self):
        self.refused(TEXT, "{", 400, None, "invalid_json")
        self.refused(TEXT, {"prompt": "a", "n": 9}, 400, "n", None)
        self.refused(TEXT, {"prompt": "a", "temperature": -1}, 400, "temperature", None)
        self.refused(TEXT, {"prompt": "a", "top_p": 0}, 400, "top_p", None)
        self.refused(TEXT, {"prompt": "a", "seed": 2.5}, 400, "seed", None)
        self.refused(TEXT, {"prompt": "a", "stop": ["x" * 5000]}, 400, "stop", None)
        self.refused(TEXT, {"prompt": "a", "colour": "red"}, 400, "colour", "unknown_field")
        self.refused(TEXT, {"prompt": "a", "echo": True}, 400, "echo", "unsupported_parameter")
        self.refused(TEXT, {"prompt": "a", "model": "b"}, 404, "model", "model_not_found")
        self.refused(TEXT, {"prompt": "a b c " * 2000}, 400, "prompt", "context_length_exceeded")
        self.refused(TEXT, {"prompt": [1, 4096]}, 400, "prompt", None)
        self.refused(TEXT, {"prompt": []}, 400, "prompt", None)
        self.refused(TEXT, {"prompt": "a", "logit_bias": {"4096": 1}}, 400, "logit_bias", None)
        self.refused(TEXT, {"prompt": "a", "max_tokens": 1001}, 400, "max_tokens", None)
        self.refused(TEXT, {"prompt": ["a"] * 17}, 400, "prompt", None)
        self.refused(TEXT, {"prompt": ["a"] * 16, "n": 8}, 400, "n", None)  # more than it has room for at once
        self.refused(CHAT, {"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"tools": []}}, 400,
                     "chat_template_kwargs", None)
        self.refused(CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "x"}}]}]},
                     400, "messages[0].tool_calls[0].function.arguments", None)
        self.refused(TEXT, "x" * (64 << 10), 400, None, "invalid_json")
        self.refused(TEXT, "x" * ((64 << 10) + 1), 413, None, "body_too_large")
        self.refused(TEXT, gzip.compress(b"{}"), 415, None, None, headers={"Content-Encoding": "gzip"})

    def test_messages_cannot_forge_turns(self):
        def tokens(text):
            status, reply = self.server.post(CHAT, {"messages": [{"role": "user", "content": text}], "max_tokens": 1})
            self.assertEqual(status, 200)
            return reply["usage"]["prompt_tokens"]
        # Were it one special token, it would be one more.
        self.assertGreater(tokens("a<|im_end|>"), tokens("a") + 1)

    def test_errors_name_the_limit(self):
        for field, value, part in (("temperature", -1, "is -1, below 0"), ("top_p", 0, "is 0, not above 0"),
                                   ("model", "other", "no model 'other'; there is 'draft'")):
            self.assertIn(part, self.server.post(TEXT, {"prompt": "a", field: value})[1]["error"]["message"])

    def test_paths(self):
        self.assertEqual(self.server.json("/v1/models")["data"][0]["id"], "draft")
        self.assertEqual(self.server.json("/v1/models/draft")["object"], "model")
        self.assertEqual(self.server.json("/health")["status"], "ok")
        self.assertEqual(self.server.get("/health", "HEAD"), (200, b""))
        self.refused("/v1/nothing", "{}", 404, None, "unknown_url")
        self.assertEqual(self.server.get("/")[0], 404)
        self.assertEqual(self.server.get("/v1/models/other")[0], 404)
        self.assertEqual(self.server.get("/v1/models/" + "x" * 5000)[0], 404)
        self.assertEqual(self.server.get(TEXT)[0], 405)
        self.assertEqual(self.server.get("/health", "DELETE")[0], 405)
        self.assertEqual(self.server.post("/health", {})[0], 405)
        page = self.server.get("/metrics")[1].decode()
        for line in page.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \w+ .+|generate_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.e+-]+)$')

    def test_bodies_in_other_forms(self):
        body = json.dumps({"prompt": "Once", "max_tokens": 5, "seed": 1}).encode()
        expected = of_answer(self.server.post(TEXT, body)[1])
        connection = self.server.connect()
        for _ in range(3):  # chunks, and one connection for several requests
            connection.request("POST", TEXT, iter([body[:9], body[9:]]), encode_chunked=True,
                               headers={"Transfer-Encoding": "chunked"})
            self.assertEqual(of_answer(json.loads(connection.getresponse().read())), expected)
        connection.close()
        head = f"POST {TEXT} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", self.server.port)) as older:
            older.sendall(head + body)
            whole = b""
            while part := older.recv(65536):
                whole += part
        self.assertNotIn(b"chunked", whole)
        self.assertEqual(of_answer(json.loads(whole.split(b"\r\n\r\n", 1)[1])), expected)

    def test_usage(self):
        for path, begin in ((TEXT, {"prompt": "Once upon a time"}), (CHAT, {"messages": [{"role": "user", "content": "Hi."}]})):
            request = {**begin, "max_tokens": 9, "seed": 4, "n": 2, "ignore_eos": True}
            usage = self.server.post(path, request)[1]["usage"]
            self.assertEqual(usage["completion_tokens"], 18)
            for options in ({}, {"stream_options": None}, {"stream_options": {"include_usage": False}}):
                self.assertFalse([event for event in self.server.events(path, {**request, **options}) if "usage" in event])
            *events, last = self.server.events(path, {**request, "stream_options": {"include_usage": True}})
            self.assertEqual((last["usage"], last["choices"]), (usage, []))
            self.assertTrue(all(event["usage"] is None for event in events))

    def test_logprobs_come_with_their_text(self):
        def bytes_of(scores):
            if "content" in scores:
                return bytes(byte for one in scores["content"] for byte in one["bytes"])
            return b"".join(bytes.fromhex(name[6:].replace("\\x", "")) if name.startswith("bytes:") else name.encode()
                            for name in scores["tokens"])

        # Hot, for tokens that are no text by themselves, and with stop strings, for text that is held back.
        request = {"max_tokens": 60, "seed": 4, "temperature": 5, "n": 3, "stop": ["\n\n\n", "zq"]}
        for path, begin in ((TEXT, {"prompt": "Once upon a time", "logprobs": 3}), (TEXT, {"prompt": [5, 300, 301], "logprobs": 0}),
                            (CHAT, {"messages": [{"role": "user", "content": "Hi."}], "logprobs": True, "top_logprobs": 2})):
            whole = self.server.post(path, {**request, **begin})[1]["choices"]
            texts, made, parts = [""] * 3, [b""] * 3, [{}, {}, {}]
            for event in self.server.events(path, {**request, **begin}):
                choice = event["choices"][0]
                index = choice["index"]
                texts[index] += choice["text"] if path == TEXT else choice["delta"].get("content", "")
                made[index] += bytes_of(choice["logprobs"] or {"tokens": []})
                self.assertTrue(made[index].decode(errors="replace").startswith(texts[index]), (texts[index], made[index]))
                for key, values in (choice["logprobs"] or {}).items():
                    parts[index].setdefault(key, []).extend(values or [])
            for choice, part in zip(whole, parts):
                self.assertEqual({key: values or None for key, values in part.items()}, choice["logprobs"])

    def test_logprobs_of_completions(self):
        seen = set()
        for prompt in ("Once", " na\u00efve \U0001F408\n"):
            body = {"prompt": prompt, "max_tokens": 60, "seed": 4, "temperature": 5, "n": 3}
            for asked in (0, 3):
                for choice in self.server.post(TEXT, {**body, "logprobs": asked})[1]["choices"]:
                    scores = choice["logprobs"]
                    self.assertEqual(scores["text_offset"][0], len(prompt))
                    for at, name, score, top in zip(*(scores[key] for key in (
                            "text_offset", "tokens", "token_logprobs", "top_logprobs"))):
                        self.assertEqual(top[name], score)
                        self.assertIn(len(top) - asked, (0, 1) if asked else (1,))
                        seen.add((len(top) - asked, name.startswith("bytes:")))
                        if not name.startswith("bytes:"):
                            self.assertEqual(choice["text"][at - len(prompt):][:len(name)], name)
        self.assertEqual(seen, {(0, False), (1, False), (1, True)})  # all that is to be seen was

    def test_offsets_count_the_prompt(self):
        def first(prompt):
            return self.server.post(TEXT, {"prompt": prompt, "max_tokens": 3, "logprobs": 0})[1]["choices"][0]["logprobs"]["text_offset"][0]
        for text in ("Once", " a  b ", "na\u00efve \U0001F408\n"):
            self.assertEqual(first(text), len(text))
        self.assertEqual(first([1]), 0)  # a control token, which has no text

    def test_settings_reach_the_library(self):
        body = {"prompt": "Once upon a time", "max_tokens": 60, "temperature": 0}
        plain = of_answer(self.server.post(TEXT, body)[1])
        for name, neutral, other in (("frequency_penalty", 0, 2), ("presence_penalty", 0.0, 2), ("typical_p", 1, None),
                                     ("repetition_penalty", 1.0, 5), ("logit_bias", {}, {"300": 100})):
            self.assertEqual(of_answer(self.server.post(TEXT, {**body, name: neutral})[1]), plain, name)
            if other is not None:
                self.assertNotEqual(of_answer(self.server.post(TEXT, {**body, name: other})[1]), plain, name)
        self.refused(TEXT, {**body, "frequency_penalty": 101}, 400, "frequency_penalty", None)
        self.refused(TEXT, {**body, "min_p": 1.5}, 400, "min_p", None)

    def test_an_end_token_that_a_grammar_asks_for_is_a_part(self):
        for path, begin in ((TEXT, {"prompt": "Once"}), (CHAT, {"messages": [{"role": "user", "content": "Hi."}]})):
            for more in ({}, {"ignore_eos": True}, {"min_new_tokens": 9}, {"fit_grammar": True}):
                body = {**begin, **more, "max_tokens": 20, "temperature": 0, "grammar": 'root ::= "hi" <|im_end|> "yo"'}
                for answers in (of_answer(self.server.post(path, body)[1]), of_events(self.server.events(path, body))):
                    self.assertEqual(answers, [("hiyo", "stop")], more)

    def test_what_is_to_fit_is_complete(self):
        body = {"prompt": "Once", "temperature": 2, "n": 4, "fit_grammar": True, "response_format": {"type": "json_object"}}
        for n in (4, 9, 30):
            for text, end in of_answer(self.server.post(TEXT, {**body, "max_tokens": n})[1]):
                json.loads(text)
                self.assertEqual(end, "stop")

    def test_languages(self):
        pattern = r"(The|A) (cat|dog|old hen) (ran|sat)\."
        grammar = 'root ::= ("The" | "A") who ("ran" | "sat") "."\nwho ::= " cat " | " dog " | " old hen "'
        message = [{"role": "user", "content": "Tell me a story."}]
        for path, begin in ((TEXT, {"prompt": "Once", "max_tokens": 40}), (CHAT, {"messages": message})):
            for seed in range(3):
                body = {**begin, "temperature": 3, "seed": 10 * seed, "n": 3}
                answers = [of_answer(self.server.post(path, {**body, **language})[1])
                           for language in ({"regex": pattern}, {"grammar": grammar})]
                for text, end in answers[0]:
                    self.assertRegex(text, f"^{pattern}$")
                    self.assertEqual(end, "stop")
                self.assertEqual(answers[0], answers[1])  # the same texts may come, so the same ones are drawn
                self.assertEqual(of_events(self.server.events(path, {**body, "regex": pattern})), answers[0])
        self.assertEqual(of_answer(self.server.post(TEXT, {"prompt": "Once", "max_tokens": 3, "regex": "a{9}"})[1])[0][1],
                         "length")

        schema = {"type": "object", "properties": {"pet": {"enum": ["cat", "dog"]}, "age": {"type": "integer"}},
                  "required": ["pet", "age"], "additionalProperties": False}
        for path, begin in ((TEXT, {"prompt": "Once", "max_tokens": 60}), (CHAT, {"messages": message, "max_tokens": 60})):
            body = {**begin, "temperature": 2, "seed": 4, "n": 3,
                    "response_format": {"type": "json_schema", "json_schema": {"name": "pet", "strict": True, "schema": schema}}}
            for text, _ in of_answer(self.server.post(path, body)[1]):
                answer = json.loads(text)
                self.assertEqual(list(answer), ["pet", "age"])
                self.assertIn(answer["pet"], ("cat", "dog"))
                self.assertIsInstance(answer["age"], int)
            for text, _ in of_answer(self.server.post(path, {**body, "response_format": {"type": "json_object"}})[1]):
                self.assertIsInstance(json.loads(text), dict)
            for text, _ in of_answer(self.server.post(path, {**body, "json_order": "any", "json_space": 0})[1]):
                self.assertEqual(set(json.loads(text)), {"pet", "age"})
                self.assertNotRegex(text, r"\s")
            self.refused(path, {**body, "json_style": "pretty"}, 400, "json_style", None)
            self.refused(path, {**begin, "regex": r"\d+", "json_style": "any"}, 400, "json_style", None)
        tags = {"tags": [{"begin": "e", "regex": " [0-9]{2}", "end": "!"}]}
        for text, _ in of_answer(self.server.post(TEXT, {"prompt": "Once", "seed": 1, "n": 3, "max_tokens": 30, "tags": tags})[1]):
            for at in range(len(text)):
                if text[at] == "e":
                    self.assertTrue(re.match(r"e( ([0-9]([0-9](!|$)|$)|$)|$)", text[at:]), text)
        body = {"prompt": "Once", "seed": 1, "n": 3, "max_tokens": 30, "lark": 'start: "The " /[a-c]+/ "."'}
        for text, end in of_answer(self.server.post(TEXT, body)[1]):
            self.assertRegex(text, r"^The [a-c]+\.$" if end == "stop" else r"^The [a-c]*\.?$")
        for field, wrong, param in (("lark", "start: nobody", "lark"), ("response_format", {"type": "json_schema", "json_schema": {"schema": {"type": 5}}}, "response_format"),
                                    ("tags", {"tags": 5}, "tags"), ("suffix", "b", "suffix")):
            self.refused(TEXT, {"prompt": "a", field: wrong}, 400, param, None)

        for field, wrong, part in (("grammar", 'root ::= a\na ::= ("b"', "line 2, column"),
                                   ("grammar", "root ::= nobody", "nobody"), ("grammar", "a ::= [b]", "root"),
                                   ("regex", "ab(", "line 1, column 3"), ("regex", r"(a)\1", "line 1, column 4"),
                                   ("grammar", "root ::= <[4096]>", "4096"),
                                   ("regex", "(?=.*a.{9})(?=.*b.{9})(?=.*c.{9})(?=.*d.{9}).*", "10000 states")):
            for path, begin in ((TEXT, {"prompt": "a"}), (CHAT, {"messages": message})):
                self.refused(path, {**begin, field: wrong}, 400, field, None)
                self.assertIn(part, self.server.post(path, {**begin, field: wrong})[1]["error"]["message"])
        self.refused(TEXT, {"prompt": "a", "grammar": "x" * 50000, "regex": "a"}, 400, "regex", None)
        # One whose tokens take too long to find is given up, and its field is told also where that comes late.
        endless = {"prompt": "a", "grammar": "root ::= a\na ::= a a a | [a-z ]{0,300} a{0,300} | [a-z ]", "max_tokens": 100, "seed": 1,
                   "ignore_eos": True}
        error = self.server.events(TEXT, endless)[-1]["error"]
        self.assertEqual((error["type"], error["param"]), ("invalid_request_error", "grammar"))
        self.assertEqual(self.server.post(TEXT, {"prompt": "a", "max_tokens": 2})[0], 200)

    def test_seeds(self):
        body = {"prompt": "Once", "max_tokens": 12, "seed": 5}
        texts = [self.server.post(TEXT, {**body, "seed": 5 + i})[1]["choices"][0]["text"] for i in range(3)]
        self.assertEqual(len(set(texts)), 3)
        together = self.server.post(TEXT, {**body, "n": 3})[1]
        self.assertEqual([choice["text"] for choice in together["choices"]], texts)
        del body["seed"]
        self.assertNotEqual(of_answer(self.server.post(TEXT, body)[1]), of_answer(self.server.post(TEXT, body)[1]))

    def test_a_conversation_goes_on(self):
        # As clients do: the whole conversation each time, with the answer before in it.
        for stream in (False, True):
            messages = [{"role": "system", "content": "You tell stories."}]
            counts = []
            for turn, text in enumerate(("Hello!", "Tell me a story.", "And then?", "Thank you.")):
                messages.append({"role": "user", "content": text})
                body = {"model": "draft", "messages": messages, "max_tokens": 40, "seed": turn, "temperature": 0.7}
                if stream:
                    events = self.server.events(CHAT, {**body, "stream_options": {"include_usage": True}})
                    content, usage = of_events(events)[0][0], events[-1]["usage"]
                    self.assertEqual([(content, of_events(events)[0][1])], of_answer(self.server.post(CHAT, body)[1]))
                else:
                    answer = self.server.post(CHAT, body)[1]
                    content, usage = answer["choices"][0]["message"]["content"], answer["usage"]
                self.assertTrue(content)
                messages.append({"role": "assistant", "content": content})
                counts.append(usage["prompt_tokens"])
            self.assertEqual(sorted(set(counts)), counts)


class Caches(unittest.TestCase):
    def test_prompts_that_begin_alike_are_not_computed_anew(self):
        body = {"prompt": "A fox and a hen lived by a mill. " * 8, "max_tokens": 20, "seed": 1, "n": 2}
        with Server(SERVER, SOURCE) as server:
            plain = server.post(TEXT, body)[1]
            self.assertEqual(plain["usage"]["prompt_tokens_details"],
                             {"cached_tokens": 0, "evaluated_tokens": plain["usage"]["prompt_tokens"]})
        with Server(SERVER, SOURCE, "--paged", "16,16", "--prefix-cache", "256") as server:
            server.post(TEXT, {**body, "max_tokens": 1})
            again = server.post(TEXT, body)[1]
            self.assertEqual(of_answer(again), of_answer(plain))
            tokens, details = again["usage"]["prompt_tokens"], again["usage"]["prompt_tokens_details"]
            cached = details["cached_tokens"]
            self.assertEqual(details["evaluated_tokens"], tokens - cached)
            self.assertTrue(tokens - 17 <= cached < tokens, (tokens, cached))
            self.assertGreaterEqual(server.metric("prompt_cached_tokens_total"), cached)


class Drafts(unittest.TestCase):
    def test_what_was_guessed_and_right_is_told(self):
        body = {"prompt": "The cat and the dog. The cat and the dog. The cat", "max_tokens": 80, "temperature": 0}
        with Server(SERVER, SOURCE) as server:
            plain = server.post(TEXT, body)[1]
            self.assertNotIn("completion_tokens_details", plain["usage"])
        # The server's model is the draft model itself, whose guesses are all right; those of the lookup are not.
        for guesses, key in (("lookup", "rejected"), (SOURCE + "/examples/demo_model/draft.gguf", "accepted")):
            with Server(SERVER, SOURCE, "--draft", guesses, "--draft-policy", "always") as server:
                drafted = server.post(TEXT, body)[1]
                self.assertEqual(of_answer(drafted), of_answer(plain))
                told = drafted["usage"]["completion_tokens_details"]
                self.assertGreater(told[key + "_prediction_tokens"], 0)
                self.assertEqual(server.metric("drafted_tokens_total"), sum(told.values()))
                self.assertEqual(server.metric("accepted_tokens_total"), told["accepted_prediction_tokens"])


class Queue(unittest.TestCase):
    def test_who_leaves_is_not_generated_for(self):
        with Server(SERVER, SOURCE, *WITH_ENDLESS) as server:
            self.assertEqual(len(server.events(TEXT, ENDLESS, leave_after=3)), 3)
            server.wait_until_idle()
            connection = server.connect()
            connection.request("POST", TEXT, json.dumps(ENDLESS))
            wait_for(server, lambda health: health["running"] >= 1)
            connection.close()
            server.wait_until_idle()

    def test_a_template_of_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{% for m in messages %}{{ m.content }}, they said{% endfor %}")
            file.flush()
            with Server(SERVER, SOURCE, "--chat-template", file.name) as server:
                both = {"temperature": 0, "max_tokens": 8}
                chat = server.post(CHAT, {"messages": [{"role": "user", "content": "Once upon a time"}], **both})[1]
                text = server.post(TEXT, {"prompt": "Once upon a time, they said", **both})[1]
        self.assertEqual(chat["choices"][0]["message"]["content"], text["choices"][0]["text"])
        refused = subprocess.run([SERVER, "--chat-template", "alpaca"], capture_output=True, text=True, timeout=120)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--chat-template: ", refused.stderr)

    def test_variables_of_a_template_have_the_limits_of_messages(self):
        long = "a b c " * 20000
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{% for m in messages %}{{ m.content }}{% endfor %}{{ reasoning_effort }}{{ x }}")
            file.flush()
            with Server(SERVER, SOURCE, "--chat-template", file.name) as server:
                for content, more in ((long, {}), ("a", {"reasoning_effort": long}), ("a", {"chat_template_kwargs": {"x": [long]}})):
                    status, answer = server.post(CHAT, {"messages": [{"role": "user", "content": content}], **more})
                    error = answer["error"]
                    self.assertEqual((status, error["code"], error["param"]), (400, "context_length_exceeded", "messages"), error)
                    self.assertRegex(error["message"], r"has \d+ bytes")  # told before it is tokenized

    def test_who_leaves_gives_its_place_in_the_queue_up(self):
        with Server(SERVER, SOURCE, "--parallel", "1", "--queue", "1", *WITH_ENDLESS) as server:
            first, second = server.connect(), server.connect()
            first.request("POST", TEXT, json.dumps({**ENDLESS, "n": 1}))
            wait_for(server, lambda health: health["running"] >= 1)
            second.request("POST", TEXT, json.dumps({**ENDLESS, "n": 1}))
            wait_for(server, lambda health: health["waiting"] >= 1)
            second.close()
            wait_for(server, lambda health: health["waiting"] == 0)
            self.assertEqual(server.json("/health")["running"], 1)
            first.close()
            server.wait_until_idle()

    def test_a_full_queue_is_told(self):
        with Server(SERVER, SOURCE, "--parallel", "2", "--queue", "6", *WITH_ENDLESS) as server:
            connection = server.connect()
            connection.request("POST", TEXT, json.dumps({**ENDLESS, "stream": True}))
            response = connection.getresponse()
            response.readline()
            # The second may begin after the first one has its first token.
            wait_for(server, lambda health: health["running"] >= 2)
            self.assertEqual(server.json("/health")["running"], 2)
            other = server.connect()
            other.request("POST", TEXT, json.dumps({"prompt": "a"}))
            refused = other.getresponse()
            self.assertEqual((refused.status, refused.headers["Retry-After"]), (503, "1"))
            error = json.loads(refused.read())["error"]
            self.assertEqual(error["code"], "overloaded")
            self.assertIn("8 answers", error["message"])  # two that run and six that wait
            other.close()
            response.close()
            connection.close()
            server.wait_until_idle()
            self.assertEqual(server.post(TEXT, {"prompt": "a"})[0], 200)

    def test_a_small_pool_takes_turns(self):
        # Room for one answer of this length, not for eight.
        with Server(SERVER, SOURCE, "--paged", "1", "--kv", "fp32") as server:
            for _ in range(3):  # a thread that stalls for a second lets the others fail
                status, answer = server.post(TEXT, {"prompt": "a b c d " * 150, "n": 8, "max_tokens": 2})
                if status == 200:
                    break
            self.assertEqual(status, 200, answer)
            self.assertEqual(len(answer["choices"]), 8)
            server.wait_until_idle()
            self.assertEqual(server.post(TEXT, {"prompt": "a"})[0], 200)


class Languages(unittest.TestCase):
    """What the threads that make them promise is in languages_test.cpp; here that requests go that way."""

    def made(self, server):
        return server.metric("grammars_made_total") + server.metric("grammars_given_up_total")

    def test_equal_ones_are_made_once(self):
        with Server(SERVER, SOURCE) as server:
            body = {"prompt": "Once", "max_tokens": 9, "seed": 1, "response_format": large_schema(0, 300)}
            answers = []
            clients = [threading.Thread(target=lambda path: answers.append(server.post(path, body)), args=(TEXT,)) for _ in range(10)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            self.assertEqual({status for status, _ in answers}, {200})
            self.assertEqual(len({str(of_answer(answer)) for _, answer in answers}), 1)
            self.assertEqual(server.metric("grammars_made_total"), 1)
            # A later one has it, too, and one of another field has not.
            self.assertEqual(of_answer(server.post(TEXT, body)[1]), of_answer(answers[0][1]))
            self.assertEqual(server.metric("grammars_made_total"), 1)
            server.post(TEXT, {**body, "json_space": 0})
            self.assertEqual(server.metric("grammars_made_total"), 2)

    def test_who_leaves_is_not_made_one_for(self):
        with Server(SERVER, SOURCE) as server:
            clients = [server.connect() for _ in range(9)]
            for number, client in enumerate(clients):
                client.request("POST", TEXT, json.dumps({"prompt": "a", "max_tokens": 1, "response_format": large_schema(number)}))
            wait_for(server, lambda health: self.made(server) + server.metric("grammars_making") > 0)
            for client in clients:
                client.close()
            status, answer = server.post(TEXT, {"prompt": "a", "max_tokens": 3, "regex": "[ab]{2}"})
            self.assertEqual(status, 200, answer)
            server.wait_until_idle()
            wait_for(server, lambda health: server.metric("grammars_making") + server.metric("grammars_waiting") == 0)
            # Who left before the server had read the request is in no count.
            self.assertTrue(1 <= self.made(server) <= 10, self.made(server))

    def test_the_end_comes_while_they_are_made(self):
        server = Server(SERVER, SOURCE)
        clients = [server.connect() for _ in range(4)]
        for number, client in enumerate(clients):
            client.request("POST", TEXT, json.dumps({"prompt": "a", "max_tokens": 1, "response_format": large_schema(number)}))
        wait_for(server, lambda health: self.made(server) + server.metric("grammars_making") > 0)
        server.stop()
        for client in clients:  # made before, or told
            try:
                self.assertIn(client.getresponse().status, (200, 503))
            except ConnectionError:
                pass  # not even read
            client.close()


class Signals(unittest.TestCase):
    def test_the_end_comes_soon_and_well(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server(SERVER, SOURCE, "--parallel", "8", *WITH_ENDLESS)
            idle = socket.create_connection(("127.0.0.1", server.port))
            begun, results = threading.Event(), []

            def stream():
                connection = server.connect()
                connection.request("POST", TEXT, json.dumps({**ENDLESS, "stream": True}))
                with connection.getresponse() as response:
                    first = response.readline()
                    begun.set()
                    try:
                        results.append(first + response.read())
                    except http.client.IncompleteRead as cut:
                        results.append(first + cut.partial)
                connection.close()

            def whole():
                results.append(server.post(TEXT, ENDLESS))

            clients = [threading.Thread(target=target) for target in (stream, whole, whole)]
            clients[0].start()
            begun.wait()
            for client in clients[1:]:
                client.start()
            wait_for(server, lambda health: health["waiting"] >= 16)
            self.assertLess(server.stop(number), 40)  # an idle connection is kept for 60 s
            for client in clients:
                client.join()
            idle.close()
            self.assertEqual(len(results), 3)
            for result in results:
                if isinstance(result, bytes):
                    self.assertNotIn(b"[DONE]", result)
                    self.assertIn(b"shutting_down", result)
                else:
                    self.assertEqual((result[0], result[1]["error"]["code"]), (503, "shutting_down"))

    def test_a_client_that_never_pauses_does_not_delay_the_end(self):
        server = Server(SERVER, SOURCE)
        requests = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20000
        answered = threading.Event()

        def send():
            try:
                while True:
                    client.sendall(requests)
            except OSError:
                pass

        def read():
            try:
                while client.recv(1 << 20):
                    answered.set()
            except OSError:
                pass

        with socket.create_connection(("127.0.0.1", server.port)) as client:
            threads = [threading.Thread(target=target, daemon=True) for target in (send, read)]
            for thread in threads:
                thread.start()
            self.assertTrue(answered.wait(120))
            server.stop()
            for thread in threads:
                thread.join()

    def test_a_signal_of_others_changes_nothing(self):
        server = Server(SERVER, SOURCE)
        for _ in range(2):
            server.process.send_signal(signal.SIGUSR1)
            self.assertEqual(server.get("/health")[0], 200)
        server.stop()

    @unittest.skipIf("GEN_TRIALS" in os.environ, "sanitizers need more memory than that")
    def test_too_few_threads_end_it_well(self):
        def few():
            resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

        model = os.path.join(SOURCE, "examples/demo_model/draft.gguf")
        for options in (("--parallel", "512"), ("--parallel", "1", "--connections", "1000")):
            done = subprocess.run([SERVER, "-m", model, "--port", "0", *options], capture_output=True, timeout=120, preexec_fn=few)
            self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1), done)

    def test_command_line(self):
        def run(*options):
            return subprocess.run([SERVER, *options], capture_output=True, timeout=120)

        self.assertEqual(run("--help").returncode, 0)
        self.assertEqual(run("--port", "65536").returncode, 2)
        self.assertEqual(run("--nothing").returncode, 2)
        for setting in ("foo=1", "max_batch=1000", "max_batch"):
            done = run("--set", setting)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (2, b"", 1), done)
            self.assertRegex(done.stderr, b"^generate-server: --set")
        # What no browser sends as an Origin would never be allowed by it.
        for page in ("foo", "chat.example", "https://chat.example/", "https://", "https://a b", "://a", ""):
            done = run("--allow-origin", page, "-m", "/nothing.gguf")
            self.assertEqual((done.returncode, done.stdout), (2, b""), page)
            self.assertRegex(done.stderr, b"^generate-server: --allow-origin: ")
        for page in ("https://chat.example", "http://a:8080", "null", "*"):
            self.assertEqual(run("--allow-origin", page, "-m", "/nothing.gguf").returncode, 1, page)
        done = run("-m", "/nothing.gguf")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        with Server(SERVER, SOURCE) as server:
            done = run("--port", str(server.port))
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertRegex(done.stderr, rb"cannot listen at 127.0.0.1:\d+: Address already in use")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
