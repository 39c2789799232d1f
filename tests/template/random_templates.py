#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random template programs and contexts, rendered with our engine and with Jinja2.

usage: random_templates.py RENDER_CASES [--count N] [--seed S] [--show N] [--golden FILE]

RENDER_CASES is the program built from render_cases.cpp. Prints how many are equal, differ, are refused by both or by one,
and shows the first N of those that are not alike. --golden writes short programs that are equal, with what Jinja2 makes of them, as
rows for template_golden_test.
"""
import argparse
import collections
import json
import random
import subprocess
import sys

import jinja_oracle

NOW = "2024-07-26T13:05:09"
WORDS = ["a", "Bc", "hello world", "", " x ", "user", "<|im_end|>", "it's", "line\nnext", "Grüße", "你好 ß", "q\"q", "a,b,c", "12",
         "-3.5", "0", "<b>&</b>", "X-Y_z", "tab\there", "🦙", "A B  C", "\u00a0", "e\u0301", "\x7f", "\\", "{x}", "%s", "http://a.b/c"]
TRUNCATE = ["3", "5, true", "4, false, '..', 0", "8, true, '', 1"]
TOJSON = ["", "", "(indent=2)", "(sort_keys=true)", "(ensure_ascii=true)", "(indent=1, separators=(',', ':'))", "(separators=(',', ':'))",
          "(indent='--')", "(indent=0)"]
ROWS = ["list", "sort", "unique|list", "reverse|list", "reverse", "select", "map('string')", "sort(reverse=true)",
        "sort(case_sensitive=true)", "select|list", "reject|list", "unique(true)|list"]
ROUND = ["", "(1)", "(2)", "(0, 'ceil')", "(1, 'floor')", "(-1)"]
KEYS = ["a", "b", "role", "content", "x y", "n", "A", "zz"]


class Maker:
    """Expressions by the type that they should have; now and then of another."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = []
        self.loops = 0
        self.count = 0
        self.macros = []

    def pick(self, rows):
        return self.r.choice(rows)

    def text(self):
        word = self.pick(WORDS)
        return json.dumps(word, ensure_ascii=False).replace("\\u", "\\u") if self.r.random() < 0.5 else \
            "'" + word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t") + "'"

    def value(self, depth=0):
        kind = self.r.random()
        if kind < 0.3:
            return self.pick(WORDS)
        if kind < 0.45:
            return self.r.randint(-5, 50)
        if kind < 0.52:
            return self.pick([0.5, -2.25, 1e20, 3.0, 1e-7, 12345.678, 0.1])
        if kind < 0.6:
            return self.pick([True, False])
        if kind < 0.65:
            return None
        if depth > 2:
            return self.pick(WORDS)
        if kind < 0.83:
            return [self.value(depth + 1) for _ in range(self.r.randint(0, 4))]
        return {self.pick(KEYS): self.value(depth + 1) for _ in range(self.r.randint(0, 4))}

    def context(self):
        made = {"s": self.pick(WORDS), "u": self.pick(WORDS), "n": self.r.randint(-4, 30), "f": self.pick([0.5, -1.5, 2.0, 1e16]),
                "t": True, "no": None, "l": [self.r.randint(0, 9) for _ in range(self.r.randint(1, 5))],
                "w": [self.pick(WORDS) for _ in range(self.r.randint(1, 5))],
                "d": {self.pick(KEYS): self.value(1) for _ in range(self.r.randint(0, 5))}, "v": self.value(),
                "rows": [{"a": self.r.randint(0, 3), "b": self.pick(WORDS), "role": self.pick(["user", "assistant", "tool"]),
                          "content": self.pick([None, "x", [{"type": "text", "text": "y"}]])} for _ in range(self.r.randint(1, 4))]}
        return made

    # Expressions.
    def expr(self, kind, depth):
        if self.r.random() < 0.03:
            kind = self.pick(["str", "int", "bool", "list", "dict", "any"])
        if depth <= 0:
            return self.leaf(kind)
        return getattr(self, "of_" + kind)(depth - 1)

    def leaf(self, kind):
        local = [name for name, of in self.names if of == kind or kind == "any" or of == "any"]
        if local and self.r.random() < 0.4:
            return self.pick(local)
        return self.pick({
            "str": ["s", "u", self.text(), self.text(), "rows[0].b", "w[0]"],
            "int": ["n", str(self.r.randint(0, 12)), "l[0]", "rows[-1].a"],
            "num": ["f", "n", "1.5", "2", "0.1", "1e3"],
            "bool": ["t", "true", "false", "no", "n", "undef"],
            "list": ["l", "w", "rows", "[]", "[1, 2, 3]", "['b', 'A', 'c']", "(1, 'x')"],
            "rows": ["rows"],
            "dict": ["d", "{}", "{'a': 1, 'b': 'x'}", "rows[0]"],
            "any": ["v", "no", "s", "l", "d", "n", "f", "undef", "d.a", "v[0]", "true"],
        }[kind])

    def args(self, *parts):
        return ", ".join(part for part in parts if part)

    def maybe(self, text, chance=0.5):
        return text if self.r.random() < chance else ""

    def of_str(self, depth):
        e, p = self.expr, self.pick
        s = e("str", depth)
        return p([
            lambda: f"{s} ~ {e('any', depth)}", lambda: f"({s} + {e('str', depth)})", lambda: f"({s})[{self.slice(depth)}]",
            lambda: f"({s})[{p(['0', '-1', '1', '5'])}]",
            lambda: f"{self.atom(s)}.{p(['upper', 'lower', 'title', 'strip', 'capitalize', 'swapcase', 'lstrip', 'rstrip'])}()",
            lambda: f"{self.atom(s)}.{p(['strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix'])}({self.text()})",
            lambda: f"{self.atom(s)}.replace({self.text()}, {e('str', 0)}{self.maybe(', ' + p(['1', '2', '0', '-1']), 0.3)})",
            lambda: f"{self.atom(s)}.{p(['center', 'ljust', 'rjust', 'zfill'])}({self.r.randint(0, 12)})",
            lambda: f"{self.atom(s)}.join({e('list', depth)})",
            lambda: f"{self.atom(s)}|{p(['upper', 'lower', 'title', 'trim', 'capitalize', 'string', 'e', 'escape', 'safe', 'forceescape', 'striptags', 'urlencode', 'wordcount', 'reverse', 'pprint', 'urlize'])}",
            lambda: f"{self.atom(s)}|trim({self.text()})",
            lambda: f"{self.atom(s)}|replace({self.text()}, {e('str', 0)})",
            lambda: f"{self.atom(s)}|indent({p(['2', '4', chr(39) + '> ' + chr(39), 'first=true', '3, blank=true', '1, true, true'])})",
            lambda: f"{self.atom(s)}|truncate({p(TRUNCATE)})",
            lambda: f"{self.atom(s)}|center({self.r.randint(0, 15)})",
            lambda: f"{self.atom(s)}|wordwrap({self.args(str(self.r.randint(1, 12)), self.maybe('false', 0.3), self.maybe('wrapstring=' + self.text(), 0.2), self.maybe('break_on_hyphens=false', 0.2))})",
            lambda: f"{self.atom(e('any', depth))}|tojson{p(TOJSON)}",
            lambda: f"{self.atom(e('any', depth))}|{p(['string', 'pprint', 'e', 'd', 'default', 'urlencode'])}",
            lambda: f"{self.atom(e('list', depth))}|join",
            lambda: f"{self.atom(e('list', depth))}|join({self.text()})",
            lambda: f"rows|join({self.text()}, attribute={p([chr(39) + k + chr(39) for k in ('a', 'b', 'zz', 'content')])})",
            lambda: f"{self.fmt()}", lambda: f"({s} * {self.r.randint(-1, 3)})",
            lambda: f"{self.atom(s)}.split({self.maybe(self.text())})[{p(['0', '-1'])}]",
            lambda: f"({s} if {e('bool', depth)} else {e('str', depth)})", lambda: f"({s} or {e('str', depth)})",
            lambda: f"{self.atom(e('dict', depth))}.get({p([repr(k) for k in KEYS])}, {s})",
            lambda: f"{self.atom(e('num', depth))}|filesizeformat{p(['', '(true)'])}",
            lambda: f"{self.atom(e('dict', depth))}|xmlattr{p(['', '(false)'])}",
            lambda: f"strftime_now({p([chr(39) + f + chr(39) for f in ('%d %b %Y', '%H:%M', '%A %j %U %-d', '%Y%%')])})",
            lambda: self.call(depth),
        ])()

    def call(self, depth):
        if not self.macros:
            return self.text()
        name, params = self.pick(self.macros)
        given = [self.expr("any", depth) for _ in range(self.r.randint(0, params))]
        return f"{name}({', '.join(given)})"

    def fmt(self):
        e, p = self.expr, self.pick
        return p([
            lambda: f"'%s|%s' % ({e('any', 1)}, {e('any', 1)})", lambda: f"'%d %5d %-5d| %05d %+d' % (({e('int', 1)},) * 5)",
            lambda: f"'%.2f %8.3f %g %e' % (({e('num', 1)},) * 4)", lambda: f"'%x %o %X' % ((({e('int', 1)})|abs,) * 3)",
            lambda: f"'%s' % {self.atom(e('any', 1))}", lambda: f"'%(a)s-%(b)r' % {{'a': {e('any', 1)}, 'b': {e('any', 1)}}}",
            lambda: f"'{{}} {{:>6}} {{!r}}'.format({e('any', 1)}, {e('str', 1)}, {e('any', 1)})",
            lambda: f"'{{0}}-{{0:5}}|{{1:.1f}}|{{1:,}}'.format({e('int', 1)}, {e('num', 1)})",
            lambda: f"'{{x}}:{{y[a]}}'.format(x={e('any', 1)}, y={{'a': {e('any', 1)}}})",
            lambda: f"'%s %r'|format({e('any', 1)}, {e('any', 1)})", lambda: f"'%r' % ({e('any', 1)},)",
            lambda: f"'{{:{p(['<8', '^8', '>8', '*^9', '08', '+', ' ', ',', '_', 'e', 'g', '.3g', '.0f', '%', '.1%', 'x', '#x', 'b', 'd', '=+6', ''])}}}'.format({e(p(['int', 'num', 'str']), 1)})",
        ])()

    def slice(self, depth):
        part = lambda: self.pick(["", "", "0", "1", "2", "-1", "-2", "10"])  # noqa: E731
        return f"{part()}:{part()}" + self.pick(["", "", ":2", ":-1", ":" + self.pick(["1", "-2"])])

    def atom(self, text):
        return text if text.replace("_", "a").isalnum() and not text[0].isdigit() else f"({text})"

    def of_int(self, depth):
        e, p = self.expr, self.pick
        i = e("int", depth)
        return p([
            lambda: f"({i} {p(['+', '-', '*', '//', '%'])} {e('int', depth)})", lambda: f"{self.atom(e('list', depth))}|length",
            lambda: f"{self.atom(e('str', depth))}|length", lambda: f"{self.atom(e('any', depth))}|count", lambda: f"-{self.atom(i)}",
            lambda: f"{self.atom(e('any', depth))}|int{p(['', '(7)', '(0, 16)', '(default=-1)'])}", lambda: f"{self.atom(i)}|abs",
            lambda: f"{self.atom(e('str', depth))}.{p(['find', 'rfind', 'count', 'index'])}({self.text()})",
            lambda: f"{self.atom(e('list', depth))}.{p(['index', 'count'])}({e('any', 0)})", lambda: f"l|{p(['sum', 'max', 'min', 'first', 'last'])}",
            lambda: f"rows|sum(attribute='a', start={i})", lambda: f"{self.atom(i)} ** {p(['2', '3', '0'])}",
            lambda: f"({i} if {e('bool', depth)} else {e('int', depth)})", lambda: p(["loop.index", "loop.index0", "loop.revindex", "loop.length", "loop.depth"]) if self.loops else i,
        ])()

    def of_num(self, depth):
        e, p = self.expr, self.pick
        a = e("num", depth)
        return p([
            lambda: f"({a} {p(['+', '-', '*', '/', '//', '%'])} {e('num', depth)})", lambda: f"{self.atom(a)}|round{p(ROUND)}",
            lambda: f"{self.atom(e('any', depth))}|float{p(['', '(1.5)'])}", lambda: f"-{self.atom(a)}", lambda: f"{self.atom(a)}|abs",
            lambda: e("int", depth), lambda: f"{self.atom(a)} ** {p(['2', '0.5', '-1'])}",
        ])()

    def of_bool(self, depth):
        e, p = self.expr, self.pick
        return p([
            lambda: f"{self.atom(e('any', depth))} is {p(['', 'not '])}{p(['defined', 'undefined', 'none', 'string', 'number', 'mapping', 'iterable', 'sequence', 'boolean', 'true', 'false', 'integer', 'float', 'callable', 'lower', 'upper', 'escaped'])}",
            lambda: f"{self.atom(e('int', depth))} is {p(['odd', 'even', 'divisibleby 3', 'divisibleby(2)', 'eq 2', 'gt(3)', 'lessthan 4', 'in l', 'sameas 1'])}",
            lambda: f"({e('any', depth)} {p(['==', '!=', 'in', 'not in'])} {e('any', depth)})",
            lambda: f"({e('num', depth)} {p(['<', '>', '<=', '>=', '=='])} {e('num', depth)})",
            lambda: f"({e('str', depth)} {p(['<', '>', '<=', '>=', '==', 'in', 'not in'])} {e('str', depth)})",
            lambda: f"({e('any', depth)} in {e('list', depth)})", lambda: f"({e('str', depth)} in {e('dict', depth)})",
            lambda: f"not {self.atom(e('bool', depth))}", lambda: f"({e('bool', depth)} {p(['and', 'or'])} {e('bool', depth)})",
            lambda: f"{self.atom(e('str', depth))}.{p(['startswith', 'endswith'])}({self.text()})",
            lambda: f"{self.atom(e('str', depth))}.{p(['isdigit', 'isalpha', 'isspace', 'isupper', 'islower', 'isalnum', 'isnumeric', 'istitle', 'isdecimal', 'isidentifier', 'isprintable', 'isascii'])}()",
            lambda: f"({e('num', depth)} < {e('num', depth)} <= {e('num', depth)})", lambda: e("any", depth),
            lambda: p(["loop.first", "loop.last", "loop.previtem is defined", "loop.nextitem is defined", f"loop.changed({e('any', 0)})"]) if self.loops else "t",
        ])()

    def of_list(self, depth):
        e, p = self.expr, self.pick
        a = self.atom(e("list", depth))
        return p([
            lambda: f"[{', '.join(e('any', depth) for _ in range(self.r.randint(0, 3)))}]", lambda: f"({a} + {e('list', depth)})",
            lambda: f"{a}[{self.slice(depth)}]", lambda: f"{a}|{p(ROWS)}",
            lambda: f"{a}|map({p([repr(x) for x in ('upper', 'int', 'length', 'tojson', 'trim', 'float', 'list', 'first', 'string', 'default')])})|list",
            lambda: f"{a}|{p(['select', 'reject'])}({p([repr(x) for x in ('odd', 'string', 'number', 'defined', 'none', 'mapping')])})|list",
            lambda: f"{a}|{p(['select', 'reject'])}({p([repr(x) for x in ('equalto', 'gt', 'in', 'ne')])}, {e('any', 0)})|list",
            lambda: f"rows|{p(['selectattr', 'rejectattr'])}({p([repr(x) for x in ('a', 'b', 'role', 'content', 'zz')])}{p(['', ', ' + repr('equalto') + ', ' + e('any', 0), ', ' + repr('none'), ', ' + repr('defined')])})|list",
            lambda: f"rows|map(attribute={p([repr(x) for x in ('a', 'b', 'role', 'zz')])}{p(['', ', default=' + e('any', 0)])})|list",
            lambda: f"rows|sort(attribute={p([repr(x) for x in ('a', 'b', 'a,b', 'role')])}{p(['', ', reverse=true'])})", lambda: f"rows|groupby({p([repr(x) for x in ('a', 'role', 'b')])})",
            lambda: f"{a}|batch({self.r.randint(1, 3)}{p(['', ', ' + self.text()])})|list", lambda: f"{a}|slice({self.r.randint(1, 3)}{p(['', ', 0'])})|list",
            lambda: f"range({self.r.randint(-2, 6)}{p(['', ', ' + str(self.r.randint(-2, 8)), ', 9, 3'])})|list",
            lambda: f"{self.atom(e('str', depth))}.{p(['split', 'rsplit'])}({p(['', self.text(), 'none, 1', self.text() + ', 1'])})", lambda: f"{self.atom(e('str', depth))}.{p(['splitlines()', 'splitlines(true)', 'partition(' + self.text() + ')', 'rpartition(' + self.text() + ')'])}",
            lambda: f"{self.atom(e('dict', depth))}.{p(['items()', 'keys()', 'values()', 'items()|list', 'keys()|list', 'values()|list'])}",
            lambda: f"{self.atom(e('dict', depth))}|{p(['items|list', 'dictsort', 'list', 'dictsort(true)', 'dictsort(reverse=true)', 'dictsort(by=' + repr('value') + ')'])}",
            lambda: f"({a} if {e('bool', depth)} else {e('list', depth)})", lambda: f"({a} * {self.r.randint(0, 2)})", lambda: f"{self.atom(e('str', depth))}|list",
            lambda: f"({e('any', depth)}, {e('any', depth)})",
        ])()

    def of_rows(self, depth):
        return "rows"

    def of_dict(self, depth):
        e, p = self.expr, self.pick
        return p([
            lambda: "{" + ", ".join(f"{p([repr(k) for k in KEYS] + ['1', 'none', 'true', '2.5'])}: {e('any', depth)}" for _ in range(self.r.randint(0, 3))) + "}",
            lambda: f"dict({self.args(self.maybe(e('dict', depth)), self.maybe('a=' + e('any', depth)), self.maybe('zz=' + e('any', depth)))})",
            lambda: f"dict({self.atom(e('dict', depth))}.items())", lambda: "rows[0]", lambda: f"({e('dict', depth)} if {e('bool', depth)} else {e('dict', depth)})",
        ])()

    def of_any(self, depth):
        e, p = self.expr, self.pick
        kind = p(["str", "int", "num", "bool", "list", "dict", "str", "list", "x", "x"])
        if kind != "x":
            return e(kind, depth)
        return p([
            lambda: f"{self.atom(e('dict', depth))}[{p([repr(k) for k in KEYS])}]", lambda: f"{self.atom(e('dict', depth))}.{p(['a', 'b', 'role', 'n', 'zz'])}",
            lambda: f"{self.atom(e('list', depth))}[{p(['0', '-1', '1', '7'])}]", lambda: f"{self.atom(e('list', depth))}|{p(['first', 'last', 'min', 'max'])}",
            lambda: f"({e('any', depth)} if {e('bool', depth)})", lambda: f"{self.atom(e('any', depth))}|default({e('any', depth)}{p(['', ', true'])})",
            lambda: f"({e('any', depth)} {p(['and', 'or'])} {e('any', depth)})", lambda: f"{self.atom(e('any', depth))}|attr({p([repr(k) for k in KEYS])})",
            lambda: p(["loop.previtem", "loop.nextitem", f"loop.cycle({e('any', 0)}, {e('any', 0)})"]) if self.loops else "v",
        ])()

    # Statements.
    def fresh(self):
        self.count += 1
        return f"x{self.count % 4}"

    def dash(self):
        return self.pick(["", "", "", "-", "-", "+"])

    def tag(self, inner):
        return "{%" + self.dash() + " " + inner + " " + self.pick(["", "", "", "-"]) + "%}"

    def out(self, depth):
        return "{{" + self.pick(["", "", "-"]) + " " + self.expr(self.pick(["any", "str", "str", "any", "int", "num", "bool", "list", "dict"]), depth) + " " + self.pick(["", "", "-"]) + "}}"

    def space(self):
        return self.pick(["", "", "\n", "  ", "\n  ", "text", " \n\n", "- "])

    def body(self, depth, n=None):
        names, macros = list(self.names), list(self.macros)
        made = "".join(self.space() + self.statement(depth) for _ in range(n or self.r.randint(1, 3))) + self.space()
        self.names, self.macros = names, macros
        return made

    def statement(self, depth):
        kind = self.r.random()
        if depth <= 0 or kind < 0.4:
            return self.out(self.r.randint(0, 3))
        depth -= 1
        e = self.expr
        if kind < 0.52:
            name = self.fresh()
            of = self.pick(["str", "int", "any", "list", "dict"])
            made = self.tag(f"set {name} = {e(of, 2)}")
            self.names.append((name, of))
            return made
        if kind < 0.66:
            made = self.tag(f"if {e('bool', 2)}") + self.body(depth)
            if self.r.random() < 0.3:
                made += self.tag(f"elif {e('bool', 1)}") + self.body(depth)
            if self.r.random() < 0.5:
                made += self.tag("else") + self.body(depth)
            return made + self.tag("endif")
        if kind < 0.83:
            name = self.fresh()
            names = list(self.names)
            source = self.pick([lambda: (name, e("list", 2), "any"), lambda: (name, "rows", "dict"), lambda: (f"{name}, {self.fresh()}", self.atom(e("dict", 1)) + ".items()", "any"), lambda: (name, self.atom(e("str", 1)), "str")])()
            head = f"for {source[0]} in {source[1]}"
            self.names += [(one.strip(), source[2]) for one in source[0].split(",")]
            if self.r.random() < 0.2:
                head += f" if {e('bool', 1)}"
            self.loops += 1
            made = self.tag(head) + self.body(depth)
            if self.r.random() < 0.15:
                made += self.tag(f"if {e('bool', 1)}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif") + self.body(0, 1)
            self.loops -= 1
            self.names = names
            if self.r.random() < 0.2:
                made += self.tag("else") + self.body(0, 1)
            return made + self.tag("endfor")
        if kind < 0.87:
            name = self.fresh()
            made = self.tag(f"set {name}" + self.pick(["", "", " | upper", " | trim | replace('a', 'b')"])) + self.body(depth) + self.tag("endset")
            self.names.append((name, "str"))
            return made
        if kind < 0.91:
            self.count += 1
            name, params = f"m{self.count}", self.r.randint(0, 3)
            given = [f"p{i}" + self.pick(["", ""]) for i in range(params)]
            if params:
                given[-1] += self.maybe("=" + e("any", 1))
            names, loops = list(self.names), self.loops
            self.names += [(f"p{i}", "any") for i in range(params)]
            self.loops = 0
            body = self.body(depth) + self.maybe("{{ varargs }}", 0.1) + self.maybe("{{ kwargs }}", 0.1) + self.maybe("{{ caller() if caller is defined }}", 0.2)
            self.names, self.loops = names, loops
            made = self.tag(f"macro {name}({', '.join(given)})") + body + self.tag("endmacro")
            self.macros.append((name, params))
            if self.r.random() < 0.3:
                return made + self.tag(f"call {name}({', '.join(e('any', 1) for _ in range(params))})") + self.body(0, 1) + self.tag("endcall")
            return made + "{{ " + self.call(1) + " }}"
        if kind < 0.94:
            name = self.fresh()
            names = list(self.names)
            head = f"with {name} = {e('any', 1)}"
            self.names.append((name, "any"))
            made = self.tag(head) + self.body(depth) + self.tag("endwith")
            self.names = names
            return made
        if kind < 0.96:
            return self.tag("filter " + self.pick(["upper", "trim", "replace('a', 'o')", "indent(2)", "title", "length"])) + self.body(depth) + self.tag("endfilter")
        if kind < 0.98:
            name = "ns" + str(self.count % 3)
            self.names.append((name + ".a", "any"))
            return self.tag(f"set {name} = namespace(a={e('any', 1)})") + self.tag(f"set {name}.a = {e('any', 1)}") + self.tag(f"for i in l") + self.tag(f"set {name}.a = {name}.a ~ i") + self.tag("endfor")
        return self.pick([lambda: self.tag("generation") + self.body(depth) + self.tag("endgeneration"), lambda: "{#" + self.dash() + " note {{ x }} " + self.pick(["", "-"]) + "#}",
                          lambda: "{% raw %}{{ s }}{% endraw %}", lambda: self.tag("raw") + " {% x " + self.tag("endraw")])()

    def program(self):
        return self.body(3, self.r.randint(1, 4))


def made(seed):
    maker = Maker(seed)
    context = maker.context()
    return maker.program(), {**context, "now": NOW}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--golden")
    options = parser.parse_args()
    cases = [made(seed) for seed in range(options.seed, options.seed + options.count)]
    lines = "".join(json.dumps({"template": source, "variables": context}, ensure_ascii=False) + "\n" for source, context in cases)
    run = subprocess.run([options.program], input=lines.encode(), capture_output=True, timeout=600)
    if run.returncode != 0:
        sys.exit(f"{run.stderr.decode()} {run.returncode}")
    ours = [json.loads(line) for line in run.stdout.decode().split("\n") if line]
    counts = collections.Counter()
    shown = 0
    golden = []
    for seed, ((source, context), mine) in enumerate(zip(cases, ours), options.seed):
        text, problem = jinja_oracle.render(source, [context])[0]
        kind = "both refuse" if "error" in mine and text is None else "printed object" if "has no text" in mine.get("error", "") else "only we refuse" if "error" in mine else \
            "only Jinja2 refuses" if text is None else "equal" if mine["text"] == text else "differ"
        counts[kind] += 1
        if kind == "equal" and 150 < len(source) < 700 and len(text) < 400 and len(golden) < 120:
            golden.append({"template": source, "text": text, "variables": context})
        elif kind not in ("equal", "both refuse", "printed object") and shown < options.show:
            shown += 1
            print(f"--- {kind}, seed {seed}\n{source}\n  with {json.dumps(context, ensure_ascii=False)}\n"
                  f"  ours:   {mine.get('error') or mine['text']!r}\n  theirs: {problem or text!r}")
    print(dict(counts))
    if options.golden:
        with open(options.golden, "w") as out:
            for row in golden:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return 0 if set(counts) <= {"equal", "both refuse", "printed object"} else 1


if __name__ == "__main__":
    sys.exit(main())
