// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"strings"

	"libgenerate.dev/generate/internal/native"
)

// Eagle is a model with a head that was trained for it and drafts: the same text as the model's own, in less time. Any number of
// goroutines may use one. Sessions and batches with a head come from NewGenerator with WithEagle.
type Eagle struct {
	object
	gate gate
}

// EagleTensors is a head of two products in memory: it guesses the hidden state of the next row from that of a row x, as
// silu(norm(x) FC1) FC2, where the norm has a mean, a variance, and an epsilon of 1e-5.
type EagleTensors struct {
	NormWeight, NormBias []float32 // [hidden] of the model
	FC1Weight, FC2Weight []float32 // [hidden * hidden], inputs by outputs: y = x W
	LMHead               []float32 // [vocabulary * hidden]; nil for the model's output layer, which custom models lack
}

// NewEagle combines the model with the head of a file, which drafts at most length tokens at a time; 0 means 4. With "" the head is
// that of the model's own file. The model may be closed afterwards.
func (m *Model) NewEagle(path string, length int, options ...GeneratorOption) (*Eagle, error) {
	if strings.Contains(path, "\x00") {
		return nil, invalid("%q has a NUL in it", path)
	}
	return m.newEagle(options, func(target, o uintptr, out []uintptr) error {
		return native.GenEagleNew(target, path, i32(length), o, out)
	})
}

// NewEagleTensors is the same with a head in memory, which is copied.
func (m *Model) NewEagleTensors(tensors EagleTensors, length int, options ...GeneratorOption) (*Eagle, error) {
	hidden := len(tensors.NormWeight)
	if hidden == 0 || len(tensors.NormBias) != hidden || len(tensors.FC1Weight) != hidden*hidden ||
		len(tensors.FC2Weight) != hidden*hidden || len(tensors.LMHead)%hidden != 0 {
		return nil, invalid("tensors of %d, %d, %d, %d and %d numbers are no head", hidden, len(tensors.NormBias),
			len(tensors.FC1Weight), len(tensors.FC2Weight), len(tensors.LMHead))
	}
	return m.newEagle(options, func(target, o uintptr, out []uintptr) error {
		return native.GenBindingEagleNewTensors(target, i32(hidden), i32(len(tensors.LMHead)/hidden), tensors.NormWeight,
			tensors.NormBias, tensors.FC1Weight, tensors.FC2Weight, tensors.LMHead, i32(length), o, out)
	})
}

func (m *Model) newEagle(options []GeneratorOption, create func(target, o uintptr, out []uintptr) error) (*Eagle, error) {
	e := &Eagle{gate: make(gate, maxCalls)}
	err := m.with(func(target uintptr) error {
		return e.take(kindEagle, native.GenEagleFree, func(out []uintptr) error {
			return build(options, native.GenOptionsNew, native.GenOptionsFree, func(o uintptr) error { return create(target, o, out) })
		})
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Generate continues a prompt, as Generator.Generate does with the model alone.
func (e *Eagle) Generate(ctx context.Context, prompt string, options ...SamplingOption) (*Result, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	return e.gate.generate(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenEagleGenerate(e.address, prompt, sampling, out)
	})
}

// SetAdaptive says whether the draft length adapts to the acceptance rate, as it does by default.
func (e *Eagle) SetAdaptive(adaptive bool) error {
	return e.with(func(a uintptr) error { return native.GenEagleSetAdaptive(a, flag(adaptive)) })
}

// Stats returns the statistics of drafts so far.
func (e *Eagle) Stats() (stats DraftStats, err error) {
	err = e.with(func(a uintptr) (err error) {
		stats, err = draftStats(func(key string, value []float64) error {
			return native.GenEagleStats(a, key, value)
		})
		return err
	})
	return stats, err
}
