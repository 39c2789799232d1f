#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the two small SentencePiece models beside this file and prints what spm_encode (Debian's
# sentencepiece) says about the texts in texts.txt; that output is ids_bpe.txt and ids_unigram.txt.
# usage: make_models.sh, in this directory
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/corpus.txt" <<'TEXT'
The miller kept three grey geese behind the old mill, and each of them had a name.
When the river rose in spring, the geese walked up the hill and would not come down again.
"Come down," said the miller, "the water is low." But the geese knew better than the miller.
In the evening the miller's daughter carried bread up the hill; the geese ate it, and stayed.
Three days later the dam broke, and the mill stood knee-deep in the brown water.
The old mill still stands there: a grey wall, a wheel that does not turn, and 3 grey geese.
An old goose, they say, hears rain a day before it falls, and flood a week before it comes.
TEXT
# a fullwidth A becomes a, a ligature two letters, and "..." one sign
printf 'FF21\t0061\nFB01\t0066 0069\n2E 2E 2E\t2026\n' > "$scratch/rules.tsv"
spm_train --input="$scratch/corpus.txt" --model_prefix="$scratch/bpe" --model_type=bpe --vocab_size=420 \
  --byte_fallback=true --normalization_rule_name=identity --remove_extra_whitespaces=false \
  --user_defined_symbols='<sep>,grey goose' --control_symbols='<ctl>' --character_coverage=1.0 --minloglevel=1
spm_train --input="$scratch/corpus.txt" --model_prefix="$scratch/unigram" --model_type=unigram --vocab_size=100 \
  --normalization_rule_tsv="$scratch/rules.tsv" --character_coverage=1.0 --minloglevel=1 --hard_vocab_limit=false
for kind in bpe unigram; do
  cp "$scratch/$kind.model" "$kind.model"
  spm_encode --model="$kind.model" --output_format=id < texts.txt > "ids_$kind.txt"
done
