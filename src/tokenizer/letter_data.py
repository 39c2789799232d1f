#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes letter_data.cpp: properties of characters, from the Unicode data of this Python.

usage: letter_data.py >letter_data.cpp
"""
import sys
import unicodedata

ALL = [i for i in range(0x110000) if not 0xD800 <= i <= 0xDFFF]


def table(kind, name, cells):
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for cell in cells:
        if len(line) + len(cell) > 96:
            print(line)
            line = "   "
        line += f" {cell},"
    print(line)
    print("};\n")


def ranges(name, belongs):
    out = []
    for i in ALL:
        if belongs(unicodedata.category(chr(i))):
            if out and out[-1][1] == i - 1:
                out[-1][1] = i
            else:
                out.append([i, i])
    table("CharacterRange", name, (f"{{0x{a:X}, 0x{b:X}}}" for a, b in out))


# Runs of upper case letters, each one or two after the last, which all change by the same number.
runs = []
for i in ALL:
    lower = ord(chr(i).lower()[0])
    if lower == i:
        continue
    delta = lower - i
    if runs and runs[-1][3] == delta:
        first, last, step, _ = runs[-1]
        if i - last == step or (first == last and i - last == 2):
            runs[-1][1:3] = [i, i - last]
            continue
    runs.append([i, i, 1, delta])

print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Written by letter_data.py from Unicode {unicodedata.unidata_version}; see letter_data.h.")
print('// clang-format off\n#include "tokenizer/letter_data.h"\n\nnamespace gen::tokenizer {\nnamespace {\n')
ranges("kAccents", lambda c: c == "Mn")
ranges("kControls", lambda c: c in ("Cc", "Cf", "Co"))
ranges("kPunctuation", lambda c: c[0] == "P")
table("CaseRun", "kCases", (f"{{0x{a:X}, 0x{b:X}, {c}, {d}}}" for a, b, c, d in runs))
print("""}  // namespace

std::span<const CharacterRange> accents() noexcept { return kAccents; }
std::span<const CharacterRange> controls() noexcept { return kControls; }
std::span<const CharacterRange> punctuation() noexcept { return kPunctuation; }
std::span<const CaseRun> cases() noexcept { return kCases; }

}  // namespace gen::tokenizer""")
