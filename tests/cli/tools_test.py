#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate chat --tools: tools run with the arguments of calls, and what is wrong with a file of tools is told.

usage: tools_test.py PROGRAM SOURCE_DIR

In most tests the model knows no tools; a call of the first answer is demanded, and its schema leaves one possible
call. The bundled model calls its tools itself.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
STORY = os.path.join(SOURCE, "examples/demo_model/story.gguf")
DRAFT = os.path.join(SOURCE, "examples/demo_model/draft.gguf")
FORM = """{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{"name": "{{ c.function.name }}", "arguments": {{
c.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
COMPUTE = """import json, sys
given = json.load(sys.stdin)["expression"]
a, operation, b = given.split()
print({"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[operation])
print(given, file=open(sys.argv[1], "a"))"""
CAPITAL = {"name": "capital", "description": "d", "parameters": {
    "type": "object", "properties": {"country": {"enum": ["Norway"]}}, "required": ["country"]}}


class Tools(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.form = self.path("form.jinja")
        with open(self.form, "w") as file:
            file.write(FORM)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def chat(self, tools, *more, form=True):
        path = self.path("tools.json")
        with open(path, "w") as file:
            file.write(tools if isinstance(tools, str) else json.dumps(tools))
        told = ["--chat-template", self.form] if form else []
        return subprocess.run([PROGRAM, "chat", "-m", DRAFT, "--temp", "0", "-n", "60", *told, "--tools", path, *more],
                              input=b"What is the capital of Norway?\n", capture_output=True, timeout=300)

    def test_a_command_reads_the_arguments(self):
        given = self.path("given.json")
        tool = {"type": "function", "function": CAPITAL, "command": ["tee", given]}
        done = self.chat([tool], "--set", "tool_choice=capital")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(given) as file:
            self.assertEqual(json.load(file), {"country": "Norway"})
        self.assertNotIn(b"Norway\"}", done.stdout)  # the call is not part of the text

    def test_values_and_failures_are_results(self):
        for one in ({"values": {"Norway": "Oslo"}}, {"values": {"Sweden": "Stockholm"}}, {"command": ["false"]},
                    {"command": ["/no/such/program"]}):
            done = self.chat([{"type": "function", "function": CAPITAL, **one}], "--set", "tool_choice=capital")
            self.assertEqual((done.returncode, done.stderr), (0, b""), one)

    def test_tools_without_a_program_are_only_told(self):
        done = self.chat([{"type": "function", "function": CAPITAL}], "--set", "tool_choice=capital")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode().split("\n")[0], '[capital {"country": "Norway"}]')

    def test_faults_are_told(self):
        runs = {"type": "function", "function": CAPITAL, "values": {}}
        for tools, part in (("{}", b"is not a JSON array"), ("[", b"is not a JSON array"),
                            ([{**runs, "command": "date"}], b"a command is no array of texts"),
                            ([{**runs, "command": []}], b"a command is no array of texts"),
                            ([{**runs, "values": []}], b"values are no JSON object"),
                            ([runs, {"type": "function", "function": {"name": "g"}}], b"some tools have a command or values"),
                            ([runs, runs], b"capital"), ([{"function": {"name": "a b"}, "values": {}}], b"a b"),
                            ([{"function": {**CAPITAL, "parameters": {"type": "string"}}, "values": {}}], b"not object")):
            done = self.chat(tools)
            self.assertEqual(done.returncode, 2, (tools, done))
            self.assertIn(part, done.stderr, tools)
            self.assertEqual(done.stderr.count(b"\n"), 1)
        for option in ("no_such=1", "reasoning=maybe", "tool_choice"):
            self.assertEqual(self.chat([runs], "--set", option).returncode, 2, option)

    def story(self, tools, questions):
        done = subprocess.run([PROGRAM, "chat", "-m", STORY, "--temp", "0", "-n", "100", "--tools", tools],
                              input="".join(q + "\n" for q in questions), capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_the_bundled_model_computes(self):
        said = self.story("calculator", ["What is 17 * 23?", "What is 412 plus 89?", "How much is 905 - 38?"])
        self.assertEqual([line.split()[-1].strip(".") for line in said], [str(17 * 23), str(412 + 89), str(905 - 38)])

    def test_the_bundled_model_calls_tools_of_a_file(self):
        path, seen = self.path("both.json"), self.path("seen")
        function = {"name": "calculator", "description": "Computes an expression.", "parameters": {
            "type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}
        lookup = {"name": "lookup", "description": "Looks up a person.", "parameters": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
        with open(path, "w") as file:
            json.dump([{"type": "function", "function": function, "command": [sys.executable, "-c", COMPUTE, seen]},
                       {"type": "function", "function": lookup, "values": {"Mia": '{"age": 7}', "Tom": '{"city": "Rome"}'}}], file)
        said = self.story(path, ["How old is Mia?", "What is 17 * 23?", "Where does Tom live?", "What is 412 plus 89?", "How much is 905 - 38?"])
        self.assertEqual(len(said), 5, said)
        for value, line in zip(("7", str(17 * 23), "Rome", str(412 + 89), str(905 - 38)), said):
            self.assertIn(value, line)
        with open(seen) as file:
            self.assertEqual(file.read().splitlines(), ["17 * 23", "412 + 89", "905 - 38"])

    def test_a_template_without_tools_is_refused(self):
        done = self.chat([{"type": "function", "function": CAPITAL, "values": {}}], form=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the chat template does not show tools; choose one with --chat-template", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
