// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// Grammar is which texts are allowed, see WithGrammar. Any number of goroutines may use one.
type Grammar struct{ object }

func (g *Grammar) pointer() *object {
	if g == nil {
		return nil
	}
	return &g.object
}

// GrammarOption says how to make a grammar.
type GrammarOption func(options uintptr) error

// WithRegexSearch(true) lets texts be members that hold a match of a regular expression; without it all of a text must match.
func WithRegexSearch(on bool) GrammarOption {
	match := "whole"
	if on {
		match = "search"
	}
	return WithGrammarSetting("regex_match", match)
}

// WithGrammarSetting sets an option by its name, see DescribeGrammarOptions.
func WithGrammarSetting(key, value string) GrammarOption {
	return func(o uintptr) error { return native.GenGrammarOptionsSet(o, key, value) }
}

// WithSchemaDocument gives a document to which "$ref" of JSON Schemas may point, by its URI; nothing is fetched.
func WithSchemaDocument(uri, schema string) GrammarOption {
	return func(o uintptr) error { return native.GenGrammarOptionsAddSchema(o, uri, schema) }
}

// DescribeGrammarOptions lists all options as JSON, with the values that these give.
func DescribeGrammarOptions(options ...GrammarOption) (description string, err error) {
	err = build(described(options), native.GenGrammarOptionsNew, native.GenGrammarOptionsFree, func(o uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenGrammarOptionsDescribe(o, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// NewGrammar makes a grammar from GBNF, the notation of llama.cpp: rules like `root ::= "yes" | "no"`, of which root is the
// whole text. An error is an ErrGrammar that names line and column.
func NewGrammar(gbnf string, options ...GrammarOption) (*Grammar, error) {
	return newGrammar(options, func(o uintptr, out []uintptr) error { return native.GenGrammarFromGbnf(gbnf, o, out) })
}

// NewLarkGrammar makes a grammar from a Lark file in llguidance's dialect, of which the rule start is the whole text;
// gen_grammar_from_lark of grammar.h describes it. An error is an ErrGrammar that names line and column.
func NewLarkGrammar(text string, options ...GrammarOption) (*Grammar, error) {
	return newGrammar(options, func(o uintptr, out []uintptr) error { return native.GenGrammarFromLark(text, o, out) })
}

// NewRegexGrammar makes a grammar from a regular expression in JavaScript's syntax, without slashes and flags. It is not one of
// package regexp: it knows lookaround, and a class like \w is that of JavaScript.
func NewRegexGrammar(pattern string, options ...GrammarOption) (*Grammar, error) {
	return newGrammar(options, func(o uintptr, out []uintptr) error { return native.GenGrammarFromRegex(pattern, o, out) })
}

// NewTagsGrammar makes the grammar of free text with constrained sections, such as tool calls, from a JSON object like
// {"tags": [{"begin": "<add>", "regex": "[0-9]+", "end": "</add>"}]}; gen_grammar_from_tags of grammar.h tells all there can be.
func NewTagsGrammar(tags string, options ...GrammarOption) (*Grammar, error) {
	return newGrammar(options, func(o uintptr, out []uintptr) error { return native.GenGrammarFromTags(tags, o, out) })
}

// NewSchemaGrammar makes the grammar of the JSON texts that are valid under a JSON Schema, of draft 4 to 2020-12. What
// cannot be kept exactly is an ErrGrammar that names the keyword's JSON pointer.
func NewSchemaGrammar(schema string, options ...GrammarOption) (*Grammar, error) {
	return newGrammar(options, func(o uintptr, out []uintptr) error { return native.GenGrammarFromJsonSchema(schema, o, out) })
}

// NewAnyJSONGrammar makes the grammar of any JSON value.
func NewAnyJSONGrammar(options ...GrammarOption) (*Grammar, error) {
	return newGrammar(options, native.GenGrammarAnyJson)
}

func newGrammar(options []GrammarOption, create func(options uintptr, out []uintptr) error) (*Grammar, error) {
	g := new(Grammar)
	err := build(options, native.GenGrammarOptionsNew, native.GenGrammarOptionsFree, func(o uintptr) error {
		return g.take(kindGrammar, native.GenGrammarFree, func(out []uintptr) error { return create(o, out) })
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Describe describes the grammar as JSON: its kind, the states of its automata, their memory.
func (g *Grammar) Describe() (description string, err error) {
	err = g.with(func(a uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenGrammarDescribe(a, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// Mask is a set of tokens, bytes or strings by their number: 32 in each element, the lowest bit first.
type Mask []uint32

// Has tells whether i is in the set.
func (m Mask) Has(i int) bool { return i >= 0 && i/32 < len(m) && m[i/32]>>(i%32)&1 != 0 }

func newMask(n int) Mask { return make(Mask, (n+31)/32+1)[:(n+31)/32] } // never without an address

// TokenMask tells which strings, such as a vocabulary of the caller's, may follow a text. It is meant for a few positions: a matcher
// is far faster over many.
func (g *Grammar) TokenMask(text string, strings []string) (Mask, error) {
	total := 0
	lengths := make([]int, len(strings), len(strings)+1)
	for i, s := range strings {
		lengths[i] = len(s)
		total += len(s)
	}
	all := make([]byte, 0, total+1)
	for _, s := range strings {
		all = append(all, s...)
	}
	mask := newMask(len(strings))
	err := g.with(func(a uintptr) error {
		return native.GenBindingTokenMask(a, text, all, lengths, len(lengths), mask, len(mask))
	})
	if err != nil {
		return nil, err
	}
	return mask, nil
}

// WithGrammar has the text of the call be a member of the grammar; nil allows any text. The model can end it only where it is
// one. Any other end, above all WithMaxTokens, can leave a text that is none yet. The grammar must be open when the call
// begins, not longer.
func WithGrammar(grammar *Grammar) SamplingOption {
	return func(s uintptr) error {
		return grammar.pointer().optional(func(a uintptr) error { return native.GenSamplingSetGrammar(s, a) })
	}
}

// WithGrammarMatcher is WithGrammar for a text that goes on where the matcher stands when the call begins, which leaves it
// there; it must be over the model's tokenizer.
func WithGrammarMatcher(matcher *GrammarMatcher) SamplingOption {
	return func(s uintptr) error {
		return matcher.pointer().optional(func(a uintptr) error { return native.GenSamplingSetGrammarMatcher(s, a) })
	}
}
