// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"libgenerate.dev/generate"
)

var prompts = []string{"Once upon a time", "The dog", "A small girl", "Tom and Lily", "In the garden", "One day", "She said", "Zoë"}

func one(i int) (string, generate.SamplingOption) {
	return prompts[i%len(prompts)], generate.WithSampling(generate.WithTemperature(0.8), generate.WithSeed(uint64(i)), generate.WithMaxTokens(12))
}

func Test64SessionsAtOnce(t *testing.T) {
	g := generator(t)
	var alone, together [64]string
	for i := range alone {
		prompt, sampling := one(i)
		alone[i] = must(g.Generate(ctx, prompt, sampling)).Text
	}
	var all sync.WaitGroup
	for i := range together {
		i := i
		all.Add(1)
		go func() {
			defer all.Done()
			prompt, sampling := one(i)
			s := must(g.NewSession())
			defer s.Close()
			if i%2 == 0 {
				together[i] = must(s.Generate(ctx, prompt, sampling)).Text
				return
			}
			stream := must(s.Stream(ctx, prompt, sampling))
			for stream.Next() {
				together[i] += stream.Token().Text
			}
		}()
	}
	all.Wait()
	equals(t, "texts", together[:], alone[:])
}

func Test2000Goroutines(t *testing.T) {
	const goroutines = 2000
	// Steps of 5 ms, so that all are there at once; a goroutine that waits holds no thread.
	g := custom(t, "test_model_slow")
	var all sync.WaitGroup
	var wrong atomic.Int32
	begin := make(chan struct{})
	for i := 0; i < goroutines; i++ {
		i := i
		all.Add(1)
		go func() {
			defer all.Done()
			<-begin
			text := ""
			switch i % 3 {
			case 0:
				text = must(g.Generate(ctx, "a", greedy, generate.WithMaxTokens(3))).Text
			case 1:
				stream := must(g.Stream(ctx, "a", greedy, generate.WithMaxTokens(3)))
				defer stream.Close()
				for stream.Next() {
					text += stream.Token().Text
				}
			case 2:
				var b strings.Builder
				must(must(g.Stream(ctx, "a", greedy, generate.WithMaxTokens(3))).WriteTo(&b))
				text = b.String()
			}
			if text != "aaa" {
				wrong.Add(1)
			}
		}()
	}
	close(begin)
	all.Wait()
	equal(t, "wrong texts", wrong.Load(), 0)
	threads := status("Threads")
	t.Logf("%d threads after %d goroutines", threads, goroutines)
	// Those of 256 calls, and some more that the runtime makes when they take long.
	if threads > goroutines/2 {
		t.Errorf("%d threads", threads)
	}
}

// status is a number of /proc/self/status.
func status(field string) (n int) {
	file := must(os.Open("/proc/self/status"))
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), field+":") {
			fmt.Sscan(strings.TrimPrefix(lines.Text(), field+":"), &n)
		}
	}
	return n
}

// resident is memory in kB after a collection: all, and without pages of files, which the system takes and gives as it
// likes.
func resident() (all, own int) {
	runtime.GC()
	debug.FreeOSMemory()
	all = status("VmRSS")
	return all, all - status("RssFile")
}

func TestMemoryStaysFlat(t *testing.T) {
	g := generator(t)
	pool := must(generate.NewPool(2, 4, 8, 4, "fp16"))
	defer pool.Close()
	rows := make([]float32, 8)
	round := func() {
		s := must(g.NewSession())
		ok(t, s.AppendTokens(ctx, []int32{1}))
		s.Close()
		for _, cache := range []*generate.Cache{must(generate.NewCache(2, 8)), must(generate.NewQ4Cache(2, 8)), must(pool.NewCache(2))} {
			ok(t, cache.Update(0, rows, rows, 1, 1, 8))
			cache.Close()
		}
	}
	for i := 0; i < 5000; i++ {
		if i%500 == 0 {
			resident()
		}
		round()
	}
	var curve []int
	allowed := 0
	for i := 0; i <= 10000; i++ {
		if i%1000 == 0 {
			all, own := resident()
			if curve = append(curve, own); i == 0 {
				allowed = own + all/50
			}
		}
		round()
	}
	t.Logf("resident kB at each 1,000 of 10,000 sessions and 30,000 caches: %v; allowed are %d", curve, allowed)
	for _, at := range curve {
		if at > allowed {
			t.Errorf("resident memory grew from %d to %d kB", curve[0], at)
		}
	}
}
