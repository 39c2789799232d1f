// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// SamplingOption says how tokens are chosen; the calls that generate take any number. Without any: temperature 1, nothing
// cut, no penalty, seed 0, 256 tokens. Stages run in this order: logit bias, mask, penalties, greedy if the temperature is
// 0, temperature, top-k, typical-p, top-p, min-p, draw.
type SamplingOption func(sampling uintptr) error

// WithSampling makes one option of several, to keep for many calls.
func WithSampling(options ...SamplingOption) SamplingOption {
	return func(s uintptr) error {
		for _, option := range options {
			if option == nil {
				continue
			}
			if err := option(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithTemperature divides logits by a number; 0 takes the most probable token.
func WithTemperature(temperature float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetTemperature(s, temperature) }
}

// WithTopK keeps the k largest logits; 0 keeps all.
func WithTopK(k int) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetTopK(s, i32(k)) }
}

// WithTypicalP keeps the tokens whose surprise is nearest to the expected one, until they reach p; 1 keeps all.
func WithTypicalP(p float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetTypicalP(s, p) }
}

// WithTopP keeps the fewest most probable tokens that reach p; 1 keeps all.
func WithTopP(p float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetTopP(s, p) }
}

// WithMinP keeps tokens at least p times as probable as the most probable one; 0 keeps all.
func WithMinP(p float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetMinP(s, p) }
}

// WithRepetitionPenalty makes tokens generated before less likely; 1 is off.
func WithRepetitionPenalty(penalty float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetRepetitionPenalty(s, penalty) }
}

// WithCompoundPenalty(true) lets the repetition penalty act for each occurrence of a token.
func WithCompoundPenalty(on bool) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetCompoundPenalty(s, flag(on)) }
}

// WithFrequencyPenalty subtracts from a token's logit for each time it was generated.
func WithFrequencyPenalty(penalty float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetFrequencyPenalty(s, penalty) }
}

// WithPresencePenalty subtracts once from the logit of each token that was generated.
func WithPresencePenalty(penalty float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetPresencePenalty(s, penalty) }
}

// WithPenalizePrompt(true) counts the tokens of the prompt and of earlier turns for the penalties, too.
func WithPenalizePrompt(on bool) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetPenalizePrompt(s, flag(on)) }
}

// WithPenaltyWindow limits the penalties to the last tokens; 0 means all.
func WithPenaltyWindow(tokens int) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetPenaltyWindow(s, i32(tokens)) }
}

// WithMaxTokens ends a generation after so many tokens.
func WithMaxTokens(tokens int) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetMaxNewTokens(s, i32(tokens)) }
}

// WithSeed sets the seed; an equal one gives equal text on every machine.
func WithSeed(seed uint64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetSeed(s, seed) }
}

// WithGumbel(true) draws by Gumbel-max: with noise of each token, so that calls of one seed whose logits differ a little draw
// the same tokens mostly.
func WithGumbel(on bool) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetGumbel(s, flag(on)) }
}

// WithLogitsFunction has a gen_logits_callback in C edit the logits of each step before all else; 0 for none. Both must live
// as long as the calls.
func WithLogitsFunction(function, user Symbol) SamplingOption {
	return func(s uintptr) error {
		return native.GenSamplingSetLogitsCallback(s, uintptr(function), uintptr(user))
	}
}

// WithLogprobs records log-probabilities of the tokens chosen and of the count most probable ones at each step.
func WithLogprobs(count int) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetLogprobs(s, i32(count)) }
}

// WithLogitBias adds to the logit of a token; negative infinity forbids it.
func WithLogitBias(token int32, bias float32) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetLogitBias(s, token, bias) }
}

// WithIgnoreEOS(true) goes on when the model would end.
func WithIgnoreEOS(on bool) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetIgnoreEos(s, flag(on)) }
}

// WithFitGrammar(true), the default, draws only tokens after which a text under a grammar can still be completed within the maximum of new
// tokens.
func WithFitGrammar(on bool) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetFitGrammar(s, flag(on)) }
}

// WithStopTokens ends a generation when one of these is drawn.
func WithStopTokens(tokens ...int32) SamplingOption {
	return func(s uintptr) error {
		for _, token := range tokens {
			if err := native.GenSamplingAddStopToken(s, token); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithStop ends a generation when the text holds one of these strings, of which nothing is returned.
func WithStop(strings ...string) SamplingOption {
	return func(s uintptr) error {
		for _, stop := range strings {
			if err := native.GenSamplingAddStopString(s, stop); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithDRY makes tokens less likely with which a sequence of at least allowedLength tokens would come again: by
// multiplier * base^(length - allowedLength), over the last window tokens (0: all); a multiplier of 0 is off.
func WithDRY(multiplier, base float64, allowedLength, window int) SamplingOption {
	return func(s uintptr) error {
		return native.GenSamplingSetDry(s, multiplier, base, i32(allowedLength), i32(window))
	}
}

// WithDRYBreakers adds texts that end a sequence for WithDRY.
func WithDRYBreakers(texts ...string) SamplingOption {
	return func(s uintptr) error {
		for _, text := range texts {
			if err := native.GenSamplingAddDryBreaker(s, text); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithXTC leaves out, with this probability, all tokens above the threshold but the least probable of them.
func WithXTC(probability, threshold float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetXtc(s, probability, threshold) }
}

// WithTopNSigma keeps tokens whose logits are within n standard deviations of the largest; 0 keeps all.
func WithTopNSigma(n float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetTopNSigma(s, n) }
}

// WithMirostat keeps the surprise of tokens near tau (mirostat 2), learning at the rate eta; a tau of 0 is off.
func WithMirostat(tau, eta float64) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetMirostat(s, tau, eta) }
}

// WithMinNewTokens draws no token that ends a text before that many tokens, if any other is possible.
func WithMinNewTokens(tokens int) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetMinNewTokens(s, i32(tokens)) }
}

// WithSetting sets one of these by its name, see DescribeSampling.
func WithSetting(key, value string) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSet(s, key, value) }
}

// DescribeSampling lists all settings as JSON, with the values that these options give.
func DescribeSampling(options ...SamplingOption) (description string, err error) {
	err = build(described(options), native.GenSamplingNew, native.GenSamplingFree, func(s uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenSamplingDescribe(s, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// withCancel gives the settings of a call a flag of its own that cancels it.
func withCancel(cancel uintptr) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetCancel(s, cancel) }
}
