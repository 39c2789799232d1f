#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The installed Java and C# bindings work from a prefix that was moved, with nothing set but where they are themselves:
#   bindings_test.sh java|csharp <source root> <libdir>
set -eu
language=$1 source=$2 libdir=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$PREFIX" "$work/moved"
unset LD_LIBRARY_PATH GENERATE_LIBRARY LIBGENERATE_NATIVE
story=$work/moved/share/generate/story.gguf
case $language in
  java)
    # All that the jar needs is inside of it.
    mv "$work"/moved/share/java/generate-*.jar "$work/generate.jar"
    rm -r "${work:?}/moved/$libdir"
    java -cp "$work/generate.jar" "$source/examples/java/Streaming.java" "$story" >"$work/out" 2>&1 </dev/null ;;
  csharp)
    cli=$work/moved/$libdir/cli/libgenerate
    mcs "-out:$work/streaming.exe" "-r:$cli/LibGenerate.dll" "$source/examples/csharp/streaming.cs"
    MONO_PATH="$cli" mono "$work/streaming.exe" "$story" "Once upon a time" 2 >"$work/out" 2>&1 </dev/null ;;
esac || { cat "$work/out"; exit 1; }
test "$(wc -w <"$work/out")" -ge 10 || { cat "$work/out"; echo "no story"; exit 1; }
