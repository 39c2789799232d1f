// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"strings"
	"testing"

	"libgenerate.dev/generate"
)

type address struct {
	Street string `json:"street"`
	Number uint8
}

type person struct {
	Name    string            `json:"name"`
	Age     int8              `json:"age"`
	Height  float64           `json:"height,omitempty"`
	Tags    []string          `json:"tags"`
	Home    *address          `json:"home"`
	Pair    [2]bool           `json:"pair,omitempty"`
	Notes   map[string]int16  `json:"notes,omitempty"`
	Friends []person          `json:"friends,omitempty"`
	Hidden  func()            `json:"-"`
	secret  int
	address
}

func accepts(t *testing.T, g *generate.Grammar, text string) bool {
	m := matcher(t, g)
	return m.AcceptText(text) == nil && m.Complete()
}

// What the schema of a type allows is what encoding/json makes of its values, and decodes.
func TestSchemasOfTypes(t *testing.T) {
	schema, err := generate.SchemaOf[person]()
	ok(t, err)
	made, err := generate.NewSchemaGrammar(schema)
	g := grammar(t, made, err)
	people := []person{
		{Tags: []string{}},
		{Name: "é\"", Age: -128, Tags: []string{"a", ""}, Home: &address{"x", 255}, Notes: map[string]int16{"n": 7},
			Friends: []person{{Name: "b", Tags: []string{}}}, Height: 1.5e-7, address: address{"s", 1}},
	}
	for _, p := range people {
		text, err := json.Marshal(p)
		ok(t, err)
		if !accepts(t, g, string(text)) {
			t.Errorf("%s is refused", text)
		}
	}
	for _, text := range []string{`{}`, `{"name":"","age":128,"tags":[],"home":null,"street":"","Number":0}`,
		`{"name":"","age":1.0,"tags":[],"home":null,"street":"","Number":0}`,
		`{"name":"","age":1,"tags":[],"home":null,"street":"","Number":0,"other":1}`,
		`{"name":"","age":1,"tags":[],"home":null,"street":"","Number":256}`} {
		if accepts(t, g, text) {
			t.Errorf("%s is taken", text)
		}
	}
	type wrong struct{ C []chan int }
	if _, err := generate.SchemaOf[wrong](); err == nil || !strings.Contains(err.Error(), "field C") {
		t.Errorf("a channel: %v", err)
	}
	if _, err := generate.SchemaOf[map[int]string](); err == nil {
		t.Error("a map by numbers has a schema")
	}
}

// What a model writes under the schema decodes into the type.
func TestGeneratedTextsDecode(t *testing.T) {
	type small struct {
		Kind  bool       `json:"kind"`
		Count int16      `json:"count"`
		Parts [2]struct {
			On bool `json:"on"`
		} `json:"parts"`
	}
	schema, err := generate.SchemaOf[small]()
	ok(t, err)
	made, err := generate.NewSchemaGrammar(schema)
	g := grammar(t, made, err)
	writer := generator(t)
	for seed := uint64(0); seed < 5; seed++ {
		r := must(writer.Generate(ctx, "Once", generate.WithSampling(generate.WithGrammar(g), generate.WithMaxTokens(160)),
			generate.WithSeed(seed), generate.WithTemperature(2)))
		text := r.Text
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		var value small
		if err := decoder.Decode(&value); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if place := strings.Index(text, "count"); place < strings.Index(text, "kind") {
			t.Errorf("%s is in another order", text)
		}
	}
}
