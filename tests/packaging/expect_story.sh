# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that build story.c. expect_story <program>: it writes words to stdout and nothing to stderr,
# and a missing model is one line on stderr that names it.
model=$PREFIX/share/generate/story.gguf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect_story() {
  "$1" "$model" >"$work/out" 2>"$work/err" || { cat "$work/err"; echo "$1 failed"; exit 1; }
  test "$(wc -w <"$work/out")" -ge 10 || { cat "$work/out"; echo "$1 wrote no story"; exit 1; }
  test ! -s "$work/err" || { cat "$work/err"; echo "$1 wrote to stderr"; exit 1; }
  if "$1" "$work/missing.gguf" >"$work/out" 2>"$work/err"; then echo "a missing model is no error"; exit 1; fi
  test ! -s "$work/out" || { echo "$1 wrote to stdout while failing"; exit 1; }
  test "$(wc -l <"$work/err")" = 1 || { cat "$work/err"; echo "not one line"; exit 1; }
  grep -q "missing.gguf" "$work/err" || { cat "$work/err"; echo "does not name the file"; exit 1; }
}
