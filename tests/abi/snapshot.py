#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public headers as one file without their comments, to keep as the interface of a released state.

usage: snapshot.py SOURCE_ROOT > tests/abi/VERSION/generate.h
"""
import pathlib
import re
import sys


def snapshot(include, seen, name):
    if name in seen:
        return ""
    seen.add(name)
    text = re.sub(r"/\*.*?\*/", "", (include / name).read_text(), flags=re.S)
    before = "".join(snapshot(include, seen, other) for other in re.findall(r'^#include "(.*)"', text, re.M))
    text = re.sub(r'^#include ".*"\n', "", text, flags=re.M)
    return before + re.sub(r"\s*\n\s*\n", "\n", re.sub(r"[ \t]+\n", "\n", text)).strip() + "\n"


def whole(root):
    include, seen = pathlib.Path(root) / "include" / "generate", set()
    return ("/* SPDX-License-Identifier: Apache-2.0 */\n"
            "/* Made by tests/abi/snapshot.py of the public headers as they were; never to be edited. */\n"
            + snapshot(include, seen, "generate.h"))


if __name__ == "__main__":
    sys.stdout.write(whole(sys.argv[1]))
