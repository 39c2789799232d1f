// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"sync"

	"libgenerate.dev/generate/internal/native"
)

// Session is one growing sequence, a conversation for example. One goroutine at a time: a second one gets ErrBusy. Length,
// Progress and Close are for any goroutine at any time; Close cancels what runs, an open stream too.
type Session struct {
	object
	gate    gate
	running sync.Mutex // held by a call that has set the session's flag
}

// NewSession makes an empty session.
func (g *Generator) NewSession() (*Session, error) {
	var s *Session
	err := g.with(func(generator uintptr) (err error) {
		s, err = newSession(g.gate, func(out []uintptr) error { return native.GenSessionNew(generator, out) })
		return err
	})
	return s, err
}

func newSession(gate gate, create func(out []uintptr) error) (*Session, error) {
	s := &Session{gate: gate}
	if err := s.take(kindSession, native.GenSessionFree, create); err != nil {
		return nil, err
	}
	s.stop = func() { native.GenSessionCancel(s.address) }
	return s, nil
}

// Generate adds a prompt, which may be empty when the session is not, and generates. The context ends it within one token,
// also in the middle of a long prompt; the session keeps what there was by then. After any other failure it holds what it
// held before. There is a result beside the error where generation had begun.
func (s *Session) Generate(ctx context.Context, prompt string, options ...SamplingOption) (*Result, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.gate.generate(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenSessionGenerate(s.address, prompt, sampling, out)
	})
}

// Append adds text without generating.
func (s *Session) Append(ctx context.Context, text string) error {
	return s.run(ctx, func() error { return native.GenSessionAppend(s.address, text) })
}

// AppendTokens adds tokens as they are, without a begin-of-sequence token.
func (s *Session) AppendTokens(ctx context.Context, tokens []int32) error {
	return s.run(ctx, func() error { return native.GenSessionAppendTokens(s.address, tokens, len(tokens)) })
}

// AppendChat makes the session hold a conversation, so that Generate or Stream with an empty prompt answers it; with reply it
// ends with the opening of an assistant's turn. What the session has of it stays, and only the rest is run.
func (s *Session) AppendChat(ctx context.Context, chat *Chat, reply bool) error {
	return s.run(ctx, func() error {
		return chat.pointer().optional(func(c uintptr) error { return native.GenSessionAppendChat(s.address, c, flag(reply)) })
	})
}

// Score gives log-probabilities of a text's tokens as a continuation of what the session holds, which stays unchanged.
func (s *Session) Score(ctx context.Context, text string) (logprobs []float32, err error) {
	err = s.run(ctx, func() (err error) {
		logprobs, err = sized(0, func(buffer []float32, capacity int, n []int) error {
			return native.GenSessionScore(s.address, text, buffer, capacity, n)
		})
		return err
	})
	return logprobs, err
}

// forget gives up the handle of a session that a stream keeps alive. Close would cancel the stream.
func (s *Session) forget() { s.end() }

// run is for calls without settings of their own, which a flag of the session cancels while it is set.
func (s *Session) run(ctx context.Context, call func() error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.gate.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	return cancelled(ctx, cancellable(ctx, func(cancel uintptr) error {
		if cancel == 0 {
			return call()
		}
		if !s.running.TryLock() { // the session's flag is that of one call
			return &Error{Code: CodeBusy, Message: "the session is in use"}
		}
		defer s.running.Unlock()
		if err := native.GenSessionSetCancel(s.address, cancel); err != nil {
			return err
		}
		err := call()
		_ = native.GenSessionSetCancel(s.address, 0)
		return err
	}))
}

// Tokens are those that the session holds.
func (s *Session) Tokens() (tokens []int32, err error) {
	err = s.with(func(address uintptr) (err error) {
		tokens, err = sized(0, func(buffer []int32, capacity int, n []int) error {
			return native.GenSessionTokens(address, buffer, capacity, n)
		})
		return err
	})
	return tokens, err
}

// Length is the number of tokens that the session holds.
func (s *Session) Length() int { return int(get(&s.object, native.GenSessionLength)) }

// Progress is the share of the current prompt that has been run, 0 to 1.
func (s *Session) Progress() float64 { return get(&s.object, native.GenSessionProgress) }

// Truncate keeps the first n tokens.
func (s *Session) Truncate(n int) error {
	return s.with(func(address uintptr) error { return native.GenSessionTruncate(address, i32(n)) })
}

// Reset empties the session.
func (s *Session) Reset() error { return s.with(native.GenSessionReset) }

// Fork makes an independent session that continues from the same tokens.
func (s *Session) Fork() (*Session, error) {
	var fork *Session
	err := s.with(func(address uintptr) (err error) {
		fork, err = newSession(s.gate, func(out []uintptr) error { return native.GenSessionFork(address, out) })
		return err
	})
	return fork, err
}

// Save writes tokens and cache to a file, from which Load goes on with the same bits as if there had been no pause.
func (s *Session) Save(path string) error {
	return s.with(func(address uintptr) error { return native.GenSessionSave(address, path) })
}

// SaveBytes is Save to memory.
func (s *Session) SaveBytes() (state []byte, err error) {
	err = s.with(func(address uintptr) (err error) {
		state, err = sized(0, func(buffer []byte, capacity int, n []int) error {
			return native.GenSessionSaveBuffer(address, buffer, capacity, n)
		})
		return err
	})
	return state, err
}

// Load continues a saved session; this one must be empty.
func (s *Session) Load(path string) error {
	return s.with(func(address uintptr) error { return native.GenSessionLoad(address, path) })
}

// LoadBytes is Load from memory.
func (s *Session) LoadBytes(state []byte) error {
	return s.with(func(address uintptr) error { return native.GenSessionLoadBuffer(address, state, len(state)) })
}

// Cache is the session's own, to be read only. It is usable until the session is closed, and need not be closed itself.
func (s *Session) Cache() (*Cache, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return &Cache{object{address: native.GenSessionCache(s.address), kind: kindCache, owner: &s.object}}, nil
}

// State is what the session's model keeps beside keys and values, for reading and for going back; nil for a model without
// such a state. It ends with the session.
func (s *Session) State() (*SSMState, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	address := native.GenSessionSsmState(s.address)
	if address == 0 {
		return nil, nil
	}
	return &SSMState{object{address: address, kind: kindSsmState, owner: &s.object}}, nil
}
