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

// GeneratorOption says how to generate: kind of cache, batching.
type GeneratorOption func(options uintptr) error

// WithKVType chooses what keys and values are stored as: "fp32", "fp16", "fp8", "q4" or "q3".
func WithKVType(name string) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetKvDtype(o, name) }
}

// WithKVTypes chooses for keys and values apart.
func WithKVTypes(keys, values string) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetKvTypes(o, keys, values) }
}

// WithKVKeyForm chooses the form in which keys are stored: "rotated", "hadamard" or "best".
func WithKVKeyForm(name string) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetKvKeyForm(o, name) }
}

// WithPagedKV keeps keys and values of all sessions in blocks of one pool of so many MiB.
func WithPagedKV(maxMemoryMB, blockSize int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetPagedKv(o, i32(maxMemoryMB), i32(blockSize)) }
}

// WithPrefixCache keeps so many blocks of the pool for prompts with a common prefix. It needs WithPagedKV.
func WithPrefixCache(blocks int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetPrefixCache(o, i32(blocks)) }
}

// WithCompressedKV makes one entry of each full chunk of positions.
func WithCompressedKV(chunk int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetCompressedKv(o, i32(chunk)) }
}

// WithTieredKV keeps the newest keys and values of a session in memory and the rest in a file.
func WithTieredKV(options ...TierOption) GeneratorOption {
	return func(o uintptr) error {
		return buildTiers(options, func(config uintptr) error { return native.GenOptionsSetTieredKv(o, config) })
	}
}

// WithContextPolicy chooses what happens when a context is full: "stop", or "shift" with the first keep tokens kept.
func WithContextPolicy(policy string, keep int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetContextPolicy(o, policy, i32(keep)) }
}

// WithPrefillChunk runs prompts in chunks of so many tokens.
func WithPrefillChunk(tokens int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetPrefillChunk(o, i32(tokens)) }
}

// WithMaxBatch runs at most so many sessions in one forward pass; 64 is the default.
func WithMaxBatch(sequences int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetMaxBatch(o, i32(sequences)) }
}

// WithMaxQueue refuses calls with ErrBusy when so many wait beyond the batch; 0 is no limit.
func WithMaxQueue(calls int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetMaxQueue(o, i32(calls)) }
}

// WithDeterministic(true) makes the bits of a text independent of everything that runs beside it, on a device, too.
func WithDeterministic(on bool) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetDeterministic(o, flag(on)) }
}

// WithFairness lets a call be left out of so many steps for others of higher priority; 16 is the default.
func WithFairness(steps int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetFairness(o, i32(steps)) }
}

// WithPromptLookup drafts that many tokens where the last ngram tokens occurred earlier in the text; results do not change.
func WithPromptLookup(ngram, length int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetPromptLookup(o, i32(ngram), i32(length)) }
}

// WithSpeculativeDraft lets a smaller model draft the next tokens, that many at a time; 0 means 4. Results do
// not change. The model may be closed once the generator is made.
func WithSpeculativeDraft(draft *Model, length int) GeneratorOption {
	return func(o uintptr) error {
		return draft.pointer().optional(func(m uintptr) error {
			return native.GenOptionsSetSpeculativeDraft(o, m, i32(length))
		})
	}
}

// WithMetrics counts and measures in a collector.
func WithMetrics(metrics *Metrics) GeneratorOption {
	return func(o uintptr) error {
		return metrics.pointer().optional(func(m uintptr) error {
			return native.GenOptionsSetMetrics(o, native.GenMetricsMemorySink(m))
		})
	}
}

// WithMetricsSink tells metrics to a gen_metrics_sink in C.
func WithMetricsSink(table Symbol) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetMetrics(o, uintptr(table)) }
}

// WithTracer records every forward pass.
func WithTracer(tracer *Tracer) GeneratorOption {
	return func(o uintptr) error {
		return tracer.pointer().optional(func(t uintptr) error { return native.GenOptionsSetTracer(o, t) })
	}
}

// WithGeneratorSetting sets an option by its name, see DescribeGeneratorOptions.
func WithGeneratorSetting(key, value string) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSet(o, key, value) }
}

// DescribeGeneratorOptions lists all options as JSON, with the values that these give.
func DescribeGeneratorOptions(options ...GeneratorOption) (description string, err error) {
	err = build(described(options), native.GenOptionsNew, native.GenOptionsFree, func(o uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenOptionsDescribe(o, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// DescribeKVKinds lists the kinds of cache as JSON.
func DescribeKVKinds() (string, error) { return text(native.GenKvKindDescribe) }

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

// DraftStats returns the statistics of drafts so far: WithPromptLookup, WithSpeculativeDraft and their like.
func (g *Generator) DraftStats() (stats DraftStats, err error) {
	err = g.with(func(a uintptr) (err error) {
		stats, err = draftStats(func(key string, value []float64) error {
			return native.GenGeneratorDraftStats(a, key, value)
		})
		return err
	})
	return stats, err
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
