#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that use every field, for openai_fuzz. The first byte says which kind: 0 a completion, 1 a chat.

usage: openai_seeds.py FOLDER
"""
import json
import pathlib
import sys

SAMPLING = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 7, "stop": ["\n", "END"], "n": 2,
            "presence_penalty": 0.0, "frequency_penalty": 0.5, "logit_bias": {"5": -100}, "ignore_eos": True,
            "regex": "[a-z]+", "repetition_penalty": 1.1, "stream": True, "stream_options": {"include_usage": True}, "user": "x"}
USER = {"role": "user", "content": "Hello"}
SEEDS = {
    "text": (0, {"prompt": "Once \u00e9\U0001F408\u0000", "max_tokens": 5, "logprobs": 2, **SAMPLING}),
    "texts": (0, {"model": "m", "prompt": ["a", [1, 2], "b"], "echo": False, "best_of": 1, "n": 1}),
    "tokens": (0, {"prompt": [1, 2, 2147483647], "stop": "x", "tags": {"tags": []}}),
    "lora": (0, {"model": "a", "prompt": "a", "lora": [{"id": 1, "scale": 0.5}, {"name": "c", "scale": 0}]}),
    "gap": (0, {"prompt": ["a", ""], "suffix": "b"}),
    "chat": (1, {"messages": [USER], "max_completion_tokens": 5, "logprobs": True, "top_logprobs": 3, **SAMPLING}),
    "roles": (1, {"messages": [{"role": "system", "content": "s"}, {**USER, "name": "A"},
                               {"role": "assistant", "content": None, "tool_calls": []},
                               {"role": "tool", "content": "4", "tool_call_id": "x"}], "tools": []}),
    "parts": (1, {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
                  "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}, "metadata": {"deep": [[[[{}]]]]}}),
}

folder = pathlib.Path(sys.argv[1])
for name, (kind, body) in SEEDS.items():
    (folder / name).write_bytes(bytes([kind]) + json.dumps(body, ensure_ascii=name == "chat").encode())
(folder / "no_json").write_bytes(b"\0" + b'{"prompt":"\xff\xed\xa0\x80')
(folder / "deep").write_bytes(b"\1" + b'{"messages":' + b"[" * 300)
(folder / "numbers").write_bytes(b"\0" + b'{"prompt":"a","n":1e400,"seed":18446744073709551616,"max_tokens":-0.0}')
