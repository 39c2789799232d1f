// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"unsafe"

	"libgenerate.dev/generate/internal/native"
)

// What is in this file may change or go in any version, as experimental.h says of its C functions.

// ForwardBatch is one forward pass over rows of several sequences, each with a cache of its own.
type ForwardBatch struct {
	Tokens      []int32
	Sequences   []int32  // index into Caches of each token, ascending; nil for one cache
	WantsLogits []bool   // nil for all
	Caches      []*Cache // they grow by their rows
}

// ForwardBatch runs a pass and returns the logits of the rows that want them, one after another.
func (m *Model) ForwardBatch(batch ForwardBatch) ([]float32, error) {
	return m.forwardBatch(batch, nil)
}

// ForwardProfiled is ForwardBatch that adds to a profile what each instruction took.
func (m *Model) ForwardProfiled(batch ForwardBatch, profile *Profile) ([]float32, error) {
	return m.forwardBatch(batch, profile)
}

func (m *Model) forwardBatch(b ForwardBatch, profile *Profile) (logits []float32, err error) {
	if b.Sequences != nil && len(b.Sequences) != len(b.Tokens) || b.WantsLogits != nil && len(b.WantsLogits) != len(b.Tokens) {
		return nil, invalid("%d tokens do not go with %d sequences and %d wishes for logits", len(b.Tokens),
			len(b.Sequences), len(b.WantsLogits))
	}
	rows, wants := len(b.Tokens), []byte(nil)
	if b.WantsLogits != nil {
		rows, wants = 0, make([]byte, len(b.WantsLogits))
		for i, want := range b.WantsLogits {
			wants[i] = byte(flag(want))
			rows += int(wants[i])
		}
	}
	caches := make([]uintptr, len(b.Caches))
	for i, cache := range b.Caches {
		if cache == nil {
			continue
		}
		if err := cache.enter(); err != nil {
			return nil, err
		}
		defer cache.leave()
		caches[i] = cache.address
	}
	logits = make([]float32, rows*m.Config().VocabSize)
	err = m.with(func(model uintptr) error {
		if profile == nil {
			return native.GenModelForwardBatch(model, b.Tokens, b.Sequences, wants, len(b.Tokens), caches, len(caches), logits,
				len(logits))
		}
		return profile.with(func(p uintptr) error {
			return native.GenModelForwardProfiled(model, b.Tokens, b.Sequences, wants, len(b.Tokens), caches, len(caches),
				logits, len(logits), p)
		})
	})
	if err != nil {
		return nil, err
	}
	return logits, nil
}

// HiddenNormed is the layer of ForwardHidden for the states after the final norm.
const HiddenNormed int32 = -1

// ForwardHidden evaluates tokens of one sequence, which follow what the cache holds, and returns the hidden states of all
// of them for each layer, [tokens * Config().Hidden]: those before layer i, after the last one for the number of layers,
// or HiddenNormed.
func (m *Model) ForwardHidden(tokens []int32, cache *Cache, layers ...int32) ([][]float32, error) {
	width := len(tokens) * m.Config().Hidden
	all := make([]float32, len(layers)*width)
	err := m.with(func(model uintptr) error {
		return cache.with(func(c uintptr) error {
			return native.GenModelForwardHidden(model, tokens, len(tokens), c, layers, len(layers), all, len(all))
		})
	})
	if err != nil {
		return nil, err
	}
	states := make([][]float32, len(layers))
	for i := range states {
		states[i] = all[i*width : (i+1)*width : (i+1)*width]
	}
	return states, nil
}

// Profile is time, bytes and operations of each instruction of a model's forward passes. One goroutine at a time.
type Profile struct{ object }

// NewProfile makes an empty profile.
func NewProfile() (*Profile, error) {
	p := new(Profile)
	if err := p.take(kindProfile, native.GenProfileFree, native.GenProfileNew); err != nil {
		return nil, err
	}
	return p, nil
}

// Count is the number of instructions seen.
func (p *Profile) Count() int { return get(&p.object, native.GenProfileCount) }

// Name is that of an instruction.
func (p *Profile) Name(index int) string {
	return get(&p.object, func(a uintptr) string { return native.GenProfileName(a, index) })
}

// Value is a sum over all runs of an instruction: "seconds", "calls", "rows", "bytes" or "operations".
func (p *Profile) Value(index int, key string) (float64, error) {
	var value [1]float64
	err := p.with(func(a uintptr) error { return native.GenProfileGet(a, index, key, value[:]) })
	return value[0], err
}

// ChromeTrace is when instructions ran, in the format of chrome://tracing and ui.perfetto.dev.
func (p *Profile) ChromeTrace() (trace string, err error) {
	err = p.with(func(a uintptr) (err error) {
		trace, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenProfileChromeTrace(a, buffer, capacity, n)
		})
		return err
	})
	return trace, err
}

// MeasurePeaks tells what this machine can do: "read_bandwidth", "fma_f32", "dot_i8" or "dot_bf16". It takes a while.
func MeasurePeaks(threads int, what string) (float64, error) {
	var value [1]float64
	err := native.GenMeasurePeaks(i32(threads), what, value[:])
	return value[0], err
}

// bytesOf is the memory of a slice.
func bytesOf[T any](of []T) []byte {
	if len(of) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&of[0])), len(of)*int(unsafe.Sizeof(of[0])))
}
