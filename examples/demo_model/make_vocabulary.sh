#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make_vocabulary.sh BUILD: trains BUILD/vocabulary.model, 4096 pieces, on BUILD/vocabulary.txt.
set -eu
spm_train --input="$1/vocabulary.txt" --model_prefix="$1/vocabulary" --model_type=bpe --vocab_size=4096 \
  --byte_fallback=true --normalization_rule_name=identity --remove_extra_whitespaces=false --add_dummy_prefix=true \
  --split_digits=true --character_coverage=1.0 --control_symbols='<|im_start|>,<|im_end|>' \
  --unk_id=0 --bos_id=1 --eos_id=2 --pad_id=-1 --num_threads=2 --minloglevel=1
