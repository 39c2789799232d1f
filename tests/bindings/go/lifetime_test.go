// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"libgenerate.dev/generate"
)

func TestClosedMeansClosed(t *testing.T) {
	g := must(story.NewGenerator())
	s := must(g.NewSession())
	ok(t, s.Append(ctx, "Once"))
	cache := must(s.Cache())
	equal(t, "no state", must(s.State()) == nil, true)
	equal(t, "its cache", cache.Kind(), "fp32")
	stream := must(g.Stream(ctx, "a"))
	model := must(generate.LoadModel(storyPath()))
	tokenizer := model.Tokenizer()
	pool := must(generate.NewPool(1, 4, 8, 1, "fp32"))
	metrics, tracer := must(generate.NewMetrics()), must(generate.NewTracer())
	chat := must(generate.NewChat())
	talk := must(g.NewChatSession(chat))
	closers := []interface{ Close() error }{stream, s, talk, chat, must(generate.NewTemplate("a")), g, model, must(generate.NewThreadPool(1)), must(generate.NewCache(1, 4)),
		must(pool.NewPrefixCache(2)), pool, must(generate.NewRadixTree(2, 2)), must(generate.NewSSMState(1, 1, 2, 2)),
		must(generate.NewCausalCache()), must(generate.LoadTokenizer(storyPath())), metrics, tracer, must(generate.NewProfile())}
	for _, c := range closers {
		ok(t, c.Close())
		ok(t, c.Close())
	}

	_, err := g.Generate(ctx, "a")
	stream.Next()
	next := stream.Err()
	for what, err := range map[string]error{
		"generate":   err,
		"session":    errorOf(g.NewSession()),
		"append":     s.Append(ctx, "a"),
		"continue":   errorOf(s.Generate(ctx, "a")),
		"stream":     errorOf(s.Stream(ctx, "a")),
		"fork":       errorOf(s.Fork()),
		"cache":      errorOf(s.Cache()),
		"its cache":  cache.Save("/dev/null"),
		"next":       next,
		"generator":  errorOf(model.NewGenerator()),
		"tokenizer":  errorOf(tokenizer.Encode("a", 0)),
		"pool":       errorOf(pool.Alloc()),
		"metrics":    errorOf(story.NewGenerator(generate.WithMetrics(metrics))),
		"tracer":     errorOf(story.NewGenerator(generate.WithTracer(tracer))),
		"format":     errorOf(model.FormatChat(chat, true)),
		"chat":       chat.Add("user", "a"),
		"a turn":     errorOf(talk.Send(ctx, "a")),
		"appending":  s.AppendChat(ctx, chat, true),
		"batch":      errorOf(g.Batch(ctx, []generate.Request{{}})),
		"estimating": errorOf(model.Memory("weights")),
	} {
		if !errors.Is(err, generate.ErrClosed) || !errors.Is(err, generate.ErrState) {
			t.Errorf("%s: %v", what, err)
		}
	}
	stream.Cancel()
	equal(t, "length", s.Length(), 0)
	equal(t, "a kind", cache.Kind(), "")
	equal(t, "sizes", model.Config().VocabSize, 0)
}

func errorOf[T any](_ T, err error) error { return err }

func TestOrderDoesNotMatter(t *testing.T) {
	model := must(generate.LoadModel(storyPath()))
	g := must(model.NewGenerator(generate.WithPagedKV(64, 16)))
	s := must(g.NewSession())
	model.Close()
	stream := must(g.Stream(ctx, "The dog", greedy, generate.WithMaxTokens(5)))
	fork := must(s.Fork())
	g.Close()
	r := must(s.Generate(ctx, "The dog", greedy, generate.WithMaxTokens(5)))
	s.Close()
	for stream.Next() {
	}
	equal(t, "the stream", stream.Result().Text, r.Text)
	equal(t, "the fork", must(fork.Generate(ctx, "The dog", greedy, generate.WithMaxTokens(5))).Text, r.Text)
	fork.Close()

	pool := must(generate.NewPool(1, 4, 2, 1, "fp32"))
	cache := must(pool.NewCache(1))
	prefix := must(pool.NewPrefixCache(4))
	pool.Close()
	ok(t, cache.Update(0, []float32{1, 2}, []float32{3, 4}, 1, 1, 2))
	prefix.Close()
	k, _, _, _, err := cache.Get(0)
	ok(t, err)
	equals(t, "keys", k, []float32{1, 2})
	cache.Close()
}

func TestManyCloseAtOnce(t *testing.T) {
	g := custom(t, "test_model_slow")
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				runtime.GC()
			}
		}
	}()
	for round := 0; round < 20; round++ {
		s := must(g.NewSession())
		stream := must(g.Stream(ctx, "a", endless))
		own := must(story.NewGenerator())
		var all sync.WaitGroup
		run := func(f func()) {
			all.Add(1)
			go func() { defer all.Done(); f() }()
		}
		run(func() {
			if r, err := s.Generate(ctx, "a", endless); !errors.Is(err, generate.ErrCancelled) && !errors.Is(err, generate.ErrClosed) {
				t.Errorf("%v, %v", r, err)
			}
		})
		run(func() {
			for stream.Next() {
			}
			if err := stream.Err(); !errors.Is(err, generate.ErrCancelled) && !errors.Is(err, generate.ErrClosed) {
				t.Error(err)
			}
		})
		run(func() {
			// Closing a generator lets what runs on it end as it would.
			if r, err := own.Generate(ctx, "a", greedy, generate.WithMaxTokens(3)); err == nil && len(r.Tokens) != 3 ||
				err != nil && !errors.Is(err, generate.ErrClosed) {
				t.Errorf("%v, %v", r, err)
			}
		})
		time.Sleep(time.Duration(round%4) * 3 * time.Millisecond)
		begin := time.Now()
		for i := 0; i < 4; i++ {
			run(func() { s.Close() })
			run(func() { stream.Close() })
			run(func() { own.Close() })
		}
		all.Wait()
		if took := time.Since(begin); took > soon {
			t.Errorf("closing took %v", took)
		}
	}
	for _, kind := range []string{"session", "stream"} {
		equal(t, kind+"s left", generate.OpenObjects()[kind], 0)
	}
}

// Objects that have Close are not copied or compared by their memory: they are pointers everywhere.
func TestResultsArePlainValues(t *testing.T) {
	if reflect.TypeOf(&generate.Result{}).NumMethod() != 0 {
		t.Error("a result has nothing to close")
	}
}

func TestExit(t *testing.T) {
	for _, scene := range []string{"open", "running", "streaming"} {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), "GENERATE_SCENE="+scene)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Run(); err != nil || out.Len() > 0 {
			t.Errorf("%s: %v, %s", scene, err, out.String())
		}
	}
}
