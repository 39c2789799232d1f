#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what is in the dynamic section of built programs and libraries: no place for libraries that anybody but the
builder could fill, and the marks of hardening where they were asked for. What is installed is looked at by
tests/packaging/install_test.sh.

usage: binaries.py --built <folder>… | --hardened <file>… | --marked <libgenerate.a>
"""
import pathlib
import re
import subprocess
import sys


def read(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def is_dynamic(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and head[16:18] in (b"\x02\x00", b"\x03\x00")  # ET_EXEC, ET_DYN


def search_path(path):
    found = re.search(r"\((?:RUN|R)PATH\).*\[(.*)\]", read("-d", path))
    return found.group(1).split(":") if found else []


def built(*folders):
    """An empty or relative element stands for the folder that the program is started in."""
    files = [path for folder in folders for path in sorted(pathlib.Path(folder).rglob("*")) if is_dynamic(path)]
    for path in files:
        for place in search_path(path):
            if not place.startswith(("/", "$ORIGIN")):
                yield f"{path}: looks for libraries in '{place}'"
    if len(files) < 2:
        yield f"{len(files)} programs and libraries in {' '.join(folders)}"


def hardened(*names):
    for name in names:
        dynamic, symbols = read("-d", name), read("--dyn-syms", name)
        if "GNU_RELRO" not in read("-l", name):
            yield f"{name}: relocations stay writable"
        if not re.search(r"\(FLAGS(_1)?\).*\b(BIND_NOW|NOW)\b", dynamic):
            yield f"{name}: symbols are bound late"
        if "__stack_chk_fail" not in symbols:
            yield f"{name}: no stack protector"
        if not re.search(r"__\w+_chk\b(?<!__stack_chk)", symbols.replace("__stack_chk_fail", "")):
            yield f"{name}: no checked copies"
        if re.search(r"GNU_STACK.*RWE", read("-l", name)):
            yield f"{name}: the stack may be executed"


def marked(archive):
    """Control-flow marks of our own objects: a linked file has them only where the system's start files have them, too."""
    parts = re.split(r"^File: .*\((.*)\)$", read("-n", archive), flags=re.M)[1:]
    for name, notes in zip(parts[::2], parts[1::2]):
        if not re.search(r"IBT.*SHSTK", notes):
            yield f"{name}: no control-flow marks"
    if len(parts) < 4:
        yield f"{archive}: no objects"


check = {"--built": built, "--hardened": hardened, "--marked": marked}[sys.argv[1]]
failures = list(check(*sys.argv[2:]))
print("\n".join(failures) or f"nothing wrong with {' '.join(sys.argv[2:])}")
sys.exit(1 if failures else 0)
