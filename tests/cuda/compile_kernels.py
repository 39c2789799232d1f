#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every kernel of cuda/ and tests/cuda/ for devices, two files at a time, and lists what ptxas says of each:
registers, shared memory, spills. Fails where something does not compile or a kernel spills.

usage: compile_kernels.py <nvcc> <source root> <architecture…>, for example 75 90a
"""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

nvcc, root, *architectures = sys.argv[1:]
root = pathlib.Path(root)
FLAGS = ["-std=c++20", "-fmad=false", "--expt-relaxed-constexpr", "-O3", "-Xptxas", "-v,-warn-spills"]


def compile_one(job):
    source, architecture, folder = job
    output = folder / f"{source.stem}.{architecture}.cubin"
    # For one architecture the host's side too, whose launches nvcc writes in a form that may not compile.
    kind = ["-c", "-Xcompiler=-O0"] if architecture == architectures[-1] else ["-cubin"]
    command = [nvcc, f"-arch=sm_{architecture}", *kind, *FLAGS, f"-I{root}", f"-I{root}/src", "-o", str(output), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    return source, architecture, done.returncode, done.stdout + done.stderr


def kernels(text):
    """(mangled name, what ptxas says) of each kernel."""
    for part in re.split(r"Compiling entry function '", text)[1:]:
        name = part.split("'")[0]
        stack, stores, loads = (int(n) for n in re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part).groups())
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        shared = re.search(r"(\d+) bytes smem", part)
        yield name, registers, int(shared.group(1)) if shared else 0, stack, stores + loads


def readable(names):
    tool = shutil.which("c++filt")
    if tool is None or not names:
        return names
    text = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True).stdout
    return [re.sub(r"\(anonymous namespace\)::|gen::(\w+::)*|\bvoid |\(.*", "", line.replace("(anonymous namespace)::", ""))
            for line in text.splitlines()]


sources = sorted(p for top in ("cuda", "tests/cuda") for p in (root / top).rglob("*.cu"))
failures, rows = [], []
with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
    jobs = [(s, a, pathlib.Path(folder)) for s in sources for a in architectures]
    for source, architecture, code, text in pool.map(compile_one, jobs):
        here = source.relative_to(root)
        if code != 0:
            failures.append(f"{here}: sm_{architecture}: does not compile\n{text}")
            continue
        for name, registers, shared, stack, spills in kernels(text):
            rows.append((name, architecture, registers, shared, stack, spills))
            if spills:
                failures.append(f"{here}: sm_{architecture}: {name} spills {spills} bytes")
for (name, architecture, registers, shared, stack, spills), short in zip(rows, readable([row[0] for row in rows])):
    print(f"sm_{architecture:4} {registers:4} registers {shared:7} bytes shared {stack:5} stack {spills:5} spilled  {short}")
print("\n".join(failures) or f"{len(rows)} kernels of {len(sources)} files compile without spills")
sys.exit(1 if failures or not rows else 0)
