#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a package for NuGet of LibGenerate.dll and the native libraries it needs, without NuGet.

The same inputs give the same bytes. What libgenerate.so.0 needs beyond the C and C++ runtimes goes along.
"""
import argparse
import pathlib
import subprocess
import sys
import zipfile

PREFIX = "http://schemas.openxmlformats.org/package/2006/"
NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>LibGenerate</id>
    <version>{version}</version>
    <authors>libgenerate</authors>
    <description>Text generation with GGUF models, embedded: sessions, streams, batches, caches.</description>
    <license type="expression">Apache-2.0</license>
    <readme>README.md</readme>
    <tags>llm gguf text-generation native</tags>
    <dependencies><group targetFramework=".NETStandard2.0" /></dependencies>
  </metadata>
</package>
"""
CONTENT_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="{prefix}content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  <Default Extension="nuspec" ContentType="application/octet" />
  <Default Extension="dll" ContentType="application/octet" />
  <Default Extension="xml" ContentType="application/octet" />
  <Default Extension="so" ContentType="application/octet" />
  <Default Extension="0" ContentType="application/octet" />
  <Default Extension="md" ContentType="application/octet" />
  <Override PartName="/LICENSE" ContentType="application/octet" />
</Types>
"""
RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="{prefix}relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/LibGenerate.nuspec" Id="R1" />
</Relationships>
"""
# Part of every system that the package is for.
SYSTEM = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "libgcc_s.so", "libstdc++.so", "ld-linux", "linux-vdso")


def needed(library):
    """The libraries that come along with one: {file name: path}."""
    lines = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout.splitlines()
    found = {}
    for line in lines:
        name, arrow, rest = line.strip().partition(" => ")
        if not arrow or name.startswith(SYSTEM):
            continue
        path = rest.split(" (")[0]
        if path == "not found":
            sys.exit(f"make_nupkg.py: {library} needs {name}, which is not there")
        found[name] = pathlib.Path(path)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--version", required=True)
    for name in ("assembly", "native", "library", "source"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    args = parser.parse_args()

    native = {"libgenerate_csharp.so": args.native, "libgenerate.so.0": args.library, **needed(args.library)}
    files = {
        "[Content_Types].xml": CONTENT_TYPES.format(prefix=PREFIX).encode(),
        "_rels/.rels": RELATIONS.format(prefix=PREFIX).encode(),
        "LibGenerate.nuspec": NUSPEC.format(version=args.version).encode(),
        "README.md": (args.source / "bindings/csharp/README.md").read_bytes(),
        "LICENSE": (args.source / "LICENSE").read_bytes(),
        "lib/netstandard2.0/LibGenerate.dll": args.assembly.read_bytes(),
        "lib/netstandard2.0/LibGenerate.xml": args.assembly.with_suffix(".xml").read_bytes(),
    }
    for name, path in sorted(native.items()):
        files["runtimes/linux-x64/native/" + name] = path.read_bytes()

    partial = args.output.with_suffix(".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            package.writestr(entry, data)
    partial.replace(args.output)


if __name__ == "__main__":
    main()
