#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library and a backend's library of other headers have other build ids, also where no size differs.

usage: headers_id.py <source root> <cmake>
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root, cmake = pathlib.Path(sys.argv[1]), sys.argv[2]
with tempfile.TemporaryDirectory() as folder:
    copy, out = pathlib.Path(folder) / "copy", pathlib.Path(folder) / "id.h"
    for room in ("base", "tensor", "quant", "engine"):
        shutil.copytree(root / "src" / room, copy / "src" / room)

    def make():
        subprocess.run([cmake, f"-DROOT={copy}", f"-DOUT={out}", "-P", root / "cmake/headers_id.cmake"], check=True)
        found = re.fullmatch(r'#define GEN_HEADERS_ID "([0-9a-f]{16})"\n', out.read_text())
        return found.group(1) if found else sys.exit(f"not a header of an id: {out.read_text()}")

    first, written = make(), out.stat().st_mtime_ns
    if make() != first or out.stat().st_mtime_ns != written:
        sys.exit("written anew although no header has changed")
    seen = {first}
    for name in ("engine/engine.h", "engine/kv/codec.h", "base/status.h", "quant/traits.h", "tensor/dtype.h"):
        header = copy / "src" / name
        header.write_text(header.read_text().replace("virtual", "virtual void added(); virtual", 1) + "\n")
        seen.add(make())
    (copy / "src/engine/cpu/cpu_engine.h").write_text("// no part of what is shared\n")
    if len(seen) != 6 or make() not in seen:
        sys.exit(f"{len(seen)} ids of 6 sets of headers")
print("six sets of headers, six ids")
