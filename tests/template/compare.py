#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders every template of a folder with our engine and with Jinja2 and prints where they differ.

usage: compare.py RENDER_CASES FOLDER [--show NAME]

RENDER_CASES is the program built from render_cases.cpp. A row per template: renderings that are equal, that differ, that
both refuse, and that one refuses alone. Differences end the program with status 1.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import conversations
import jinja_oracle


def ours(program, path, cases):
    lines = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    run = subprocess.run([program, str(path)], input=lines.encode(), capture_output=True, timeout=120)
    if run.returncode != 0:
        sys.exit(f"{path}: {run.stderr.decode()} {run.returncode}")
    out = [json.loads(line) for line in run.stdout.decode().split("\n") if line]
    if "error" in out[0]:
        return [out[0]] * len(cases)
    return out[1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--show")
    options = parser.parse_args()
    cases = conversations.conversations()
    total = [0] * 5
    print("equal differ refused_both only_ours only_theirs  template")
    for path in sorted(options.folder.glob("*.jinja")):
        source = path.read_text()
        theirs = jinja_oracle.render(source, cases.values())
        row = [0] * 5
        for name, mine, (text, problem) in zip(cases, ours(options.program, path, cases.values()), theirs):
            kind = 2 if "error" in mine and text is None else 3 if "error" in mine else 4 if text is None else \
                0 if mine["text"] == text else 1
            row[kind] += 1
            if kind in (1, 3, 4) and options.show in (path.name, "all") or options.show == "refused" and kind == 2:
                print(f"--- {path.name} {name}\n  ours:   {mine.get('error') or mine['text']!r}\n  theirs: {problem or text!r}")
        total = [a + b for a, b in zip(total, row)]
        print("{:5} {:6} {:12} {:9} {:11}  {}".format(*row, path.name))
    print("{:5} {:6} {:12} {:9} {:11}  all".format(*total))
    return 1 if total[1] + total[3] + total[4] else 0


sys.exit(main())
