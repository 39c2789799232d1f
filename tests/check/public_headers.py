#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the public headers: every function is marked GEN_API and documented, with its threads and since when.

usage: public_headers.py <source root>
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
failures, names = [], []
for path in sorted((root / "include" / "generate").glob("*.h")):
    text = path.read_text()
    if path.name != "generate.h":
        guard = "GENERATE_" + path.stem.upper() + "_H"
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            failures.append(f"{path.name}: no include guard {guard}")
        if "GEN_API" in text and 'extern "C" {' not in text:
            failures.append(f"{path.name}: no extern \"C\"")
    comments = {m.end(): m.group(0) for m in re.finditer(r"/\*\*.*?\*/", text, re.S)}
    code = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
    for match in re.finditer(r"^(GEN_API\s+)?([\w \*]+?)\b((?:gen|kv)_\w+)\s*\(", code, re.M):
        if match.group(2).strip().startswith(("typedef", "#")) or not match.group(2).strip():
            continue
        name, line = match.group(3), text.count("\n", 0, match.start()) + 1
        names.append(name)
        before = [end for end in comments if end <= match.start() and not text[end:match.start()].strip()]
        if not match.group(1):
            failures.append(f"{path.name}:{line}: {name} is not marked GEN_API")
        if not before:
            failures.append(f"{path.name}:{line}: {name} has no comment")
            continue
        for word in ("Threads:", "Since:"):
            if word not in comments[before[-1]]:
                failures.append(f"{path.name}:{line}: the comment of {name} has no line '{word}'")
failures += [f"{name} is declared twice" for name in sorted({n for n in names if names.count(n) > 1})]
print("\n".join(failures) or f"{len(names)} public functions are documented")
sys.exit(1 if failures or not names else 0)
