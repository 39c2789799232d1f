#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages, unpacks them and works with what is in them as on a machine where nothing else is installed
# that this one happens to have: deb_test.sh <cpack> <build> <cmake>
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-deb >/dev/null || { echo "no dpkg-deb: skipped"; exit 77; }
. "$here/expect_story.sh"
"$1" -G DEB --config "$2/CPackConfig.cmake" -B "$work/package" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
fail() { echo "$1"; exit 1; }
for name in libgenerate0 libgenerate-dev generate; do
  deb=$(echo "$work/package/${name}_"*.deb)
  test -f "$deb" || fail "no package $name"
  depends=$(dpkg-deb -f "$deb" Depends)
  case $name in
    libgenerate0) wanted="libc6 libpcre2-8-0" ;;
    libgenerate-dev) wanted="libgenerate0 libpcre2-dev" ;;
    generate) wanted="libgenerate0 libc6" ;;
  esac
  for needed in $wanted; do
    echo "$depends" | grep -q "$needed" || fail "$name does not depend on $needed"
  done
  if echo "$depends" | grep sentencepiece; then fail "only tests need that"; fi
  dpkg-deb -c "$deb" | awk '!/\/$/ {print $6}' >>"$work/files"
  dpkg-deb -x "$deb" "$work/root"
  mkdir "$work/control"
  dpkg-deb -e "$deb" "$work/control"
  test $name != libgenerate0 || grep -q ldconfig "$work/control/triggers" || fail "ldconfig is not told of $name"
  rm -r "$work/control"
  test -s "$work/root/usr/share/doc/$name/copyright" || fail "$name has no copyright"
  test -s "$work/root/usr/share/doc/$name/changelog.gz" || fail "$name has no changelog"
done
if sort "$work/files" | uniq -d | grep .; then fail "the files above are in two packages"; fi
if find "$work/root" ! -perm -o=r ! -type l | grep .; then fail "the files above are not readable by all"; fi
if ls "$work/root/usr/share" | grep -E 'java|dotnet|go'; then fail "bindings do not belong here"; fi
for file in share/man/man1/generate.1.gz share/man/man1/generate-server.1.gz bin/generate-server \
  share/bash-completion/completions/generate share/doc/generate/README.md share/doc/generate/docs/caches.md \
  share/doc/generate/examples/markov.c; do
  test -s "$work/root/usr/$file" || fail "not there: $file"
done

# Compilers see only what is in the packages, and pkg-config only its description there.
export PKG_CONFIG_LIBDIR="$work/root/usr/lib/pkgconfig" PKG_CONFIG_PATH="" LD_LIBRARY_PATH="$work/root/usr/lib"
$CC -std=c11 "$here/story.c" $(pkg-config --cflags --libs generate) -o "$work/story"
pkg-config --static --libs generate | grep -q pcre2 || fail "nothing to link the static library with"
PREFIX="$work/root/usr" model=$work/root/usr/share/generate/story.gguf
expect_story "$work/story"
mkdir "$work/source"
cp "$here/story.c" "$work/source"
cp "$here/consumer.cmake" "$work/source/CMakeLists.txt"
"$3" -G Ninja -S "$work/source" -B "$work/build" -D CMAKE_PREFIX_PATH="$work/root/usr" \
  -D CMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON >"$work/log" 2>&1 &&
  "$3" --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
expect_story "$work/build/static"
"$work/root/usr/bin/generate" --version >/dev/null
"$work/root/usr/bin/generate-server" --version >/dev/null

if command -v lintian >/dev/null; then
  # This test's folder and a release that is not Debian's own are no errors of the packages.
  if lintian --no-cfg --fail-on error "$work"/package/*.deb >"$work/lint" 2>&1; then :; else
    cat "$work/lint"; fail "lintian finds errors"
  fi
fi
