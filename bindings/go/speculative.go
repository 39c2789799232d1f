// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"

	"libgenerate.dev/generate/internal/native"
)

const maxDraft = 63 // tokens of a guess

// Speculative is a model that a smaller one guesses for: the same text as the model's own, sooner. Any number of goroutines may
// use one. Sessions and batches with a draft model come from NewGenerator with WithSpeculativeDraft.
type Speculative struct {
	object
	gate gate
}

// NewSpeculative has draft guess for m, at most length tokens at a time; 0 stands for 4. Both may be closed afterwards.
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

// SetAdaptive says whether the number of guesses changes with what they bring, as it does unless this is called.
func (s *Speculative) SetAdaptive(adaptive bool) error {
	return s.with(func(a uintptr) error { return native.GenSpeculativeSetAdaptive(a, flag(adaptive)) })
}

// Stats tells what guesses have brought so far.
func (s *Speculative) Stats() (stats DraftStats, err error) {
	err = s.with(func(a uintptr) (err error) {
		stats, err = draftStats(func(key string, value []float64) error {
			return native.GenSpeculativeStats(a, key, value)
		})
		return err
	})
	return stats, err
}

// Draft guesses and judges as steps of their own, for a loop of one's own around them. One goroutine at a time: a second one
// gets ErrBusy.
type Draft struct{ object }

// NewDraft makes a drafter of a model that guesses, and one that judges, which may be nil. Both may be closed afterwards.
func NewDraft(draft, target *Model, options ...GeneratorOption) (*Draft, error) {
	return newDraft(options, func(o uintptr, out []uintptr) error {
		return draft.pointer().optional(func(small uintptr) error {
			return target.pointer().optional(func(large uintptr) error { return native.GenDraftNew(small, large, o, out) })
		})
	})
}

// NewSelfDraft makes a drafter of the model's own first layers; 0 stands for half of them.
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

// Depth is the number of layers that guess.
func (d *Draft) Depth() int {
	return int(get(&d.object, native.GenDraftDepth))
}

// Generate guesses how tokens go on, with the log-probability of each guess.
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

// Verify tells how many guesses are the target's own, and the token after these; -1 where its context is full.
func (d *Draft) Verify(tokens, guesses []int32) (accepted int, correction int32, err error) {
	var kept, next [1]int32
	err = d.with(func(a uintptr) error {
		return native.GenDraftVerify(a, tokens, len(tokens), guesses, len(guesses), kept[:], next[:])
	})
	return int(kept[0]), next[0], err
}

// AcceptanceRate guesses once, 4 tokens for a length of 0, and is the share of these that the target says, too.
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
