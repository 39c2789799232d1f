// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"

	"libgenerate.dev/generate/internal/native"
)

const maxDraft = 63 // tokens of a draft

// Speculative is a model with a smaller draft model: the same text as the model's own, in less time. Any number of goroutines may
// use one. Sessions and batches with a draft model come from NewGenerator with WithSpeculativeDraft.
type Speculative struct {
	object
	gate gate
}

// NewSpeculative combines the target m with a draft model, which drafts at most length tokens at a time; 0 means 4. Both may
// be closed afterwards.
func (m *Model) NewSpeculative(draft *Model, length int, options ...GeneratorOption) (*Speculative, error) {
	s := &Speculative{gate: make(gate, maxCalls)}
	err := m.with(func(target uintptr) error {
		return draft.pointer().optional(func(small uintptr) error {
			return s.take(kindSpeculative, native.GenSpeculativeFree, func(out []uintptr) error {
				return build(options, native.GenOptionsNew, native.GenOptionsFree, func(o uintptr) error {
					return native.GenSpeculativeNew(small, target, i32(length), o, out)
				})
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Generate continues a prompt, as Generator.Generate does with the model alone.
func (s *Speculative) Generate(ctx context.Context, prompt string, options ...SamplingOption) (*Result, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.gate.generate(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenSpeculativeGenerate(s.address, prompt, sampling, out)
	})
}

// SetAdaptive says whether the draft length adapts to the acceptance rate, as it does by default.
func (s *Speculative) SetAdaptive(adaptive bool) error {
	return s.with(func(a uintptr) error { return native.GenSpeculativeSetAdaptive(a, flag(adaptive)) })
}

// Stats returns the statistics of drafts so far.
func (s *Speculative) Stats() (stats DraftStats, err error) {
	err = s.with(func(a uintptr) (err error) {
		stats, err = draftStats(func(key string, value []float64) error {
			return native.GenSpeculativeStats(a, key, value)
		})
		return err
	})
	return stats, err
}

// Draft does drafting and verification as separate steps, for programs with their own loop. One goroutine at a time: a second one
// gets ErrBusy.
type Draft struct{ object }

// NewDraft makes a drafter from a model that drafts, and one that verifies, which may be nil. Both may be closed afterwards.
func NewDraft(draft, target *Model, options ...GeneratorOption) (*Draft, error) {
	return newDraft(options, func(o uintptr, out []uintptr) error {
		return draft.pointer().optional(func(small uintptr) error {
			return target.pointer().optional(func(large uintptr) error { return native.GenDraftNew(small, large, o, out) })
		})
	})
}

// NewSelfDraft makes a drafter from the model's own first layers; 0 means half of them.
func (m *Model) NewSelfDraft(layers int, options ...GeneratorOption) (*Draft, error) {
	return newDraft(options, func(o uintptr, out []uintptr) error {
		return m.with(func(model uintptr) error { return native.GenDraftNewSelf(model, i32(layers), o, out) })
	})
}

func newDraft(options []GeneratorOption, create func(o uintptr, out []uintptr) error) (*Draft, error) {
	d := new(Draft)
	err := d.take(kindDraft, native.GenDraftFree, func(out []uintptr) error {
		return build(options, native.GenOptionsNew, native.GenOptionsFree, func(o uintptr) error { return create(o, out) })
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Depth is the number of layers that draft.
func (d *Draft) Depth() int {
	return int(get(&d.object, native.GenDraftDepth))
}

// Generate drafts the next tokens, with the log-probability of each.
func (d *Draft) Generate(tokens []int32, length int) (guesses []int32, logprobs []float32, err error) {
	var n [1]int
	ids, values := make([]int32, maxDraft), make([]float32, maxDraft)
	err = d.with(func(a uintptr) error {
		return native.GenDraftGenerate(a, tokens, len(tokens), i32(length), ids, values, maxDraft, n[:])
	})
	if err != nil {
		return nil, nil, err
	}
	return ids[:n[0]], values[:n[0]], nil
}

// Verify returns how many draft tokens the target accepts, and its token after these; -1 where its context is full.
func (d *Draft) Verify(tokens, guesses []int32) (accepted int, correction int32, err error) {
	var kept, next [1]int32
	err = d.with(func(a uintptr) error {
		return native.GenDraftVerify(a, tokens, len(tokens), guesses, len(guesses), kept[:], next[:])
	})
	return int(kept[0]), next[0], err
}

// AcceptanceRate drafts once, 4 tokens for a length of 0, and returns the acceptance rate.
func (d *Draft) AcceptanceRate(tokens []int32, length int) (float64, error) {
	var rate [1]float64
	err := d.with(func(a uintptr) error {
		return native.GenDraftAcceptanceRate(a, tokens, len(tokens), i32(length), rate[:])
	})
	return rate[0], err
}

// AcceptTokens is speculative sampling: of tokens drawn from a draft's probabilities, draftProbs [K * vocab], keeps those that
// leave the distribution of the target's, targetProbs [(K + 1) * vocab], and draws one more. The draws are those of (seed, step
// + i). The rate is the share that was kept.
func AcceptTokens(tokens []int32, draftProbs, targetProbs []float32, vocab int, seed, step uint64) (said []int32, rate float64, err error) {
	return acceptTokens(tokens, draftProbs, targetProbs, vocab, false, seed, step)
}

// AcceptBest is the same without draws: a token is kept while it is the target's most probable one.
func AcceptBest(tokens []int32, targetProbs []float32, vocab int) (said []int32, rate float64, err error) {
	return acceptTokens(tokens, nil, targetProbs, vocab, true, 0, 0)
}

func acceptTokens(tokens []int32, draftProbs, targetProbs []float32, vocab int, greedy bool, seed, step uint64) ([]int32, float64, error) {
	if vocab < 1 || len(targetProbs) < (len(tokens)+1)*vocab || (!greedy && len(draftProbs) < len(tokens)*vocab) {
		return nil, 0, invalid("probabilities of %d and %d for %d tokens of %d", len(draftProbs), len(targetProbs), len(tokens), vocab)
	}
	var n [1]int
	var rate [1]float64
	ids := make([]int32, len(tokens)+1)
	err := native.GenDraftAcceptTokens(tokens, len(tokens), draftProbs, targetProbs, vocab, flag(greedy), seed, step, ids,
		len(ids), n[:], rate[:])
	if err != nil {
		return nil, 0, err
	}
	return ids[:n[0]], rate[0], nil
}
