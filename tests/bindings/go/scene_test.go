// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"time"

	"libgenerate.dev/generate"
)

// play is what this program does in the place of tests when it runs itself, see TestExit: it ends with everything open.
func play(scene string) {
	story = must(generate.LoadModel(storyPath()))
	symbol := must(generate.NativeSymbol(os.Getenv("GENERATE_TEST_MODELS"), "test_model_slow"))
	slow := must(must(generate.NewCustomModel(symbol, generate.NewModelConfig(4096, 1<<20), story.Tokenizer())).NewGenerator())
	g := must(story.NewGenerator(generate.WithPagedKV(64, 16), generate.WithPrefixCache(16)))
	s := must(g.NewSession())
	must(s.Generate(ctx, "Once", generate.WithMaxTokens(4)))
	stream := must(s.Stream(ctx, "", generate.WithMaxTokens(4)))
	stream.Next()
	must(generate.NewPool(1, 4, 8, 1, "fp32"))
	must(generate.NewQ3Cache(2, 16))
	must(generate.NewTieredCache(generate.WithTierLayers(2), generate.WithTierMaxSeqLen(8)))
	switch scene {
	case "running":
		for i := 0; i < 8; i++ {
			go slow.Generate(ctx, "a", endless)
		}
	case "streaming":
		for i := 0; i < 8; i++ {
			go func() {
				for range must(slow.Stream(ctx, "a", endless)).Tokens() {
				}
			}()
		}
	}
	time.Sleep(30 * time.Millisecond)
}
