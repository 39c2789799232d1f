#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh checkout to a story on the terminal: installs what is missing, builds the library and the program, runs the
# bundled model. `cmake --build --preset release` builds the rest of the release.
#
#   examples/quickstart.sh [prompt [seed]]
#
# Safe to run again; the second time nothing is left to install or build.
set -eu
cd "$(dirname "$0")/.."

echo "== 1/3 packages"
cmake/install_packages.sh build

echo "== 2/3 build (build/release)"
launcher=""
if command -v ccache >/dev/null; then launcher="-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"; fi
# shellcheck disable=SC2086  # empty means no argument
cmake --preset release -DGEN_TOGETHER=ON $launcher >/dev/null
cmake --build --preset quickstart

echo "== 3/3 a story"
exec build/release/bin/generate run --echo --stats -n 250 --seed "${2:-7}" -p "${1:-Once upon a time}"
