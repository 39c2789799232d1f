#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into an empty prefix and looks at what came: install_test.sh <cmake> <build> <prefix> <libdir>
set -eu
cmake=$1 build=$2 prefix=$3 libdir=$4

rm -rf "$prefix"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null

for file in include/generate/generate.h include/generate/experimental.h "$libdir/libgenerate.a" \
  "$libdir/pkgconfig/generate.pc" "$libdir/cmake/generate/generateConfig.cmake" \
  share/generate/story.gguf share/generate/draft.gguf share/generate/heldout.txt bin/generate \
  bin/generate-server share/man/man1/generate.1 share/man/man1/generate-server.1 \
  share/bash-completion/completions/generate share/doc/generate/docs/server.md share/doc/generate/README.md \
  share/doc/generate/examples/python/libgenerate.py share/doc/generate/examples/java/ChatLoop.java; do
  test -s "$prefix/$file" || { echo "not installed: $file"; exit 1; }
done
for link in libgenerate.so libgenerate.so.0; do
  test -L "$prefix/$libdir/$link" || { echo "not a link: $libdir/$link"; exit 1; }
done
soname=$(readelf -d "$prefix/$libdir/libgenerate.so" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
test "$soname" = libgenerate.so.0 || { echo "soname is '$soname'"; exit 1; }
# Nothing installed, programs and libraries included, may point back into the source or build tree.
source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
if grep -rlaF -e "$source" -e "$build" "$prefix"; then
  echo "the files above name the source or build tree"
  exit 1
fi
for file in "$prefix/$libdir/libgenerate.so.0" "$prefix/bin/generate" \
  "$prefix/bin/generate-server"; do
  places=$(readelf -d "$file" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p')
  case ":$places:" in
    ::) ;;  # none at all
    *::* | *:[!$]*:*) echo "$file looks for libraries in '$places'"; exit 1 ;;
  esac
done
