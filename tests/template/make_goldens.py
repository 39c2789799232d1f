#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what Jinja2 makes of cases.py, and of the templates beside this file with conversations.py.

usage: make_goldens.py FOLDER        (needs Debian's python3-jinja2; the tests need neither)

Lines of JSON: {"template", "variables", "text"}, null where Jinja2 refuses. A line without variables has those before it.
"""
import json
import pathlib
import sys

import cases
import conversations
import jinja_oracle


def write(path, rows):
    with open(path, "w") as out:
        held = None
        for template, variables, text in rows:
            row = {"template": template, "text": text}
            if variables != held:
                row["variables"] = held = variables
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


folder = pathlib.Path(sys.argv[1])
here = pathlib.Path(__file__).parent
variables = {**cases.VARIABLES, "now": "2024-07-26T13:05:09"}
write(folder / "cases.golden", ((one, variables, jinja_oracle.render(one, [variables])[0][0]) for one in cases.cases()))
sources = {path.name: path.read_text() for path in sorted((here / "chat").glob("*.jinja"))}
write(folder / "chat.golden", ((name, one, jinja_oracle.render(source, [one])[0][0])
                               for one in conversations.conversations().values() for name, source in sources.items()))
