#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every include of src/, examples/ and bindings/ against layers.txt.

usage: layers.py <source root>
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
allowed, debts, failures, seen = {}, set(), [], 0
for line in (pathlib.Path(__file__).parent / "layers.txt").read_text().splitlines():
    if line.startswith("!"):
        debts.add(tuple(line.split()[1:3]))
    elif ":" in line and not line.startswith("#"):
        room, below = line.split(":")
        allowed[room.strip()] = {room.strip(), *below.split()}

include = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')
for path in sorted(p for top in ("src", "examples", "bindings") for p in (root / top).rglob("*")):
    if path.suffix not in (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"):
        continue
    here = path.relative_to(root)
    own = here.parts[1] if here.parts[0] == "src" else here.parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = include.match(line)
        if not match:
            continue
        seen += 1
        style, target = match.groups()
        first = target.split("/")[0]
        if style == "<" and first == "generate":
            first = "include"  # "generate/…" in quotes is the room
        elif style == "<" or first == "hwy":
            continue  # system and third-party headers
        if here.parts[0] != "src":
            # A program's own headers, by a path from its folder or from examples/.
            bases = (path.parent, root / here.parts[0], root / here.parts[0] / here.parts[1])
            fine = first == "include" or any((base / target).exists() for base in bases)
        elif own not in allowed:
            fine = False
        else:
            fine = first in allowed[own] and (first == "include" or (root / "src" / target).exists())
        if not fine and (str(here), first) not in debts:
            failures.append(f"{here}:{number}: {here.parts[0]}/{own} may not include \"{target}\"")
print("\n".join(failures) or f"{seen} includes are within the layers")
sys.exit(1 if failures or seen == 0 else 0)
