#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The installed program finds its library and its model by itself: program_test.sh <generate>
set -eu
unset LD_LIBRARY_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$1" run -p "Once upon a time" -n 30 --temp 0 >out 2>err || { cat err; exit 1; }
test "$(wc -w <out)" -ge 10 || { cat out; echo "no story"; exit 1; }
# Moved as a whole it still works.
cp -r "$PREFIX" moved
moved/bin/generate run -p "Once upon a time" -n 30 --temp 0 >out2 2>err
cmp out out2
# Without the models beside it, it takes none from where it was built.
rm -r moved/share/generate
if moved/bin/generate run -p x >out 2>err; then echo "a model from elsewhere"; exit 1; fi
grep -q "no model: .*moved/share/generate" err || { cat err; exit 1; }
# An error is one line on stderr, nothing on stdout, and a failing exit.
if "$1" run -m "$work/missing.gguf" -p x >out 2>err; then echo "a missing model is no error"; exit 1; fi
test ! -s out
test "$(wc -l <err)" = 1
grep -q "missing.gguf" err
