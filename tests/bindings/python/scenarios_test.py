#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scenarios of tests/bindings/scenarios.json through examples/python/libgenerate.py, and what Python adds: cancelling from
a thread, threads side by side, objects that are dropped, an exit with everything open.

usage: scenarios_test.py SOURCE_DIR TEST_MODELS    (GENERATE_LIBRARY is the library)
"""
import ctypes
import dataclasses
import datetime
import gc
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
import uuid

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "examples" / "python"))
sys.path.insert(0, str(ROOT / "tests" / "support"))
from adapter_files import write_adapter  # noqa: E402
import agents  # noqa: E402
import libgenerate  # noqa: E402
from libgenerate import Cancel, Chat, ChatSession, Error, Generator, Grammar, Matcher, Model, Session, schema_of  # noqa: E402

TABLE = json.loads((ROOT / "tests/bindings/scenarios.json").read_text(encoding="utf-8"))
STORY = ROOT / "examples/demo_model/story.gguf"
MODELS = ctypes.CDLL(sys.argv[2])


def custom(name, story):
    if not name:
        return story
    forward = ctypes.addressof(ctypes.c_char.in_dll(MODELS, name))
    return Model.custom(forward, story, vocab_size=4096, max_seq_len=1 << 20)


def resident():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])


class Scenarios(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model(STORY)
        cls.generator = Generator(cls.model)

    def test_texts(self):
        for case in TABLE["texts"]:
            with self.subTest(case["name"]), Generator(self.model, **case["options"]) as generator:
                with Session(generator) as session:
                    result = session.generate(case["prompt"], **case["sampling"])
                self.assertEqual((result.text, result.tokens, result.finish_reason, result.error),
                                 (case["text"], case["tokens"], case["finish_reason"], None))
                again, = generator.batch([case["prompt"]], **case["sampling"])
                self.assertEqual(again, result)

    def test_settings_may_be_true_and_false(self):
        case = TABLE["texts"][0]
        with Model(STORY, mmap=False) as model, Generator(model, **case["options"], deterministic=True) as generator:
            result, = generator.batch([case["prompt"]], **case["sampling"])
        self.assertEqual(result.tokens, case["tokens"])

    def test_heads_from_files(self):
        head, nowhere = STORY.with_name("eagle3.gguf"), "/no/such/head.gguf"
        with Generator(self.model, eagle=head, draft_policy="always") as drafting, Generator(self.model, eagle=nowhere) as plain:
            self.assertEqual((drafting.eagle_enabled(), drafting.eagle_path()), (True, str(head)))
            self.assertEqual((plain.eagle_enabled(), plain.eagle_path()), (False, nowhere))
            guessed, = drafting.batch(["Once upon a time"], temperature=0, max_new_tokens=24)
            wanted, = plain.batch(["Once upon a time"], temperature=0, max_new_tokens=24)
            self.assertEqual(guessed.tokens, wanted.tokens)
            self.assertGreater(guessed.usage["accepted"], 0)
        with self.assertRaises(Error) as raised:
            Generator(self.model, eagle=STORY)
        self.assertIn("story.gguf", str(raised.exception))
        self.assertRaises(ValueError, Generator, self.model, eagle="a\0b")
        self.assertEqual(self.generator.eagle_path(), "")

    def test_drafts(self):
        with Model(STORY.with_name("draft.gguf")) as draft:
            for case in TABLE["drafts"]:
                options = dict(case["options"])
                if case["draft_length"]:
                    options.update(draft=draft, draft_length=case["draft_length"])
                with self.subTest(case["name"]), Generator(self.model, **options) as generator:
                    with Session(generator) as session:
                        result = session.generate(case["prompt"], **case["sampling"])
                    self.assertEqual((result.tokens, result.usage["drafted"], result.usage["accepted"]),
                                     (case["tokens"], case["drafted"], case["accepted"]))
                    self.assertEqual(result.usage["completion"], len(result.tokens))
                    self.assertEqual((sum(len(step["tokens"]) for step in result.drafts), sum(len(step["accepted"]) for step in result.drafts)),
                                     (case["drafted"], case["accepted"]))
        with self.assertRaises(Error) as failed:
            Generator(self.model, draft=draft)
        self.assertEqual(failed.exception.code, -15)

    def test_pieces(self):
        for case in TABLE["streams"]:
            with Generator(custom(case["model"], self.model)) as generator, Session(generator) as session:
                pieces = [{"id": t.id, "text": t.text, "done": t.done}
                          for t in session.stream(case["prompt"], **case["sampling"])]
                self.assertEqual(pieces, case["pieces"])

    def test_statuses(self):
        for case in TABLE["statuses"]:
            with Generator(custom(case["model"], self.model)) as generator, Session(generator) as session:
                with self.assertRaises(Error) as failed:
                    session.generate("a")
                self.assertEqual((failed.exception.code, str(failed.exception)), (case["code"], case["message"]))

    def test_cancel_from_a_thread(self):
        with Generator(custom("test_model_slow", self.model)) as generator, Session(generator) as session:
            with Cancel() as cancel:
                def fire():
                    while len(session) < 10:
                        time.sleep(0.001)
                    cancel.fire()

                other = threading.Thread(target=fire)
                other.start()
                with self.assertRaises(Error) as failed:
                    session.generate("a", cancel, temperature=0, max_new_tokens=100000)
                other.join()
            self.assertEqual((failed.exception.code, failed.exception.result.finish_reason), (-11, "cancelled"))
            self.assertLess(len(failed.exception.result.tokens), 10000)
            self.assertEqual(len(session.generate("b", max_new_tokens=3).tokens), 3)

    def test_a_loop_that_is_left(self):
        with Session(self.generator) as session:
            for i, _ in enumerate(session.stream("Once", temperature=0, max_new_tokens=50)):
                if i == 2:
                    break
            gc.collect()
            self.assertEqual(len(session.generate("", temperature=0, max_new_tokens=3).tokens), 3)

    def test_sixty_four_at_once(self):
        case, wrong = TABLE["texts"][1], []

        def say():
            with Session(self.generator) as session:
                if session.generate(case["prompt"], **case["sampling"]).tokens != case["tokens"]:
                    wrong.append(1)

        threads = [threading.Thread(target=say) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_dropped_objects_are_freed(self):
        def drop(count):
            for _ in range(count):
                Session(self.generator)
            gc.collect()

        drop(1000)
        before = resident()
        drop(10000)
        self.assertLess(resident(), before * 1.02)

    def test_settings_that_are_lists(self):
        with Session(self.generator) as session:
            plain = session.generate("Once upon a time", temperature=0, max_new_tokens=20).text
        for stops in ([plain[9:12], plain[4:6]], (plain[4:6], plain[9:12])):
            with Session(self.generator) as session:
                result = session.generate("Once upon a time", temperature=0, max_new_tokens=20, stop_string=stops)
            self.assertEqual((result.text, result.finish_reason), (plain[:plain.find(plain[4:6])], "stop_string"))

    def test_alternatives_come_with_tokens(self):
        with Session(self.generator) as session:
            tokens = [t for t in session.stream("Once upon", temperature=0, max_new_tokens=4, logprobs=3) if not t.done]
        for token in tokens:
            self.assertEqual(len(token.top), 3)
            self.assertEqual(token.top[0], (token.id, token.logprob))
            self.assertEqual([p for _, p in token.top], sorted((p for _, p in token.top), reverse=True))
        with Session(self.generator) as session:
            self.assertEqual([t.top for t in session.stream("Once", temperature=0, max_new_tokens=1)], [(), ()])

    def test_grammars(self):
        pattern = r"(The|A) (cat|dog|old hen) (ran|sat)\."
        with Grammar.regex(pattern) as grammar, Session(self.generator) as session:
            for seed in range(8):
                result = session.generate("Once", grammar=grammar, seed=seed, temperature=3, max_new_tokens=40)
                self.assertRegex(result.text, f"^{pattern}$")
                self.assertIn(result.finish_reason, ("grammar_complete", "stop_token"))
                self.assertEqual(result.usage["grammar_complete"], 1)
            self.assertEqual(session.generate("x", max_new_tokens=1).usage["grammar_complete"], -1)
            for result in self.generator.batch(["The", "A"], grammar=grammar, max_new_tokens=40):
                self.assertRegex(result.text, f"^{pattern}$")
            with Matcher(grammar, self.model) as matcher:
                matcher.accept("The old")
                for _ in range(2):
                    text = session.generate("The old", grammar=matcher, temperature=0, max_new_tokens=20).text
                    self.assertIn(text, (" hen ran.", " hen sat."))
        for closed in (grammar, matcher):
            with Session(self.generator) as session, self.assertRaises(Error) as failed:
                session.generate("a", grammar=closed)
            self.assertEqual(failed.exception.code, -15)
        with Grammar.gbnf("root ::= <[300]> <[301]>") as grammar, Session(self.generator) as session:
            self.assertEqual(session.generate("a", grammar=grammar).tokens, [300, 301])

    def test_chats(self):
        case = TABLE["chat_session"]
        steps = {step["do"]: step for step in case["steps"]}
        with Chat(template=steps["template"]["text"], time=steps["time"]["text"], tools=[json.loads(steps["tool"]["text"])],
                  mood=steps["variable"]["text"]) as chat, ChatSession(self.generator, chat) as session:
            chat.add("system", steps["message"]["text"], name=steps["name"]["text"])
            before = chat.encode(self.model, reply=False)
            tokens = list(session.stream(steps["send"]["text"], **case["sampling"]))
            self.assertEqual("".join(token.text for token in tokens), steps["send"]["answer"])
            self.assertEqual("".join(piece.text for token in tokens for piece in token.pieces), steps["send"]["answer"])
            self.assertEqual(len(session), steps["send"]["length"])
            self.assertEqual(chat.encode(self.model, reply=False), steps["send"]["tokens"])
            self.assertEqual(steps["send"]["tokens"][:len(before)], before)
            call = steps["tool_call"]
            with self.assertRaises(Error):
                chat.add_tool_call("", {})
            chat.add_tool_call(call["name"], json.loads(call["text"]), id=call["id"])
            chat.add_tool_result(steps["tool_result"]["text"], name=call["name"], id=call["id"])
            for _ in session.stream(max_new_tokens=5, temperature=0):
                break  # what came by then is in the conversation
            with self.assertRaises(ValueError):
                chat.add("us\0er", "")
            self.assertGreater(len(chat.encode(self.model)), len(steps["send"]["tokens"]))
            self.assertEqual(chat.truncate(2).describe()["messages"],
                             json.loads(steps["truncate"]["text"])["messages"][:2])

    def test_tools(self):
        def add(a, b):
            return str(a + b)

        def fail():
            raise ValueError("no")

        def echo(text):
            return text

        def stop():
            agent.cancel()
            while not agents.stopped():
                time.sleep(0.001)
            return "told"

        functions = {function.__name__: function for function in (add, fail, echo, stop)}
        for row in TABLE["tools"]["rows"]:
            with self.subTest(row["name"]), agents.Tools() as tools, agents.Agent(tools, **row["options"]) as agent:
                for name, schema in TABLE["tools"]["functions"].items():
                    tools.add(functions[name], schema=json.loads(schema or "{}"))
                for step in row["steps"]:
                    try:
                        ends = int(agent.step(step["output"]))
                    except Error as error:
                        ends = error.code
                    self.assertEqual(ends, step["ends"])
                self.assertEqual(agent.describe(), row["record"])

    def test_matchers(self):
        with Grammar.gbnf('root ::= "yes" | "no"') as grammar, Matcher(grammar, self.model) as matcher:
            def valid():
                return {byte for byte in range(256) if matcher.valid_bytes() >> byte & 1}

            self.assertEqual(valid(), set(b"yn"))
            matcher.accept("y")
            with matcher.fork() as fork:
                fork.accept(b"es")
                self.assertTrue(fork.complete())
            self.assertEqual((valid(), matcher.complete()), (set(b"e"), False))
            allowed = [token for token in range(4096) if matcher.mask() >> token & 1]
            self.assertTrue(allowed)
            for token in range(4096):
                if token in allowed:
                    matcher.accept_token(token)
                    matcher.rollback(1)
                else:
                    self.assertRaises(Error, matcher.accept_token, token)
            self.assertRaises(Error, matcher.accept, "n")
            self.assertEqual(matcher.min_tokens(), 1)
            for token in matcher.forced():
                matcher.accept_token(token)
            matcher.reset()
            self.assertEqual((valid(), matcher.forced()), (set(b"yn"), []))
        self.assertRaises(Error, matcher.mask)  # it is closed
        with self.assertRaises(Error) as failed:
            Grammar.gbnf('root ::= a\na ::= ("b"')
        self.assertEqual(failed.exception.code, -12)
        self.assertRegex(str(failed.exception), "line 2, column [0-9]+")
        self.assertRaises(Error, Grammar.any_json, max_edges=3)
        with Grammar.any_json() as anything, Matcher(anything, self.model) as matcher:
            matcher.accept('{"a": [1, 2]}')
            self.assertTrue(matcher.complete())
        with Grammar.lark('start: N ("+" N)*\nN: /[0-9]+/\n%ignore " "') as sums, Matcher(sums, self.model) as matcher:
            matcher.accept("12 + 3")
            self.assertTrue(matcher.complete())
            self.assertRaises(Error, matcher.accept, "x")
        self.assertRaisesRegex(Error, "line 1, column 8", Grammar.lark, "start: (")
        number = {"begin": "<é>", "regex": "[0-9]+", "end": "."}
        with Grammar.tags({"tags": [number]}) as tags, Matcher(tags, self.model) as matcher:
            matcher.accept("free <é>12")
            self.assertRaises(Error, matcher.accept, "x")
            matcher.accept(". free")
        with Grammar.regex("b", regex_match="search") as search, Matcher(search, self.model) as matcher:
            matcher.accept("abc")
            self.assertTrue(matcher.complete())

    def test_schemas_of_classes(self):
        @dataclasses.dataclass
        class Point:
            x: int
            y: typing.Optional[float] = None

        class Options(typing.TypedDict, total=False):
            colour: typing.Literal["red", "green"]

        @dataclasses.dataclass
        class Shape:
            name: str
            points: typing.List[Point]
            pair: typing.Tuple[bool, str]
            options: Options
            sizes: typing.Dict[str, int] = dataclasses.field(default_factory=dict)

        class Pydantic:
            @staticmethod
            def model_json_schema():
                return {"const": 3}

        valid = [Shape("é", [Point(-1, 1.5), Point(2)], (True, ""), {"colour": "red"}, {"a": 1}), Shape("", [], (False, "x"), {})]
        invalid = ['{}', '{"name":"","points":[{"x":1.0}],"pair":[true,""],"options":{}}',
                   '{"name":"","points":[],"pair":[true],"options":{}}',
                   '{"name":"","points":[],"pair":[true,""],"options":{"colour":"blue"}}']
        with Grammar.json_schema(schema_of(Shape), json_style="any") as grammar, Matcher(grammar, self.model) as matcher:
            for value in valid:
                matcher.accept(json.dumps(dataclasses.asdict(value)))
                self.assertTrue(matcher.complete())
                matcher.reset()
            for text in invalid:
                try:
                    matcher.accept(text)
                    self.assertFalse(matcher.complete(), text)
                except Error:
                    pass
                matcher.reset()
        self.assertEqual(schema_of(Pydantic), {"const": 3})
        self.assertRaisesRegex(TypeError, "Set", schema_of, typing.Set[int])
        with Grammar.json_schema(schema_of(Point)) as grammar:
            for seed in range(4):
                with Session(self.generator) as session:
                    text = session.generate("Once", grammar=grammar, seed=seed, temperature=2, max_new_tokens=80).text
                point = Point(**json.loads(text))
                self.assertIsInstance(point.x, int)
        @dataclasses.dataclass
        class Moments:
            at: datetime.datetime
            days: typing.List[datetime.date]
            hour: datetime.time
            key: uuid.UUID

        with Grammar.json_schema(schema_of(Moments)) as grammar:
            for seed in range(4):
                with Session(self.generator) as session:
                    value = json.loads(session.generate("Once", grammar=grammar, seed=seed, temperature=2, max_new_tokens=200).text)
                datetime.datetime.fromisoformat(value["at"])
                for day in value["days"]:
                    datetime.date.fromisoformat(day)
                datetime.time.fromisoformat(value["hour"])
                uuid.UUID(value["key"])
        documents = {"urn:point": {"type": "integer"}}
        with Grammar.json_schema({"items": {"$ref": "urn:point"}}, documents=documents) as grammar:
            with Matcher(grammar, self.model) as matcher:
                matcher.accept("[1, 2")
                self.assertRaises(Error, matcher.accept, '"')

    def test_adapters(self):
        def text(**sampling):
            return self.generator.batch(["Once upon"], temperature=0, max_new_tokens=20, **sampling)[0]

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.gguf"
            write_adapter(file, [("blk.0.attn_output.weight", 256)], gain=2, width=256)
            self.model.load_adapter(file, "one")
            self.model.load_adapter(str(file), "h\u00e4lf", 0.5)
        self.assertEqual(self.model.adapters(), ["one", "h\u00e4lf"])
        base, one, half = text().text, text(adapter="one").text, text(adapter="h\u00e4lf").text
        self.assertEqual(len({base, one, half}), 3)
        self.assertEqual(text(adapters={"one": 0.5}).text, half)
        self.assertEqual(text(adapters={"h\u00e4lf": 2, "one": 0}).text, one)
        self.assertEqual(text(adapters={}).text, base)
        with Session(self.generator) as session:
            self.assertEqual(session.generate("Once upon", temperature=0, max_new_tokens=20, adapters={"one": 1}).text, one)
        self.model.unload_adapter("one")
        self.assertEqual(self.model.adapters(), ["h\u00e4lf"])
        self.assertIn("one", str(text(adapter="one").error))
        for wrong in (lambda: self.model.unload_adapter("one"), lambda: self.model.load_adapter(STORY, "one"),
                      lambda: text(adapter="one", adapters={"one": 1})):
            self.assertRaises(Error, wrong)
        self.assertRaises(ValueError, self.model.load_adapter, STORY, "a\0b")
        self.assertRaises(Error, self.model.set_adapter_budget, -1)
        self.model.set_adapter_budget(1)
        self.assertEqual(self.model.adapters(), ["h\u00e4lf"])
        self.model.set_adapter_budget(0)
        self.model.unload_adapter("h\u00e4lf")

    def test_closed(self):
        session = Session(self.generator)
        closers = [threading.Thread(target=session.close) for _ in range(8)]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join()
        session.close()
        with self.assertRaises(Error) as failed:
            session.generate("a")
        self.assertEqual(failed.exception.code, -1)

    def test_an_exit_with_everything_open(self):
        program = (f"import sys; sys.path.insert(0, {str(ROOT / 'examples/python')!r})\n"
                   "from libgenerate import *\n"
                   f"model = Model({str(STORY)!r}); generator = Generator(model); session = Session(generator)\n"
                   "stream = session.stream('Once'); next(stream)\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))


if __name__ == "__main__":
    assert libgenerate
    unittest.main(argv=sys.argv[:1])
