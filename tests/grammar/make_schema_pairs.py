#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random schemas of 2020-12 with instances and verdicts: make_schema_pairs.py SEED COUNT [unevaluated] > schema_pairs.jsonl

One schema a line: {"schema": …, "instances": [text, …], "valid": "0110…"}. The verdicts are those of the Python package
jsonschema (4.26). Its regular expressions are Python's, so the patterns here mean the same in both languages, and no
string ends with a line break. With "unevaluated" most schemas that hold others have an unevaluated keyword, too.
"""
import json
import random
import sys

from jsonschema import Draft202012Validator

STRINGS = ["", "a", "b", "ab", "aab", "xy", "é", '"q', "abc", "\U0001f999"]
NAMES = ["a", "b", "c", "ab", "x1", "y"]
PATTERNS = ["^a", "b$", "^[a-c]*$", "[0-9]", "^.{2}$", "a.b"]
NUMBERS = [0, 1, -1, 2, 3, 1.0, 1.5, -2.5, 10, 100, 0.1, 1e-05, 1e20, 5, 6]
TYPES = ["object", "array", "string", "number", "integer", "boolean", "null", ["string", "object"],
         ["integer", "array", "null"], ["number", "object"]]


class Maker:
    def __init__(self, seed, unevaluated=False):
        self.random = random.Random(seed)
        self.unevaluated = unevaluated

    def value(self, depth):
        pick = self.random.randrange(9 if depth > 0 else 6)
        if pick == 0:
            return None
        if pick == 1:
            return self.random.random() < 0.5
        if pick in (2, 3):
            return self.random.choice(NUMBERS)
        if pick in (4, 5):
            return self.random.choice(STRINGS)
        if pick in (6, 7):
            return {name: self.value(depth - 1) for name in self.names(4)}
        return [self.value(depth - 1) for _ in range(self.random.randrange(4))]

    def names(self, most):
        return self.random.sample(NAMES, self.random.randrange(most))

    def schemas(self, depth, most):
        return [self.schema(depth - 1) for _ in range(self.random.randrange(1, most))]

    def schema(self, depth):
        r = self.random
        if r.random() < 0.05:
            return r.random() < 0.7
        made = {}
        for _ in range(r.choice([1, 1, 2, 2, 3])):
            keyword = r.choice(SCALAR if depth == 0 else SCALAR + NESTED)
            if keyword == "type":
                made[keyword] = r.choice(TYPES)
            elif keyword == "enum":
                made[keyword] = [self.value(2) for _ in range(r.randrange(1, 4))]
            elif keyword == "const":
                made[keyword] = self.value(2)
            elif keyword == "multipleOf":
                made[keyword] = r.choice([1, 2, 3, 0.5, 2.5, 5])
            elif keyword.endswith(("imum", "Minimum", "Maximum")):
                made[keyword] = r.choice(NUMBERS)
            elif keyword.startswith(("min", "max")):
                made[keyword] = r.randrange(4)
            elif keyword == "pattern":
                made[keyword] = r.choice(PATTERNS)
            elif keyword == "required":
                made[keyword] = self.names(3)
            elif keyword == "dependentRequired":
                made[keyword] = {r.choice(NAMES): self.names(3)}
            elif keyword == "properties":
                made[keyword] = {name: self.schema(depth - 1) for name in self.names(4)}
            elif keyword == "patternProperties":
                made[keyword] = {r.choice(PATTERNS): self.schema(depth - 1) for _ in range(2)}
            elif keyword == "dependentSchemas":
                made[keyword] = {r.choice(NAMES): self.schema(depth - 1)}
            elif keyword in ("prefixItems", "allOf", "anyOf", "oneOf"):
                made[keyword] = self.schemas(depth, 4)
            elif keyword == "contains":
                made[keyword] = self.schema(depth - 1)
                for count in ("minContains", "maxContains"):
                    if r.random() < 0.4:
                        made[count] = r.randrange(3)
            elif keyword == "if":
                for name in ("if", "then", "else"):
                    if name == "if" or r.random() < 0.7:
                        made[name] = self.schema(depth - 1)
            elif keyword == "$ref":
                made[keyword] = "#/$defs/d"
            else:
                made[keyword] = self.schema(depth - 1)
        if self.unevaluated and depth > 0:
            for keyword in ("unevaluatedProperties", "unevaluatedItems"):
                if r.random() < 0.6:
                    made[keyword] = r.random() < 0.3 and self.schema(0)
        return made


SCALAR = ["type", "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
          "maxLength", "pattern", "required", "minItems", "maxItems", "minProperties", "maxProperties", "multipleOf",
          "dependentRequired"]
NESTED = ["properties", "properties", "properties", "additionalProperties", "patternProperties", "propertyNames", "items",
          "items", "prefixItems", "contains", "allOf", "anyOf", "oneOf", "oneOf", "not", "if", "dependentSchemas", "$ref"]


def main():
    maker = Maker(int(sys.argv[1]), sys.argv[3:] == ["unevaluated"])
    for _ in range(int(sys.argv[2])):
        schema = maker.schema(2)
        if not isinstance(schema, dict):
            continue
        schema["$defs"] = {"d": maker.schema(0)}
        validator = Draft202012Validator(schema)
        instances = [maker.value(2) for _ in range(12)]
        print(json.dumps({
            "schema": schema,
            "instances": [json.dumps(one, ensure_ascii=maker.random.random() < 0.5) for one in instances],
            "valid": "".join("01"[validator.is_valid(one)] for one in instances)}, ensure_ascii=False))


main()
