#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schemas for schema_fuzz: some of the pairs of tests/grammar, what those lack, and bytes to build others from.

usage: schema_seeds.py FOLDER
"""
import json
import pathlib
import random
import sys

OWN = {
    "order": '{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x",null]}},"required":["b"],'
             '"additionalProperties":false}',
    "tree": '{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"l":{"$ref":"#/$defs/t"}},"additionalProperties":false}}}',
    "twice": '{"a":1,"a":2}',
    "long": '{"type":"string","minLength":300,"maxLength":4000}',
    "deep": '{"not":' * 40 + "true" + "}" * 40,
    "ring": '{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}',
    "bounds": '{"minimum":-1e400,"exclusiveMaximum":1e-400,"multipleOf":1e-9}',
    "surrogate": '{"const":"\\ud83e"}',
    "wrong": '{"type":["string",3]}',
}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, text in OWN.items():
        (folder / name).write_bytes(b"\0" + text.encode())
    pairs = pathlib.Path(__file__).parent.parent / "grammar" / "schema_pairs.jsonl"
    for number, line in enumerate(pairs.read_text(encoding="utf-8").splitlines()[:60:20]):
        text = json.dumps(json.loads(line)["schema"], ensure_ascii=False)
        (folder / f"pair{number}").write_bytes(b"\2" + text.encode())
    source = random.Random(5)
    for number in range(3):
        (folder / f"built{number}").write_bytes(b"\1" + source.randbytes(12 + 8 * number))


main()
