#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the bundled model writes under random schemas is valid. The schemas are those of tests/grammar/schema_pairs.jsonl; the
judge is reference_validator.py, which has to give every verdict that stands there before it is asked.

usage: schema_output_test.py SOURCE_DIR    (GENERATE_LIBRARY is the library; GEN_TRIALS: so many schemas, 24 without)
"""
import os
import pathlib
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "examples" / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from libgenerate import Error, Generator, Grammar, Model, Session  # noqa: E402
from reference_validator import Unsupported, Validator, parse  # noqa: E402


def usable(line):
    """The schema's own text and a validator that agrees with the verdicts; None for what this one does not know."""
    pairs = parse(line)
    text = line[line.index(": ") + 2:line.index(', "instances": ')]
    validator = Validator(pairs["schema"])
    try:
        made = "".join("01"[validator.valid(parse(instance))] for instance in pairs["instances"])
    except (Unsupported, RecursionError):
        return None
    assert made == pairs["valid"], f"{text}\n{made}\n{pairs['valid']}"
    return text, validator


def main():
    trials = int(os.environ.get("GEN_TRIALS", "24"))
    tried = written = 0
    generator = Generator(Model(str(ROOT / "examples/demo_model/story.gguf")))
    for line in (ROOT / "tests/grammar/schema_pairs.jsonl").read_text(encoding="utf-8").splitlines():
        if tried == trials:
            break
        found = usable(line)
        if found is None:
            continue
        text, validator = found
        try:
            grammar = Grammar.json_schema(text)
        except Error:
            continue  # refused, or without valid values
        tried += 1
        with grammar:
            for seed in range(2):
                with Session(generator) as session:
                    try:
                        result = session.generate("Once", grammar=grammar, seed=seed, temperature=1.5, max_new_tokens=60)
                    except Error as failed:
                        assert "60" in str(failed) or "fewer" in str(failed), (text, failed)
                        continue
                    assert result.finish_reason in ("grammar_complete", "stop_token", "length"), (text, result.finish_reason, result.text)
                    assert validator.valid(parse(result.text)), f"{text}\n{result.text}"
                    written += 1
    assert tried == trials or trials > 24, tried
    assert written > tried, (tried, written)
    print(f"{tried} schemas, {written} texts valid")


main()
