// SPDX-License-Identifier: Apache-2.0

// Package tests proves the Go binding: that results are those of C, by the table that all bindings share; that contexts end
// calls; that objects may be closed at any time, in any order; that nothing is left open at the end.
package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libgenerate.dev/generate"
)

var ctx = context.Background()

func source(path string) string { return filepath.Join(os.Getenv("GENERATE_SOURCE"), path) }

func storyPath() string { return source("examples/demo_model/story.gguf") }

// The bundled model, loaded once; nobody closes it but TestMain.
var story *generate.Model

func TestMain(m *testing.M) {
	if scene := os.Getenv("GENERATE_SCENE"); scene != "" {
		play(scene)
		return
	}
	var err error
	if story, err = generate.LoadModel(storyPath()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	story.Close()
	if left := generate.OpenObjects(); len(left) > 0 && code == 0 {
		fmt.Fprintln(os.Stderr, "left open:", left)
		code = 1
	}
	os.Exit(code)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %#v, want %#v", what, got, want)
	}
}

func equals[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: at %d got %#v, want %#v", what, i, got[i], want[i])
			return
		}
	}
}

// generator is closed with the test.
func generator(t testing.TB, options ...generate.GeneratorOption) *generate.Generator {
	t.Helper()
	g, err := story.NewGenerator(options...)
	ok(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}

func session(t testing.TB, g *generate.Generator) *generate.Session {
	t.Helper()
	s, err := g.NewSession()
	ok(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// custom is a generator over a model of test_models.c.
func custom(t testing.TB, name string, options ...generate.GeneratorOption) *generate.Generator {
	t.Helper()
	symbol, err := generate.NativeSymbol(os.Getenv("GENERATE_TEST_MODELS"), name)
	ok(t, err)
	model, err := generate.NewCustomModel(symbol, generate.NewModelConfig(4096, 1<<20), story.Tokenizer())
	ok(t, err)
	defer model.Close()
	g, err := model.NewGenerator(options...)
	ok(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}

var greedy = generate.WithTemperature(0)

func settings(keys map[string]string) (options []generate.SamplingOption) {
	for key, value := range keys {
		options = append(options, generate.WithSetting(key, value))
	}
	return options
}

// table is tests/bindings/scenarios.json.
var table = func() (t struct {
	Texts []struct {
		Name, Prompt, Text string
		Sampling, Options  map[string]string
		Tokens             []int32
		FinishReason       string `json:"finish_reason"`
		PromptTokens       int    `json:"prompt_tokens"`
		CompletionTokens   int    `json:"completion_tokens"`
	}
	Tokenizer []struct {
		Text, Decoded string
		AddBOS        bool `json:"add_bos"`
		IDs           []int32
	}
	Streams []struct {
		Model, Prompt string
		Sampling      map[string]string
		Pieces        []struct {
			ID   int32
			Text string
			Done bool
		}
	}
	Session struct {
		Sampling map[string]string
		Steps    []struct {
			Do, Prompt, Text string
			N, Length        int
			Held             []int32
		}
	}
	Statuses []struct {
		Model, Name, Message string
		Code                 generate.Code
	}
	Chat struct {
		Messages  []generate.Message
		Formatted string
	}
	ChatSession struct {
		Sampling map[string]string
		Steps    []struct {
			Do, Role, ID, Name, Text, Answer string
			Length                           int
			Tokens                           []int32
		}
	} `json:"chat_session"`
	Template struct {
		Template, Request string
		Rendered          struct{ Text string }
	}
	Drafts []struct {
		Name, Prompt      string
		DraftLength       int `json:"draft_length"`
		Sampling, Options map[string]string
		Tokens            []int32
		Drafted, Accepted int
	}
	Several struct {
		Prompt   string
		Sampling map[string]string
		N        int
		BestOf   int `json:"best_of"`
		Texts    []string
	}
	Tools struct {
		Functions map[string]string
		Rows      []struct {
			Name    string
			Options map[string]string
			Steps   []struct {
				Output string
				Ends   int
			}
			Record any
		}
	}
}) {
	text, err := os.ReadFile(source("tests/bindings/scenarios.json"))
	if err == nil {
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		err = decoder.Decode(&t)
	}
	if err != nil {
		panic(err)
	}
	return t
}()
