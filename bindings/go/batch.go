// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"runtime"
	"time"

	"libgenerate.dev/generate/internal/native"
)

// Request is one of many generations that run together.
type Request struct {
	Prompt   string
	Tokens   []int32 // taken in the place of Prompt, as they are, unless empty
	Sampling []SamplingOption
	Priority int           // those of higher priority go first where not all fit into a step
	Deadline time.Duration // from the beginning of the call, 0 for none
}

// Batch runs all requests together. Each has its own result, and in it its own error: what it gives is what Generate gives
// for it alone. The context ends all that run.
func (g *Generator) Batch(ctx context.Context, requests []Request) ([]*Result, error) {
	if err := g.enter(); err != nil {
		return nil, err
	}
	defer g.leave()
	if err := g.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer g.gate.leave()
	if len(requests) == 0 {
		return nil, nil
	}
	handles, out := make([]uintptr, len(requests)), make([]uintptr, len(requests))
	defer func() {
		for _, handle := range handles {
			native.GenRequestFree(handle)
		}
	}()
	err := cancellable(ctx, func(cancel uintptr) error {
		for i := range requests {
			if err := requests[i].make(handles[i:i+1], cancel); err != nil {
				return err
			}
		}
		return native.GenBatchGenerate(g.address, handles, len(handles), out)
	})
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	results := make([]*Result, len(out))
	for i, address := range out {
		results[i] = takeResult(address)
		results[i].Err = cancelled(ctx, results[i].Err)
	}
	return results, nil
}

const maxTexts = 128 // of gen_generate_n

// GenerateN generates several texts from one prompt, which is run once: text i is what Generate gives with a seed that is
// larger by i. With bestOf above n so many are generated, and the n most probable returned, best first.
func (g *Generator) GenerateN(ctx context.Context, prompt string, n, bestOf int, options ...SamplingOption) ([]*Result, error) {
	if err := g.enter(); err != nil {
		return nil, err
	}
	defer g.leave()
	if err := g.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer g.gate.leave()
	out := make([]uintptr, maxTexts)
	err := cancellable(ctx, func(cancel uintptr) error {
		if cancel != 0 {
			options = append(options[:len(options):len(options)], withCancel(cancel))
		}
		return build(options, native.GenSamplingNew, native.GenSamplingFree, func(sampling uintptr) error {
			return native.GenGenerateN(g.address, prompt, sampling, i32(n), i32(bestOf), out)
		})
	})
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	results := make([]*Result, n)
	for i := range results { // n is at most maxTexts where there is no error
		results[i] = takeResult(out[i])
		results[i].Err = cancelled(ctx, results[i].Err)
	}
	return results, nil
}

func (r *Request) make(out []uintptr, cancel uintptr) error {
	if err := native.GenRequestNew(out); err != nil {
		return err
	}
	request := out[0]
	err := native.GenRequestSetPrompt(request, r.Prompt)
	if len(r.Tokens) > 0 {
		err = native.GenRequestSetPromptTokens(request, r.Tokens, len(r.Tokens))
	}
	if err == nil {
		err = native.GenRequestSetPriority(request, i32(r.Priority))
	}
	if err == nil {
		milliseconds := r.Deadline.Milliseconds()
		if r.Deadline > 0 && milliseconds == 0 {
			milliseconds = 1
		}
		err = native.GenRequestSetDeadlineMs(request, milliseconds)
	}
	if err != nil {
		return err
	}
	options := append(r.Sampling[:len(r.Sampling):len(r.Sampling)], withCancel(cancel))
	return build(options, native.GenSamplingNew, native.GenSamplingFree, func(sampling uintptr) error {
		return native.GenRequestSetSampling(request, sampling)
	})
}

// BatchStream is many generations that one goroutine drives: Next gives a piece of any of them.
type BatchStream struct {
	streams []*Stream // nil where one is over
	results []*Result
	next    int
	current int
	alive   int
}

// BatchStream opens a generation for each request, on a session of its own. Priorities and deadlines do not count here.
func (g *Generator) BatchStream(ctx context.Context, requests []Request) (*BatchStream, error) {
	b := &BatchStream{streams: make([]*Stream, len(requests)), results: make([]*Result, len(requests))}
	for i, r := range requests {
		stream, err := g.streamRequest(ctx, r)
		if err != nil {
			b.results[i] = &Result{FinishReason: FinishError, Err: err}
			continue
		}
		b.streams[i] = stream
		b.alive++
	}
	return b, nil
}

func (g *Generator) streamRequest(ctx context.Context, r Request) (*Stream, error) {
	if len(r.Tokens) == 0 {
		return g.Stream(ctx, r.Prompt, r.Sampling...)
	}
	session, err := g.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.forget()
	if err := session.AppendTokens(ctx, r.Tokens); err != nil {
		return nil, err
	}
	return session.Stream(ctx, "", r.Sampling...)
}

// Next gets a piece of any generation; false when all are over.
func (b *BatchStream) Next() bool {
	for idle := 0; b.alive > 0; {
		stream := b.streams[b.next]
		at := b.next
		b.next = (b.next + 1) % len(b.streams)
		if stream == nil {
			continue
		}
		switch stream.Poll() {
		case StreamToken:
			b.current = at
			return true
		case StreamEnd:
			b.over(at)
		case StreamPending:
			// After two rounds without a piece another goroutine is running the step.
			if idle++; idle > 2*b.alive {
				if idle > 20*b.alive {
					time.Sleep(50 * time.Microsecond)
				} else {
					runtime.Gosched()
				}
			}
		}
	}
	return false
}

func (b *BatchStream) over(at int) {
	stream := b.streams[at]
	b.streams[at] = nil
	b.alive--
	b.results[at] = stream.Result()
	if b.results[at] == nil {
		b.results[at] = &Result{FinishReason: FinishError, Err: stream.Err()}
	}
}

// Index is the number of the request whose piece Token is.
func (b *BatchStream) Index() int { return b.current }

// Token is the piece that Next got.
func (b *BatchStream) Token() Token { return b.streams[b.current].Token() }

// CancelRequest ends one generation, with ErrCancelled in its result, within one token.
func (b *BatchStream) CancelRequest(index int) {
	if stream := b.streams[index]; stream != nil {
		stream.Cancel()
	}
}

// Results are those of all requests, in order, when Next has returned false; nil for what is not over.
func (b *BatchStream) Results() []*Result { return b.results }

// Close ends all that is not over.
func (b *BatchStream) Close() error {
	for i, stream := range b.streams {
		if stream != nil {
			stream.Close()
			b.streams[i] = nil
		}
	}
	b.alive = 0
	return nil
}
