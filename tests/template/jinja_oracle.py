# SPDX-License-Identifier: Apache-2.0
"""Jinja2 as transformers sets it up for chat templates: what our engine is compared with (Debian: python3-jinja2)."""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @staticmethod
    def _body(caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment(now="2024-07-26T13:05:09"):
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime.fromisoformat(now).strftime(form)
    return made


def render(source, cases):
    """A list: the text of each case, or None with the message where Jinja2 raises; one entry where it does not compile."""
    results = []
    for case in cases:
        case = dict(case)
        try:
            template = environment(case.pop("now", "2024-07-26T13:05:09")).from_string(source)
            results.append((template.render(**case), None))
        except RecursionError as problem:
            results.append((None, "recursion: " + str(problem)))
        except Exception as problem:  # whatever it raises: ours is to refuse it, too
            results.append((None, f"{type(problem).__name__}: {problem}"))
    return results
