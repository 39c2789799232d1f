#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Today's binary interface holds what an earlier one promised: abidiff finds nothing removed or changed between the kept
headers and today's, and the library exports every function of the kept ones.

The two are compared as libraries that define each declared function with an empty body: types and sizes are the headers', which
the real functions are compiled against, and only they.

usage: abi_test.py SOURCE_ROOT LIBRARY C_COMPILER KEPT_HEADER WORK_DIR
"""
import pathlib
import re
import subprocess
import sys

from snapshot import whole

root, library, compiler, kept, work = sys.argv[1:]
work = pathlib.Path(work)
work.mkdir(parents=True, exist_ok=True)


def stub(name, header):
    """A library with debug information that defines what a header declares; its functions' names."""
    source, out, defined = work / (name + ".c"), work / f"lib{name}.so", []
    bodies = []
    for declaration in re.findall(r"^GEN_API\b([^;{]*);", header, re.M):
        words = " ".join(declaration.split())
        defined.append(re.search(r"\b(\w+)\(", words).group(1))
        bodies.append(words + (" {}" if words.startswith("void ") and not words.startswith("void *") else " { return 0; }"))
    source.write_text(header + "\n" + "\n".join(bodies) + "\n")
    subprocess.run([compiler, "-std=c11", "-g", "-O0", "-w", "-shared", "-fPIC", "-Wl,-soname,libgenerate.so.0", "-o", out,
                    source], check=True)
    return out, defined


old, promised = stub("kept", pathlib.Path(kept).read_text())
new, _ = stub("today", whole(root))
listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1] for line in listed.splitlines()}
missing = [name for name in promised if name + "@@GEN_0" not in exported and name + "@@GEN_EXPERIMENTAL" not in exported]
if missing:
    sys.exit("the library no longer exports " + ", ".join(missing))


def constants(header):
    return dict(re.findall(r"^(?:#define)?\s*((?:GEN|KV)_\w+)(?: =)? (-?\d+(?: << \d+)?)\b", header, re.M))


kept_constants, todays = constants(pathlib.Path(kept).read_text()), constants(whole(root))
for name in ("GEN_VERSION_MAJOR", "GEN_VERSION_MINOR", "GEN_VERSION_PATCH"):
    del kept_constants[name]
changed = [name for name, value in kept_constants.items() if todays.get(name) != value]
if changed or len(kept_constants) < 40:
    sys.exit("other numbers than before: " + ", ".join(changed))
compared = subprocess.run(["abidiff", "--no-added-syms", "--suppr", root + "/tests/abi/growth.suppr", old, new], capture_output=True, text=True)
if compared.returncode:
    sys.exit(compared.stdout + compared.stderr)


def layout(name, header, members):
    """Where the members of structs lie, as the compiler has it."""
    source, out = work / (name + "_layout.c"), work / (name + "_layout")
    lines = [f'printf("{s}.{m} %zu %zu\\n", offsetof({s}, {m}), sizeof((({s} *)0)->{m}));' for s, m in members]
    source.write_text(header + "\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\n}\n")
    subprocess.run([compiler, "-std=c11", "-w", "-o", out, source], check=True)
    return subprocess.run([out], check=True, capture_output=True, text=True).stdout.splitlines()


# abidiff is told to let structs with struct_size grow, and then lets them change, too.
members = []
for body, name in re.findall(r"typedef struct \w+ \{([^}]*)\} (\w+);", pathlib.Path(kept).read_text()):
    if "struct_size" in body:
        for part in (" ".join(part.split()) for part in body.split(";")):
            found = re.search(r"\(\*(\w+)\)|(\w+)$", part)
            if found:
                members.append((name, found.group(1) or found.group(2)))
before, after = layout("kept", pathlib.Path(kept).read_text(), members), layout("today", whole(root), members)
moved = [f"{old_line}, today {new_line}" for old_line, new_line in zip(before, after) if old_line != new_line]
if moved or len(members) < 40:
    sys.exit("other places than before: " + "; ".join(moved))
if len(promised) < 200:
    sys.exit(f"only {len(promised)} functions were found in {kept}")
print(f"{len(promised)} functions are as they were")
