#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds and passes every test. Installs what is missing. Safe to run again: what is built stays in build/.
#
#   tests/run.sh          release tree with all tests but the long ones, short tests under the address and
#                         undefined-behaviour sanitizers, those with threads under the thread sanitizer; under both the
#                         server with fewer clients' requests; kernels on the emulator under the first only
#   tests/run.sh --quick  the release tree with all tests but the long ones
#   tests/run.sh --all    also clang 14, every CPU level, 64-bit ARM where Debian's cross compiler and qemu can be had,
#                         the long tests and minutes of fuzzing
set -euo pipefail
cd "$(dirname "$0")/.."

all=0
quick=0
case ${1:-} in
  "") ;;
  --quick) quick=1 ;;
  --all) all=1 ;;
  *) echo "usage: tests/run.sh [--quick | --all]" >&2; exit 2 ;;
esac
fuzz_seconds=${GEN_FUZZ_SECONDS:-60}

started=$SECONDS
steps=()
failed=0

# step <name> <command…>: runs it, shows what it shows, and remembers how it ended.
step() {
  local name=$1 begin=$SECONDS result=ok
  shift
  echo
  echo "== $name"
  if ! "$@"; then
    result=FAILED
    failed=$((failed + 1))
  fi
  steps+=("$(printf '%-6s %4ds  %s' "$result" $((SECONDS - begin)) "$name")")
}

# From nothing files are faster compiled together. clang compiles them apart, so that each is seen to have what it needs.
how=(-DGEN_TOGETHER=ON)
if command -v ccache >/dev/null; then how+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

# build <preset> [<options of cmake>…]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" "${how[@]}" "$@" >/dev/null && cmake --build --preset "$preset"
}

# The thread sanitizer of gcc 12 cannot map its shadow where the kernel spreads addresses widely.
without_address_randomisation() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

cpu_level() {
  if GEN_CPU=$1 build/check/bin/generate inspect >/dev/null 2>&1; then
    GEN_CPU=$1 ctest --preset check-level
  else
    echo "this machine has no $1: skipped"
  fi
}

fuzz() {
  local target name
  for target in build/fuzz/tests/fuzz/*_fuzz; do
    name=$(basename "$target")
    echo "-- $name, ${fuzz_seconds}s"
    # New inputs go to the build tree; the seeds are only read.
    mkdir -p "build/fuzz/corpus/$name"
    "$target" -max_total_time="$fuzz_seconds" -rss_limit_mb=4096 -timeout=20 -print_final_stats=0 \
      -verbosity=0 -artifact_prefix="build/fuzz/$name-" \
      "build/fuzz/corpus/$name" "build/fuzz/tests/fuzz/seeds/$name" || return 1
  done
}

echo "== packages"
cmake/install_packages.sh build test bindings

step "release: build" build check
if [ $quick = 1 ]; then
  step "release: tests" ctest --preset check
else
  step "release: tests" ctest --preset check-with-asan
  step "address and undefined-behaviour sanitizers: build" build asan
  step "address and undefined-behaviour sanitizers: short tests" ctest --preset asan
  step "thread sanitizer: build tests with threads" build tsan
  step "thread sanitizer: tests" without_address_randomisation ctest --preset tsan
fi
if [ $all = 1 ]; then
  step "clang 14: build" build check-clang -DGEN_TOGETHER=OFF
  step "clang 14: tests" ctest --preset check-clang
  for level in scalar avx2 avx512 avx512_vnni avx512_bf16 neon; do
    step "CPU level $level: tests" cpu_level $level
  done
  if cmake/install_packages.sh arm64; then
    step "64-bit ARM: build" build arm64
    step "64-bit ARM under qemu: tests" ctest --preset arm64
  else
    echo "no cross compiler for 64-bit ARM: skipped"
  fi
  step "thread sanitizer: many sessions, long" without_address_randomisation env GEN_TRIALS=1000 \
    ctest --preset tsan -R '^generate_stress_test$' --timeout 3000
  step "long tests" ctest --preset long -L '^long$'
  step "fuzzing: build" build fuzz
  step "fuzzing" fuzz
fi

echo
printf '%s\n' "${steps[@]}"
if [ $failed != 0 ]; then
  echo "FAILED: $failed of ${#steps[@]} steps, $((SECONDS - started)) seconds"
  exit 1
fi
echo "PASSED: all ${#steps[@]} steps, $((SECONDS - started)) seconds"
