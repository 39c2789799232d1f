#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what libgenerate.so exports with symbols.txt and with what the public headers declare.

usage: symbols.py <source root> <libgenerate.so> [--update]
--update rewrites symbols.txt; a removed or changed line is a break of the binary interface.
"""
import pathlib
import re
import subprocess
import sys

root, library = pathlib.Path(sys.argv[1]), sys.argv[2]
listed = pathlib.Path(__file__).parent / "symbols.txt"

exported = []
output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
for line in output.stdout.splitlines():
    _, kind, name = line.split()
    if kind == "A" and name in ("GEN_0", "GEN_EXPERIMENTAL"):
        continue  # the nodes themselves
    exported.append(f"{name} {kind}" if kind != "T" else name)
exported.sort()
if "--update" in sys.argv[3:]:
    listed.write_text("\n".join(exported) + "\n")

failures = []
expected = listed.read_text().split("\n")[:-1]
failures += [f"not exported, but in symbols.txt: {name}" for name in expected if name not in exported]
failures += [f"exported, but not in symbols.txt: {name}" for name in exported if name not in expected]

declared = set()
for path in (root / "include" / "generate").glob("*.h"):
    node = "GEN_EXPERIMENTAL" if path.name == "experimental.h" else "GEN_0"
    code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    declared |= {f"{name}@@{node}" for name in re.findall(r"^GEN_API[^;(]*?\b(\w+)\s*\(", code, re.M)}
failures += [f"declared, but not exported: {name}" for name in sorted(declared - set(exported))]
failures += [f"exported, but not declared: {name}" for name in exported if name not in declared]
print("\n".join(failures) or f"{len(exported)} symbols are as listed and as declared")
sys.exit(1 if failures or not exported else 0)
