#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Templates with every construct that template_fuzz knows: those of tests/template.

usage: template_seeds.py FOLDER
"""
import pathlib
import sys

tests = pathlib.Path(__file__).resolve().parent.parent / "template"
sys.path.insert(0, str(tests))
import cases  # noqa: E402

folder = pathlib.Path(sys.argv[1])
for number, text in enumerate(cases.cases()):
    (folder / f"case_{number:03}").write_bytes(text.encode())
for path in (tests / "chat").glob("*.jinja"):
    (folder / path.name).write_bytes(path.read_bytes())
(folder / "json").write_bytes(b'{"a": [1, -2.5e3, "\\u00e9\\ud83e\\udd99\\n", true, null, NaN], "a": {}}')
