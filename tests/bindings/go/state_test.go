// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"strings"
	"testing"

	"libgenerate.dev/generate"
)

// remembered is what test_model_memory keeps after the first n of the tokens: the last six, newest first.
func remembered(tokens []int32, n int) []float32 {
	kept := make([]float32, 6)
	for i := 0; i < len(kept) && i < n; i++ {
		kept[i] = float32(tokens[n-1-i])
	}
	return kept
}

// holds compares a session's state with the tokens that the session holds, of which the last is not evaluated.
func holds(t *testing.T, s *generate.Session, state *generate.SSMState, length int) {
	t.Helper()
	tokens := must(s.Tokens())
	if len(tokens) != length {
		t.Fatalf("%d tokens, not %d", len(tokens), length)
	}
	equal(t, "position", state.Position(), length-1)
	h, of, err := state.Layer(0)
	ok(t, err)
	equal(t, "shape", of, generate.Shape{Batch: 1, Seq: 2, Dim: 3})
	equals(t, "the last tokens", h, remembered(tokens, length-1))
	h, of, err = state.Layer(1)
	ok(t, err)
	equal(t, "shape", of, generate.Shape{Batch: 1, Seq: 1, Dim: 1})
	equals(t, "their number", h, []float32{float32(length - 1)})
}

func TestStateOfASession(t *testing.T) {
	s := session(t, custom(t, "test_model_memory"))
	state := must(s.State())
	equal(t, "layers", state.Layers(), 2)
	equal(t, "kinds", state.LayerKind(0)+state.LayerKind(1)+state.LayerKind(2), "customcustom")
	equal(t, "index", state.LayerIndex(1), 1)
	equal(t, "no such index", state.LayerIndex(2), -1)
	equal(t, "position of an empty session", state.Position(), 0)
	h, _, err := state.Layer(0)
	ok(t, err)
	equals(t, "zeros", h, make([]float32, 6))

	few := []generate.SamplingOption{greedy, generate.WithMaxTokens(4)}
	ok(t, s.AppendTokens(ctx, []int32{10, 20, 30, 40, 50, 60, 70, 80, 90}))
	holds(t, s, state, 9)
	first := must(state.Snapshot())
	equal(t, "its number", first, int64(1))
	once := must(s.Generate(ctx, "", few...))
	equal(t, "the sum as a letter", once.Tokens[0], int32(5+'a'+(40+50+60+70+80+90)%26))
	holds(t, s, state, 13)
	second := must(state.Snapshot())
	more := must(s.Generate(ctx, "", few...))
	holds(t, s, state, 17)

	fork := must(s.Fork())
	defer fork.Close()
	its := must(fork.State())
	holds(t, fork, its, 17)
	if err := its.Restore(first); !errors.Is(err, generate.ErrOutOfRange) {
		t.Errorf("a fork has no snapshots: %v", err)
	}

	ok(t, state.Restore(second))
	holds(t, s, state, 13)
	equals(t, "again", must(s.Generate(ctx, "", few...)).Tokens, more.Tokens)
	ok(t, state.Restore(first))
	holds(t, s, state, 9)
	if err := state.Restore(second); !errors.Is(err, generate.ErrState) {
		t.Errorf("the text behind it is gone: %v", err)
	}
	holds(t, s, state, 9)
	equals(t, "again", must(s.Generate(ctx, "", few...)).Tokens, once.Tokens)
	ok(t, state.Restore(second))
	holds(t, s, state, 13)
	holds(t, fork, its, 17)
}

func TestStateErrors(t *testing.T) {
	s := session(t, custom(t, "test_model_memory"))
	state := must(s.State())
	ok(t, s.AppendTokens(ctx, []int32{1, 2}))
	_, _, err := state.Layer(2)
	for what, wrong := range map[string]struct{ err, want error }{
		"no such layer":    {err, generate.ErrOutOfRange},
		"no such snapshot": {state.Restore(1), generate.ErrOutOfRange},
		"setting":          {state.SetLayer(0, make([]float32, 6), 1, 2, 3), generate.ErrUnsupported},
		"resetting":        {state.Reset(), generate.ErrUnsupported},
	} {
		if !errors.Is(wrong.err, wrong.want) {
			t.Errorf("%s: %v", what, wrong.err)
		}
	}
	holds(t, s, state, 2)
	stream := must(s.Stream(ctx, "", greedy, generate.WithMaxTokens(3)))
	if _, err := state.Snapshot(); !errors.Is(err, generate.ErrBusy) {
		t.Errorf("while the session streams: %v", err)
	}
	ok(t, stream.Close())
	ok(t, s.Close())
	if _, err := state.Snapshot(); !errors.Is(err, generate.ErrClosed) {
		t.Errorf("after its session: %v", err)
	}
	equal(t, "position after its session", state.Position(), 0)

	hidden := session(t, custom(t, "test_model_hidden"))
	state = must(hidden.State())
	if _, err := state.Snapshot(); !errors.Is(err, generate.ErrUnsupported) {
		t.Errorf("a state that cannot be copied: %v", err)
	}
	if _, _, err = state.Layer(0); !errors.Is(err, generate.ErrIO) || !strings.Contains(err.Error(), "the test model's state is hidden") {
		t.Errorf("a state that cannot be read: %v", err)
	}
}
