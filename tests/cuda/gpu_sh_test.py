#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu.sh in a folder whose programs are stubs: what each of their exit statuses comes to, wrong arguments, and its time.

usage: gpu_sh_test.py GPU_SH
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv[1])
LINE = '{"part":"%s","seconds":0.5,"bytes":1000}'
# A stub ends with the status that a file <its name>.<its first argument> beside it holds, 0 without one.
STUB = """#!/bin/sh
here=$(dirname "$0")
[ "$(basename "$0")" = compute-sanitizer ] && set -- "$2"
[ "$(basename "$0"):$1" = gpu_bench:list ] && echo add copy && exit 0
status=$(cat "$here/$(basename "$0").$(basename -- "$1")" 2>/dev/null || echo 0)
for file in "$@"; do [ -f "$file" ] && [ "$status" = 0 ] && case $file in */tmp.*) echo '%s' >>"$file" ;; esac; done
[ "$(basename "$0"):$status" = random_model:0 ] && touch "$1"
exit "$status"
"""


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "tmp").mkdir()
        shutil.copy(SCRIPT, self.folder)
        for name in ("gpu_bench", "gpu_read", "gpu_tests", "gpu_decode", "random_model", "compute-sanitizer"):
            path = self.folder / name
            path.write_text(STUB % (LINE % "read"))
            path.chmod(0o755)

    def run_it(self, *arguments, ends=None, **variables):
        for name, status in (ends or {}).items():
            (self.folder / name).write_text(str(status))
        environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", TMPDIR=str(self.folder / "tmp"), **variables)
        return subprocess.run(["bash", str(self.folder / SCRIPT.name), *(arguments or ("run",))], env=environment,
                              capture_output=True, text=True)

    def figures(self):
        return json.loads((self.folder / "results.json").read_text())

    def test_all_is_right(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 wrong, 0 crashed, 0 refused, 0 left out", done.stdout)
        for tool in ("-- memcheck", "-- racecheck", "-- initcheck", "-- tests", "-- 8B weights, Q4_0"):
            self.assertIn(tool, done.stdout)
        self.assertEqual({each["part"] for each in self.figures()}, {"read"})
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_what_a_part_ends_with(self):
        for name, status, code, told in (
            ("gpu_bench.add", 3, 0, "0 wrong, 0 crashed, 1 refused"),
            ("gpu_bench.add", 4, 1, "1 wrong, 0 crashed, 0 refused"),
            ("gpu_bench.add", 139, 1, "0 wrong, 1 crashed, 0 refused"),
            ("gpu_tests.--gtest_brief=1", 4, 1, "1 wrong, 0 crashed, 0 refused"),
            ("compute-sanitizer.racecheck", 9, 1, "1 wrong, 0 crashed, 0 refused"),
            ("gpu_bench.why", 3, 3, "0 wrong, 0 crashed, 1 refused"),
        ):
            with self.subTest(name=name, status=status):
                done = self.run_it(ends={name: status}, GEN_GPU_MODELS="1.1B/Q4_0")
                (self.folder / name).unlink()
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertIn(told, done.stdout)
                self.assertIsInstance(self.figures(), list)

    def test_a_tool_or_a_model_that_is_not_there(self):
        (self.folder / "compute-sanitizer").unlink()
        (self.folder / "random_model").write_text("#!/bin/sh\nexit 1\n")
        done = self.run_it(GEN_GPU_TOOLS="memcheck", GEN_GPU_MODELS="1.1B/Q4_0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("decode of Q4_0: refused, no model could be written to ", done.stdout)
        self.assertIn("refused, 0 left out", done.stdout)
        self.assertTrue(self.figures())

    def test_wrong_arguments_are_one_line(self):
        for variables, told in (
            ({"GEN_GPU_SECONDS": "soon"}, 'GEN_GPU_SECONDS is "soon"'),
            ({"GEN_GPU_MODELS": "2B/Q8_0"}, 'GEN_GPU_MODELS names "2B/Q8_0"'),
            ({"GEN_GPU_MODELS": "8B"}, 'GEN_GPU_MODELS names "8B"'),
        ):
            done = self.run_it(**variables)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(told, done.stderr)
        for arguments in (["go"], ["run", "x"], ["pack", "a", "b"]):
            self.assertEqual(self.run_it(*arguments).returncode, 2)
        (self.folder / "gpu_bench").unlink()
        done = self.run_it()
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("there is no gpu_bench in ", done.stderr)

    def test_time(self):
        """What each part may take, by a clock that stands still and a `timeout` that notes it."""
        limits = self.folder / "limits"
        (self.folder / "timeout").write_text(f"""#!/bin/sh
[ "$1" = -k ] && shift 2
echo "$1" >>"{limits}"
shift
case "$*" in *"gpu_bench add"*) exit 124 ;; esac
exec "$@"
""")
        (self.folder / "timeout").chmod(0o755)
        script = self.folder / SCRIPT.name
        text = script.read_text()
        for now, most in ((100, "60"), (490, "50"), (500, "40"), (501, None)):
            with self.subTest(now=now):
                limits.write_text("")
                script.write_text(f"unset SECONDS\nSECONDS={now}\n{text}")
                done = self.run_it(GEN_GPU_MODELS="1.1B/Q4_0")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(set(limits.read_text().split()), {most} - {None})
                if most is None:
                    self.assertNotIn("gpu_bench add", done.stdout)
                    self.assertRegex(done.stdout, r"0 wrong, 0 crashed, 0 refused, [1-9]\d* left out")
                else:
                    self.assertIn(f"gpu_bench add: ended after {most} seconds", done.stdout)
                    self.assertIn("0 wrong, 0 crashed, 0 refused, 1 left out or ended for time", done.stdout)

    def test_pack_removes_nothing_but_a_pack(self):
        tree = self.folder / "tree"
        (tree / "tests" / "bench").mkdir(parents=True)
        (tree / "CMakeLists.txt").touch()
        shutil.copy(SCRIPT, tree / "tests" / "bench")
        kept = self.folder / "kept"
        kept.mkdir()
        (kept / "letter").touch()
        done = subprocess.run(["bash", str(tree / "tests" / "bench" / SCRIPT.name), "pack", str(kept)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertTrue((kept / "letter").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
