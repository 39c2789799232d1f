#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the interface files of the bindings have every public function: each public header is included by the file of
its name, generate.i includes each of these, and what is left out by %ignore is called by support.h instead.

usage: bindings.py <source root>
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
swig = root / "bindings" / "swig"
failures = []

main = (swig / "generate.i").read_text()
included = set(re.findall(r'^%include "(\w+)\.i"', main, re.M))
declared = {}
for header in sorted((root / "include" / "generate").glob("*.h")):
    if header.name == "generate.h":
        continue
    code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    for name in re.findall(r"^GEN_API\b[^;(]*?\b((?:gen|kv)_\w+)\s*\(", code, re.M):
        declared[name] = header.stem
    path = swig / (header.stem + ".i")
    if not path.exists():
        failures.append(f"{header.name}: there is no bindings/swig/{path.name}")
    elif f"%include <generate/{header.name}>" not in path.read_text():
        failures.append(f"bindings/swig/{path.name} does not include <generate/{header.name}>")
    elif header.stem not in included:
        failures.append(f'bindings/swig/generate.i has no line %include "{path.name}"')

exported = {line.split("@@")[0] for line in (root / "tests/check/symbols.txt").read_text().split()}
failures += [f"{name} is exported, but no public header declares it" for name in sorted(exported - declared.keys())]

helpers = (swig / "support.h").read_text()
for path in sorted(swig.glob("*.i")):
    for name in re.findall(r"^\s*%ignore\s+(\w+)\s*;", path.read_text(), re.M):
        if name in declared and not re.search(rf"\b{name}\(", helpers):
            failures.append(f"bindings/swig/{path.name} leaves {name} out, and support.h does not call it")
    if "director" in path.read_text():
        failures.append(f"bindings/swig/{path.name}: no directors")

print("\n".join(failures) or f"{len(declared)} functions of {len(included)} interface files")
sys.exit(1 if failures or len(declared) < 200 else 0)
