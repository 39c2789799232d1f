#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `generate bench` and another program's bench on the same file, alternately in one run, and prints medians and
# ratios. Without a peer it says so and succeeds.
#
# usage: compare_peer.sh [-p 128] [-n 32] [-t 2] [-r 5] MODEL.gguf [PEER_FOLDER]
#   -p, -n, -t, -r  prompt tokens, tokens to decode, threads, rounds
#   PEER_FOLDER     or the environment variable GEN_PEER: holds bench.mjs, its packages installed, that is called as
#                     UV_THREADPOOL_SIZE=1 node bench.mjs MODEL.gguf --threads T --prompt P --gen N --repeat 1
#                   and prints, as its last line, {"engine":"…","prefill_tps":[…],"decode_tps":[…]}
#   GENERATE        environment variable, the program to run; the one of build/check or build/release if not set
#
# Both keep keys and values as float16. Each round starts both programs afresh, and they take turns in going first.
set -euo pipefail

usage() {
  sed -n '/^# usage/,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

prompt=128 tokens=32 threads=$(nproc) rounds=5
while getopts p:n:t:r: option; do
  case $option in
    p) prompt=$OPTARG ;;
    n) tokens=$OPTARG ;;
    t) threads=$OPTARG ;;
    r) rounds=$OPTARG ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
if [ $# -lt 1 ] || [ $# -gt 2 ]; then usage; fi
model=$1 peer=${2:-${GEN_PEER:-}}

root=$(cd "$(dirname "$0")/../.." && pwd)
program=${GENERATE:-}
for build in check release; do
  if [ -z "$program" ] && [ -x "$root/build/$build/bin/generate" ]; then program=$root/build/$build/bin/generate; fi
done
if [ -z "$program" ]; then
  echo "no generate in build/check or build/release: build it, or set GENERATE" >&2
  exit 1
fi
if [ ! -r "$model" ]; then
  echo "$model cannot be read" >&2
  exit 1
fi

# What is missing for a comparison, or nothing.
missing() {
  if [ -z "$peer" ]; then
    echo "no peer given, neither as an argument nor as GEN_PEER"
  elif [ ! -f "$peer/bench.mjs" ]; then
    echo "$peer has no bench.mjs"
  elif ! command -v node >/dev/null; then
    echo "Node.js is not installed"
  elif [ ! -d "$peer/node_modules" ]; then
    echo "the packages of $peer are not installed (npm install there)"
  fi
}
why=$(missing)
if [ -n "$why" ]; then
  echo "skipped: $why"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$(realpath "$model")

own() {
  "$program" bench -m "$model" -p "$prompt" -n "$tokens" -t "$threads" -r 1 --kv fp16 --json >> "$work/own"
}
other() {
  (cd "$peer" && UV_THREADPOOL_SIZE=1 node bench.mjs "$model" --threads "$threads" --prompt "$prompt" \
    --gen "$tokens" --repeat 1) | tail -n 1 >> "$work/peer"
}
for ((round = 1; round <= rounds; ++round)); do
  echo "round $round of $rounds" >&2
  if ((round % 2 == 1)); then
    own
    other
  else
    other
    own
  fi
done

echo "$(basename "$model"), $threads threads, prompt $prompt, $tokens tokens, $rounds rounds"
python3 - "$work/own" "$work/peer" <<'PY'
import json, statistics, sys

own, peer = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
print(f"{'tokens/s':10}{own[0]['engine']:>30}{peer[0]['engine']:>30}{'ratio':>8}  of each round")
for test in ("prefill", "decode"):
    a, b = ([statistics.median(run[test + "_tps"]) for run in runs] for runs in (own, peer))
    show = lambda v: f"{statistics.median(v):.2f} ({min(v):.2f} to {max(v):.2f})"
    ratios = sorted(x / y for x, y in zip(a, b))
    print(f"{test:10}{show(a):>30}{show(b):>30}{statistics.median(a) / statistics.median(b):8.2f}"
          f"  {ratios[0]:.2f} to {ratios[-1]:.2f}")
PY
