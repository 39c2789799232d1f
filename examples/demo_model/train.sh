#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes everything in this folder anew: corpus, vocabulary, both models, both GGUF files, held-out text.
# usage: train.sh [BUILD_FOLDER] [STORY_MINUTES] [DRAFT_MINUTES]   (default: build-demo in the source tree, 75, 30)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build-demo}
story_minutes=${2:-75}
draft_minutes=${3:-30}
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

mkdir -p "$build"
build=$(cd "$build" && pwd)
cd "$here"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$(nproc)}"
export PYTHONDONTWRITEBYTECODE=1
echo "1/5 corpus (a minute)"
"$python" make_corpus.py --out "$build" --heldout heldout.txt
echo "2/5 vocabulary"
./make_vocabulary.sh "$build"
"$python" tokenise.py --build "$build" --heldout heldout.txt --out "$build/tokens"
echo "3/5 story model ($story_minutes minutes; stop it early with: touch $build/story.decay)"
"$python" train.py story --data "$build/tokens" --out "$build" --minutes "$story_minutes" --threads "$OMP_NUM_THREADS"
echo "4/5 draft model ($draft_minutes minutes)"
"$python" train.py draft --data "$build/tokens" --out "$build" --minutes "$draft_minutes" --decay-minutes 6 --threads "$OMP_NUM_THREADS"
echo "5/5 export"
for name in story draft; do
  "$python" export_gguf.py "$build/$name.pt" --vocabulary "$build/vocabulary.vocab" --out "$name.gguf"
  "$python" sample.py "$build/$name.pt" --vocabulary "$build/vocabulary.model" --heldout heldout.txt --quantised \
    --prompt "Once upon a time"
done
