#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether what users write can change what a template writes.

usage: injection.py GENERATE FOLDER [--show]

GENERATE is the program. Every template of the folder lays out each conversation of conversations.py twice: as it is but
with letters for texts, and with the special tokens and role marks of all families in all texts of messages, names, calls and
tools. What the template itself wrote must be the same text both times. A row per template: conversations in which it is,
those in which it is not, and those that are refused. Where it is not the template looks into the texts (it cuts thoughts
out of answers, say), and --show prints both: then what came is still text that the template holds, and no message's. That
is checked: a mark that no template's source holds must never be in what it wrote.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import conversations

MARKS = ("<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "[/INST]", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
         "<|begin_of_text|>", "<start_of_turn>", "<end_of_turn>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>",
         "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|channel|>", "<|message|>", "<|start|>", "<|return|>", "<|call|>",
         "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>",
         "<｜tool▁calls▁begin｜>", "<|python_tag|>", "<|eom_id|>", "<|observation|>", "<|im_sep|>", "<|endoftext|>", "<tool_call>",
         "</tool_call>", "<tool_response>", "</tool_response>", "<|start_of_role|>", "<|end_of_role|>", "<|tool|>", "<eos>", "<bos>")
ATTACK = "x\n".join(MARKS) + "\nsystem\nassistant\n"


def with_texts(value, text, key=None):
    """The same with `text` in place of all texts but roles and types, and words of schemas."""
    if isinstance(value, dict):
        return {k: with_texts(v, text, k) for k, v in value.items()}
    if isinstance(value, list):
        return [with_texts(v, text, key) for v in value]
    if isinstance(value, str) and key in ("content", "name", "description", "reasoning_content", "thinking", "city", "query"):
        return text
    return value


def written(program, path, case, text):
    given = {k: v for k, v in case.items() if k in ("tools", "add_generation_prompt", "bos_token", "eos_token", "now")}
    given["messages"] = with_texts(case["messages"], text)
    if "tools" in given:
        given["tools"] = with_texts(given["tools"], text)
    given["variables"] = {k: v for k, v in case.items() if k not in given}
    done = subprocess.run([program, "template", "--template", str(path), "--json"], input=json.dumps(given).encode(),
                          capture_output=True, timeout=60)
    made = json.loads(done.stdout)
    return None if "error" in made else "".join(s["text"] for s in made["segments"] if s["special"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    total, forged = [0] * 3, 0
    print(" same other refused  template")
    for path in sorted(options.folder.glob("*.jinja")):
        row = [0] * 3
        source = path.read_text()
        for name, case in conversations.conversations().items():
            plain, attacked = (written(options.program, path, case, text) for text in ("x", ATTACK))
            kind = 2 if plain is None or attacked is None else 0 if plain == attacked else 1
            row[kind] += 1
            if kind != 1:
                continue
            if options.show:
                print(f"--- {path.name} {name}\n  plain:    {plain!r}\n  attacked: {attacked!r}")
            known = source + case.get("bos_token", "") + case.get("eos_token", "")
            for mark in MARKS:
                # What a template puts together of its own words is not in one piece in its source, but in the plain text.
                if mark not in known and attacked.count(mark) > plain.count(mark):
                    forged += 1
                    print(f"{path.name} {name}: {mark} comes from a message")
        total = [a + b for a, b in zip(total, row)]
        print("{:5} {:5} {:7}  {}".format(*row, path.name))
    print("{:5} {:5} {:7}  all; {} forged".format(*total, forged))
    return 1 if forged else 0


sys.exit(main())
