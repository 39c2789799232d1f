#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No page that is installed points to a place that is not there, nor one of the source tree.

usage: links_test.py FOLDER OF PAGES…
"""
import pathlib
import re
import sys

missing = []
seen = 0
for folder in map(pathlib.Path, sys.argv[1:]):
    pages = [page for page in folder.rglob("*.md") if "build" not in page.relative_to(folder).parts]
    assert pages, folder
    for page in pages:
        text = re.sub(r"^(```|    ).*?$", "", page.read_text(), flags=re.M)
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" in link:
                continue
            seen += 1
            if not (page.parent / link).exists():
                missing.append(f"{page}: {link}")
assert seen > 20, seen
if missing:
    sys.exit("\n".join(missing))
