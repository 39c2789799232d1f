#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bindings/cost.c in Python: cost.py SOURCE_DIR TEST_MODELS [TOKENS]   (GENERATE_LIBRARY is the library)"""
import ctypes
import pathlib
import sys
import time

root = pathlib.Path(sys.argv[1])
tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
sys.path.insert(0, str(root / "examples" / "python"))
from libgenerate import Generator, Model, Session  # noqa: E402

story = Model(root / "examples/demo_model/story.gguf")
forward = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(sys.argv[2]), "test_model_nothing"))
generator, runs = Generator(Model.custom(forward, story, vocab_size=4096, max_seq_len=1 << 20)), []
for _ in range(5):
    with Session(generator) as session:
        stream = session.stream("a", temperature=0, max_new_tokens=tokens)
        next(stream)
        begin = time.perf_counter_ns()
        n = sum(1 for _ in stream)
        runs.append((time.perf_counter_ns() - begin) / n)
print(f"Python: {min(runs):.0f} ns a token")
