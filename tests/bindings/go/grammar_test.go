// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"libgenerate.dev/generate"
)

const sentence = `(The|A) (cat|dog|old hen) (ran|sat)\.`

// All texts of it.
var sentences = func() (all []string) {
	for _, article := range []string{"The", "A"} {
		for _, who := range []string{"cat", "dog", "old hen"} {
			for _, does := range []string{"ran", "sat"} {
				all = append(all, article+" "+who+" "+does+".")
			}
		}
	}
	return all
}()

// begins tells whether a text can become one of them.
func begins(text string) bool {
	for _, s := range sentences {
		if strings.HasPrefix(s, text) {
			return true
		}
	}
	return false
}

func grammar(t testing.TB, g *generate.Grammar, err error) *generate.Grammar {
	t.Helper()
	ok(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}

func matcher(t testing.TB, g *generate.Grammar) *generate.GrammarMatcher {
	t.Helper()
	m, err := g.NewMatcher(story.Tokenizer())
	ok(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func TestGrammarsMakeMembers(t *testing.T) {
	member := regexp.MustCompile("^(?:" + sentence + ")$")
	regex, err := generate.NewRegexGrammar(sentence)
	constraint := grammar(t, regex, err)
	isJSON(t, "grammar")(constraint.Describe())
	g := generator(t)
	limits := generate.WithSampling(generate.WithGrammar(constraint), generate.WithMaxTokens(40))
	seen := map[string]bool{}
	for seed := uint64(0); seed < 12; seed++ {
		r := must(g.Generate(ctx, "Once upon a time", limits, generate.WithSeed(seed), generate.WithTemperature(3)))
		if !member.MatchString(r.Text) {
			t.Errorf("%q", r.Text)
		}
		equal(t, "a member", r.Usage.GrammarComplete, 1)
		if r.FinishReason != generate.FinishGrammarComplete && r.FinishReason != generate.FinishStopToken {
			t.Error(r.FinishReason)
		}
		seen[r.Text] = true
	}
	if len(seen) < 2 {
		t.Error("one text whatever the seed", seen)
	}
	free := must(g.Generate(ctx, "Once upon a time", greedy, generate.WithMaxTokens(8)))
	again := must(g.Generate(ctx, "Once upon a time", greedy, generate.WithMaxTokens(8), generate.WithGrammar(constraint),
		generate.WithGrammar(nil)))
	equal(t, "any text", again.Text, free.Text)
	equal(t, "without a grammar", free.Usage.GrammarComplete, -1)
	if member.MatchString(free.Text) {
		t.Error("a text that needs no grammar")
	}

	// Shared by goroutines, and one that was closed meanwhile.
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func(seed uint64) {
			defer all.Done()
			r, err := g.Generate(ctx, "The", limits, generate.WithSeed(seed))
			if err != nil || !member.MatchString(r.Text) {
				t.Error(err, r)
			}
		}(uint64(i))
	}
	all.Wait()

	// From where a matcher stands, which stays there.
	m := matcher(t, constraint)
	ok(t, m.AcceptText("The old"))
	for i := 0; i < 2; i++ {
		r := must(g.Generate(ctx, "The old", greedy, generate.WithMaxTokens(20), generate.WithGrammarMatcher(m)))
		if r.Text != " hen ran." && r.Text != " hen sat." {
			t.Errorf("%q", r.Text)
		}
	}

	choice := grammar(t, must(generate.NewGrammar("root ::= answer \"!\"\nanswer ::= \"yes\" | \"no\"")), nil)
	r := must(g.Generate(ctx, "Well?", greedy, generate.WithGrammar(choice)))
	if r.Text != "yes!" && r.Text != "no!" {
		t.Errorf("%q", r.Text)
	}
	tokens := grammar(t, must(generate.NewGrammar("root ::= <[300]> <[301]>")), nil)
	equals(t, "forced", must(matcher(t, tokens).Forced())[:2], []int32{300, 301})
	equals(t, "tokens", must(g.Generate(ctx, "Well?", greedy, generate.WithGrammar(tokens))).Tokens, []int32{300, 301})
	named := grammar(t, must(generate.NewGrammar("root ::= <[99999]>")), nil)
	if _, err := g.Generate(ctx, "Well?", greedy, generate.WithGrammar(named)); !errors.Is(err, generate.ErrGrammar) {
		t.Error("a token that the model lacks:", err)
	}
}

func TestGrammarMatchers(t *testing.T) {
	constraint := grammar(t, must(generate.NewRegexGrammar(sentence)), nil)
	m := matcher(t, constraint)
	vocabulary := story.Tokenizer()
	check := func(m *generate.GrammarMatcher, text string) {
		t.Helper()
		mask := must(m.Mask())
		for id := 0; id < vocabulary.VocabSize(); id++ {
			piece := must(vocabulary.Piece(int32(id)))
			want := len(piece) > 0 && begins(text+string(piece))
			if mask.Has(id) != want {
				t.Errorf("behind %q token %d, %q: %v", text, id, piece, mask.Has(id))
			}
		}
		bytes := must(m.ValidBytes())
		for b := 0; b < 256; b++ {
			if bytes.Has(b) != begins(text+string([]byte{byte(b)})) {
				t.Errorf("behind %q byte %d: %v", text, b, bytes.Has(b))
			}
		}
	}
	check(m, "")
	ok(t, m.AcceptBytes([]byte("The ca")))
	check(m, "The ca")
	fork := must(m.Fork())
	defer fork.Close()
	ok(t, m.AcceptBytes([]byte("t")))
	for _, id := range must(vocabulary.Encode(" ran", generate.Continue)) {
		ok(t, m.AcceptToken(id))
	}
	check(m, "The cat ran")
	check(fork, "The ca")
	if err := m.AcceptText("?"); !errors.Is(err, generate.ErrGrammar) {
		t.Error(err)
	}
	equal(t, "complete", m.Complete() || m.Finished(), false)
	ok(t, m.AcceptBytes([]byte(".")))
	equal(t, "complete", m.Complete() && m.Finished(), true)
	equal(t, "min tokens", must(m.MinTokens()), 0)
	mask := must(m.Mask())
	equal(t, "the end", mask.Has(int(vocabulary.Special(generate.EOS))), true)
	ok(t, m.AcceptToken(vocabulary.Special(generate.EOS)))
	ok(t, m.Rollback(2))
	check(m, "The cat ran")
	// Nothing but a full stop, in one token.
	equal(t, "min tokens", must(m.MinTokens()), 1)
	equal(t, "forced where two tokens are a full stop", len(must(m.Forced())), 0)
	if err := m.Rollback(100); !errors.Is(err, generate.ErrOutOfRange) {
		t.Error(err)
	}
	if err := m.Rollback(-1); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	for _, id := range []int32{-1, 1 << 20} {
		if err := m.AcceptToken(id); !errors.Is(err, generate.ErrOutOfRange) {
			t.Error(err)
		}
	}
	if err := m.FillMask(mask[:3]); !errors.Is(err, generate.ErrOutOfRange) {
		t.Error(err)
	}
	ok(t, m.Reset())
	check(m, "")

	strings := []string{"cat", "", " cat", " dragon", " o", " \x00", " old hen sat."}
	possible := must(constraint.TokenMask("The", strings))
	for i, s := range strings {
		equal(t, s, possible.Has(i), s != "" && begins("The"+s))
	}
	equal(t, "beyond", possible.Has(len(strings)) || possible.Has(-1) || possible.Has(1000), false)
	equal(t, "none", len(must(constraint.TokenMask("The", nil))), 0)
	must(constraint.TokenMask("The", []string{""}))
	if _, err := constraint.TokenMask("They", strings); !errors.Is(err, generate.ErrGrammar) {
		t.Error(err)
	}
}

// What a stream tells at each piece is what a result tells of them all.
func TestStreamsTellAlternatives(t *testing.T) {
	g := generator(t)
	settings := []generate.SamplingOption{generate.WithMaxTokens(4), generate.WithLogprobs(3), generate.WithGumbel(true),
		generate.WithLogitsFunction(0, 0)}
	whole := must(g.Generate(context.Background(), "a", settings...))
	stream := must(g.Stream(context.Background(), "a", settings...))
	defer stream.Close()
	for i := 0; stream.Next(); i++ {
		if stream.Token().Done {
			equal(t, "none", len(stream.Alternatives()), 0)
			continue
		}
		equal(t, "alternatives", fmt.Sprint(stream.Alternatives()), fmt.Sprint(whole.TopLogprobs[i]))
	}
	equal(t, "after the end", len(stream.Alternatives()), 0)
}

func TestGrammarErrorsNameThePlace(t *testing.T) {
	for what, err := range map[string]error{
		"line 2":   errorOf(generate.NewGrammar("root ::= a\na ::= (\"b\"")),
		"column 3": errorOf(generate.NewRegexGrammar("ab(")),
		"column 8": errorOf(generate.NewLarkGrammar("start: (")),
		"column 9": errorOf(generate.NewTagsGrammar(`{"tags":1}`)),
		"below":    errorOf(generate.NewGrammar("root ::= below")),
	} {
		if !errors.Is(err, generate.ErrGrammar) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := generate.NewAnyJSONGrammar(generate.WithGrammarSetting("max_edges", "3")); !errors.Is(err, generate.ErrGrammar) {
		t.Error(err)
	}
	if _, err := generate.NewAnyJSONGrammar(generate.WithGrammarSetting("colour", "red")); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if description := must(generate.DescribeGrammarOptions(generate.WithRegexSearch(true))); !strings.Contains(description, `"value":"search"`) {
		t.Error(description)
	}
	whole := grammar(t, must(generate.NewRegexGrammar("b", generate.WithRegexSearch(false))), nil)
	search := grammar(t, must(generate.NewRegexGrammar("b", generate.WithRegexSearch(true))), nil)
	equal(t, "whole", must(whole.TokenMask("", []string{"a"})).Has(0), false)
	equal(t, "search", must(search.TokenMask("", []string{"a"})).Has(0), true)

	tags := matcher(t, grammar(t, must(generate.NewTagsGrammar(`{"tags":[{"begin":"<é>","regex":"[0-9]+","end":"."}]}`)), nil))
	ok(t, tags.AcceptText("free <é>12"))
	if err := tags.AcceptText("x"); !errors.Is(err, generate.ErrGrammar) {
		t.Error(err)
	}
	ok(t, tags.AcceptText(". free"))

	sums := matcher(t, grammar(t, must(generate.NewLarkGrammar("start: N (\"+\" N)*\nN: /[0-9]+/\n%ignore \" \"")), nil))
	ok(t, sums.AcceptText("12 + 3"))
	if err := sums.AcceptText("x"); !errors.Is(err, generate.ErrGrammar) {
		t.Error(err)
	}

	json := grammar(t, must(generate.NewAnyJSONGrammar()), nil)
	m := matcher(t, json)
	ok(t, m.AcceptText(`{"a": [1, 2`))
	if err := m.AcceptText("}"); !errors.Is(err, generate.ErrGrammar) {
		t.Error(err)
	}
	ok(t, m.AcceptText("]}"))
	equal(t, "complete", m.Complete(), true)
	equal(t, "nothing follows", m.Finished(), true)
	if _, err := json.NewMatcher(nil); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestGrammarsThatAreClosed(t *testing.T) {
	g := generator(t)
	constraint := must(generate.NewRegexGrammar(sentence))
	m := must(constraint.NewMatcher(story.Tokenizer()))
	ok(t, m.AcceptText("A "))
	using := generate.WithGrammar(constraint)
	ok(t, constraint.Close())
	ok(t, constraint.Close())
	ok(t, m.AcceptText("dog"))
	at := generate.WithGrammarMatcher(m)
	fork := must(m.Fork())
	ok(t, m.Close())
	ok(t, fork.AcceptText(" sat."))
	equal(t, "the fork", fork.Finished(), true)
	ok(t, fork.Close())
	for what, err := range map[string]error{
		"describe": errorOf(constraint.Describe()), "matcher": errorOf(constraint.NewMatcher(story.Tokenizer())),
		"strings": errorOf(constraint.TokenMask("", nil)), "text": m.AcceptText(" "), "token": m.AcceptToken(1),
		"mask": errorOf(m.Mask()), "bytes": errorOf(m.ValidBytes()), "rollback": m.Rollback(1), "fork": errorOf(m.Fork()),
		"reset": m.Reset(), "forced": errorOf(m.Forced()), "min tokens": errorOf(m.MinTokens()),
		"generate": errorOf(g.Generate(ctx, "a", using)), "go on": errorOf(g.Generate(ctx, "a", at)),
	} {
		if !errors.Is(err, generate.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "complete", m.Complete() || m.Finished(), false)
}
