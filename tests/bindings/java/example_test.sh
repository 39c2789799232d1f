#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each example runs from its source, has at most 60 lines, and does what it says; so does the program of the README:
#   example_test.sh JAVA JAR EXAMPLES STORY README
set -eu
java=$1 jar=$2 examples=$3 story=$4 readme=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$examples"/*.java; do
  lines=$(wc -l <"$file")
  [ "$lines" -le 60 ] || { echo "FAILED: $file has $lines lines"; exit 1; }
done

# run NAME PATTERN ARGUMENTS…: what it prints has the pattern.
run() {
  name=$1 pattern=$2
  shift 2
  out=$("$java" -Xmx128m -cp "$jar" "$examples/$name.java" "$story" "$@" 2>&1) || { echo "FAILED: $name: $out"; exit 1; }
  echo "$out" | grep -q "$pattern" || { echo "FAILED: $name has no \"$pattern\": $out"; exit 1; }
  echo "ok: $name"
}
for name in Streaming Batch ChatLoop; do
  if out=$("$java" -cp "$jar" "$examples/$name.java" 2>&1); then echo "FAILED: $name without arguments"; exit 1; fi
  echo "$out" | grep -q "^usage: $name MODEL.gguf" || { echo "FAILED: $name without arguments: $out"; exit 1; }
done
run Streaming '^, a gentle young boy' </dev/null
run Streaming '^\[LENGTH\]' </dev/null
run Streaming '^cancelled, after some text: true' </dev/null
run Streaming '^interrupted: true' </dev/null
run Batch '^A girl: the same again' "The cat" "A girl" </dev/null
printf 'A story about a dog, please.\nAnd then?\n' >"$work/input"
run ChatLoop 'dog' <"$work/input"
sed -n '/^```java$/,/^```$/p' "$readme" | sed -n '2,/^```$/p' | grep -v '^```' >"$work/Story.java"
examples=$work
run Story '^, a kind little unicorn' </dev/null
