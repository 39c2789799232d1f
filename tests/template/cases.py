# SPDX-License-Identifier: Apache-2.0
"""Small templates, one construct each: expressions that are printed, whole templates, and those that Jinja2 refuses too."""
VARIABLES = {
    "s": "Hello, World", "u": "Grüße, Ǆ ß ΑΣ 你好\n", "n": 7, "f": 2.5, "one": 1.0, "big": 12345678901234567890,
    "t": True, "no": None, "e": "", "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "el": [],
    "d": {"b": 1, "A": {"x": [1, {"y": "z"}]}, "c": None, "items": "shadow"}, "ed": {},
    "rows": [{"n": "x", "v": 2, "k": {"i": 1}}, {"n": "y", "v": 1}, {"n": "X", "v": 2, "k": {"i": 0}}],
    "html": "<a href=\"x\">1 & '2'</a>", "lines": "one\n  two\n\nthree\r\nfour", "num": " 42 ", "hex": "0x1F",
    "many": {f"k{i}": i for i in range(20)},
}
EXPRESSIONS = """
s|upper ~ u|lower ~ u|upper | u|title | s|title | "it's a-b (c)"|title | u|capitalize | s|length | u|length
s[0] ~ s[-1] ~ s[1:4] ~ s[::-1] ~ s[-3:] ~ u[1:3] ~ s[5:2] ~ s[::2] | u[-4:-1] | s[100] is defined | l[5] is defined
s.upper() | s.lower() | s.title() | s.swapcase() | s.capitalize() | u.upper() | u.title() | s.split() | s.split(',') | s.split('o', 1) | s.rsplit('o', 1)
s.rsplit(None, 1) | lines.splitlines() | lines.splitlines(true) | s.partition(', ') | s.rpartition('o') | s.partition('zz') | s.find('o') | s.rfind('o') | s.find('o', 5)
s.index('W') | s.count('o') | s.count('') | s.replace('o', '0') | s.replace('o', '0', 1) | s.replace('', '-') | s.startswith('Hell') | s.startswith(('x', 'H')) | s.endswith('ld')
s.strip('Hd') | '  x '.strip() ~ '|' | '  x '.lstrip() ~ '|' | '  x '.rstrip() ~ '|' | '\u00a0\u2003x\u3000'.strip() | 'xxaxx'.strip('x') | s.removeprefix('He') | s.removesuffix('ld')
s.center(20, '*') | s.center(3) | s.ljust(15, '.') | s.rjust(15) | '-5'.zfill(4) | '5'.zfill(3) | 'abc'.isalpha() | '12'.isdigit() | 'a1'.isalnum() | ' \t'.isspace() | ''.isspace() | 'aB'.islower() | 'AB1'.isupper() | '½'.isnumeric()
', '.join(w) | '{} {}'.format(1, 'a') | '{1} {0} {n}'.format(1, 2, n=3) | '{0[a]} {1.b}'.format({'a': 1}, {'b': 2}) | '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd') | '{:05d} {:+} {:,} {:.2f} {:x} {:e}'.format(42, 3, 1234567, 2.345, 255, 12345.678) | '{{}} {!r} {:{}}'.format('a', 'b', 4)
'%s %d %5.2f %x %r %%' % ('a', 3, 2.5, 255, 'q') | '%(a)s-%(b)03d' % {'a': 1, 'b': 7} | '%s' % s | '%-6s|%6s|' % ('a', 'b') | '%s' % ([1, 2],) | '%c' % 'x' | '%e %g %G' % (12345.678, 0.00001, 1e20) | '%+d % d' % (5, 5) | '%.3s' % 'abcdef' | "%s and %s"|format("a", 1)
1 + 2 * 3 - 4 | 7 // 2 | -7 // 2 | 7 % 3 | -7 % 3 | 7 / 2 | 2 ** 10 | 2 ** -1 | 2 ** 3 ** 2 | -2 ** 2 | 7.5 // 2 | -7.5 % 2 | 1e3 | 1.5e-7 | 1e16 | 1e15 | 123456789.123 | 0.1 + 0.2 | 1_000 | 0x1f | 0b101 | 0o17 | t + 1 | 3 * 'ab' | [1] * 2 | [1] + [2, 3] | (1,) + (2,) | 1 / 3 | 100000000000000000.0 | 5e-324 | -0.0
1 < 2 < 3 | 1 < 3 < 2 | 1 == 1.0 | 'a' < 'b' | 'a' == 'a' | [1, 2] == [1, 2] | (1, 2) == [1, 2] | {'a': 1} == {'a': 1.0} | t == 1 | no == no | undef == undef2 | 1 in l | 'ell' in s | 'b' in d | 5 not in l | not t | [1, 2] < [1, 3] | 'x' in undef | 'B' < 'a'
t and 'yes' | no or 'else' | e or 0 or el or 'last' | 1 and 2 and 3 | not e and t | 'a' if t else 'b' | 'a' if no | ('a' if no) is defined | 1 if no else 2 if no else 3 | (1, 2) | (1,) | () | [] | {} | [1, 'a', none, true, 2.0] | {'k': [1], 2: 'x', none: 1, true: 3} | 'it\\'s' | ["it's", 'q"q', 'both\\'"', 'a\\n\\x01\\u00e9\\u200b'] | d
d.b | d['b'] | d.A.x[1].y | d['A']['x'][0] | d.nothing is defined | d.items() | d['items'] | d.keys() | d.values() | d.get('b') | d.get('zz') | d.get('zz', 5) | d|length | d.items()|list | many.k15 | many['k19'] | many.zz is defined | d|items|list | no.x is defined | s.x is defined | d.items is mapping | d.items is callable | n.x is undefined
s|trim | '--a--'|trim('-') | s|replace('o', '0') | s|replace('o', '0', 1) | n|string ~ 1 | l|join | l|join('-') | rows|join(', ', attribute='n') | undef|join | l|first | l|last | s|first | l|list | s|list | d|list | undef|list | l|sort | w|sort | w|sort(case_sensitive=true) | w|sort(reverse=true) | rows|sort(attribute='v')|map(attribute='n')|list | rows|sort(attribute='v,n')|map(attribute='n')|list | l|reverse|list | s|reverse | w|unique|list | w|unique(true)|list
rows|map(attribute='k.i', default='-')|list | w|map('upper')|list | w|map('replace', 'a', 'x')|list | l|select('odd')|list | l|reject('odd')|list | l|select|list | rows|selectattr('v', 'equalto', 2)|map(attribute='n')|list | rows|selectattr('k')|map(attribute='n')|list | rows|rejectattr('v', 'gt', 1)|map(attribute='n')|join | no|selectattr('x')|list | no|map('upper')|list | l|sum | rows|sum(attribute='v') | rows|sum(attribute='v', start=10) | l|min | l|max | w|max | rows|max(attribute='v') | el|min is defined | el|first is defined | rows|groupby('v') | rows|groupby('n')|length
l|batch(2)|list | l|batch(2, 'x')|list | l|slice(2)|list | l|slice(2, 'x')|list | range(5)|list | range(1, 10, 3)|list | range(5, 0, -2)|list | range(3)|length | range(10)[2:4]|list | undef|default('x') | e|default('x') ~ 1 | e|default('x', true) | no|d('x', boolean=true) | d|dictsort | d|dictsort(true) | {'a': 2, 'b': 1}|dictsort(by='value') | {'a': 2, 'b': 1}|dictsort(false, 'key', true)
num|int | hex|int(base=16) | '3.9'|int | 'x'|int | 'x'|int(5) | f|int | -2.9|int | '1e3'|float | 'x'|float | n|float | -5|abs | -2.5|abs | 2.5|round | 3.5|round | 2.675|round(2) | 42|round | 42.3|round(0, 'ceil') | 42.77|round(1, 'floor') | 1234|round(-2) | 12|string|length | true|int | '1_000'|int
html|e | html|escape ~ '<' | html|safe ~ '<' | html|safe + '<' | (html|e)|e | html|forceescape | html|striptags | 'a b&c/d?é'|urlencode | {'a b': 1, 'c': 'x/y'}|urlencode | {'class': 'x', 'id': none, 'a': '<'}|xmlattr | 'foo bar baz qux'|truncate(9) | 'foo bar baz qux'|truncate(9, true) | 'foo bar baz qux'|truncate(11, false, '...', 0) | 'short'|truncate(5) | 'a b_c d-é 1'|wordcount | lines|indent | lines|indent(2, true) | lines|indent('> ', blank=true) | ''|indent(first=true) | 'abc'|center(9) ~ '|' | 1|filesizeformat | 999|filesizeformat | 1500|filesizeformat | 123456789|filesizeformat | 2048|filesizeformat(true) | lines|wordcount
d|tojson | u|tojson | html|tojson | [1.0, 1e20, 1e-7, true, none, big]|tojson | (1, 'a')|tojson | d|tojson(indent=2) | el|tojson(indent=2) | {'b': 1, 'a': [1, {}]}|tojson(sort_keys=true) | d|tojson(separators=(',', ':')) | u|tojson(ensure_ascii=true) | {1: 2, none: 3, true: 4, 1.5: 5}|tojson | '\\u2028\\x7f\\x00/"\\\\'|tojson | big | big == big | one | f
n is odd | n is even | n is divisibleby 7 | n is divisibleby(2) | n is number | s is string | s is sequence | d is mapping | d is sequence | l is iterable | n is iterable | s is iterable | l is sequence | d.items() is sequence | (l|map('string')) is iterable | no is none | t is true | t is boolean | t is number | t is integer | 1.0 is float | 1 is float | 1 is sameas 1 | t is sameas true | undef is undefined | s is lower | 'abc' is lower | 'A1' is upper | 'é' is lower | range is callable | 'upper' is filter | 'nofilter' is filter | 'odd' is test | 5 is gt 3 | 5 is le(5) | 1 is in [1, 2] | 1 is not in [1, 2] | s is not none | s is defined and s is string | html|safe is escaped | undef is iterable | undef is sequence | undef is string | 5 is eq 5.0 | 5 is ne 5 | 5 is greaterthan 4 | s is not string or t
dict(a=1, b=2) | dict(d, z=1)|length | dict([('a', 1)]) | namespace(a=1).a | strftime_now('%d %b %Y') | strftime_now('%Y-%m-%dT%H:%M:%S %A %B %j %I %p %y %U %W %w %a %e %% %-d %-m') | 'a' 'b' "c" | [s.upper][0]() | joiner('; ')() | l.index(1) | l.count(3) | '\\x41\\u00e9\\U0001F999\\101\\q\\
x' | (l, s)[1] | {'a': 1}.a | l.0 | rows.1.n | rows[0]['k']['i'] | -n|abs | +n | - -n | not not n | (n) | 'x' ~ no ~ t ~ undef ~ 1.0 ~ l | s|upper|lower|title | (s ~ 'x')|length | 1 + 1 ~ 2 * 3 | l[0] + l[1] | l[n > 5 and 1 or 0]
'well-known words of a-b-c -- and e-mail'|wordwrap(10) | 'supercalifragilistic word'|wordwrap(8, false) | 'a-b'|wordwrap(2, break_on_hyphens=false) | lines|wordwrap(5, wrapstring='/') | 'aaaa  bbbbbbbbbb c'|wordwrap(5) | 'x--y zz'|wordwrap(3) | ''|wordwrap | 'äöü-äöü-ab'|wordwrap(4)
d|pprint | rows|pprint | many|pprint | ['a' * 30, 'b' * 30, 'c' * 30]|pprint | {'k' * 50: 'word ' * 12, 'b': (1,)}|pprint | ('long words ' * 10)|pprint | ('one\\ntwo ' * 12)|pprint | s|pprint | [[['x' * 20] * 5]]|pprint | {1: 'a', 'b': none, none: 2}|pprint | undef|pprint
'see http://a.b/c?d=1, (www.x.org) or me@x.org.'|urlize | 'http://a.com/(b) <http://c.com>'|urlize(8) | 'a.com b.info:80/x c.de'|urlize(nofollow=true, target='_blank', rel='x') | 'mailto:a@b.c @a@b.c http://1.2.3.4 http://[::1]/ tel:1'|urlize(extra_schemes=['tel:'])
'ǅA ǆ'.istitle() | 'Ab Cd'.istitle() | 'straße'.casefold() | 'a\\tbc\\td'.expandtabs(4) | '٣'.isdecimal() | '²'.isdecimal() | 'a_1'.isidentifier() | '1a'.isidentifier() | 'a\\x00'.isprintable() | ''.isprintable() | rows|selectattr('v', '==', 2)|list|length | l|select('>=', 2)|list | l|reject('!=', 2)|list | l.copy()
'{:,}|{:+.1f}|{:010,}|{:#x}|{:_b}|{:.3}|{:%}|{:c}|{:^7}|{:08}'.format(1234567.5, 2, 1234, 255, 255, 2.0, 0.5, 65, true, 'ab') | '%#06x|%s|%5s|' % (255, undef, none) | '{0.b} {1[zz]}'.format(d, d) | [html|e] | (html|e).join(['<', 1]) | l|map('string')|reverse | 'abc'|truncate(9) | l|truncate(9) | -7.5 // 2 | 1.5 % -1.5 | 0.5 // -0.1
""".strip()
REFUSED = """
s|wordwrap(0) | undef|wordwrap | s|urlize(extra_schemes=['x']) | '{:x}'.format(1.5) | '{:,x}'.format(1) | '{:+}'.format('a') | '{:5}'.format(undef) | 0.0 ** -1 | dict(undef) | n[1:] | d[1:] | (l in d.keys()) | undef.x | undef + 1 | undef() | 1 + 'a' | 'a' + 1 | 'a' + undef | no + 1 | no|tojson2 | undef|tojson | s|nofilter | s is notest | s.nomethod() | d.zz.x | l|first|nofilter | 1 < 'a' | no < 1 | 1 // 0 | 1 % 0 | 1 / 0 | l.append(1) | d.update({}) | d.pop('b') | raise_exception('no way') | range(1000000)|list | {[]: 1} | {}[1:2] ~ {}.x.y | 'a'.join([1]) | no|join | 5|list | 5|length | (l|map('upper')|length) | l|sort(attribute='x')|list ~ [1, 'a']|sort | 'x'.index('y') | '%d' % 'x' | '%s %s' % 'x' | '%s' % (1, 2) | '{}'.format() | '{x}'.format(1) | x y | 1 + | ( | [1 | {1 | 'a | a. | a[ | s|trim(1, 2, 3) | s|trim(nope=1) | s.split('') | in | l|map|list | l|map(5)|list | (l|map('string'))|tojson | range(3)|tojson | d.items()|tojson | 1 is divisibleby | no.x.y | 3|items|list | s|dictsort | s is string is string | 1 in 5 | 5 in s | l['a'].b | -s | l|sum('a') | 'abc'|round | undef|int | undef|float | undef|abs | undef|dictsort | namespace(1) | loop.index | caller() | s[::0] | cycler() | 'a' * 'b' | {} + {} | l - l
""".strip()
TEMPLATES = [
    # white space
    "a\n", "a\n\n", "{% if t %}\nx\n{% endif %}\ny", "  {% if t %}\n  x\n  {% endif %}\n  y", "a {%- if t %} b {%- endif %} c",
    "a {% if t -%}  \n b {% endif -%}  \n c", "  {%+ if t %}x{% endif %}", "{% if t +%}\nx{% endif %}", "a  {{- s -}}  b", "a\n  {{ s }}\n  b",
    "x {# comment #} y", "x\n  {# comment #}\ny", "x {#- c -#} y", "  {#+ c +#}\n y", "{# {% if %} {{ #}ok", "{{ '{{' }} {{ '%}' }}",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "a\n{% raw %}\n  b\n{% endraw %}\nc", "a {%- raw -%} b {%- endraw -%} c", "\r\na\r\n{{ s }}\rb\r\n",
    "x{% set a = 1 %}\n\ny{{ a }}", "{{ s }}\n", "{{ s }}\n\n", "\t{% set a = 1 -%}\n\n\tb", "{%-set a=1-%}{{-a-}}", " \u00a0{% if t %}x{% endif %}",
    "{{ {'a': {'b': 1}}.a.b }}{{ {} }}", "{{ [1, 2,] }}{{ {'a': 1,} }}{{ dict(a=1,) }}",
    # if, for
    "{% if no %}1{% elif e %}2{% elif t %}3{% else %}4{% endif %}", "{% if no %}1{% elif e %}2{% else %}4{% endif %}{% if no %}x{% endif %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}",
    "{% for x in el %}a{% else %}none{% endfor %}{% for x in undef %}a{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% else %}no{% endfor %}", "{% for x in l if x > 9 %}x{% else %}no{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}<{{ loop.nextitem is defined }} {{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }};{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% for y in w %}{% if y == 'c' %}{% break %}{% endif %}{{ x }}{{ y }}{{ loop.depth }} {% endfor %}{% endfor %}",
    "{% for c in 'hé' %}[{{ c }}]{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in ['xy', 'zw'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for r in [{'n': 1, 'k': [{'n': 2, 'k': [{'n': 3}]}]}] recursive %}{{ r.n }}@{{ loop.depth }}{% if r.k %}({{ loop(r.k) }}){% endif %}{% endfor %}",
    "{% for x in [1, 2] %}{% set a = x %}{{ a }}{% endfor %}{{ a is defined }}", "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}",
    "{% if t %}{% set a = 1 %}{% endif %}{{ a }}{% if no %}{% set s = 5 %}{% endif %}{{ s }}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in l if t else w %}{{ x }}{% endfor %}" ,
    "{% for item in rows|sort(attribute='n') %}{{ item.n }}{{ ',' if not loop.last }}{% endfor %}", "{% for x in range(3) %}{{ loop.index }}{% endfor %}{{ loop is defined }}",
    "{% for x in l %}{% set outer = loop %}{% for y in w %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in l %}{% break %}{% else %}e{% endfor %}{% for x in l %}{% continue %}{% else %}e{% endfor %}{% for x in l %}{% if loop.last %}{% break %}{% endif %}{% else %}e{% endfor %}",
    "{% set g = w|map('upper') %}{{ g|first }}{{ g|join }}{{ g|join }}{{ 'x' if g }}{% set g = l|select('odd') %}{{ 1 in g }}{{ g|list }}",
    "{% set g = l|select %}{% for x in g %}{% if loop.index == 1 %}{{ x }}{% endif %}{% endfor %}{{ g|list }}",
    # set, namespace, with
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, e) = (3, 4) %}{{ c }}{{ e }}{% set a = a, b %}{{ a }}", "{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}", "{% set a %}x{{ n }}{% endset %}{{ a|upper }}", "{% set a | upper | replace('X', 'y') %}x{{ n }}z{% endset %}{{ a }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 1 %}{% endwith %}{{ a is defined }}{{ c is defined }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}", "{% set ns = namespace(a=1) %}{% set ns.a, x = 2, 3 %}{{ ns.a }}{{ x }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('l', 'L')|trim %} {{ s }} {% endfilter %}", "{% generation %}{{ s }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}", "{% block x %}{{ s }}{% endblock %}{% block y %}1{% endblock y %}", "{% print s, n %}",
    # macros
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(c=5, a=1) }} {{ m() }}", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m(x) %}<{{ x }}{{ caller() }}>{% endmacro %}{% call m(1) %}body {{ n }}{% endcall %}", "{% macro m() %}{{ caller(5, y=6) }}{% endmacro %}{% call(x, y=1) m() %}{{ x }}{{ y }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
    "{% macro f(n) %}{% if n > 1 %}{{ n * f(n - 1)|int }}{% else %}1{% endif %}{% endmacro %}{{ f(6) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}b{{ x }}{% endmacro %}{% set x = 1 %}{{ a() }}{% set x = 2 %}{{ a() }}", "{% macro m() %}{% set s = 1 %}{{ s }}{% endmacro %}{{ m() }}{{ s }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ [1, 2]|map('string')|join }}{{ m.name }}{{ m('<')|length }}", "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}", "{% set ns = namespace(f=none) %}{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{% if loop.first %}{% set ns.f = m %}{% endif %}{% endfor %}{{ ns.f is callable }}",
    "{% macro m(a, b) %}{{ a }}{{ b is defined }}{% endmacro %}{{ m(*[1]) }}{{ m(*[1, 2]) }}{{ m(**{'a': 3}) }}{{ m(1, *[2]) }}", "{% macro tree(x, depth=0) %}{{ '  ' * depth }}{{ x.n }}\n{% for y in x.k or [] %}{{ tree(y, depth + 1) }}{% endfor %}{% endmacro %}{{ tree({'n': 1, 'k': [{'n': 2, 'k': [{'n': 3}]}]}) }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set _ = c.reset() %}{{ c.next() }}", "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% macro m(x) %}{% for y in x %}{{ loop.index }}{% endfor %}{% endmacro %}{% for z in [l, w] %}{{ m(z) }};{{ loop.index }}{% endfor %}",
    # blocks see the names of the template, and are called by self
    "{% for x in [1, 2] %}{% block b %}[{{ x }}]{% endblock %}{% endfor %}", "{% for x in [1, 2] %}{% block b scoped %}[{{ x }}{{ loop.index }}]{% endblock %}{% endfor %}",
    "{% set q = 5 %}{% block b %}[{{ q }}{% set z = 1 %}{{ z }}]{% endblock %}{{ z is defined }}{{ self.b() }}{{ self.b()|upper }}{% set q = 6 %}{{ self.b() }}",
    "{% if no %}{% block b %}x{{ s }}{% endblock %}{% endif %}{{ self.b() }}{{ self.b() ~ self['b']() }}", "{{ self.nope is defined }}{{ self is defined }}{{ self }}",
    "{% block a %}{{ self.b() }}{% endblock %}{% block b %}b{{ q }}{% endblock %}{% set q = 1 %}{{ self.b() }}", "{% macro m() %}{{ self.b() }}{% endmacro %}{% block b %}b{% endblock %}{{ m() }}",
    "{% with w = 3 %}{% block b %}{{ w }}{% endblock %}{% endwith %}", "{% if t %}{% set v = 3 %}{% block b %}{{ v }}{% endblock %}{% endif %}", "{% macro m(v) %}{% block b %}{{ v }}!{% endblock %}{% endmacro %}{{ m(5) }}",
    "{% block b %}{% block c %}c{% endblock %}b{% endblock %}{{ self.c() }}", "{% set self = {'b': 5} %}{{ self.b }}", "{% set b = self.c %}{% block c %}cc{% endblock %}{{ b() }}{{ b is callable }}{{ self.c == self.d }}",
    "{% block b %}{% macro m() %}<{{ s }}>{% endmacro %}{{ m() }}{% endblock %}{{ m is defined }}{{ self.b()|length }}",
    "{{ self.nope() }}", "{% block b %}{{ self.b() }}{% endblock %}", "{% block b %}1{% endblock %}{% block b %}2{% endblock %}", "{% block b required %}{% endblock %}", "{% block b required %}x{% endblock %}",
    # what a scoped block sees, blocks in it and by its self see as well
    "{% for x in [1, 2] %}{% block b scoped %}{{ x }}{% block c %}{{ x }}{% endblock %}{% endblock %}{% endfor %}{{ self.c() }}",
    "{% for x in [1, 2] %}{% block b scoped %}{% set x = 5 %}{% set q = x %}{{ self.c() }}{% block c %}<{{ x }}{{ q }}>{% endblock %}{% endblock %}{% endfor %}{{ self.b() }}",
    "{% with w = 1 %}{% block b scoped %}{% with w = 2 %}{% block c scoped %}{% block d %}{{ w }}{% endblock %}{{ self.d() }}{% endblock %}{% endwith %}{{ self.d() }}{{ self.c() }}{% endblock %}{% endwith %}",
    "{% macro m() %}{{ self.c() }}{% endmacro %}{% for x in [1, 2] %}{% block b scoped %}{{ m() }}{% macro k() %}{{ self.c() }}{% endmacro %}{{ k() }}{% block c %}[{{ x }}]{% endblock %}{% endblock %}{% endfor %}",
    "{% set ns = namespace(m=none) %}{% for x in [1, 2] %}{% block b scoped %}{{ self.c() }}{% endblock %}{% endfor %}{% if no %}{% block c %}{% macro m() %}{{ x }}{% endmacro %}{% set ns.m = m %}{% endblock %}{% endif %}{% for y in range(9) %}{% set x = y %}{{ ns.m() }}{% endfor %}",
    "{% if no %}{% block b scoped required %} {% endblock %}{% endif %}ok", "{{ self.b(1) }}{% block b %}{% endblock %}", "{% for x in l %}{% block b %}{% break %}{% endblock %}{% endfor %}",
    # autoescape
    "{% autoescape false %}{{ html }}{% set a = 1 %}{% endautoescape %}{{ a is defined }}", "{% autoescape no %}{{ html }}{{ html|e }}{% endautoescape %}", "{% autoescape %}{{ html }}{% endautoescape %}", "{% autoescape false, no %}{% endautoescape %}x",
    "{% for x in l %}{% autoescape false %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endautoescape %}{% endfor %}", "{% if no %}{% autoescape true %}{% endautoescape %}{% endif %}ok", "{% autoescape false %}\n  a\n{% endautoescape %}\nb",
    "{% autoescape false %}{% macro m() %}<{% endmacro %}{{ m() }}{% endautoescape %}{{ m is defined }}", "{% autoescape false %}",
    # ranges as they are written
    "{{ range(3) }} {{ range(1, 3) }} {{ range(0, 10, 2) }} {{ range(3)|string }} {{ range(0) }} {{ [range(2)] }} {{ range(10)[2:4] }} {{ range(10)[::-3] }} {{ range(3) ~ 'x' }} {{ '%s' % range(3) }} {{ '{}'.format(range(3)) }} {{ range(3)|pprint }} {{ {'a': range(1)} }}",
    "{{ range(3) == [0,1,2] }}{{ range(3) == range(0,3) }}{{ range(0,3,2) == range(0,4,2) }}{{ range(0) == range(1,1) }}", "{{ range(3) + [1] }}", "{{ range(3) < range(4) }}", "{{ range(100001) }}",
    "{{ range(3) is sequence }}{{ range(3) is iterable }}{{ 2 in range(3) }}{{ range(3)|first }}{{ range(3)|last }}{{ range(3)|length }}{{ range(3)|reverse|list }}{{ range(5, 0, -2)|string }}{{ {range(2): 1} }}",
    "{{ range(true) }}{{ range(-3) }}{{ range(0, 3, -1) }}{{ range(5,2) }}{{ range(2,7,3)[1:] }}{{ range(2,7,3)[5:] }}{{ range(10)[3:3] }}{{ range(10)[-3:] }}{{ range(9, 0, -2)[::2] }}{{ range(3)[::-1] }}{{ range(0)[::-1] }}",
    "{{ range(3).start }}{{ range(3).stop }}{{ range(3).step }}{{ range(3).index(2) }}{{ range(3).count(1) }}{{ range(4).x is defined }}", "{{ range(2)|e }}{{ range(2)|upper }}{{ range(3)|replace('r', 'R') }}{{ range(3)|list|string }}{{ range(3)|join }}{{ range(3)|trim }}",
    "{{ 'a'.encode is defined }}",
    # unknown names where they are not met
    "{% if no %}{{ s|from_json }}{% endif %}ok", "{{ (s|from_json) if no else 'ok' }}" , "{% if t %}{{ s is strange }}{% endif %}",
    "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(b=1) }}{% call m(1) %}{% endcall %}{{ m }}", "{% set n = namespace(a=1, b='x') %}{{ n }}{% for x in l %}{{ loop }}{% endfor %}",
    # filters of loops run between the bodies
    "{% set ns=namespace(n=0) %}{% for x in [1,2,3] if ns.n < 1 %}{{ x }}{% set ns.n = ns.n+1 %}{% endfor %}",
    "{% set ns=namespace(s='') %}{% macro m(x) %}{% set ns.s = ns.s ~ x %}{{ 1 if x != 2 }}{% endmacro %}{% for x in [1,2,3,4] if m(x) %}{{ x }}[{{ ns.s }}{{ loop.last }}{{ ns.s }}{{ loop.nextitem }}{{ loop.previtem }}]{% endfor %}{{ ns.s }}",
    "{% set ns=namespace(s='') %}{% macro m(x) %}{% set ns.s = ns.s ~ x %}{{ 1 if x != 2 }}{% endmacro %}{% for x in [1,2,3,4] if m(x) %}{{ x }}[{{ ns.s }}{{ loop.index }}{{ loop.first }}{{ loop.revindex }}{{ ns.s }}{{ loop.length }}{{ loop.revindex0 }}]{% endfor %}",
    "{% set ns=namespace(s='') %}{% macro m(x) %}{% set ns.s = ns.s ~ x %}{{ 1 if x != 2 }}{% endmacro %}{% for x in [1,2,3,4] if m(x) %}{{ x }}{{ loop }}{{ ns.s }}{{ loop|length }}{% endfor %}{% for x in [] if m(x) %}{% else %}none{% endfor %}{% for x in [2, 2] if m(x) %}{% else %}none{% endfor %}",
    "{% set g = [1,2,3,4]|map('int') %}{% for x in g if x != 2 %}{{ x }}{% break %}{% endfor %}{{ g|list }}", "{% set g = [1,2,3,4]|map('int') %}{% for x in g if x != 2 %}{{ x }}{{ loop.last }}{% break %}{% endfor %}{{ g|list }}",
    "{% for x in [1, 2] if x.y.z %}{% endfor %}", "{% for x in [1, 0] if 4 // x %}{{ x }}{% break %}{% endfor %}", "{% for x in [1, 0] if 4 // x %}{{ x }}{% endfor %}", "{% for x in [[1, [2]], [3, []]] if x recursive %}{{ x[0] }}{{ loop.last }}{% if x[1] %}{{ loop([x[1], [5, []]]) }}{% endif %}{% endfor %}",
    # groups by name
    "{% for g in rows|groupby('v') %}{{ g.grouper }}:{{ g.list|length }}{{ g['grouper'] }}{{ g[0] }}{{ g.count(1) }}{{ g.x is defined }} {% endfor %}", "{% for a, b in rows|groupby('n') %}{{ a }}{{ b|length }}{% endfor %}{{ rows|groupby('v')|map(attribute='grouper')|list }}{{ rows|groupby('v')|map(attribute='list')|map('length')|list }}", "{{ ((rows|groupby('v'))[0] + (1,)).grouper is defined }}{{ (rows|groupby('v'))[0] == (1, [rows[1]]) }}",
    # as ascii() writes it
    "{{ '%a' % 'é' }}{{ '%5a|%.3a' % ('ü', '你好') }}{{ '{!a}'.format('é') }}{{ '{!a:>9}'.format(['€']) }}{{ '%a' % '😀' }}{{ '{!a}'.format({'ß': 1}) }}{{ '%a' % \"it's é\" }}{{ '{!r}'.format('é') }}",
    # places of format with numbers and without
    "{{ '{} {0}'.format(1) }}", "{{ '{0} {}'.format(1) }}", "{{ '{0:{}}'.format(1, 2) }}", "{{ '{:{0}}'.format(1, 2) }}", "{{ '{} {a} {}'.format(1, 2, a=3) }}{{ '{0} {a} {0}'.format(1, a=3) }}{{ '{:{}}'.format(1, 4) }}", "{{ '{.x} {0}'.format(d) }}",
    # numbers behind a dot
    "{% set y = [[1, 2], [3, [4]]] %}{{ y.0.1 }}{{ y.1.1.0 }}{{ y.1.0 + 0.5 }}", "{{ l.0e1 }}", "{% set y = [[1, 2]] %}{{ y. 0.1 }}",
    # refused
    "{% filter length %}{{ s }}{% endfilter %}",
    "{% if t %}", "{% endif %}", "{% for x in 5 %}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% unknown %}", "{% set x.y = 1 %}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{{ s", "{% if t", "{# x", "{% raw %}x", "{% macro m() %}{% endmacro %}{{ m(1) }}", "{% macro m() %}{% endmacro %}{{ m(a=1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% break %}", "{% set a, b = l %}",
    "{% call s %}{% endcall %}", "{% for x in l %}{{ loop(l) }}{% endfor %}", "{% macro m() %}{% endmacro %}{% call m() %}x{% endcall %}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% else %}", "{{ }}", "{% %}", "{{ a b }}", "{% set ns = {} %}{% set ns.a = 1 %}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{{ ) }}", "{{ (] }}", "{{ 1 ! 2 }}",
]


def cases():
    import re
    # Between expressions stands " | "; a filter's bar has no spaces but where a pattern needs them.
    made = [f"{{{{ {one} }}}}" for one in re.split(r" \| |\n(?!x)", EXPRESSIONS)]
    made += [f"{{{{ {one} }}}}" for one in REFUSED.split(" | ")]
    return made + TEMPLATES
