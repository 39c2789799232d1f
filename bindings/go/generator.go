// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"fmt"

	"libgenerate.dev/generate/internal/native"
)

// Generator is a model with settings of the cache and a scheduler: sessions that generate at the same time share the
// model's forward passes. Any number of goroutines may use one.
type Generator struct {
	object
	gate gate
}

// gate limits how many calls of a generator are in the C library at once, each of which holds a thread of the system; the
// goroutines of all others wait here and hold none.
type gate chan struct{}

// Calls that one generator runs at once. Its scheduler puts 64 sequences into a step unless told otherwise, so that more
// would only wait inside.
const maxCalls = 256

func (g gate) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return notBegun(ctx)
	}
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return notBegun(ctx)
	}
}

func (g gate) leave() { <-g }

// NewGenerator makes a generator, which keeps what it needs of the model alive.
func (m *Model) NewGenerator(options ...GeneratorOption) (*Generator, error) {
	g := &Generator{gate: make(gate, maxCalls)}
	err := m.with(func(model uintptr) error {
		return g.take(kindGenerator, native.GenFree, func(out []uintptr) error {
			return build(options, native.GenOptionsNew, native.GenOptionsFree, func(o uintptr) error {
				return native.GenCreate(model, o, out)
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// PrefixStats is the statistics of WithPrefixCache so far.
type PrefixStats struct {
	Lookups   int64 // calls that searched for a cached prefix
	Hits      int64 // those that found one
	Tokens    int64 // that were not evaluated again
	Blocks    int64 // held now
	Evictions int64 // evicted blocks
}

// PrefixStats returns statistics of WithPrefixCache so far.
func (g *Generator) PrefixStats() (stats PrefixStats, err error) {
	err = g.with(func(a uintptr) error {
		for _, field := range [...]struct {
			key   string
			value *int64
		}{
			{"lookups", &stats.Lookups},
			{"hits", &stats.Hits},
			{"tokens", &stats.Tokens},
			{"blocks", &stats.Blocks},
			{"evictions", &stats.Evictions},
		} {
			var value [1]int64
			if err := native.GenGeneratorPrefixStats(a, field.key, value[:]); err != nil {
				return err
			}
			*field.value = value[0]
		}
		return nil
	})
	return stats, err
}

// DraftStats is statistics of drafts over all calls.
type DraftStats struct {
	Passes   int64 // of one text each, that said something
	Tokens   int64 // that these said
	Drafted  int64 // guesses
	Accepted int64 // those that were right
	// AcceptanceAt is the share that was right of the first guesses, of the second ones where the first was right, and so on.
	AcceptanceAt []float64
}

// draftStats asks for all figures.
func draftStats(ask func(key string, value []float64) error) (stats DraftStats, err error) {
	var value [1]float64
	for _, field := range [...]struct {
		key    string
		number *int64
	}{
		{"passes", &stats.Passes},
		{"tokens", &stats.Tokens},
		{"drafted", &stats.Drafted},
		{"accepted", &stats.Accepted},
	} {
		if err = ask(field.key, value[:]); err != nil {
			return stats, err
		}
		*field.number = int64(value[0])
	}
	for at := 1; at <= maxDraft; at++ {
		if err = ask(fmt.Sprintf("acceptance_at_%d", at), value[:]); err != nil || value[0] == 0 {
			return stats, err
		}
		stats.AcceptanceAt = append(stats.AcceptanceAt, value[0])
	}
	return stats, nil
}

// DraftStats returns the statistics of drafts so far: WithPromptLookup, WithSpeculativeDraft, WithEagle and their like.
func (g *Generator) DraftStats() (stats DraftStats, err error) {
	err = g.with(func(a uintptr) (err error) {
		stats, err = draftStats(func(key string, value []float64) error {
			return native.GenGeneratorDraftStats(a, key, value)
		})
		return err
	})
	return stats, err
}

// EagleEnabled tells whether the head of WithEagle drafts: its file was there.
func (g *Generator) EagleEnabled() (enabled bool, err error) {
	err = g.with(func(a uintptr) error {
		enabled = native.GenGeneratorEagleEnabled(a) != 0
		return nil
	})
	return enabled, err
}

// EaglePath is the path that WithEagle was given.
func (g *Generator) EaglePath() (path string, err error) {
	err = g.with(func(a uintptr) (err error) {
		path, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenGeneratorEaglePath(a, buffer, capacity, n)
		})
		return err
	})
	return path, err
}

// ClearPrefixCache gives the blocks of WithPrefixCache back, except those that sessions use.
func (g *Generator) ClearPrefixCache() error { return g.with(native.GenGeneratorPrefixClear) }

// Generate continues a prompt. The context ends it within one token. Where generation had begun when it failed or was
// cancelled, there is a partial result beside the error.
func (g *Generator) Generate(ctx context.Context, prompt string, options ...SamplingOption) (*Result, error) {
	if err := g.enter(); err != nil {
		return nil, err
	}
	defer g.leave()
	return g.gate.generate(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenGenerate(g.address, prompt, sampling, out)
	})
}

// generate runs a call that has a result.
func (g gate) generate(ctx context.Context, options []SamplingOption, run func(sampling uintptr, out []uintptr) error) (*Result, error) {
	if err := g.enter(ctx); err != nil {
		return nil, err
	}
	defer g.leave()
	var out [1]uintptr
	err := cancellable(ctx, func(cancel uintptr) error {
		if cancel != 0 {
			options = append(options[:len(options):len(options)], withCancel(cancel))
		}
		return build(options, native.GenSamplingNew, native.GenSamplingFree, func(sampling uintptr) error {
			return run(sampling, out[:])
		})
	})
	err = cancelled(ctx, err)
	result := takeResult(out[0])
	if result != nil {
		result.Err = err
	}
	return result, err
}

// cancellable runs a call with a flag that is raised when the context ends; 0 for a context that never does.
func cancellable(ctx context.Context, run func(cancel uintptr) error) error {
	if ctx.Done() == nil {
		return run(0)
	}
	var cancel [1]uintptr
	if err := native.GenCancelNew(cancel[:]); err != nil {
		return err
	}
	defer native.GenCancelFree(cancel[0])
	defer watch(ctx, func() { native.GenCancelFire(cancel[0]) })()
	return run(cancel[0])
}

// watch calls fire when the context ends, until the function it returns is called, which waits for the watcher.
func watch(ctx context.Context, fire func()) (end func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-ctx.Done():
			fire()
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}
