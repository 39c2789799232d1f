#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Loads the library with dlopen in a program that knows nothing of it: dlopen_test.sh <libgenerate.so.0>
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$CC" -std=c11 -Wall -Wextra -Werror -I"$PREFIX/include" "$here/dlopen_test.c" -ldl -o "$work/test"
"$work/test" "$1" "$PREFIX/share/generate/story.gguf"
