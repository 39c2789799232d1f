#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds story.c by pkg-config alone, against the shared and the static library.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/expect_story.sh"
cd "$work"
cp "$here/story.c" .
strict="-std=c11 -Wall -Wextra -pedantic -Werror"

# shellcheck disable=SC2046,SC2086  # lists of flags
"$CC" $strict $(pkg-config --cflags generate) story.c $(pkg-config --libs generate) -o shared
expect_story ./shared
if ldd ./shared | grep "not found"; then exit 1; fi
readelf -d ./shared | grep -q "libgenerate.so.0" || { echo "not linked with libgenerate.so.0"; exit 1; }
# Whoever links the shared library names none of the libraries behind it.
if readelf -d ./shared | grep -E "NEEDED.*(pcre2|stdc)"; then exit 1; fi

# The static library: its directory comes first, so that only libgenerate is taken from it.
static_flags=$(pkg-config --static --libs generate | sed 's/-lgenerate/-l:libgenerate.a/')
# shellcheck disable=SC2046,SC2086
"$CC" $strict $(pkg-config --static --cflags generate) story.c $static_flags -o static
if readelf -d ./static | grep -q "libgenerate"; then echo "not linked statically"; exit 1; fi
LD_LIBRARY_PATH="" expect_story ./static
