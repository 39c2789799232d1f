#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes everything in this folder anew: corpus, vocabulary, both models, both GGUF files, held-out text.
# usage: train.sh [BUILD_FOLDER] [STORY_MINUTES] [PRACTICE_MINUTES] [DRAFT_MINUTES] [TOOLS_MINUTES]
#        (default: build-demo in the source tree, 65, 8, 20, 54; of processor time per thread)
# With STORY_MINUTES 0 the story model's first two phases and the draft are left out: the story model of this folder
# goes on with conversations with tools.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build-demo}
story_minutes=${2:-65}
practice_minutes=${3:-8}
draft_minutes=${4:-20}
tools_minutes=${5:-54}
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

mkdir -p "$build/practice" "$build/tools"
build=$(cd "$build" && pwd)
practice=$build/practice tools=$build/tools start=$build/practice/story.pt models="story draft"
if [ "$story_minutes" = 0 ]; then
  start=$here/story.gguf models=story
fi
cd "$here"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$(nproc)}"
export PYTHONDONTWRITEBYTECODE=1
train() {
  nice -n 10 "$python" train.py "$@" --threads "$OMP_NUM_THREADS"
}

echo "1/7 corpora (a minute)"
"$python" make_corpus.py --out "$build" --heldout heldout.txt
"$python" make_corpus.py --out "$practice" --megabytes 16 --seed 2 --drill
"$python" make_corpus.py --out "$tools" --megabytes 32 --seed 3 --tools
echo "2/7 vocabulary"
./make_vocabulary.sh "$build"
for part in "$build" "$practice" "$tools"; do
  [ "$part" = "$build" ] || cp "$build/vocabulary.model" "$part"
  "$python" tokenise.py --build "$part" --heldout heldout.txt --out "$part/tokens"
done
if [ "$story_minutes" != 0 ]; then
  echo "3/7 story model ($story_minutes minutes; stop it early with: touch $build/story.decay)"
  train story --data "$build/tokens" --out "$build" --minutes "$story_minutes"
  echo "4/7 practice: sums, stories about what was asked for ($practice_minutes minutes)"
  train story --data "$practice/tokens" --out "$practice" --start "$build/story.pt" --matrix-rate 0.008 \
    --adam-rate 0.0024 --minutes "$practice_minutes" --decay-minutes "$practice_minutes"
fi
echo "5/7 conversations with tools ($tools_minutes minutes)"
train story --data "$tools/tokens" --out "$tools" --start "$start" --matrix-rate 0.008 --adam-rate 0.0024 \
  --minutes "$tools_minutes" --decay-minutes "$tools_minutes"
"$python" average.py 0.95 "$tools/story.pt" 0.05 "$start" --out "$tools/mean.pt"  # brings some of the stories back
if [ "$story_minutes" != 0 ]; then
  echo "6/7 draft model ($draft_minutes minutes)"
  train draft --data "$build/tokens" --out "$build" --minutes "$draft_minutes" --decay-minutes 6
fi
echo "7/7 export"
for name in $models; do
  checkpoint=$build/draft.pt
  if [ "$name" = story ]; then checkpoint=$tools/mean.pt; fi
  "$python" export_gguf.py "$checkpoint" --vocabulary "$build/vocabulary.vocab" --out "$name.gguf"
  "$python" sample.py "$checkpoint" --vocabulary "$build/vocabulary.model" --heldout heldout.txt --quantised \
    --prompt "Once upon a time"
done
if [ "$story_minutes" != 0 ]; then
  {
    cat "$build/story.loss.csv"
    tail -n +2 "$practice/story.loss.csv" | sed 's/$/,practice/'
  } > loss.csv
  cp "$build/draft.loss.csv" draft.loss.csv
else
  sed -i '/,tools$/d' loss.csv
fi
tail -n +2 "$tools/story.loss.csv" | sed 's/$/,tools/' >> loss.csv
