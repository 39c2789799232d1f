#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds story.c by find_package(generate), against both libraries: find_package_test.sh <cmake>
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/expect_story.sh"
mkdir "$work/source"
cp "$here/story.c" "$work/source"
cp "$here/consumer.cmake" "$work/source/CMakeLists.txt"
# From a copy of the prefix: an installed package must work wherever it is moved.
cp -r "$PREFIX" "$work/moved"
unset LD_LIBRARY_PATH
# Also from a project that knows of no C++, whose linker is C's.
for languages in "C CXX" C; do
  sed -i "s/LANGUAGES .*)/LANGUAGES $languages)/" "$work/source/CMakeLists.txt"
  rm -rf "$work/build"
  "$1" -G Ninja -S "$work/source" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" 2>&1 &&
    "$1" --build "$work/build" >>"$work/log" 2>&1 || { echo "languages $languages"; cat "$work/log"; exit 1; }
  for program in shared static; do expect_story "$work/build/$program"; done
  readelf -d "$work/build/shared" | grep -q "libgenerate.so.0" || { echo "not linked"; exit 1; }
done
