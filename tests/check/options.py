#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/options.md against the library's tables of options, and these against the setters.

usage: options.py <source root> <libgenerate.so> [--update]

Each option must have help and a range; whole numbers are accepted up to the ends of their range and refused
beyond, in one line that names the value and both ends; a default that is a value is accepted. --update writes
the page.
"""
import ctypes
import json
import pathlib
import re
import sys

root, library = pathlib.Path(sys.argv[1]), ctypes.CDLL(sys.argv[2])
page_path = root / "docs" / "options.md"
GROUPS = {
    "gen_model_options": ("Loading a model", "gen_model_load"),
    "gen_quantize_options": ("Quantising a model", "gen_model_quantize_with"),
    "gen_options": ("Generators", "gen_create"),
    "gen_sampling": ("Calls", "gen_generate and all other generating calls"),
    "gen_chat": ("Answers of chat sessions", "gen_chat_set"),
    "gen_grammar_options": ("Grammars", "gen_grammar_from_gbnf and the other functions that make grammars"),
    "kv_cache_tier_config": ("Tiers", "gen_options_set_tiered_kv and kv_cache_tiered_new"),
    "gen_model_config": ("Custom models", "gen_model_new_custom"),
    "gen_agent_options": ("Agents", "gen_agent_new"),
}
DESCRIBE = {"gen_chat": "gen_chat_describe_options"}
# Their default, 0, means not set: a custom model must set them.
UNSET = {("gen_model_config", "vocab_size"), ("gen_model_config", "max_seq_len")}
MOST = 2**31 - 1


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("message", ctypes.c_char * 1020)]


def made(group):
    handle, error = ctypes.c_void_p(), Error()
    assert getattr(library, group + "_new")(ctypes.byref(handle), ctypes.byref(error)) == 0
    return handle


def described(group, handle):
    text, n, error = ctypes.create_string_buffer(1 << 16), ctypes.c_size_t(), Error()
    call = getattr(library, DESCRIBE.get(group, group + "_describe"))
    assert call(handle, text, ctypes.c_size_t(len(text)), ctypes.byref(n), ctypes.byref(error)) == 0
    return json.loads(text.value)


def refusal(group, handle, key, value):
    """Empty if the value was taken."""
    error = Error()
    status = getattr(library, group + "_set")(handle, key.encode(), str(value).encode(), ctypes.byref(error))
    return "" if status == 0 else error.message.decode()


def ends(row):
    """Of a whole number's range; None for no end."""
    text = row["range"]
    if match := re.fullmatch(r"(-?\d+) to (-?\d+)", text):
        return int(match[1]), int(match[2])
    if match := re.fullmatch(r"(-?\d+) and up", text):
        return int(match[1]), None
    return None, None


failures = []
lines = ["# Options", "",
         "Every option has a name for `*_set(object, \"name\", \"value\")`. Many also have setters of their own, which check the",
         "same range (`include/generate/`); the others, such as those of grammars, `window_rewind` and `draft_policy`, are set by",
         "name alone. `*_describe` returns this page's tables as JSON, with the values of an object. `tests/check/options.py`",
         "writes the page from them; Go, Java and C# take the same names and ranges.", ""]
for group, (title, use) in GROUPS.items():
    lines += [f"## {title}", "", f"`{group}`, for {use}.", "", "| name | type | values | default | what it does |",
              "|---|---|---|---|---|"]
    rows = described(group, made(group))
    for row in rows:
        key, name = row["key"], f"{group} {row['key']}"
        for part in ("help", "range"):
            if not row.get(part):
                failures.append(f"{name} has no {part}")
        off = f"; does nothing: {row['off']}" if row.get("off") else ""
        shown = f"`{row['default']}`" if row["default"] else ""
        lines.append(f"| `{key}` | {row['type']} | {row['range']} | {shown} | {row['help']}{off} |")
        if row["default"] and (group, key) not in UNSET and (why := refusal(group, made(group), key, row["default"])):
            failures.append(f"{name}: the default is refused: {why}")
        if row["type"] != "int":
            continue
        least, most = ends(row)
        for inside in (least, most):
            if inside is not None and (why := refusal(group, made(group), key, inside)):
                failures.append(f"{name}: {inside} is refused: {why}")
        for outside in ([least - 1] if least is not None else []) + ([most + 1] if most is not None else []):
            if group == "gen_sampling" and key == "seed":
                continue  # 64 bits, and refused as no such number
            why = refusal(group, made(group), key, outside)
            limits = (str(outside), str(least), str(most if most is not None else MOST))
            if not all(limit in why for limit in limits) or "\n" in why:
                failures.append(f"{name}: {outside} beyond {row['range']}: {why or 'was taken'}")
    lines.append("")
page = "\n".join(lines).rstrip("\n") + "\n"
if "--update" in sys.argv:
    page_path.write_text(page)
elif not page_path.exists() or page_path.read_text() != page:
    failures.append("docs/options.md is not what the tables say; tests/check/options.py … --update writes it")
print("\n".join(failures) or "docs/options.md says what the library's tables say")
sys.exit(1 if failures else 0)
