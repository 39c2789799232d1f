#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes everything in this folder anew: corpus, vocabulary, both models, both GGUF files, held-out text.
# usage: train.sh [BUILD_FOLDER] [STORY_MINUTES] [PRACTICE_MINUTES] [DRAFT_MINUTES]
#        (default: build-demo in the source tree, 65, 8, 20; of processor time per thread)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build-demo}
story_minutes=${2:-65}
practice_minutes=${3:-8}
draft_minutes=${4:-20}
python=/usr/bin/python3

# Debian's torch computes with whatever BLAS is chosen; the reference BLAS is about twenty times slower.
missing=""
for package in sentencepiece python3-sentencepiece python3-numpy python3-torch libopenblas0-pthread; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "train.sh: missing:$missing (Debian's names); install them and run this again" >&2
    exit 1
  fi
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then sudo=sudo; fi
  echo "installing$missing"
  $sudo apt-get update -q
  $sudo apt-get install -y -q --no-install-recommends $missing
fi

mkdir -p "$build/practice"
build=$(cd "$build" && pwd)
practice=$build/practice
cd "$here"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$(nproc)}"
export PYTHONDONTWRITEBYTECODE=1
train() {
  nice -n 10 "$python" train.py "$@" --threads "$OMP_NUM_THREADS"
}

echo "1/6 corpus (a minute)"
"$python" make_corpus.py --out "$build" --heldout heldout.txt
"$python" make_corpus.py --out "$practice" --megabytes 16 --seed 2 --drill
echo "2/6 vocabulary"
./make_vocabulary.sh "$build"
cp "$build/vocabulary.model" "$practice"
"$python" tokenise.py --build "$build" --heldout heldout.txt --out "$build/tokens"
"$python" tokenise.py --build "$practice" --heldout heldout.txt --out "$practice/tokens"
echo "3/6 story model ($story_minutes minutes; stop it early with: touch $build/story.decay)"
train story --data "$build/tokens" --out "$build" --minutes "$story_minutes"
echo "4/6 practice: sums, stories about what was asked for ($practice_minutes minutes)"
train story --data "$practice/tokens" --out "$practice" --start "$build/story.pt" --matrix-rate 0.008 \
  --adam-rate 0.0024 --minutes "$practice_minutes" --decay-minutes "$practice_minutes"
echo "5/6 draft model ($draft_minutes minutes)"
train draft --data "$build/tokens" --out "$build" --minutes "$draft_minutes" --decay-minutes 6
echo "6/6 export"
cp "$practice/story.pt" "$build/story.practised.pt"
for pair in story.practised:story draft:draft; do
  checkpoint=$build/${pair%%:*}.pt name=${pair##*:}
  "$python" export_gguf.py "$checkpoint" --vocabulary "$build/vocabulary.vocab" --out "$name.gguf"
  "$python" sample.py "$checkpoint" --vocabulary "$build/vocabulary.model" --heldout heldout.txt --quantised \
    --prompt "Once upon a time"
done
{
  cat "$build/story.loss.csv"
  tail -n +2 "$practice/story.loss.csv" | sed 's/$/,practice/'
} > loss.csv
cp "$build/draft.loss.csv" draft.loss.csv
