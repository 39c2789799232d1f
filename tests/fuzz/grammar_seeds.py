#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Grammars with every construct that grammar_fuzz knows.

usage: grammar_seeds.py FOLDER
"""
import pathlib
import sys

GBNF = {
    "rules": 'root ::= x y? | "b"* # c\nx ::= [a-c] | [^ab]\ny ::= (x "," .)+\n',
    "counts": 'root ::= "a"{2} "b"{1,} "c"{0,3} ("ab" | "a"){70,90} x{100}\nx ::= "a" | ""\n',
    "left": 'root ::= root "+" t | t\nt ::= t t | "(" root ")" | [0-9]+\n',
    "ring": 'root ::= a\na ::= b "x" | "a"\nb ::= a{1,2} "b" | "b"\n',
    "tokens": 'root ::= "a" <[28]> <1> !<[3]>\n',
    "escapes": 'root ::= "\\x41\\u00e9\\U0001F999\\n\\"" [\\]\\\\\\u00e9-\\u00ea]\n',
    "empty": 'root ::= (x | "")* x\nx ::= ("a" | "")* ("b" | "")\n',
    "wrong": 'root ::= ("a" | [b-a] "\\q"\n',
    "json": 'root ::= v\nv ::= "{" (s ":" v ("," s ":" v)*)? "}" | "[" (v ("," v)*)? "]" | s | [0-9]+\n'
            's ::= "\\"" ([^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\bfnrt])* "\\""\n',
}
REGEX = {
    "classes": "[a-c\\d_]+[^\\w\\n]?.\\s*",
    "groups": "^(a|(?:b)|(?<n>c))*?$",
    "counts": "a{2}b{1,}c{0,3}?(ab|a){70,90}|{",
    "escapes": "\\x41\\u00e9\\u{1F999}\\uD83E\\uDD99\\cA\\0\\t\\$",
    "wrong": "(a)\\1",
    "around": "^(?=.*a)(?!.*bb)(?<!c)\\b[ab]{1,9}(?<=a)\\B$|(?<!x(?=y))y",
    "unicode": "\\p{Lu}\\P{L}[\\p{Script=Greek}\\p{scx=Latn}]*",
    "annex": "\\101\\8[a-\\d][\\c1]\\c(?=a)*\\u{61}\\xg",
}
LARK = {
    "rules": 'start: x "," y? -> z | A~2..3 # c\nx.2: "a" | "b"i*\n?y: [x] (A x)+ {1,3}\nA: /[a-c]/ "a".."c"\n',
    "ignore": '%llguidance {"allow_initial_skip": true, "ignore_once": true}\nstart: A A\nA: "a"\n%ignore " "\n%ignore /0+/\n',
    "import": '%import common.INT\n%import common (CNAME -> N, WS)\nstart: INT N | WS\n',
    "automata": 'start: A b c d\nA: ~/a+/ & /[abc]{,3}/ & ~"b"\nb[lazy]: /.*a/\nc[suffix="("]: /a*/\nd[stop=A]: /(?s:.)*/\n',
    "patterns": 'start: /(?P<a>[^a-c\\d]|\\pL\\P{Greek}|\\x{41}\\u00e9(?i:b)(?s).{,2}[]-])+/ix /a b # c\n/x\n',
    "tokens": 'start: <[1]> <[2-5,7]> <[^0-9]> <[*]> <1>\n',
    "parts": 'start: %json {"type": "integer", "maximum": 10} %regex {"substring_words": "a b ab"} '
             '%lark { start: "a" x\nx: "b" } %regex {"substring_chunks": ["a", "b", "a"]}\n',
    "recursive": 'start: start "+" t | t\nt: "(" start ")" | t t |\n',
    "wrong": 'start: A\nA: B | a{3,2}\nB: A ~ "x\n',
}
TAGS = {
    "two": "<a\n[bc]*\n>\n(\n\\d+\n)",
    "token": "T\na|b\nc\nab\n\n",
    "wrong": "a\nb\nc\naa\nb\nc",
}
TAGS_JSON = {
    "two": '{"tags":[{"begin":"<a","regex":"[bc]*","end":">"},{"begin":"<b","gbnf":"root ::= \\"c\\"","end_token":28}],'
           '"triggers":["<"],"at_least_one":true,"stop_after_first":false,"free_text":false}',
    "token": ' {"tags":[{"begin_token":"<1>","any_json":true,"end":"\\u0061\\ud83e\\udd99"}]}',
    "lark": '{"tags":[{"begin":"a","lark":"start: b\\nb: \\"c\\" b |","end":"a"}]}',
    "wrong": '{"tags":[{"begin":"a","begin":"b"}],"triggers":[""]',
}
folder = pathlib.Path(sys.argv[1])
for name, text in GBNF.items():
    (folder / f"gbnf_{name}").write_bytes(b"\0" + text.encode())
for name, text in LARK.items():
    (folder / f"lark_{name}").write_bytes(b"\4" + text.encode())
for name, text in REGEX.items():
    (folder / f"regex_{name}").write_bytes(b"\1" + text.encode())
    (folder / f"search_{name}").write_bytes(b"\2" + text.encode())
for name, text in TAGS.items():
    for options in (0, 1, 2, 7):
        (folder / f"tags_{name}_{options}").write_bytes(bytes([3 + 4 * options]) + text.encode())
for name, text in TAGS_JSON.items():
    (folder / f"tags_json_{name}").write_bytes(b"\xff" + text.encode())
