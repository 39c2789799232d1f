// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"libgenerate.dev/generate"
)

var endless = generate.WithSampling(greedy, generate.WithMaxTokens(1<<20), generate.WithIgnoreEOS(true))

// A token of test_model_slow takes 5 ms. What was cancelled must be over within a token; a busy machine is given more.
const soon = time.Minute

// slow is a generator over that model, and what it counts.
func slow(t testing.TB, options ...generate.GeneratorOption) (*generate.Generator, *generate.Metrics) {
	m := must(generate.NewMetrics())
	t.Cleanup(func() { m.Close() })
	return custom(t, "test_model_slow", append(options, generate.WithMetrics(m))...), m
}

// canceller is a context that is cancelled when the generator with these metrics has made a dozen steps more.
func canceller(t testing.TB, m *generate.Metrics) context.Context {
	c, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	end := m.Value("steps") + 12
	go func() {
		for c.Err() == nil && m.Value("steps") < end {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
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
	if n := len(r.Tokens); n == 0 || n > 5000 || len(r.Text) != n {
		t.Errorf("%d tokens, text of %d bytes", n, len(r.Text))
	}
}

func TestContextEndsGenerate(t *testing.T) {
	g, m := slow(t)
	s := session(t, g)
	begin := time.Now()
	r, err := g.Generate(canceller(t, m), "a", endless)
	wasCancelled(t, r, err, context.Canceled)
	r, err = s.Generate(canceller(t, m), "a", endless)
	wasCancelled(t, r, err, context.Canceled)
	equal(t, "the session keeps what there was", s.Length(), 2+len(r.Tokens))
	if took := time.Since(begin); took > 2*soon {
		t.Errorf("it took %v", took)
	}
	// The session goes on as if nothing had been.
	r, err = s.Generate(ctx, "", greedy, generate.WithMaxTokens(3))
	ok(t, err)
	equal(t, "afterwards", r.Text, "aaa")

	// Longer ones for machines that have no token within a second.
	var deadline context.Context
	for limit := time.Second; limit <= 100*time.Second; limit *= 10 {
		var stop context.CancelFunc
		deadline, stop = context.WithTimeout(ctx, limit)
		defer stop()
		r, err = s.Generate(deadline, "", endless)
		if r != nil && len(r.Tokens) > 0 {
			break
		}
	}
	wasCancelled(t, r, err, context.DeadlineExceeded)
	r, err = s.Generate(deadline, "", endless)
	if r != nil || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, generate.ErrCancelled) {
		t.Errorf("a call that never began: %v, %v", r, err)
	}
}

func TestContextEndsStream(t *testing.T) {
	g, m := slow(t)
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
		stream, err := s.Stream(canceller(t, m), "a", endless)
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
	if !stream.Next() {
		t.Fatal(stream.Err())
	}
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
	// Two thousand steps of 5 ms, of one token each.
	g, m := slow(t, generate.WithPrefillChunk(1))
	s := session(t, g)
	prompt := strings.Repeat("a", 2000)
	begin := time.Now()
	r, err := s.Generate(canceller(t, m), prompt, endless)
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Tokens) != 0 {
		t.Fatal(r, err)
	}
	if n := s.Length(); n == 0 || n > 1000 {
		t.Errorf("%d tokens of the prompt were run", n)
	}
	ok(t, s.Reset())
	c, cancel := context.WithCancel(ctx)
	seen := make(chan float64, 1)
	go func() {
		defer cancel()
		for c.Err() == nil {
			if p := s.Progress(); p > 0 && p < 1 {
				seen <- p
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	err = s.Append(c, prompt)
	cancel()
	select {
	case p := <-seen:
		if p > 0.5 {
			t.Errorf("progress %v", p)
		}
	default:
		t.Error("no progress was told")
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, generate.ErrCancelled) {
		t.Fatal(err)
	}
	ok(t, s.Reset())
	if _, err = s.Score(canceller(t, m), prompt); !errors.Is(err, context.Canceled) {
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
	g, m := slow(t)
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
	if _, err := g.Generate(canceller(t, m), "a", endless); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stream, err := g.Stream(canceller(t, m), "a", endless)
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
	g, m := slow(t)
	requests := []generate.Request{{Prompt: "a", Sampling: []generate.SamplingOption{endless}},
		{Prompt: "b", Sampling: []generate.SamplingOption{greedy, generate.WithMaxTokens(3)}}}
	results, err := g.Batch(canceller(t, m), requests)
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
	requests[0].Deadline = 0

	b, err := g.BatchStream(canceller(t, m), requests)
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
