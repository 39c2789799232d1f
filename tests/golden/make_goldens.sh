#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the golden files with llama.cpp. Not part of the tests; needs Node.js and an oracle script, called as
#   node ORACLE.mjs MODEL.gguf TEXT --top 10 --greedy N --cache f16|f32
# that prints {"cache":"f16","tokens":[…],"top":[[[id,probability],…] per position],"greedy":[…]} on one line
# (node-llama-cpp does this in 20 lines: tokenize with BOS, controlledEvaluate with probabilities, evaluate at
# temperature 0). For f32 keys and values are of that type and flash attention, which would cast them to f16, is off.
#
# usage: make_goldens.sh ORACLE.mjs MAKE_RANDOM_MODELS [NAME…]
#   MAKE_RANDOM_MODELS  the program of that name from the build tree
#   NAME                which golden files to make, "story-tale" or "llama-f32"; all if none is given.
#                       "bundled" is all files of the bundled models, also dequantised ("story-f32-tale"), needed
#                       whenever those change.
set -euo pipefail

if [ $# -lt 2 ]; then
  sed -n '/^# usage/,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
oracle=$1 maker=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
bundled=$here/../../examples/demo_model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

info=$(dirname "$oracle")/node_modules/node-llama-cpp
release=$(python3 - "$info" <<'PY'
import json, sys
tag = json.load(open(sys.argv[1] + "/llama/llama.cpp.info.json"))["tag"]
print(f"llama.cpp {tag} (node-llama-cpp {json.load(open(sys.argv[1] + '/package.json'))['version']})")
PY
)

random_text='the cat was on the mat and he said: I will go home in 5 days, not now.'
tale='Once upon a time, in a small village by the sea, there lived a girl named Mia.'
json='{"name": "'
long='The old mill stood where the river bent. Every spring the water rose, and every spring the miller walked along
the bank with his dog and looked at the stones. One morning the dog began to bark at the reeds. Between them lay a
small boat with a broken oar, and in the boat a box of tin. The miller pulled it ashore, wiped off the mud and tried
the lid. It did not move. He carried the box home and set it on the table, where his daughter found it after school.
She shook it, and something rang inside like a bell. They heated the lid over the stove, and at last it sprang open.
Under a layer of wax and paper lay a watch, still going, and a letter for the one who would find it. Wind it each
evening, said the letter, and it will tell you when the water comes. They laughed, but they wound it all the same.'
long=${long//$'\n'/ }
ask='What is the capital of the moon?'

"$maker" "$work" > "$work/list"
names=("$@")
bundled_names=(story-tale story-long story-json story-ask draft-tale story-f32-tale story-f32-json draft-f32-tale)
if [ ${#names[@]} -eq 0 ]; then
  names=($(sed -n 's|.*/\(.*\)\.gguf random .*|\1|p' "$work/list") llama-f32.long bundled)
fi
all=()
for name in "${names[@]}"; do
  if [ "$name" = bundled ]; then all+=("${bundled_names[@]}"); else all+=("$name"); fi
done

for name in "${all[@]}"; do
  case $name in
    story-f32-* | draft-f32-*) model=$work/${name%-*}.gguf kind=dequantised cache=f32 ;;
    story-*) model=$bundled/story.gguf kind=bundled cache=f16 ;;
    draft-*) model=$bundled/draft.gguf kind=bundled cache=f16 ;;
    *) model=$work/${name%.long}.gguf kind=random cache=f16 ;;
  esac
  case $name in
    *-tale) text=$tale ;;
    *long) text=$long ;;
    *-json) text=$json ;;
    *-ask) text=$ask ;;
    *) text=$random_text ;;
  esac
  echo "$name" >&2
  node "$oracle" "$model" "$text" --top 10 --greedy 16 --cache "$cache" > "$work/out.json"
  python3 - "$work/out.json" "$model" "$kind" "$text" "$release" "$cache" > "$work/golden" <<'PY'
import json, pathlib, sys
result, model, kind, text, release, cache = sys.argv[1:]
out = json.load(open(result))
if out.get("cache", "f16") != cache:
    sys.exit(f"the oracle did not run with a cache of {cache}")
mark = 0xCBF29CE484222325
for byte in pathlib.Path(model).read_bytes():
    mark = (mark ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
print(f"# made with {release} on a CPU, {cache.replace('f', 'float')} cache, by make_goldens.sh")
print("model", kind, pathlib.Path(model).stem, f"{mark:016x}")
print("text", text)
print("tokens", *out["tokens"])
print("greedy", *out["greedy"])
for top in out["top"]:
    print("top", *(f"{token}:{probability:.6f}" for token, probability in top))
PY
  mv "$work/golden" "$here/$name.golden"
done
