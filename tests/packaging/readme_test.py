#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the C program in README.md exactly as the text beside it says.

usage: readme_test.py <source root>      with CC, PREFIX and PKG_CONFIG_PATH set
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

readme = (pathlib.Path(sys.argv[1]) / "README.md").read_text()
programs = re.findall(r"```c\n(.*?)```", readme, re.S)
assert len(programs) == 1, f"{len(programs)} C programs in README.md"
body = re.search(r"int main\(void\) \{\n(.*?)\n\}", programs[0], re.S).group(1)
assert len(body.splitlines()) <= 12, "README promises about ten lines"
builds = re.findall(r"^ *(cc story\.c .*)$", readme, re.M)
assert len(builds) == 1, "README.md does not say how to build story.c"

with tempfile.TemporaryDirectory() as work:
    (pathlib.Path(work) / "story.c").write_text(programs[0])
    os.symlink(pathlib.Path(os.environ["PREFIX"]) / "share/generate/story.gguf", pathlib.Path(work) / "story.gguf")
    build = builds[0].replace("cc ", os.environ["CC"] + " -std=c11 -Wall -Wextra -pedantic -Werror ", 1)
    subprocess.run(build, shell=True, cwd=work, check=True)
    run = subprocess.run(["./story"], cwd=work, check=True, capture_output=True, text=True)
    assert len(run.stdout.split()) >= 10 and run.stderr == "", (run.stdout, run.stderr)
    print(run.stdout)
