#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a token of a pulled stream costs in each language, beside C, over a model that does nothing: costs.sh BUILD_DIR [ROUNDS]
# Languages that were not built are left out. The machine should have nothing else to do.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
story=$source/examples/demo_model/story.gguf
models=$build/tests/bindings/libgen_test_models.so
export GENERATE_LIBRARY="$build/lib/libgenerate.so.0"
cmake --build "$build" --target bindings_cost >/dev/null
for _ in $(seq "${2:-3}"); do
  "$build/tests/bindings/bindings_cost" "$story"
  go="$build/tests/bindings/go/bindings_go_cost"
  if [ -x "$go" ]; then "$go" "$story" "$models"; fi
  jar=$(echo "$build"/bindings/java/generate-*.jar)
  if [ -f "$jar" ]; then
    java -cp "$jar:$build/tests/bindings/java/classes" -Dstory="$story" -Dmodels="$models" Cost
  fi
  cost="$build/tests/bindings/csharp/Cost.exe"
  if [ -f "$cost" ]; then LIBGENERATE_NATIVE="$build/lib/cli/libgenerate" mono "$cost" "$source" "$models"; fi
  python3 "$source/tests/bindings/python/cost.py" "$source" "$models"
done
