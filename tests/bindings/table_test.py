#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table that all bindings are tested with is what the C API gives: table_test.py MAKE_TABLE MODEL.

To write it anew: make_table examples/demo_model/story.gguf > tests/bindings/scenarios.json
"""
import json
import pathlib
import subprocess
import sys

made = json.loads(subprocess.run(sys.argv[1:3], check=True, capture_output=True).stdout)
kept = json.loads((pathlib.Path(__file__).parent / "scenarios.json").read_text(encoding="utf-8"))
different = [key for key in sorted(made.keys() | kept.keys()) if made.get(key) != kept.get(key)]
if different:
    sys.exit("scenarios.json differs from what the C API gives in: " + ", ".join(different))
