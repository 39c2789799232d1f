#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Figures of the CUDA engine on a machine that has a device and nothing else.
#
# usage: gpu.sh pack [FOLDER]   builds for sm_90a into FOLDER, build/gpu-pack if not said, at most 40 MiB; needs nvcc
#        gpu.sh run             in such a folder: needs it and the driver. Checks each operation against double precision,
#                               times it, then decodes models of random weights. A table that grows, results.json.
#   GEN_GPU_SECONDS  environment variable: `run` ends within so many and 40 more, 500 if not set
#   GEN_GPU_MODELS   sizes (1.1B, 8B) and types of the models, "1.1B/BF16 1.1B/Q8_0 1.1B/Q4_K_M 1.1B/Q4_0 8B/BF16 8B/Q8_0
#                    8B/Q4_K_M 8B/Q4_0" if not set; files of up to 16 GB, one at a time, go to TMPDIR
#   GEN_GPU_TOOLS    tools of compute-sanitizer, "memcheck racecheck initcheck" if not set
#   Empty: no models, no tools.
#
# A part that the machine refuses says so and counts as refused; without a device that is each of them. A part that takes
# longer than a minute is ended. Exit status: 1 if a part computes a wrong result or crashes, 2 for wrong arguments, 3 without
# a device.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  sed -n '/^# usage/,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
# bad <message…>: wrong arguments, in one line.
bad() {
  echo "gpu.sh: $*" >&2
  exit 2
}

pack() {
  local root tree folder bytes launcher=()
  root=$(cd "$here/../.." && pwd)
  [ -f "$root/CMakeLists.txt" ] || bad "pack builds from a source tree, and $root is not one"
  folder=${1:-$root/build/gpu-pack}
  # It is removed first.
  if [ -e "$folder" ] && [ ! -f "$folder/gpu.sh" ] && [ -n "$(ls -A "$folder")" ]; then
    bad "$folder is not empty and not an earlier pack"
  fi
  tree=$root/build/gpu
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGEN_WARNINGS_AS_ERRORS=ON -DGEN_CUDA=ON -DGEN_CUDA_ARCHITECTURES=90a \
    -DGEN_BUILD_EXAMPLES=OFF "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc -Wl,--gc-sections" \
    "-DCMAKE_SHARED_LINKER_FLAGS=-static-libstdc++ -static-libgcc" \
    "-DCMAKE_MODULE_LINKER_FLAGS=-static-libstdc++ -static-libgcc" \
    "-DCMAKE_BUILD_RPATH=\$ORIGIN" "${launcher[@]}" >/dev/null
  cmake --build "$tree" --target gpu_bench gpu_decode gpu_read gpu_tests random_model generate generate_cuda
  rm -rf "$folder"
  mkdir -p "$folder"
  cp -L "$tree/tests/bench/gpu_bench" "$tree/tests/bench/gpu_decode" "$tree/tests/bench/gpu_read" "$tree/tests/bench/random_model" \
    "$tree/tests/cuda/engine/gpu_tests" "$tree"/lib/libgenerate.so.0 "$tree/lib/libgenerate-cuda.so" "$here/gpu.sh" "$folder/"
  strip --strip-unneeded "$folder"/gpu_* "$folder"/random_model "$folder"/*.so*
  # What of Debian's libraries they need goes beside them; the C library is the machine's.
  { for file in "$folder"/gpu_bench "$folder"/gpu_decode "$folder"/gpu_tests "$folder"/libgenerate.so.0; do
      LD_LIBRARY_PATH=$folder ldd "$file"
    done; } |
    awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -vE "^$folder/|/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so" | xargs -r cp -L -t "$folder"
  bytes=$(du -sb "$folder" | cut -f1)
  echo "$folder: $(ls "$folder" | wc -l) files, $bytes bytes"
  if [ "$bytes" -gt $((40 << 20)) ]; then
    echo "more than 40 MiB" >&2
    exit 1
  fi
}

run() {
  local kernel status wrong=0 crashed=0 refused=0 skipped=0 device=1 model type seconds=${GEN_GPU_SECONDS:-500}
  local models=${GEN_GPU_MODELS-1.1B/BF16 1.1B/Q8_0 1.1B/Q4_K_M 1.1B/Q4_0 8B/BF16 8B/Q8_0 8B/Q4_K_M 8B/Q4_0}
  [ -x "$here/gpu_bench" ] || bad "there is no gpu_bench in $here; run works in a folder that 'gpu.sh pack' made"
  [[ $seconds =~ ^[0-9]+$ ]] || bad "GEN_GPU_SECONDS is \"$seconds\", not a whole number"
  for model in $models; do
    case $model in 1.1B/?* | 8B/?*) ;; *) bad "GEN_GPU_MODELS names \"$model\", which is not 1.1B/TYPE or 8B/TYPE" ;; esac
  done
  export LD_LIBRARY_PATH=$here GEN_BACKEND_PATH=$here
  "$here/gpu_bench" why || device=0
  lines=$(mktemp)  # not local: the trap runs after this function has returned
  trap 'rm -f "$lines" "$lines".gguf' EXIT
  # What one command may take: a minute, and never beyond the end of all.
  limit() { echo $((seconds + 40 - SECONDS < 60 ? seconds + 40 - SECONDS : 60)); }
  # part <command…>: counts how it ended; one that hangs is ended.
  part() {
    if [ $SECONDS -gt "$seconds" ]; then skipped=$((skipped + 1)); return 0; fi
    local most
    most=$(limit)
    status=0
    timeout -k 1 "$most" "$@" || status=$?
    case $status in
      0) ;;
      3) refused=$((refused + 1)) ;;
      4 | 9) wrong=$((wrong + 1)) ;;
      124 | 137) echo "${*:1:2}: ended after $most seconds"; skipped=$((skipped + 1)) ;;
      *) echo "${*:1:2}: crashed, status $status"; crashed=$((crashed + 1)) ;;
    esac
  }
  # What looks for mistakes needs the toolkit; findings make it end with 9.
  local name tool
  for tool in ${GEN_GPU_TOOLS-memcheck racecheck initcheck}; do
    echo "-- $tool"
    if command -v compute-sanitizer >/dev/null; then
      part compute-sanitizer --tool "$tool" --error-exitcode 9 "$here/gpu_bench" small /dev/null
    else
      echo "refused: there is no compute-sanitizer"
      refused=$((refused + 1))
    fi
  done
  # What the emulator runs in every test run, on the device; without cuBLASLt, whose sums are its own.
  echo "-- tests"
  GEN_CUBLASLT=off GEN_TRIALS=2 part "$here/gpu_tests" --gtest_brief=1
  # Then the tests of one result, with it.
  part "$here/gpu_tests" '--gtest_filter=CudaLinear.Deterministic*:CudaModels.OneRowOneResult' --gtest_brief=1
  # What share of the rate of reading each reaches stands beside it.
  part "$here/gpu_read" "$lines"
  GEN_GPU_READ_RATE=$(sed -n 's/.*"part":"read","seconds":\([^,]*\),"bytes":\([0-9]*\).*/\1 \2/p' "$lines" | awk '{print $2 / $1}')
  if [ -n "$GEN_GPU_READ_RATE" ]; then export GEN_GPU_READ_RATE; else unset GEN_GPU_READ_RATE; fi
  for name in $("$here/gpu_bench" list); do part "$here/gpu_bench" "$name" "$lines"; done
  # Our own kernels beside cuBLASLt's, which the parts above took if the machine has it.
  echo "-- without cuBLASLt"
  for name in linear/BF16/64 linear/BF16/512 linear/Q8_0/512/bf16; do GEN_CUBLASLT=off part "$here/gpu_bench" "$name" "$lines"; done
  local size shape
  for model in $models; do
    if [ $SECONDS -gt "$seconds" ]; then
      skipped=$((skipped + 1))
      continue
    fi
    size=${model%/*}
    type=${model#*/}
    model=$lines.gguf
    echo "-- $size weights, $type"
    if [ "$device" = 0 ]; then
      echo "decode of $type: refused, there is no device"
      refused=$((refused + 1))
      continue
    fi
    shape=()
    if [ "$size" = 8B ]; then shape=(--layers 32 --width 4096 --heads 32 --kv-heads 8 --ffn 14336 --vocab 128256); fi
    if ! timeout "$(limit)" "$here/random_model" "$model" --type "$type" "${shape[@]}" >/dev/null; then
      echo "decode of $type: refused, no model could be written to ${TMPDIR:-/tmp}"
      refused=$((refused + 1))
      rm -f "$model"
      continue
    fi
    part "$here/gpu_decode" cuda "$model" 2048 128 "$lines"
    part "$here/gpu_decode" cuda "$model" 32 128 "$lines" 64
    if [ "$size" != 8B ]; then
      # One text as one kernel a step, and as a graph alone: the line above took the faster one.
      for kernel in on off; do
        echo "GEN_MEGAKERNEL=$kernel"
        GEN_MEGAKERNEL=$kernel part "$here/gpu_decode" cuda "$model" 32 128 "$lines"
      done
      # And with a kernel for each operation.
      echo "GEN_PAIRS=off"
      GEN_MEGAKERNEL=off GEN_PAIRS=off part "$here/gpu_decode" cuda "$model" 32 128 "$lines"
      case $type in *16)
        part "$here/gpu_decode" cuda "$model" 2048 128 "$lines" 1 deterministic
        part "$here/gpu_decode" cuda "$model" 32 128 "$lines" 1 deterministic
        part "$here/gpu_decode" cuda "$model" 32 128 "$lines" 64 deterministic ;;
      # Prompts by products in bytes and attention in float32, which bfloat16 takes the place of.
      Q8_0) part "$here/gpu_decode" cuda "$model" 2048 128 "$lines" 1 deterministic ;;
      esac
    else
      part "$here/gpu_decode" cuda "$model" 32 128 "$lines"
    fi
    rm -f "$model"
  done
  { echo "["; sed '$!s/$/,/' "$lines"; echo "]"; } >"$here/results.json"
  echo "$(wc -l <"$lines") figures in results.json; $wrong wrong, $crashed crashed, $refused refused, $skipped left out or ended for time; $SECONDS seconds"
  if [ "$wrong" != 0 ] || [ "$crashed" != 0 ]; then exit 1; fi
  if [ "$device" = 0 ]; then exit 3; fi
}

case ${1:-} in
  pack) [ $# -le 2 ] || usage; pack "${@:2}" ;;
  run) [ $# = 1 ] || usage; run ;;
  *) usage ;;
esac
