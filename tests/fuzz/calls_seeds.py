#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes answers of many forms for calls_fuzz: each for every format, and in pieces of several sizes.

usage: calls_seeds.py FOLDER
"""
import pathlib
import random
import sys

FORMATS = 40  # at least as many as there are
MARKS = ["<tool_call>\n", "\n</tool_call>", '{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}', "<function=weather>\n",
         "<parameter=city>\nOslo\n</parameter>\n", "<parameter=days>\n3\n</parameter>\n", "</function>", "<think>", "</think>", "[TOOL_CALLS]",
         "weather", "[ARGS]", "[CALL_ID]", "abc123def", '{"city": "Oslo"}', "[", "]", ", ", "<|channel|>", "commentary to=functions.weather ",
         "<|constrain|>json", "<|message|>", "<|call|>", "<|end|>", "<|start|>assistant", "analysis", "final", "<|tool_call>call:", '{city:<|"|>Oslo<|"|>,days:3}',
         "<tool_call|>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "function<｜tool▁sep｜>", "<｜tool▁sep｜>", "\n```json\n", "\n```", "<｜tool▁call▁end｜>",
         "<｜tool▁calls▁end｜>", "<｜DSML｜function_calls>\n", '<｜DSML｜invoke name="weather">\n', '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n',
         "</｜DSML｜invoke>\n", "</｜DSML｜function_calls>", "<tool_call>weather\n", "<arg_key>city</arg_key>\n", "<arg_value>Oslo</arg_value>\n", "</tool_call>",
         "<|tool_calls_section_begin|>", "<|tool_call_begin|>", "functions.weather:0", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>",
         "<minimax:tool_call>\n", '<invoke name="weather">\n', '<parameter name="city">Oslo</parameter>\n', "</invoke>\n", "</minimax:tool_call>",
         "]<]minimax[>[<tool_call>", "]<]minimax[>[<city>Oslo", "]<]minimax[>[</city>", "<|tool_call_start|>[", 'weather(city="Oslo", days=3)', "]<|tool_call_end|>",
         "<function_calls>", "</function_calls>", "<|START_ACTION|>[", '{"tool_call_id": "0", "tool_name": "weather", "parameters": {}}', "]<|END_ACTION|>",
         "<|START_TEXT|>", "<|END_TEXT|>", "<|START_THINKING|>", "<|END_THINKING|>", " to=weather", "<atem:function_calls>\n", '<atem:invoke name="weather">\n',
         "</atem:invoke>\n", "</atem:function_calls>", "<|eom|>", ">>>weather\n", ">>>all\n", "<function=weather>", "<|message_sep|>\n\nfunction call<|role_sep|>\n",
         '<function name="weather">', '<param name="city"><![CDATA[O<s]]></param>', "<|tools_prefix|>[", '{"weather": {"city": "Oslo"}}', "]<|tools_suffix|>",
         "<|tool_call|>", "<|/tool_call|>", "{", "}", '"', "'", "\\", "\\u00e9", "é", " ", "\n", "text", "1e5", "true", "None", "<", "|", "`", "```json\n", "(", ")", ":", "="]


def main():
    folder = pathlib.Path(sys.argv[1])
    r = random.Random(47)
    for n in range(1500):
        near = r.randrange(len(MARKS) - 8)  # marks of one family stand together
        text = "".join(r.choice(MARKS[near:near + 8] if r.random() < 0.8 else MARKS) for _ in range(r.randint(1, 14))).encode()
        if r.random() < 0.2:
            at = r.randrange(len(text))
            text = text[:at] + bytes([r.randrange(256)]) + text[at + 1:]
        (folder / f"{n:04}").write_bytes(bytes([r.randrange(FORMATS), r.randrange(7)]) + text)
    (folder / "deep").write_bytes(bytes([12, 0]) + b'<tool_call>{"name": "f", "arguments": ' + b'{"a":' * 3000)
    (folder / "open").write_bytes(bytes([32, 0]) + b"{" * 3000 + b"[" * 3000)


if __name__ == "__main__":
    main()
