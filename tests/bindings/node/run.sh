#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the test of examples/node where Node and koffi can be had, else says so with 77: run.sh SOURCE_DIR WORK_DIR
set -eu
source=$1 work=$2
command -v node >/dev/null && command -v npm >/dev/null || { echo "no node or npm: skipped"; exit 77; }
mkdir -p "$work"
cp "$source"/examples/node/*.mjs "$source"/tests/bindings/node/*.mjs "$work"
cd "$work"
test -d node_modules/koffi || npm install --no-save --no-audit --no-fund --prefix . koffi@2 >npm.log 2>&1 ||
  { echo "koffi cannot be had: skipped"; exit 77; }
node demo.mjs "$source/examples/demo_model/story.gguf"
node scenarios_test.mjs "$source"
node agents_test.mjs "$source"
