# SPDX-License-Identifier: Apache-2.0
"""Tests of the C# binding that are about whole processes: see the functions that main names."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

NATIVE = "runtimes/linux-x64/native"


def run(args, command, native=None, **more):
    environment = {key: value for key, value in os.environ.items() if key not in ("LIBGENERATE_NATIVE", "LD_LIBRARY_PATH")}
    if native is not None:
        environment["LIBGENERATE_NATIVE"] = str(native)
    return subprocess.run([args.mono, *map(str, command)], env=environment, capture_output=True, text=True, timeout=600,
                          **more)


def check(holds, what, process=None):
    if not holds:
        sys.exit(f"FAILED: {what}" + (f"\nexit code {process.returncode}\n{process.stdout}{process.stderr}" if process else ""))


def left_open(args, folder):
    """A process that ends with everything open ends well, and in silence."""
    for how in ("return", "exit", "thread") * 3:
        process = run(args, [args.programs / "LeftOpen.exe", args.source, args.test_models, how], args.assembly_folder)
        check(process.returncode == 0 and process.stdout + process.stderr == "", f"left open, {how}", process)


def places(args, folder):
    """The library is found beside the assembly, as the variable says, or a failure names all that was tried."""
    model = args.source / "examples/demo_model/story.gguf"
    for name in ("FirstCalls.exe", "LibGenerate.dll"):
        shutil.copy(args.programs / name, folder)
    program = folder / "FirstCalls.exe"

    process = run(args, [program, model, "version"])
    check(process.returncode == 3, "nothing to be found", process)
    for place in (folder / "libgenerate_csharp.so", folder / NATIVE / "libgenerate_csharp.so"):
        check(f"{place}: no such file" in process.stdout, f"{place} is told", process)
    check("LIBGENERATE_NATIVE" in process.stdout, "the variable is told", process)

    (folder / "broken").mkdir()
    (folder / "broken/libgenerate_csharp.so").write_text("no library")
    process = run(args, [program, model, "version"], folder / "broken")
    check(process.returncode == 3 and "file too short" in process.stdout, "a broken library is told", process)

    process = run(args, [program, model, "load"], args.assembly_folder)
    check(process.returncode == 0, "as the variable says", process)

    shutil.copy(args.assembly_folder / "libgenerate_csharp.so", folder)
    shutil.copy(args.library, folder / "libgenerate.so.0")
    process = run(args, [program, model, "load"])
    check(process.returncode == 0, "beside the assembly", process)


def unpack(args, folder):
    with zipfile.ZipFile(args.package) as package:
        package.extractall(folder)
    return folder


def package(args, folder):
    """Programs run against the unpacked package, all libraries from it, whatever they call first."""
    model = args.source / "examples/demo_model/story.gguf"
    unpack(args, folder)
    names = {path.name for path in (folder / NATIVE).iterdir()}
    check({"libgenerate_csharp.so", "libgenerate.so.0", "libpcre2-8.so.0"} <= names,
          f"libraries in the package: {names}")
    for name in ("LibGenerate.nuspec", "README.md", "LICENSE", "[Content_Types].xml", "_rels/.rels"):
        check((folder / name).is_file(), f"{name} in the package")
    # The assembly stays where the package has it; mono is told where that is.
    program = folder / "FirstCalls.exe"
    shutil.copy(args.programs / "FirstCalls.exe", program)
    os.environ["MONO_PATH"] = str(folder / "lib/netstandard2.0")
    calls = run(args, [program]).stdout.splitlines()
    check(len(calls) > 40, f"{len(calls)} calls")
    for call in calls:
        process = run(args, [program, model, call])
        check(process.returncode == 0 and process.stdout == "", f"first call: {call}", process)

    (folder / "maps.cs").write_text(
        "class Maps { static void Main() { System.Console.WriteLine(LibGenerate.Library.Version);"
        ' System.Console.Write(System.IO.File.ReadAllText("/proc/self/maps")); } }')
    subprocess.run([args.mcs, "-r:" + str(folder / "lib/netstandard2.0/LibGenerate.dll"), "-out:" + str(folder / "maps.exe"),
                    str(folder / "maps.cs")], check=True)
    process = run(args, [folder / "maps.exe"])
    for name in ("libgenerate_csharp", "libgenerate.so", "libpcre2-8"):
        found = {line.split()[-1] for line in process.stdout.splitlines() if name in line}
        check(len(found) == 1 and found.pop().startswith(str(folder / NATIVE)), f"{name} is that of the package", process)


def examples(args, folder):
    """Each example does what it says, with the bundled model, in at most 60 lines."""
    model = args.source / "examples/demo_model/story.gguf"

    def example(name, *arguments, **more):
        lines = (args.source / f"examples/csharp/{name}.cs").read_text().count("\n")
        check(lines <= 60, f"{name}.cs has {lines} lines")
        process = run(args, [args.programs / f"{name}.exe", model, *arguments], args.assembly_folder, **more)
        check(process.returncode == 0, name, process)
        return process

    for name in ("batch", "chat", "streaming"):
        process = run(args, [args.programs / f"{name}.exe"], args.assembly_folder)
        check(process.returncode == 2 and process.stderr.startswith(f"usage: {name} MODEL.gguf"), name, process)
    process = example("chat", input="Hello!\nTell me a story about a dog.\n")
    check(len(process.stdout.splitlines()) >= 2 and len(process.stdout) > 40, "the chat answers", process)
    process = example("batch", "Once upon a time", "The dog", "Lily and Tom")
    check(all(f"{i}:" in process.stdout for i in range(3)), "each prompt has its text", process)
    check("Once upon a time, a gentle young boy" in process.stdout, "the text of the first", process)
    for seconds in ("1", "10", "100"):  # one of these is enough for its first words
        process = example("streaming", "Once upon a time", seconds)
        if process.stdout.startswith("Once upon a time, a gentle young boy"):
            break
    else:
        check(False, "a story", process)
    check(re.search(r"\[cancelled after \d+ tokens\]", process.stdout), "cancelled", process)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("left_open", "places", "package", "examples"))
    parser.add_argument("--mono", required=True)
    parser.add_argument("--mcs", required=True)
    for name in ("programs", "source", "assembly-folder", "library", "test-models", "package"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        globals()[args.what](args, pathlib.Path(folder))


if __name__ == "__main__":
    main()
