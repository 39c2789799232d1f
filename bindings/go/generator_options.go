// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"

	"libgenerate.dev/generate/internal/native"
)

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

// WithStateSnapshotEvery takes a snapshot of a recurrent model's state every so many tokens, for texts that are cut anywhere;
// 1024 is the default, and 0 is none within prompts and answers.
func WithStateSnapshotEvery(tokens int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetStateSnapshotEvery(o, i32(tokens)) }
}

// WithStateSnapshotBudget limits the memory of a session's snapshots of such a state; -1 is that of eight, and 0 is none.
func WithStateSnapshotBudget(maxMemoryMB int) GeneratorOption {
	return func(o uintptr) error { return native.GenOptionsSetStateSnapshotBudget(o, i32(maxMemoryMB)) }
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

// WithEagle lets the head of an EAGLE file draft where lookups find nothing; "" for none. Results do not change. Without a file
// at the path there are no drafts by it: see EagleEnabled.
func WithEagle(path string) GeneratorOption {
	return func(o uintptr) error {
		if strings.Contains(path, "\x00") {
			return invalid("%q has a NUL in it", path) // in C it is no path, and no path is no head
		}
		return native.GenOptionsSetEagle(o, path)
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
