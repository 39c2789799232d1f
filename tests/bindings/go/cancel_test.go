// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"libgenerate.dev/generate"
)

var endless = generate.WithSampling(greedy, generate.WithMaxTokens(1<<20), generate.WithIgnoreEOS(true))

// A token of test_model_slow takes 5 ms. What was cancelled must be over within a token; a busy machine is given more.
const soon = 10 * time.Second

// canceller is a context that is cancelled a moment after it was made.
func canceller(t testing.TB) context.Context {
	c, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(60*time.Millisecond, cancel)
	t.Cleanup(func() { timer.Stop(); cancel() })
	return c
}

func wasCancelled(t testing.TB, r *generate.Result, err error, why error) {
	t.Helper()
	if !errors.Is(err, generate.ErrCancelled) || !errors.Is(err, why) {
		t.Fatalf("%v, want a cancel for %v", err, why)
	}
	var e *generate.Error
	if !errors.As(err, &e) || e.Code != generate.CodeCancelled {
		t.Error("it has no code")
	}
	if r == nil {
		t.Fatal("there is no result")
	}
	equal(t, "reason", r.FinishReason, generate.FinishCancelled)
	equal(t, "result has the error", r.Err == err, true)
	if n := len(r.Tokens); n == 0 || n > 200 || len(r.Text) != n {
		t.Errorf("%d tokens, text of %d bytes", n, len(r.Text))
	}
}

func TestContextEndsGenerate(t *testing.T) {
	g := custom(t, "test_model_slow")
	s := session(t, g)
	begin := time.Now()
	r, err := g.Generate(canceller(t), "a", endless)
	wasCancelled(t, r, err, context.Canceled)
	r, err = s.Generate(canceller(t), "a", endless)
	wasCancelled(t, r, err, context.Canceled)
	equal(t, "the session keeps what there was", s.Length(), 2+len(r.Tokens))
	if took := time.Since(begin); took > 2*soon {
		t.Errorf("it took %v", took)
	}
	// The session goes on as if nothing had been.
	r, err = s.Generate(ctx, "", greedy, generate.WithMaxTokens(3))
	ok(t, err)
	equal(t, "afterwards", r.Text, "aaa")

	deadline, stop := context.WithTimeout(ctx, 60*time.Millisecond)
	defer stop()
	r, err = s.Generate(deadline, "", endless)
	wasCancelled(t, r, err, context.DeadlineExceeded)
	r, err = s.Generate(deadline, "", endless)
	if r != nil || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, generate.ErrCancelled) {
		t.Errorf("a call that never began: %v, %v", r, err)
	}
}

func TestContextEndsStream(t *testing.T) {
	g := custom(t, "test_model_slow")
	s := session(t, g)
	for how, use := range map[string]func(stream *generate.Stream){
		"next": func(stream *generate.Stream) {
			for stream.Next() {
			}
		},
		"channel": func(stream *generate.Stream) {
			for range stream.Tokens() {
			}
		},
		"writer": func(stream *generate.Stream) { stream.WriteTo(io.Discard) },
		"poll": func(stream *generate.Stream) {
			for stream.Poll() != generate.StreamEnd {
			}
		},
	} {
		stream, err := s.Stream(canceller(t), "a", endless)
		ok(t, err)
		begin := time.Now()
		use(stream)
		if took := time.Since(begin); took > soon {
			t.Errorf("%s took %v", how, took)
		}
		wasCancelled(t, stream.Result(), stream.Err(), context.Canceled)
		if stream.Next() {
			t.Error("it went on")
		}
		r, err := s.Generate(ctx, "", greedy, generate.WithMaxTokens(3))
		ok(t, err)
		equal(t, "afterwards", r.Text, "aaa")
		ok(t, s.Reset())
	}
	// One that had ended before it began.
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Stream(over, "a"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCancelFromWithinTheLoop(t *testing.T) {
	s := session(t, custom(t, "test_model_nothing"))
	stream, err := s.Stream(ctx, "a", endless)
	ok(t, err)
	n := 0
	for stream.Next() {
		if n++; n == 5 {
			stream.Cancel()
		}
	}
	wasCancelled(t, stream.Result(), stream.Err(), generate.ErrCancelled)
	equal(t, "tokens", len(stream.Result().Tokens), 5)

	// Leaving the loop is enough, too: what has come stays in the session.
	ok(t, s.Reset())
	stream, err = s.Stream(ctx, "a", endless)
	ok(t, err)
	for stream.Next() && stream.Token().Index < 3 {
	}
	if _, err := s.Generate(ctx, ""); !errors.Is(err, generate.ErrBusy) {
		t.Error("a session with an open stream is busy:", err)
	}
	ok(t, stream.Close())
	if stream.Next() || !errors.Is(stream.Err(), generate.ErrClosed) || stream.Result() != nil {
		t.Error("a closed stream:", stream.Err(), stream.Result())
	}
	r, err := s.Generate(ctx, "", greedy, generate.WithMaxTokens(1))
	ok(t, err)
	equal(t, "afterwards", r.Text, "a")
}

func TestCancelFromAnotherGoroutine(t *testing.T) {
	s := session(t, custom(t, "test_model_slow"))
	stream, err := s.Stream(ctx, "a", endless)
	ok(t, err)
	go func() {
		time.Sleep(40 * time.Millisecond)
		stream.Cancel()
	}()
	for stream.Next() {
	}
	wasCancelled(t, stream.Result(), stream.Err(), generate.ErrCancelled)

	// Whoever stops reading a channel closes the stream, which then holds nothing.
	stream, err = s.Stream(ctx, "a", endless)
	ok(t, err)
	tokens := stream.Tokens()
	<-tokens
	ok(t, stream.Close())
	for range tokens {
	}
	r, err := s.Generate(ctx, "", greedy, generate.WithMaxTokens(1))
	ok(t, err)
	equal(t, "afterwards", r.Text, "a")
}

func TestContextEndsALongPrompt(t *testing.T) {
	// A hundred steps of 5 ms, of one token each.
	g := custom(t, "test_model_slow", generate.WithPrefillChunk(1))
	s := session(t, g)
	prompt := strings.Repeat("a", 2000)
	begin := time.Now()
	r, err := s.Generate(canceller(t), prompt, endless)
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Tokens) != 0 {
		t.Fatal(r, err)
	}
	if n := s.Length(); n == 0 || n > 1000 {
		t.Errorf("%d tokens of the prompt were run", n)
	}
	ok(t, s.Reset())
	over, seen := make(chan struct{}), make(chan float64, 1)
	go func() {
		most := 0.0
		for {
			select {
			case <-over:
				seen <- most
				return
			case <-time.After(time.Millisecond):
				if p := s.Progress(); p < 1 {
					most = math.Max(most, p)
				}
			}
		}
	}()
	err = s.Append(canceller(t), prompt)
	close(over)
	if most := <-seen; most == 0 || most > 0.5 {
		t.Errorf("progress %v", most)
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, generate.ErrCancelled) {
		t.Fatal(err)
	}
	ok(t, s.Reset())
	if _, err = s.Score(canceller(t), prompt); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 3*soon {
		t.Errorf("it took %v", took)
	}
	ok(t, s.Append(ctx, "a"))
	r, err = s.Generate(ctx, "", greedy, generate.WithMaxTokens(3))
	ok(t, err)
	equal(t, "afterwards", r.Text, "aaa")
}

// A context that ends just when a call without a flag of its own does must not end the next call.
func TestLateCancelIsForgotten(t *testing.T) {
	s := session(t, custom(t, "test_model_nothing"))
	late := 0
	for i := 0; i < 3000; i++ {
		c, cancel := context.WithCancel(ctx)
		go cancel()
		var err error
		if empty := i%2 == 0; empty {
			ok(t, s.Reset())
			_, err = s.Score(c, "aa")
		} else {
			err = s.Append(c, "a")
		}
		if cancel(); err == nil {
			late++
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		before := s.Length()
		r, err := s.Generate(ctx, "a", greedy, generate.WithMaxTokens(2))
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		equal(t, "tokens", len(r.Tokens), 2)
		if n := s.Length() - before; n < 3 || n > 4 {
			t.Fatalf("%d tokens, after %d", s.Length(), before)
		}
	}
	if late == 0 {
		t.Error("no call ended before its context")
	}
}

// Long calls of others fill the gate; who waits there is still ended by a context, or by Close.
func TestContextEndsWhoWaits(t *testing.T) {
	g := custom(t, "test_model_slow")
	others, release := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := 0; i < 256; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			g.Generate(others, "a", endless)
		}()
	}
	defer all.Wait()
	defer release()
	time.Sleep(100 * time.Millisecond)
	begin := time.Now()
	if _, err := g.Generate(canceller(t), "a", endless); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stream, err := g.Stream(canceller(t), "a", endless)
	if err == nil { // where others have the processor, the context may end before
		for stream.Next() {
		}
		err = stream.Err()
	}
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stream = must(g.Stream(ctx, "a", endless))
	time.AfterFunc(50*time.Millisecond, func() { stream.Close() })
	for stream.Next() {
	}
	if err := stream.Err(); !errors.Is(err, generate.ErrCancelled) && !errors.Is(err, generate.ErrClosed) {
		t.Error(err)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("it took %v", took)
	}
}

func TestContextEndsALoad(t *testing.T) {
	stopped := 0
	for i := 0; i < 20; i++ {
		c, cancel := context.WithTimeout(ctx, time.Duration(i)*200*time.Microsecond)
		m, err := generate.LoadModelContext(c, storyPath(), nil)
		cancel()
		if err == nil {
			m.Close()
		} else if stopped++; !errors.Is(err, generate.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if stopped == 0 {
		t.Error("nothing was stopped")
	}
	share := 0.0
	tell := func(s float64) {
		if s < share || s > 1 {
			t.Error(s, "after", share)
		}
		share = s
	}
	m := must(generate.LoadModelContext(ctx, storyPath(), tell, generate.WithCheckTensors(true)))
	m.Close()
	equal(t, "share", share, 1)
	share = 0
	ok(t, generate.QuantizeContext(ctx, storyPath(), t.TempDir()+"/q4", "Q4_K_M", tell))
	equal(t, "share", share, 1)
	c, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	out := t.TempDir() + "/none"
	if err := generate.QuantizeContext(c, storyPath(), out, "Q4_K_M", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was left")
	}
}

func TestContextEndsABatch(t *testing.T) {
	g := custom(t, "test_model_slow")
	requests := []generate.Request{{Prompt: "a", Sampling: []generate.SamplingOption{endless}},
		{Prompt: "b", Sampling: []generate.SamplingOption{greedy, generate.WithMaxTokens(3)}}}
	results, err := g.Batch(canceller(t), requests)
	ok(t, err)
	wasCancelled(t, results[0], results[0].Err, context.Canceled)
	equal(t, "the other one", results[1].Text, "aaa")
	ok(t, results[1].Err)

	requests[0].Deadline = 50 * time.Millisecond
	results, err = g.Batch(ctx, requests)
	ok(t, err)
	if !errors.Is(results[0].Err, generate.ErrCancelled) || errors.Is(results[0].Err, context.Canceled) || results[1].Err != nil {
		t.Error(results[0].Err, results[1].Err)
	}

	b, err := g.BatchStream(canceller(t), requests)
	ok(t, err)
	for b.Next() {
	}
	wasCancelled(t, b.Results()[0], b.Results()[0].Err, context.Canceled)
	equal(t, "the other one", b.Results()[1].Text, "aaa")

	b, err = g.BatchStream(ctx, requests)
	ok(t, err)
	for b.Next() {
		if b.Token().Index == 4 {
			b.CancelRequest(0)
		}
	}
	wasCancelled(t, b.Results()[0], b.Results()[0].Err, generate.ErrCancelled)

	b, err = g.BatchStream(ctx, requests)
	ok(t, err)
	b.Next()
	ok(t, b.Close())
	if b.Next() {
		t.Error("a closed batch went on")
	}
}
