#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How the native library is found, and that nothing is left behind:
#   load_test.sh JAVA JAR CLASSES NATIVE_DIR TEST_CLASSES STORY TEST_MODELS
# JAR has the libraries inside, CLASSES has not. Cost, with few tokens, stands for a program.
set -eu
java=$1 jar=$2 classes=$3 native=$4 tests=$5 story=$6 models=$7
unset GENERATE_LIBRARY LD_LIBRARY_PATH || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp"

program() {
  name=$1 path=$2
  shift 2
  "$java" -Xmx64m -Djava.io.tmpdir="$work/tmp" "$@" -cp "$path:$tests" -Dstory="$story" -Dmodels="$models" Cost 5 \
    >"$work/out" 2>"$work/err" || { echo "FAILED: $name"; cat "$work/out" "$work/err"; exit 1; }
  [ ! -s "$work/err" ] || { echo "FAILED: $name wrote to stderr"; cat "$work/err"; exit 1; }
  left=$(ls -A "$work/tmp" | grep -v '^hsperfdata' || true)
  [ -z "$left" ] || { echo "FAILED: $name left $left behind"; exit 1; }
  echo "ok: $name"
}

program "inside the jar" "$jar"
program "by java.library.path" "$classes" -Djava.library.path="$native"
GENERATE_LIBRARY=$native program "by the folder in GENERATE_LIBRARY" "$classes"
GENERATE_LIBRARY=$native/libgenerate.so.0 program "beside the file in GENERATE_LIBRARY" "$classes"
GENERATE_LIBRARY=$work program "inside the jar, with a GENERATE_LIBRARY for others" "$jar"

# A copy somewhere else finds what it needs beside itself.
mkdir "$work/elsewhere"
cp "$native"/* "$work/elsewhere"
GENERATE_LIBRARY=$work/elsewhere program "moved elsewhere" "$classes"
rm "$work/elsewhere/libgenerate.so.0"

# fails NAME GENERATE_LIBRARY PARTS…: it is not loaded, and the message has all parts.
fails() {
  name=$1 value=$2
  shift 2
  if GENERATE_LIBRARY=$value "$java" -Djava.library.path="$work" -cp "$classes:$tests" -Dstory="$story" \
    -Dmodels="$models" Cost 5 >"$work/out" 2>&1; then
    echo "FAILED: $name"
    exit 1
  fi
  for part; do
    grep -q "$part" "$work/out" || { echo "FAILED: no \"$part\" in the message"; cat "$work/out"; exit 1; }
  done
  echo "ok: $name is told"
}
# The first failure is the one that is told, by its own name.
fails "the kind of failure" "$work" "UnsatisfiedLinkError: libgenerate was not found"
fails "a library without what it needs" "$work/elsewhere" "GENERATE_LIBRARY: $work/elsewhere" "libgenerate.so.0"
fails "what was tried" "$work" "GENERATE_LIBRARY: there is no $work/lib" "the jar has no native/" "java.library.path"
