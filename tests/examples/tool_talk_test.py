#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bundled model was trained on what its chat template writes: tool_talk.py and chat_template.jinja agree.

usage: tool_talk_test.py GENERATE_PROGRAM SOURCE_DIR
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
FOLDER = os.path.join(SOURCE, "examples/demo_model")
TEMPLATE = os.path.join(FOLDER, "chat_template.jinja")
sys.dont_write_bytecode = True
sys.path.append(FOLDER)
import tool_talk  # noqa: E402

# What the template was before it knew tools: conversations without them are still written so.
PLAIN = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
         "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def rendered(request, *arguments):
    done = subprocess.run([PROGRAM, "template", *arguments], input=json.dumps(request), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


class ToolTalk(unittest.TestCase):
    def test_the_corpus_is_what_the_template_writes(self):
        r = random.Random(12)
        for _ in range(40):
            tools, messages = tool_talk.messages(r)
            turns = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in tool_talk.written(tools, messages))
            request = {"messages": messages, "tools": [tool_talk.described(t) for t in tools]}
            self.assertEqual(rendered(request, "--template", TEMPLATE), turns)

    def test_the_file_has_this_template(self):
        r = random.Random(13)
        tools, messages = tool_talk.messages(r)
        request = {"messages": messages, "tools": [tool_talk.described(t) for t in tools], "add_generation_prompt": True}
        self.assertEqual(rendered(request), rendered(request, "--template", TEMPLATE))

    def test_without_tools_nothing_is_new(self):
        talk = [{"role": "system", "content": " Be kind.\n"}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": ""},
                {"role": "user", "content": "<tool_call>"}, {"role": "poet", "content": "é\n\n"}]
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(PLAIN)
            file.flush()
            for messages in ([], talk, talk[1:], talk[:1], talk[2:]):
                for more in ({}, {"add_generation_prompt": True}, {"tools": []}, {"tools": None}):
                    request = {"messages": messages, **more}
                    self.assertEqual(rendered(request, "--template", TEMPLATE), rendered(request, "--template", file.name))

    def test_tools_in_other_forms(self):
        tools = [{"name": "now"}, {"type": "function", "function": {"name": "f", "description": None, "parameters": {
            "type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}, "unit": {"enum": ["a", 1]}, "any": {}}}}}]
        call = {"type": "function", "function": {"name": "f", "arguments": '{"unit":"a"}'}}
        messages = [{"role": "user", "content": "u"}, {"role": "assistant", "content": "Hm.", "tool_calls": [call, call]},
                    {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
        one = '\n<tool_call>\n{"name": "f", "arguments": {"unit":"a"}}\n</tool_call>'
        self.assertEqual(
            rendered({"messages": messages, "tools": tools, "add_generation_prompt": True}, "--template", TEMPLATE),
            '<|im_start|>system\n<tools>\n{"name": "now", "description": "", "parameters": {}}\n'
            '{"name": "f", "description": "", "parameters": {"items": "array", "unit": ["a", 1], "any": {}}}\n</tools><|im_end|>\n'
            f"<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\nHm.{one}{one}<|im_end|>\n"
            "<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response><|im_end|>\n<|im_start|>assistant\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
