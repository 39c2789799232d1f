#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian package, unpacks it and works with what is in it: deb_test.sh <cpack> <build>
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-deb >/dev/null || { echo "no dpkg-deb: skipped"; exit 77; }
. "$here/expect_story.sh"
"$1" -G DEB --config "$2/CPackConfig.cmake" -B "$work/package" -D CPACK_OUTPUT_FILE_PREFIX="$work/package" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
deb=$(echo "$work"/package/libgenerate_*.deb)
for needed in libc6 libpcre2-8-0; do
  dpkg-deb -f "$deb" Depends | grep -q "$needed" || { echo "does not depend on $needed"; exit 1; }
done
if dpkg-deb -f "$deb" Depends | grep sentencepiece; then echo "only tests need that"; exit 1; fi
dpkg-deb -x "$deb" "$work/root"
if find "$work/root" ! -perm -o=r ! -type l | grep .; then echo "the files above are not readable by all"; exit 1; fi
if ls "$work/root/usr/share" | grep -E 'java|dotnet|go'; then echo "bindings do not belong here"; exit 1; fi
export PKG_CONFIG_PATH="$work/root/usr/lib/pkgconfig" LD_LIBRARY_PATH="$work/root/usr/lib"
$CC -std=c11 "$here/story.c" $(pkg-config --cflags --libs generate) -o "$work/story"
PREFIX="$work/root/usr"
expect_story "$work/story"
"$work/root/usr/bin/generate" --version >/dev/null
