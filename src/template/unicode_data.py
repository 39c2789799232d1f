#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_data.cpp: what Python's str methods know of characters, from the Unicode data of this Python.

usage: unicode_data.py >unicode_data.cpp
"""
import sys
import unicodedata

ALL = [chr(i) for i in range(0x110000) if not 0xD800 <= i <= 0xDFFF]


def ranges(holds):
    made = []
    for c in ALL:
        if holds(c):
            i = ord(c)
            if made and made[-1][1] == i - 1:
                made[-1][1] = i
            else:
                made.append([i, i])
    return made


def table(name, holds):
    print(f"const Range k{name}[] = {{")
    row(f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(holds))
    print("};")
    print(f"const size_t k{name}Count = std::size(k{name});\n")


def row(cells):
    line = "   "
    for cell in cells:
        if len(line) + len(cell) > 96:
            print(line)
            line = "   "
        line += f" {cell},"
    print(line)


def mapping(name, change):
    runs = []  # first, last, stride, difference
    for c in ALL:
        to = change(c)
        if len(to) != 1 or to == c:
            continue
        i, d = ord(c), ord(to) - ord(c)
        if runs and runs[-1][3] == d and i - runs[-1][1] in (1, 2):
            stride = i - runs[-1][1]
            if runs[-1][2] in (0, stride):
                runs[-1][1], runs[-1][2] = i, stride
                continue
        runs.append([i, i, 0, d])
    print(f"const CaseRun k{name}[] = {{")
    row(f"{{0x{a:X}, 0x{b:X}, {max(s, 1)}, {d}}}" for a, b, s, d in runs)
    print("};")
    print(f"const size_t k{name}Count = std::size(k{name});\n")
    print(f"const CaseText k{name}Texts[] = {{")
    row('{0x%X, "%s"}' % (ord(c), "".join(f"\\x{b:02x}" for b in change(c).encode()))
        for c in ALL if len(change(c)) != 1)
    print("};")
    print(f"const size_t k{name}TextsCount = std::size(k{name}Texts);\n")


print(f"""// SPDX-License-Identifier: Apache-2.0
// Written by unicode_data.py from Unicode {unicodedata.unidata_version}; see unicode.h.
// clang-format off
#include <iterator>

#include "template/unicode_data.h"

namespace gen::templates::unicode {{
""")
mapping("Upper", str.upper)
mapping("Lower", str.lower)
mapping("Title", str.title)
mapping("Fold", str.casefold)
table("Alphabetic", str.isalpha)
table("Numeric", str.isnumeric)
table("Digit", str.isdigit)
table("Decimal", str.isdecimal)
table("Unprintable", lambda c: not c.isprintable())
table("IsUpper", str.isupper)
table("IsLower", str.islower)
table("IsTitle", lambda c: unicodedata.category(c) == "Lt")
table("IdentifierStart", str.isidentifier)
table("IdentifierPart", lambda c: ("a" + c).isidentifier())
print("}  // namespace gen::templates::unicode")
