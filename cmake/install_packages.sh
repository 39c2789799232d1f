#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that what a build needs is installed. On Debian and its relatives missing packages are installed with apt,
# as root or through sudo; elsewhere what is missing is named.
#
#   cmake/install_packages.sh build          to build the library and the program
#   cmake/install_packages.sh build test     and the tests
#   cmake/install_packages.sh bindings       SWIG, Go, Java and C# for the bindings, and abidiff
#   cmake/install_packages.sh arm64          a cross compiler for 64-bit ARM, libraries, and qemu (Debian only)
set -eu

packages=""
for group in "$@"; do
  case $group in
    build) packages="$packages g++ cmake ninja-build pkg-config libhwy-dev libpcre2-dev libcli11-dev \
nlohmann-json3-dev" ;;
    test) packages="$packages libgtest-dev libcmocka-dev libsentencepiece-dev python3 binutils clang-14 libclang-rt-14-dev \
mold" ;;
    bindings) packages="$packages swig golang-go default-jdk-headless mono-mcs mono-runtime \
libmono-system-core4.0-cil abigail-tools dpkg-dev file" ;;
    arm64) packages="$packages g++-aarch64-linux-gnu qemu-user-static libpcre2-dev:arm64 libgtest-dev:arm64 \
libcmocka-dev:arm64" ;;
    *) echo "install_packages.sh: unknown group '$group'" >&2; exit 2 ;;
  esac
done

# What the product needs, asked without a package manager: "what it is" on a line for each thing missing.
probe() {
  for group in "$@"; do
    case $group in
      build)
        command -v c++ >/dev/null || echo "a C++20 compiler (gcc 12 or clang 14 or newer)"
        command -v ninja >/dev/null || echo "ninja"
        if ! command -v cmake >/dev/null; then
          echo "CMake 3.25 or newer"
        else
          found=$(cmake --version | sed -n '1s/[^0-9]*//p')
          oldest=$(printf '%s\n3.25\n' "$found" | sort -V | head -n 1)
          [ "$oldest" = 3.25 ] || echo "CMake 3.25 or newer (this is $found)"
        fi
        if command -v pkg-config >/dev/null; then
          pkg-config --exists libpcre2-8 || echo "PCRE2 with its headers"
        else
          echo "pkg-config"
        fi
        if command -v c++ >/dev/null; then
          echo '#include <hwy/highway.h>' | c++ -std=c++17 -fsyntax-only -x c++ - 2>/dev/null ||
            echo "Highway (hwy/highway.h)"
          echo '#include <CLI/CLI.hpp>' | c++ -std=c++17 -fsyntax-only -x c++ - 2>/dev/null ||
            echo "CLI11 (CLI/CLI.hpp)"
          echo '#include <nlohmann/json_fwd.hpp>' | c++ -std=c++17 -fsyntax-only -x c++ - 2>/dev/null ||
            echo "JSON for Modern C++ (nlohmann/json.hpp)"
        fi ;;
      test)
        command -v python3 >/dev/null || echo "Python 3"
        command -v nm >/dev/null || echo "nm and readelf (binutils)"
        if command -v pkg-config >/dev/null; then
          pkg-config --exists gtest || echo "GoogleTest with its headers"
          pkg-config --exists cmocka || echo "cmocka with its headers"
          pkg-config --exists sentencepiece || echo "SentencePiece with its headers"
        fi
        command -v clang++-14 >/dev/null || echo "clang 14 (clang++-14) with its sanitizer runtime" ;;
      bindings)
        command -v swig >/dev/null || echo "SWIG 4.1 or newer"
        command -v go >/dev/null || echo "Go 1.19 or newer"
        command -v javac >/dev/null && command -v jar >/dev/null || echo "a JDK, 17 or newer"
        command -v mcs >/dev/null && command -v mono >/dev/null || echo "Mono with its compiler mcs"
        command -v abidiff >/dev/null || echo "abidiff (libabigail)" ;;
      arm64)
        command -v aarch64-linux-gnu-g++ >/dev/null || echo "a cross compiler (aarch64-linux-gnu-g++)"
        command -v qemu-aarch64-static >/dev/null || echo "qemu-aarch64-static"
        [ -e /usr/lib/aarch64-linux-gnu/libgtest.a ] || echo "libraries of 64-bit ARM in /usr/lib/aarch64-linux-gnu" ;;
    esac
  done
}

report_and_stop() {
  echo "These are missing, please install them:" >&2
  probe "$@" | sed 's/^/  /' >&2
  exit 1
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  [ -z "$(probe "$@")" ] || report_and_stop "$@"
  exit 0
fi

missing=""
for package in $packages; do
  # shellcheck disable=SC2016  # the format is dpkg-query's, not the shell's
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

# A compiler or CMake from elsewhere is as good as the package.
if [ -z "$(probe "$@")" ]; then exit 0; fi

as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages, and neither root nor sudo to install them. As root run:" >&2
    echo "  apt-get install$missing" >&2
    exit 1
  fi
  as_root="sudo"
fi
echo "Installing:$missing"
install() {
  # shellcheck disable=SC2086  # both are lists
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}
case $missing in
  *:arm64*) $as_root dpkg --add-architecture arm64 ;;
esac
# Lists may be absent (a fresh container) or old (a package has gone); only then are they fetched.
if ! install; then
  echo "Fetching the package lists and trying again"
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update
  install || {
    echo "apt-get could not install:$missing" >&2
    exit 1
  }
fi
[ -z "$(probe "$@")" ] || report_and_stop "$@"
