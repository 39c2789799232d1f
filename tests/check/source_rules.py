#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks rules of the house that a search can see: SPDX lines, no output and no process end in src/, no tabs.

usage: source_rules.py <source root>
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
BANNED = [
    (r"\bstd::(cout|cerr|clog)\b|\b(stdout|stderr)\b", "prints"),
    (r"(?<![\w.>])(?:std::)?(?:printf|fprintf|vprintf|vfprintf|puts|putchar|fputs|perror)\s*\(", "prints"),
    (r"(?<![\w.>])(?:std::)?(?:abort|exit|_exit|quick_exit|terminate)\s*\(", "ends the process"),
    (r"\bassert\s*\(", "ends the process"),
    (r"\bthread_local\b", "is per-thread state"),
    (r"\bstd::j?thread\b(?!::id)|\bstd::async\b|\bpthread_create\b", "starts a thread, which is for base/thread.cpp"),
    (r"\bstd::\w+_distribution\b|\bs?rand\s*\(", "differs between machines"),
]
failures, files = [], 0
for top in ("src", "include", "cuda", "examples", "tests", "bindings"):
    for path in sorted((root / top).rglob("*")):
        if path.suffix not in (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".py", ".sh"):
            continue
        files += 1
        here, text = path.relative_to(root), path.read_text()
        if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:3]):
            failures.append(f"{here}:1: no SPDX line")
        if top in ("src", "include") and "\t" in text:
            failures.append(f"{here}: holds a tab")
        if top != "src":
            continue
        # Comments and strings may name anything; what remains keeps its line numbers.
        blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
        code = re.sub(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)
        for number, line in enumerate(code.splitlines(), 1):
            failures += [f"{here}:{number}: {why}: {line.strip()}" for pattern, why in BANNED if re.search(pattern, line)
                         and not why.endswith(str(here.relative_to("src")))]
print("\n".join(failures) or f"{files} files keep the rules")
sys.exit(1 if failures or files == 0 else 0)
