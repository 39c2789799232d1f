#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process that leaves everything open ends by itself, with 0 and without a word: exit_test.sh JAVA CLASSPATH STORY TEST_MODELS
set -eu
for how in return exit; do
  i=0
  while [ $i -lt 3 ]; do
    argument=$([ $how = exit ] && echo now || true)
    out=$(timeout 300 "$1" -Xmx64m -cp "$2" -Dstory="$3" -Dmodels="$4" ExitTest $argument 2>&1) || {
      echo "FAILED: status $? by $how: $out"
      exit 1
    }
    [ -z "$out" ] || { echo "FAILED: output by $how: $out"; exit 1; }
    i=$((i + 1))
  done
  echo "ok: by $how"
done
