#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every kernel of cuda/ and tests/cuda/ for devices, for all architectures at once, and lists what ptxas says of each:
registers, shared memory, spills. Fails where something does not compile, a kernel spills or does not wait for its predecessor.
The small files of cuda/ops, which are headers for the most part, are compiled several at a time.
What compiled is kept in a folder by a hash of all that went into it, and not compiled again.

usage: compile_kernels.py <nvcc> <source root> <folder> <architecture…>, for example 75 90a
"""
import concurrent.futures
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

nvcc, root, kept, *architectures = sys.argv[1:]
root, kept = pathlib.Path(root), pathlib.Path(kept)
FLAGS = ["-std=c++20", "-fmad=false", "--expt-relaxed-constexpr", "-O3", "-Xptxas", "-v,-warn-spills", "-c", "-Xcompiler=-O0",
         *(f"-gencode=arch=compute_{a},code=sm_{a}" for a in architectures), f"-I{root}", f"-I{root}/src"]
# Bytes that a kernel may spill: around the call of a division in double precision, in what is no step's work.
MAY_SPILL = {"kv_pool_kernel": 64}
VERSION = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout


def files_of(source):
    """The file and all it includes of ours."""
    found, left = {}, [source]
    while left:
        path = left.pop()
        if path in found:
            continue
        found[path] = path.read_bytes()
        for name in re.findall(rb'^\s*#\s*include\s*"([^"]+)"', found[path], re.MULTILINE):
            places = [folder / name.decode() for folder in (path.parent, root, root / "src", root / "include")]
            left += [place.resolve() for place in places if place.is_file()]
    return found


def joined(sources):
    """One file of several. What they call the same are their constants, so each has those under names of its own."""
    texts = [source.read_text() for source in sources]
    includes = dict.fromkeys(line for text in texts for line in re.findall(r"^#include .*", text, re.MULTILINE))
    lines = list(includes)  # of all, before anything has another name
    for source, text in zip(sources, texts):
        constants = re.findall(r"^constexpr .*?\b(k\w+) =", text, re.MULTILINE)
        lines += [f"#define {name} {name}_of_{source.stem}" for name in constants]
        lines.append(f'#include "{source}"')
        lines += [f"#undef {name}" for name in constants]
    return "\n".join(lines) + "\n"


def compile_some(sources):
    contents = [item for source in sources for item in sorted(files_of(source.resolve()).items())]
    digest = hashlib.sha256(repr((VERSION, FLAGS, contents)).encode()).hexdigest()
    answer = kept / f"{sources[0].stem}.{digest[:32]}"
    if answer.is_file():
        return sources, 0, answer.read_text(), True
    with tempfile.TemporaryDirectory() as folder:
        file = sources[0]
        if len(sources) > 1:
            file = pathlib.Path(folder, "joined.cu")
            file.write_text(joined(sources))
        # The host's side too, whose launches nvcc writes in a form that may not compile.
        command = [nvcc, *FLAGS, "-o", f"{folder}/object.o", str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode == 0:
        for old in kept.glob(f"{sources[0].stem}.*"):
            old.unlink()
        answer.write_text(text)
    return sources, done.returncode, text, False


def kernels(text):
    """(mangled name, what ptxas says) of each kernel."""
    for part in re.split(r"Compiling entry function '", text)[1:]:
        name, architecture = re.match(r"([^']*)' for 'sm_(\w+)'", part).groups()
        stack, stores, loads = (int(n) for n in re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part).groups())
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        shared = re.search(r"(\d+) bytes smem", part)
        yield name, architecture, registers, int(shared.group(1)) if shared else 0, stack, stores + loads


def readable(names):
    tool = shutil.which("c++filt")
    if tool is None or not names:
        return names
    text = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True).stdout
    return [re.sub(r"\(anonymous namespace\)::|gen::(\w+::)*|\bvoid |\(.*", "", line.replace("(anonymous namespace)::", ""))
            for line in text.splitlines()]


sources = sorted(p for top in ("cuda", "tests/cuda", "tests/bench") for p in (root / top).rglob("*.cu"))
# The front end takes three seconds for any file, so what is small or has the same headers goes together.
small = [p for p in sources if root / "cuda/ops" in p.parents and 20 < p.read_text().count("\n") < 180 and p.stem != "linear_floats"]
ALIKE = ["linear/linear_blocks", "linear/linear_rows", "experts/experts_rows"]
alike = [[p for p in sources if p.match(f"cuda/ops/{what}_of_*.cu")] for what in ALIKE]
groups = [[p] for p in sources if not any(p in part for part in (small, *alike))]
groups += [part for part in (small[0::2], small[1::2], *alike) if part]
# What takes longest begins first, so that both processes end at about the same time.
LONGEST = ["linear_rows_of_256", "experts_rows_of_256", "kernel", "attention_plain", "attention_tile_plain", "linear_floats", "attention_tile"]
groups.sort(key=lambda group: LONGEST.index(group[0].stem) if group[0].stem in LONGEST else len(LONGEST))
failures, rows, known = [], [], 0
kept.mkdir(parents=True, exist_ok=True)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for group, code, text, was_known in pool.map(compile_some, groups):
        here = ", ".join(str(source.relative_to(root)) for source in group)
        known += len(group) if was_known else 0
        if code != 0:
            failures.append(f"{here}: does not compile\n{text}")
            continue
        for row in kernels(text):
            rows.append(row)
            name, architecture, *_, spills = row
            if spills > max((most for part, most in MAY_SPILL.items() if part in name), default=0):
                failures.append(f"{here}: sm_{architecture}: {name} spills {spills} bytes")
# All kernels of the engine are launched so that they may begin before their predecessors end.
for source in (p for p in sorted((root / "cuda/ops").rglob("*")) if p.suffix in (".cu", ".cuh")):
    text = source.read_text()
    waits = text.count("  after_predecessor();") + text.count("  device::wait_for_predecessor();")
    if text.count("GEN_KERNEL") > waits:
        failures.append(f"{source.relative_to(root)}: a kernel does not wait for its predecessor")
for (name, architecture, registers, shared, stack, spills), short in zip(rows, readable([row[0] for row in rows])):
    print(f"sm_{architecture:4} {registers:4} registers {shared:7} bytes shared {stack:5} stack {spills:5} spilled  {short}")
print("\n".join(failures) or f"{len(rows)} kernels of {len(sources)} files compile without spills, {known} of them as before")
sys.exit(1 if failures or not rows else 0)
