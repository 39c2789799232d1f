#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the library's objects for what a library must not do to its host.

They import nothing that ends the process, prints, or touches signals; no code of theirs runs at load or at exit;
they hold no mutable global but those listed here, and nothing per thread.

usage: objects.py <libgenerate.a>
"""
import re
import subprocess
import sys

FORBIDDEN = {
    "ends the process": """abort exit _exit _Exit quick_exit pthread_exit kill raise __assert_fail
        _ZSt9terminatev _ZSt10unexpectedv _ZN3hwy5AbortEPKciS1_z""",
    "prints": """printf vprintf puts putchar fputs fputc putc fprintf vfprintf perror stdout stderr __printf_chk
        __fprintf_chk __vfprintf_chk __vprintf_chk _ZSt4cout _ZSt4cerr _ZSt4clog""",
    "touches the process": "signal sigaction setlocale setenv putenv unsetenv chdir umask atexit fork",
    "runs at exit": "__cxa_atexit __cxa_thread_atexit",
}
# name: why it is allowed.
ALLOWED_IMPORTS = {
    "_ZSt9terminatev": """what the compiler puts where an exception would leave a noexcept function through a destructor;
        calls that we write ourselves are found by source_rules.py""",
}
# Mutable data, by the demangled name's pattern: why it is there.
ALLOWED_DATA = {
    r"gen::\(anonymous namespace\)::state$": "the log's sink (base/log.cpp), the process' only mutable state",
    r"gen::tokenizer::\(anonymous namespace\)::kTable$": "constexpr, but gcc 12 puts it with the writable data",
    r"gen::\(anonymous namespace\)::nobody$": "who listens to no metrics (base/metrics.cpp): a vtable pointer, never written",
    r"gen::\(anonymous namespace\)::heap$": "the system allocator (base/allocator.cpp): a vtable pointer, never written",
    r"gen::engine::\(anonymous namespace\)::heap_memory$": "memory of the process' heap (engine/memory/host_memory.cpp): never written",
    r"gen::engine::cuda_library\(\)::loaded$": "what loading the library of an engine came to (engine/backend/backend_library.cpp), once",
    r"gen::\(anonymous namespace\)::disk$": "the system's files (base/file_ops.cpp): a vtable pointer, never written",
}

archive = sys.argv[1]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


failures, objects = [], set()
why = {name: reason for reason, names in FORBIDDEN.items() for name in names.split()}
for line in run("nm", "-A", "-u", archive).splitlines():
    place, name = re.match(r".*?:([^:]+):\s+[Uwv] (\S+)", line).groups()
    if name in why and name not in ALLOWED_IMPORTS:
        failures.append(f"{place}: imports {name}: {why[name]}")

member = ""
for line in run("objdump", "-h", "-w", archive).splitlines():
    header = re.match(r"(\S+):\s+file format", line)
    if header:
        member = header.group(1)
        objects.add(member)
    section = re.match(r"\s*\d+ (\.(?:init_array|fini_array|ctors|dtors|tdata|tbss)\S*)\s+(\w+)", line)
    if section and int(section.group(2), 16) != 0:
        what = "per-thread data" if section.group(1).startswith(".t") else "code that runs at load or exit"
        failures.append(f"{member}: {what} ({section.group(1)})")

for line in run("objdump", "-t", "-C", "-w", archive).splitlines():
    header = re.match(r"(\S+):\s+file format", line)
    if header:
        member = header.group(1)
    symbol = re.match(r"[0-9a-f]+ .{6}[O ] (\.(?:data|bss)(?!\.rel\.ro)\S*|\*COM\*)\s+([0-9a-f]+)\s+(?:\.hidden )?(.*)", line)
    if not symbol or int(symbol.group(2), 16) == 0:
        continue
    name = symbol.group(3)
    if name.startswith("DW.ref."):
        continue  # the compiler's own pointers to exception types
    if not any(re.search(pattern, name) for pattern in ALLOWED_DATA):
        failures.append(f"{member}: mutable global {name} in {symbol.group(1)}")

print("\n".join(failures) or f"{len(objects)} objects keep to themselves")
sys.exit(1 if failures or len(objects) < 2 else 0)
