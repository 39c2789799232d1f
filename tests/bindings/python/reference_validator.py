# SPDX-License-Identifier: Apache-2.0
"""A slow validator of JSON Schema, keyword by keyword, for what tests generate. It knows no formats, no unevaluated keywords
and no references but those by JSON pointer from the root: Unsupported. Numbers are exact."""
import json
import re
from decimal import Decimal
from fractions import Fraction

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
IGNORED = {"$schema", "$defs", "definitions", "$anchor", "$comment", "title", "description", "default", "examples", "then", "else",
           "minContains", "maxContains", "additionalItems"}


class Unsupported(Exception):
    pass


def parse(text):
    """A value; ValueError for what is no JSON text: duplicate names and lone surrogates are none."""
    def members(pairs):
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name stands twice")
        return dict(pairs)

    def constant(name):
        raise ValueError(name)

    value = json.loads(text, parse_float=Decimal, parse_constant=constant, object_pairs_hook=members)
    json.dumps(value, ensure_ascii=False, default=str).encode()
    return value


def number(value):
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def key(value):
    """Equal for equal values, and only for them."""
    if number(value):
        return "n", Fraction(value)
    if isinstance(value, list):
        return "a", tuple(key(one) for one in value)
    if isinstance(value, dict):
        return "o", frozenset((name, key(one)) for name, one in value.items())
    return type(value).__name__, value


class Validator:
    def __init__(self, root):
        self.root = root
        uri = root.get("$schema", "") if isinstance(root, dict) else ""
        self.draft = next((draft for part, draft in (("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 2019)) if part in uri),
                          2020)

    def valid(self, value):
        return self.check(self.root, value)

    def check(self, schema, value):
        if isinstance(schema, bool):
            return schema
        if "$ref" in schema and self.draft <= 7:
            return self.check(self.target(schema["$ref"]), value)
        return all(self.keyword(schema, name, given, value) for name, given in schema.items())

    def target(self, reference):
        if not reference.startswith("#/") and reference != "#":
            raise Unsupported(reference)
        node = self.root
        for part in reference[2:].split("/") if reference != "#" else []:
            node = node[part]
        if isinstance(node, dict) and any(name in node for name in ("$id", "id")):
            raise Unsupported(reference)
        return node

    def is_type(self, name, value):
        if name == "number":
            return number(value)
        if name == "integer":
            return number(value) and (isinstance(value, int) if self.draft == 4 else Fraction(value).denominator == 1)
        return isinstance(value, TYPES[name])

    def keyword(self, schema, name, given, value):
        if name in IGNORED:
            return True
        handler = getattr(self, "on_" + name.replace("$", ""), None)
        if handler is not None:
            return handler(schema, given, value)
        limits = {"Length": str, "Items": list, "Properties": dict}
        if name[3:] in limits:
            return not isinstance(value, limits[name[3:]]) or (len(value) >= given if name.startswith("min") else len(value) <= given)
        if name.lower().endswith("imum"):
            if not number(value):
                return True
            if isinstance(given, bool):
                return True  # draft 4: with minimum and maximum
            strict = name.startswith("exclusive") or (self.draft == 4 and schema.get("exclusive" + name.capitalize()) is True)
            low, high = (given, value) if "min" in name.lower() else (value, given)
            return Fraction(low) < Fraction(high) if strict else Fraction(low) <= Fraction(high)
        raise Unsupported(name)

    def on_type(self, schema, given, value):
        return any(self.is_type(name, value) for name in (given if isinstance(given, list) else [given]))

    def on_enum(self, schema, given, value):
        return key(value) in [key(one) for one in given]

    def on_const(self, schema, given, value):
        return self.draft == 4 or key(value) == key(given)

    def on_multipleOf(self, schema, given, value):
        return not number(value) or (Fraction(value) / Fraction(given)).denominator == 1

    def on_pattern(self, schema, given, value):
        # Python's $ is also before a last line feed.
        return not isinstance(value, str) or re.search(given.replace("$", r"\Z"), value, re.ASCII) is not None

    def on_required(self, schema, given, value):
        return not isinstance(value, dict) or all(name in value for name in given)

    def on_properties(self, schema, given, value):
        return not isinstance(value, dict) or all(self.check(given[name], one) for name, one in value.items() if name in given)

    def on_patternProperties(self, schema, given, value):
        return not isinstance(value, dict) or all(self.check(one, member) for pattern, one in given.items()
                                                  for name, member in value.items() if self.on_pattern(None, pattern, name))

    def on_additionalProperties(self, schema, given, value):
        def other(name):
            return name not in schema.get("properties", {}) and not any(
                self.on_pattern(None, pattern, name) for pattern in schema.get("patternProperties", {}))

        return not isinstance(value, dict) or all(self.check(given, one) for name, one in value.items() if other(name))

    def on_propertyNames(self, schema, given, value):
        return self.draft == 4 or not isinstance(value, dict) or all(self.check(given, name) for name in value)

    def on_dependentRequired(self, schema, given, value):
        return not isinstance(value, dict) or all(other in value for name, others in given.items() if name in value for other in others)

    def on_dependentSchemas(self, schema, given, value):
        return not isinstance(value, dict) or all(self.check(one, value) for name, one in given.items() if name in value)

    def on_dependencies(self, schema, given, value):
        lists = {name: one for name, one in given.items() if isinstance(one, list)}
        others = {name: one for name, one in given.items() if not isinstance(one, list)}
        return self.on_dependentRequired(None, lists, value) and self.on_dependentSchemas(None, others, value)

    def on_prefixItems(self, schema, given, value):
        return not isinstance(value, list) or all(self.check(one, item) for one, item in zip(given, value))

    def on_items(self, schema, given, value):
        if not isinstance(value, list):
            return True
        if isinstance(given, list):
            rest = schema.get("additionalItems", True)
            return self.on_prefixItems(None, given, value) and all(self.check(rest, item) for item in value[len(given):])
        return all(self.check(given, item) for item in value[len(schema.get("prefixItems", [])) if self.draft == 2020 else 0:])

    def on_contains(self, schema, given, value):
        if self.draft == 4 or not isinstance(value, list):
            return True
        found = sum(self.check(given, item) for item in value)
        least, most = (schema.get("minContains", 1), schema.get("maxContains", found)) if self.draft >= 2019 else (1, found)
        return least <= found <= most

    def on_uniqueItems(self, schema, given, value):
        return not given or not isinstance(value, list) or len({key(item) for item in value}) == len(value)

    def on_allOf(self, schema, given, value):
        return all(self.check(one, value) for one in given)

    def on_anyOf(self, schema, given, value):
        return any(self.check(one, value) for one in given)

    def on_oneOf(self, schema, given, value):
        return sum(self.check(one, value) for one in given) == 1

    def on_not(self, schema, given, value):
        return not self.check(given, value)

    def on_if(self, schema, given, value):
        return self.draft < 7 or self.check(schema.get("then" if self.check(given, value) else "else", True), value)

    def on_ref(self, schema, given, value):
        return self.check(self.target(given), value)
