#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every include of src/, cuda/, examples/ and bindings/ against layers.txt.

usage: layers.py <source root>
"""
import fnmatch
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
allowed, folders, kept, debts, failures, seen = {}, {}, {}, set(), [], 0
for line in (pathlib.Path(__file__).parent / "layers.txt").read_text().splitlines():
    if line.startswith("!"):
        debts.add(tuple(line.split()[1:3]))
    elif line.startswith("@"):
        header, rooms = line[1:].split(":")
        kept[header.strip()] = rooms.split()
    elif ":" in line and not line.startswith("#"):
        name, below = (part.strip() for part in line.split(":"))
        table = folders if "/" in name else allowed
        for other in below.split():
            if other != "include" and other not in table:
                failures.append(f"layers.txt: {name} names {other}, which does not stand above it")
        table[name] = {name, *below.split()}
divided = {name.split("/")[0] for name in folders}


def folder_of(parts):
    """The innermost folder with a line that a file lies in, folder/ where it lies at the top of a roof, else its room."""
    top = "/".join(parts[:-1]) + "/"
    if top in folders:
        return top
    above = ("/".join(parts[:n]) for n in range(len(parts) - 1, 1, -1))
    return next((folder for folder in above if folder in folders), parts[0])


def may_see(mine, other):
    """Whether what a folder's line and those of the folders around it name holds another one, or that is a top around it."""
    around = ["/".join(mine.split("/")[:n]) for n in range(1, mine.count("/") + 2)]
    named = {name for folder in {mine, *around} for name in folders.get(folder, ()) if name != folder}
    return other in {mine, *around} or any(other == name or other.startswith(name + "/") for name in named)


def keepers_of(name):
    return next((rooms for pattern, rooms in kept.items() if fnmatch.fnmatchcase(name, pattern)), None)


include = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')
for path in sorted(p for top in ("src", "cuda", "examples", "bindings") for p in (root / top).rglob("*")):
    if path.suffix not in (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"):
        continue
    here = path.relative_to(root)
    own = here.parts[1] if here.parts[0] == "src" else here.parts[0]
    inside = here.parts[0] in ("src", "cuda")
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = include.match(line)
        if not match:
            continue
        seen += 1
        style, target = match.groups()
        first = target.split("/")[0]
        keepers = keepers_of(target if style == '"' else "<" + target)
        if inside and keepers is not None and not {own, "/".join(here.parts[:2])} & set(keepers):
            if (str(here), target) not in debts:
                failures.append(f"{here}:{number}: only {', '.join(keepers)} may include {style}{target}")
            continue
        if style == "<" and first == "generate":
            first = "include"  # "generate/…" in quotes is the room
        elif style == "<" or first == "hwy":
            continue  # system and third-party headers
        if not inside:
            # A program's own headers, by a path from its folder or from examples/.
            bases = (path.parent, root / here.parts[0], root / here.parts[0] / here.parts[1])
            fine = first == "include" or any((base / target).exists() for base in bases)
        elif own not in allowed:
            fine = False
        else:
            fine = first in allowed[own] and (
                first == "include" or (root / ("" if first == "cuda" else "src") / target).exists())
            if fine and first == own and own in divided:
                parts = here.parts[1:] if here.parts[0] == "src" else here.parts
                fine = may_see(folder_of(parts), folder_of(target.split("/")))
        if not fine and (str(here), first) not in debts:
            place = "/".join((here.parts if own in divided else here.parts[:3])[:-1])
            failures.append(f"{here}:{number}: {place} may not include \"{target}\"")
print("\n".join(failures) or f"{seen} includes are within the layers")
sys.exit(1 if failures or seen == 0 else 0)
