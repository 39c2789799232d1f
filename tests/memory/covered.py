#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the memory sweep calls every public function that can fail: those that take a gen_error.

usage: covered.py <source root>
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# What takes its time whatever the memory, or has nothing to do on the host.
LEFT_OUT = {"gen_measure_peaks"}

called = "".join(path.read_text() for path in sorted((root / "tests/memory").glob("*_scenarios.c")))
missing = []
count = 0
for header in sorted((root / "include" / "generate").glob("*.h")):
    code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    for name, arguments in re.findall(r"^GEN_API\b[^;(]*?\b((?:gen|kv)_\w+)\s*\(([^;]*)\);", code, re.M):
        if "gen_error *" not in arguments or name in LEFT_OUT:
            continue
        count += 1
        if not re.search(rf"\b{name}\(", called):
            missing.append(f"{header.name}: {name} is in no scenario of tests/memory")

print("\n".join(missing) or f"{count} functions")
sys.exit(1 if missing or count < 200 else 0)
