#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes nfc_data.cpp: how characters are taken apart and put together, from the Unicode data of this Python.

usage: nfc_data.py >nfc_data.cpp
"""
import unicodedata

ALL = [chr(i) for i in range(0x110000) if not 0xD800 <= i <= 0xDFFF]
HANGUL = range(0xAC00, 0xAC00 + 11172)  # by a formula


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


pairs = []
for c in ALL:
    parts = unicodedata.decomposition(c)
    if parts and not parts.startswith("<") and ord(c) not in HANGUL:
        first, second = ([int(x, 16) for x in parts.split()] + [0])[:2]
        # What NFC leaves apart is never put together.
        together = second != 0 and unicodedata.normalize("NFC", c) == c
        pairs.append((ord(c), first, second, together))

# What take_apart() of nfc.cpp relies on.
apart = {a: (b, c) for a, b, c, _ in pairs}
for a, b, c, _ in pairs:
    assert c not in apart
    depth = 0
    while a in apart:
        depth += apart[a][1] != 0
        a = apart[a][0]
    assert depth <= 3

classes = []
for c in ALL:
    order = unicodedata.combining(c)
    if order and classes and classes[-1][1:] == [ord(c) - 1, order]:
        classes[-1][1] = ord(c)
    elif order:
        classes.append([ord(c), ord(c), order])

print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Written by nfc_data.py from Unicode {unicodedata.unidata_version}; see nfc_data.h.")
print('// clang-format off\n#include "tokenizer/nfc_data.h"\n\nnamespace gen::tokenizer {\nnamespace {\n')
table("Decomposition", "kDecompositions", (f"{{0x{a:X}, 0x{b:X}, 0x{c:X}, {'true' if t else 'false'}}}" for a, b, c, t in pairs))
table("CombiningRange", "kCombining", (f"{{0x{a:X}, 0x{b:X}, {o}}}" for a, b, o in classes))
by_parts = sorted((b, c, i) for i, (a, b, c, t) in enumerate(pairs) if t)
table("uint16_t", "kComposed", (str(i) for _, _, i in by_parts))
print("""}  // namespace

std::span<const Decomposition> decompositions() noexcept { return kDecompositions; }
std::span<const CombiningRange> combining_ranges() noexcept { return kCombining; }
std::span<const uint16_t> compositions() noexcept { return kComposed; }

}  // namespace gen::tokenizer""")
