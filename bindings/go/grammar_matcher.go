// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// GrammarMatcher reads a text token by token and returns which tokens may come next, for programs that draw them themselves. One
// goroutine at a time. A call that fails changes nothing.
type GrammarMatcher struct {
	object
	vocab int
}

func (m *GrammarMatcher) pointer() *object {
	if m == nil {
		return nil
	}
	return &m.object
}

// NewMatcher begins an empty text over the tokens of a tokenizer. The matcher needs neither of them any longer.
func (g *Grammar) NewMatcher(tokenizer *Tokenizer) (*GrammarMatcher, error) {
	m := new(GrammarMatcher)
	err := g.with(func(grammar uintptr) error {
		return tokenizer.pointer().optional(func(vocabulary uintptr) error {
			m.vocab = int(native.GenTokenizerVocabSize(vocabulary))
			return m.take(kindMatcher, native.GenGrammarMatcherFree, func(out []uintptr) error {
				return native.GenGrammarMatcherNew(grammar, vocabulary, out)
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// AcceptToken advances by a token, or by one that ends texts where the text may end. One that is not allowed is an ErrGrammar.
func (m *GrammarMatcher) AcceptToken(token int32) error {
	return m.with(func(a uintptr) error { return native.GenGrammarMatcherAcceptToken(a, token) })
}

// AcceptBytes advances by bytes, which need not be whole characters or tokens.
func (m *GrammarMatcher) AcceptBytes(bytes []byte) error { return m.AcceptText(string(bytes)) }

// AcceptText advances by text.
func (m *GrammarMatcher) AcceptText(text string) error {
	return m.with(func(a uintptr) error { return native.GenGrammarMatcherAcceptBytes(a, text) })
}

// Mask tells which tokens may come next: those that AcceptToken would take.
func (m *GrammarMatcher) Mask() (Mask, error) {
	mask := newMask(m.vocab)
	if err := m.FillMask(mask); err != nil {
		return nil, err
	}
	return mask, nil
}

// FillMask is Mask without a new one: mask has an element for each 32 tokens at least, and those beyond them become 0.
func (m *GrammarMatcher) FillMask(mask Mask) error {
	return m.with(func(a uintptr) error { return native.GenGrammarMatcherMask(a, mask, len(mask)) })
}

// ValidBytes tells which bytes may come next.
func (m *GrammarMatcher) ValidBytes() (Mask, error) {
	mask := newMask(256)
	if err := m.with(func(a uintptr) error { return native.GenGrammarMatcherValidBytes(a, mask) }); err != nil {
		return nil, err
	}
	return mask, nil
}

// Rollback undoes the last n accepting calls.
func (m *GrammarMatcher) Rollback(n int) error {
	if n < 0 {
		return invalid("%d calls cannot be taken back", n)
	}
	return m.with(func(a uintptr) error { return native.GenGrammarMatcherRollback(a, n) })
}

// Fork makes a second matcher in the same place.
func (m *GrammarMatcher) Fork() (*GrammarMatcher, error) {
	fork := &GrammarMatcher{vocab: m.vocab}
	err := m.with(func(a uintptr) error {
		return fork.take(kindMatcher, native.GenGrammarMatcherFree, func(out []uintptr) error {
			return native.GenGrammarMatcherFork(a, out)
		})
	})
	if err != nil {
		return nil, err
	}
	return fork, nil
}

// Reset goes back to the empty text.
func (m *GrammarMatcher) Reset() error { return m.with(native.GenGrammarMatcherReset) }

// Complete tells whether the text is a member.
func (m *GrammarMatcher) Complete() bool { return get(&m.object, native.GenGrammarMatcherComplete) > 0 }

// Finished tells whether the text is a member that nothing can follow.
func (m *GrammarMatcher) Finished() bool { return get(&m.object, native.GenGrammarMatcherComplete) > 1 }

// Forced is the tokens from here on, at most 1024, for which no model needs to be asked: each is the only one that may come,
// which is seldom so with vocabularies of SentencePiece. With WithGrammarSetting("forced_tokens", "tokenizer") they are those
// that the tokenizer makes of the bytes that must come.
func (m *GrammarMatcher) Forced() (tokens []int32, err error) {
	err = m.with(func(a uintptr) (err error) {
		tokens, err = sized(0, func(buffer []int32, capacity int, n []int) error {
			return native.GenGrammarMatcherForced(a, buffer, capacity, n)
		})
		return err
	})
	return tokens, err
}

// MinTokens is the fewest tokens until the text may end, not counting one that ends it, or, where that would take long to find
// out, those of the shortest text that ends it; -1 if no tokens are known to.
func (m *GrammarMatcher) MinTokens() (int64, error) {
	var n [1]int64
	err := m.with(func(a uintptr) error { return native.GenGrammarMatcherMinTokens(a, n[:]) })
	return n[0], err
}
