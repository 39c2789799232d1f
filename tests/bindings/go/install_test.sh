#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program outside of the tree uses the installed Go module by `replace`: install_test.sh GO CACHE. PREFIX and what
# pkg-config and the loader need are in the environment, as for the tests in tests/packaging.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here/../../../examples/go/stream/main.go" "$dir"
cd "$dir"
cat >go.mod <<EOF
module story.example/teller

go 1.19

require libgenerate.dev/generate v0.1.0

replace libgenerate.dev/generate => $PREFIX/$SHARE/generate/go
EOF
export GO111MODULE=on GOFLAGS=-mod=mod GOPROXY=off GOWORK=off GOTOOLCHAIN=local GOCACHE=$2 GOPATH=$dir/path
"$1" vet .
"$1" build -o teller .
out=$(./teller "$PREFIX/$SHARE/generate/story.gguf")
case $out in
  ", a gentle young boy named Harry"*"stopped: "*) ;;
  *) echo "the installed module told: $out" >&2; exit 1 ;;
esac

# And the first program of its README.
sed -n '/^```go$/,/^```$/{/^```/!p;/^```$/q}' "$PREFIX/$SHARE/generate/go/README.md" >main.go
"$1" build -o first .
cp "$PREFIX/$SHARE/generate/story.gguf" .
[ "$(./first | wc -c)" -gt 200 ]
