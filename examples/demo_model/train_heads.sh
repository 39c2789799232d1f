#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the two heads that draft for story.gguf anew: eagle3.gguf, eagle.gguf, heads.loss.csv, and measures them.
# usage: train_heads.sh [BUILD_FOLDER] [MINUTES] [continue]
#        (default: build-heads in the source tree, 24; of processor time per thread, two thirds of it for EAGLE-3)
# With "continue" the heads of this folder go on from their own weights: enough for a story model that was trained a
# little more.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build-heads}
minutes=${2:-24}
if [ "${3:-}" = continue ]; then again=yes; else again=; fi
python=/usr/bin/python3

missing=""
for package in sentencepiece python3-sentencepiece python3-numpy python3-torch libopenblas0-pthread; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "train_heads.sh: missing:$missing (Debian's names); install them and run this again" >&2
    exit 1
  fi
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then sudo=sudo; fi
  echo "installing$missing"
  $sudo apt-get update -q
  $sudo apt-get install -y -q --no-install-recommends $missing
fi

mkdir -p "$build/words"
build=$(cd "$build" && pwd)
cd "$here"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
export PYTHONDONTWRITEBYTECODE=1
run() {
  nice -n 10 "$python" "$@"
}

# The first 20,000 documents make the vocabulary, and they are the same in every corpus of this seed.
echo "1/5 corpus and vocabulary (a minute)"
run make_corpus.py --out "$build/words" --megabytes 40 --heldout "$build/heldout.txt"
./make_vocabulary.sh "$build/words"
cp "$build/words/vocabulary.model" "$build"
run make_corpus.py --out "$build" --megabytes 40 --heldout "$build/heldout.txt" --seed 4 --tools
run tokenise.py --build "$build" --heldout heldout.txt --out "$build/tokens"
echo "2/5 what the target says to held-out prompts (a minute)"
run measure_heads.py continue --target story.gguf --vocabulary "$build/vocabulary.model" --heldout heldout.txt \
  --out "$build/greedy.pt"
for pair in eagle3:2 eagle:1; do
  name=${pair%%:*} thirds=${pair##*:}
  echo "3/5 $name"
  run train_heads.py "$name" --target story.gguf --data "$build/tokens" --greedy "$build/greedy.pt" --out "$build" \
    --minutes "$(awk "BEGIN { print $minutes * $thirds / 3 }")" --threads "$OMP_NUM_THREADS" ${again:+--start "$name.gguf"}
  echo "4/5 export"
  run export_heads.py "$build/$name.pt" --target story.gguf --out "$name.gguf"
done
{
  cat "$build/eagle3.loss.csv"
  tail -n +2 "$build/eagle.loss.csv"
} > heads.loss.csv
echo "5/5 figures, and the same drafts in double precision"
run measure_heads.py measure --target story.gguf --greedy "$build/greedy.pt" eagle3.gguf eagle.gguf
for name in eagle3 eagle; do
  run draft_plain.py "$name.gguf" --target story.gguf --greedy "$build/greedy.pt"
done
