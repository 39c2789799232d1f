#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds and passes tests. Installs what is missing. Safe to run again: what is built stays in build/.
#
#   tests/run.sh        short tests under the address and undefined-behaviour sanitizers, and the checks that need no build
#   tests/run.sh --ci   all else that every change must pass: the release tree with every header alone, bindings, packages and
#                       the server; kernels on the emulator and for AVX-512 and the server under the sanitizers of the first
#                       form; what has threads under the thread sanitizer
#   tests/run.sh --all  both, and clang 14, every CPU level, 64-bit ARM where Debian's cross compiler and qemu can be had,
#                       Node from npm, kernels for more devices, the long tests and minutes of fuzzing
#
# The last lines list the steps with minutes and processor seconds, and those that took more than docs/testing.md allows.
set -euo pipefail
cd "$(dirname "$0")/.."

what=short
case ${1:-} in
  "") ;;
  --ci) what=ci ;;
  --all) what=all ;;
  *) echo "usage: tests/run.sh [--ci | --all]" >&2; exit 2 ;;
esac
fuzz_seconds=${GEN_FUZZ_SECONDS:-60}

started=$SECONDS
steps=()
over=()
failed=0

# Sets `computed` to the seconds that ended child processes have computed. `times` tells of the shell that calls it, and so must
# not be called in a pipe.
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
measure() {
  times >"$scratch"
  computed=$(awk 'NR == 2 { for (i = 1; i <= 2; ++i) { split($i, t, /[ms]/); sum += t[1] * 60 + t[2] } printf "%d", sum }' "$scratch")
}

# budget <step>: the processor seconds that docs/testing.md allows it; nothing where it names none.
budget() {
  awk -F ' *[|] *' -v step="$1" '$2 == step { print $3 }' docs/testing.md
}

# step <name> <command…>: runs it, shows what it shows, and remembers how it ended.
step() {
  local name=$1 begin=$SECONDS result=ok before used allowed
  shift
  measure
  before=$computed
  echo
  echo "== $name"
  if ! "$@"; then
    result=FAILED
    failed=$((failed + 1))
  fi
  measure
  used=$((computed - before))
  steps+=("$(printf '%-6s %4ds  %5d processor seconds  %s' "$result" $((SECONDS - begin)) "$used" "$name")")
  allowed=$(budget "$name")
  if [ -n "$allowed" ] && [ "$used" -gt "$allowed" ]; then
    over+=("over its budget of $allowed processor seconds (docs/testing.md): $name, $used")
  fi
}

# From nothing files are faster compiled together. clang compiles them apart, so that each is seen to have what it needs.
how=(-DGEN_TOGETHER=ON)
if command -v ccache >/dev/null; then how+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

# build <build preset> <configure preset> [<options of cmake>…]
build() {
  local preset=$1 tree=$2
  shift 2
  cmake --preset "$tree" "${how[@]}" "$@" >/dev/null && cmake --build --preset "$preset"
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

short_tests() {
  step "packages" cmake/install_packages.sh build test
  step "sanitizers: build" build asan asan -DGEN_AVX512=OFF
  step "sanitizers: short tests and checks" ctest --preset asan
}

ci_tests() {
  step "packages for bindings" cmake/install_packages.sh build test bindings
  step "release: build" build check check
  step "release: tests" ctest --preset check
  step "sanitizers, kernels and server: build" build asan-ci asan -DGEN_AVX512=ON
  step "sanitizers, kernels and server: tests" ctest --preset asan-ci
  step "thread sanitizer: build" build tsan tsan -DGEN_AVX512=ON
  step "thread sanitizer: tests" without_address_randomisation ctest --preset tsan
}

all_tests() {
  step "clang 14: build" build check-clang check-clang -DGEN_TOGETHER=OFF
  step "clang 14: tests" ctest --preset check-clang
  step "program, sanitizers: build" build asan-program asan -DGEN_BUILD_EXAMPLES=ON
  step "program, sanitizers: attacks" env GEN_TRIALS=400 ctest --preset asan-program
  step "release, kernels: build" build check-kernels check
  for level in scalar avx2 avx512 avx512_vnni avx512_bf16 neon; do
    step "CPU level $level: tests" cpu_level $level
  done
  if cmake/install_packages.sh arm64; then
    step "64-bit ARM: build" build arm64 arm64
    step "64-bit ARM under qemu: tests" ctest --preset arm64
  else
    echo "no cross compiler for 64-bit ARM: skipped"
  fi
  step "thread sanitizer: many sessions, long" without_address_randomisation env GEN_TRIALS=1000 \
    ctest --preset tsan -R '^generate_stress_test$' --timeout 3000
  step "Node" ctest --preset long -L '^npm$'
  step "long tests" ctest --preset long -L '^long$'
  step "fuzzing: build" build fuzz fuzz
  step "fuzzing" fuzz
}

if [ $what != ci ]; then short_tests; fi
if [ $what != short ]; then ci_tests; fi
if [ $what = all ]; then all_tests; fi

echo
printf '%s\n' "${steps[@]}"
if [ ${#over[@]} != 0 ]; then printf '%s\n' "${over[@]}"; fi
if [ $failed != 0 ]; then
  echo "FAILED: $failed of ${#steps[@]} steps, $((SECONDS - started)) seconds"
  exit 1
fi
echo "PASSED: all ${#steps[@]} steps, $((SECONDS - started)) seconds"
