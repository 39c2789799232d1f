// SPDX-License-Identifier: Apache-2.0

// What a token of a stream costs, over a model that does nothing, as tests/bindings/cost.c measures it for C:
//
//	bindings_go_cost story.gguf libgen_test_models.so [tokens]
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"libgenerate.dev/generate"
)

func check[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	tokens := 20000
	if len(os.Args) > 3 {
		tokens = check(strconv.Atoi(os.Args[3]))
	}
	story := check(generate.LoadModel(os.Args[1]))
	nothing := check(generate.NativeSymbol(os.Args[2], "test_model_nothing"))
	model := check(generate.NewCustomModel(nothing, generate.NewModelConfig(4096, 1<<20), story.Tokenizer()))
	generator := check(model.NewGenerator())
	best, bytes := time.Duration(0), uint64(0)
	for run := 0; run < 5; run++ {
		stream := check(generator.Stream(context.Background(), "a", generate.WithTemperature(0), generate.WithMaxTokens(tokens),
			generate.WithIgnoreEOS(true)))
		stream.Next()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin, n := time.Now(), 0
		for stream.Next() {
			n++
		}
		took := time.Since(begin) / time.Duration(n)
		runtime.ReadMemStats(&after)
		if run == 0 || took < best {
			best = took
		}
		bytes = (after.TotalAlloc - before.TotalAlloc) / uint64(n)
		check(0, stream.Err())
	}
	fmt.Printf("Go: %d ns a token, %d bytes of garbage\n", best.Nanoseconds(), bytes)
}
