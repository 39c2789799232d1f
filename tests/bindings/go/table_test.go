// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"libgenerate.dev/generate"
)

func TestTableTexts(t *testing.T) {
	for _, want := range table.Texts {
		t.Run(want.Name, func(t *testing.T) {
			var options []generate.GeneratorOption
			for key, value := range want.Options {
				options = append(options, generate.WithGeneratorSetting(key, value))
			}
			g := generator(t, options...)
			check := func(how string, r *generate.Result, err error) {
				t.Helper()
				ok(t, err)
				equals(t, how+" tokens", r.Tokens, want.Tokens)
				equal(t, how+" text", r.Text, want.Text)
				equal(t, how+" reason", r.FinishReason.String(), want.FinishReason)
				equal(t, how+" prompt", r.Usage.Prompt, want.PromptTokens)
				equal(t, how+" completion", r.Usage.Completion, want.CompletionTokens)
			}
			r, err := g.Generate(ctx, want.Prompt, settings(want.Sampling)...)
			check("generate", r, err)

			stream, err := g.Stream(ctx, want.Prompt, settings(want.Sampling)...)
			ok(t, err)
			var text strings.Builder
			n, err := stream.WriteTo(&text)
			check("stream", stream.Result(), err)
			equal(t, "written", text.String(), want.Text)
			equal(t, "bytes written", n, int64(len(want.Text)))

			results, err := g.Batch(ctx, []generate.Request{{Prompt: want.Prompt, Sampling: settings(want.Sampling)},
				{Prompt: "The", Sampling: []generate.SamplingOption{greedy, generate.WithMaxTokens(3)}}})
			ok(t, err)
			check("batch", results[0], results[0].Err)
		})
	}
}

func TestTableTokenizer(t *testing.T) {
	loaded, err := generate.LoadTokenizer(storyPath(), generate.WithThreads(1))
	ok(t, err)
	defer loaded.Close()
	if _, err := generate.LoadTokenizer(storyPath(), generate.WithModelSetting("pre_tokenizer", "qwen2")); err == nil {
		t.Error("a pre-tokenizer for a vocabulary that has none")
	}
	for _, tokenizer := range []*generate.Tokenizer{story.Tokenizer(), loaded} {
		for _, want := range table.Tokenizer {
			var flags generate.EncodeFlags
			if want.AddBOS {
				flags = generate.AddBOS
			}
			ids, err := tokenizer.Encode(want.Text, flags)
			ok(t, err)
			equals(t, want.Text, ids, want.IDs)
			text, err := tokenizer.Decode(ids)
			ok(t, err)
			equal(t, "decoded", text, want.Decoded)
			var pieces []byte
			for _, id := range ids {
				piece, err := tokenizer.Piece(id)
				ok(t, err)
				if id >= 5 {
					pieces = append(pieces, piece...)
				}
			}
			if !strings.HasSuffix(string(pieces), want.Decoded) {
				t.Errorf("the pieces of %q are %q", want.Text, pieces)
			}
		}
		equal(t, "vocabulary", tokenizer.VocabSize(), 4096)
		equal(t, "bos", tokenizer.Special(generate.BOS), 1)
		equal(t, "no such kind", tokenizer.Special(99), -1)
	}
}

func TestTableStreams(t *testing.T) {
	for _, want := range table.Streams {
		var g *generate.Generator
		if want.Model == "" {
			g = generator(t)
		} else {
			g = custom(t, want.Model)
		}
		s := session(t, g)
		check := func(i int, got generate.Token) {
			t.Helper()
			if i >= len(want.Pieces) {
				t.Fatalf("%d pieces, want %d", i+1, len(want.Pieces))
			}
			equal(t, "id", got.ID, want.Pieces[i].ID)
			equal(t, "text", got.Text, want.Pieces[i].Text)
			equal(t, "done", got.Done, want.Pieces[i].Done)
			if !utf8.ValidString(got.Text) {
				t.Errorf("%q is no text", got.Text)
			}
		}

		stream, err := s.Stream(ctx, want.Prompt, settings(want.Sampling)...)
		ok(t, err)
		n := 0
		for ; stream.Next(); n++ {
			check(n, stream.Token())
		}
		ok(t, stream.Err())
		equal(t, "pieces", n, len(want.Pieces))
		if stream.Next() || stream.Err() != nil {
			t.Error("a stream went on after its end")
		}

		// As a channel, and on the same session: one that came to its end holds nothing.
		ok(t, s.Reset())
		stream, err = s.Stream(ctx, want.Prompt, settings(want.Sampling)...)
		ok(t, err)
		n = 0
		for token := range stream.Tokens() {
			check(n, token)
			n++
		}
		ok(t, stream.Err())
		equal(t, "pieces of the channel", n, len(want.Pieces))
		equal(t, "whole", len(stream.Result().Tokens), len(want.Pieces)-1)

		// Polled, together with another.
		batch, err := g.BatchStream(ctx, []generate.Request{{Prompt: "b", Sampling: settings(want.Sampling)},
			{Prompt: want.Prompt, Sampling: settings(want.Sampling)}})
		ok(t, err)
		var at [2]int
		for batch.Next() {
			if batch.Index() == 1 {
				check(at[1], batch.Token())
			}
			at[batch.Index()]++
		}
		equal(t, "pieces of the batch", at[1], len(want.Pieces))
		for _, r := range batch.Results() {
			ok(t, r.Err)
		}
		ok(t, batch.Close())
	}
}

func TestTableSession(t *testing.T) {
	g := generator(t)
	s := session(t, g)
	var state []byte
	path := t.TempDir() + "/state"
	for i, step := range table.Session.Steps {
		switch step.Do {
		case "append":
			ok(t, s.Append(ctx, step.Prompt))
		case "generate":
			r, err := s.Generate(ctx, step.Prompt, settings(table.Session.Sampling)...)
			ok(t, err)
			equal(t, "text", r.Text, step.Text)
		case "truncate":
			ok(t, s.Truncate(step.N))
		case "reset":
			var err error
			state, err = s.SaveBytes()
			ok(t, err)
			ok(t, s.Save(path))
			ok(t, s.Reset())
		case "load what was saved before the reset":
			ok(t, s.LoadBytes(state))
			file := session(t, g)
			ok(t, file.Load(path))
			held, err := file.Tokens()
			ok(t, err)
			equals(t, "held by the file", held, step.Held)
		default:
			t.Fatalf("step %d: what is %q?", i, step.Do)
		}
		equal(t, "length", s.Length(), step.Length)
		held, err := s.Tokens()
		ok(t, err)
		equals(t, "held", held, step.Held)
	}
}

func TestTableStatuses(t *testing.T) {
	for _, want := range table.Statuses {
		g := custom(t, want.Model)
		check := func(how string, r *generate.Result, err error) {
			t.Helper()
			var e *generate.Error
			if !errors.As(err, &e) {
				t.Fatalf("%s of %s: %v", how, want.Model, err)
			}
			equal(t, how+" code", e.Code, want.Code)
			equal(t, how+" name", e.Code.String(), want.Name)
			equal(t, how+" message", e.Message, want.Message)
			equal(t, "Error()", e.Error(), "generate: "+want.Message)
			for code, sentinel := range sentinels {
				equal(t, how+" is "+code.String(), errors.Is(err, sentinel), code == want.Code)
			}
			if r != nil {
				equal(t, how+" result has the error", r.Err == err, true)
			}
		}
		r, err := g.Generate(ctx, "a", greedy)
		check("generate", r, err)
		stream, err := g.Stream(ctx, "a", greedy)
		ok(t, err)
		reason := generate.FinishError
		if want.Code == generate.CodeCancelled {
			reason = generate.FinishCancelled
		}
		if !stream.Next() || !stream.Token().Done || stream.Token().FinishReason != reason || stream.Next() {
			t.Error("a failing stream has one piece, that it is done")
		}
		check("stream", stream.Result(), stream.Err())
		s := session(t, g)
		check("append", nil, s.Append(ctx, "a"))
		results, err := g.Batch(ctx, []generate.Request{{Prompt: "a"}})
		ok(t, err)
		check("batch", nil, results[0].Err)
	}
}

var sentinels = map[generate.Code]error{
	generate.CodeInvalidArgument: generate.ErrInvalidArgument, generate.CodeOutOfMemory: generate.ErrOutOfMemory,
	generate.CodeIO: generate.ErrIO, generate.CodeFormat: generate.ErrFormat, generate.CodeUnsupported: generate.ErrUnsupported,
	generate.CodeCacheFull: generate.ErrCacheFull, generate.CodePoolExhausted: generate.ErrPoolExhausted,
	generate.CodeOutOfRange: generate.ErrOutOfRange, generate.CodeSequence: generate.ErrSequence,
	generate.CodeBusy: generate.ErrBusy, generate.CodeCancelled: generate.ErrCancelled, generate.CodeGrammar: generate.ErrGrammar,
	generate.CodeDevice: generate.ErrDevice, generate.CodeContextFull: generate.ErrContextFull,
	generate.CodeState: generate.ErrState, generate.CodeModel: generate.ErrModel, generate.CodeTokenizer: generate.ErrTokenizer,
	generate.CodeInternal: generate.ErrInternal,
}

func TestTableChat(t *testing.T) {
	chat, err := generate.NewChat(table.Chat.Messages...)
	ok(t, err)
	defer chat.Close()
	formatted, err := story.FormatChat(chat, true)
	ok(t, err)
	equal(t, "formatted", formatted, table.Chat.Formatted)
	without, err := story.FormatChat(chat, false)
	ok(t, err)
	if !strings.HasPrefix(formatted, without) || len(without) == len(formatted) {
		t.Errorf("without an opening: %q", without)
	}
	ok(t, chat.Add("user", "<|im_start|>"))
	if _, err = story.FormatChat(chat, true); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err = generate.NewChat(generate.Message{Text: "nobody's"}); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if err = chat.AddToolCall("a\x00b", "f", "{}"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestTableChatSession(t *testing.T) {
	g := generator(t)
	chat, err := generate.NewChat()
	ok(t, err)
	defer chat.Close()
	s, err := g.NewChatSession(chat)
	ok(t, err)
	defer s.Close()
	options := settings(table.ChatSession.Sampling)
	for i, step := range table.ChatSession.Steps {
		var r *generate.Result
		var err error
		switch step.Do {
		case "template":
			err = chat.SetTemplate(step.Text)
		case "tool":
			err = chat.AddTool(step.Text)
		case "variable":
			err = chat.SetVariable(step.Name, step.Text)
		case "time":
			now, parsed := time.Parse("2006-01-02T15:04:05", step.Text)
			ok(t, parsed)
			err = chat.SetTime(now)
		case "message":
			err = chat.Add(step.Role, step.Text)
		case "name":
			err = chat.SetName(step.Text)
		case "reasoning":
			err = chat.SetReasoning(step.Text)
		case "tool_call":
			err = chat.AddToolCall(step.ID, step.Name, step.Text)
		case "tool_result":
			err = chat.AddToolResult(step.ID, step.Name, step.Text)
		case "send":
			stream, failed := s.Stream(ctx, step.Text, options...)
			ok(t, failed)
			equal(t, "a piece", stream.Next(), true)
			if err := chat.Add("user", ""); !errors.Is(err, generate.ErrBusy) {
				t.Error(err)
			}
			stream.Close()
			ok(t, chat.Truncate(-2))
			r, err = s.Send(ctx, step.Text, options...)
		case "truncate":
			ok(t, chat.Add("user", "Forget this."))
			ok(t, chat.Truncate(step.Length))
			var described string
			described, err = chat.Describe()
			equal(t, "description", described, step.Text)
		case "answer":
			plain := session(t, g)
			ok(t, plain.AppendChat(ctx, chat, true))
			encoded, failed := story.EncodeChat(chat, true)
			ok(t, failed)
			held, failed := plain.Tokens()
			ok(t, failed)
			equals(t, "held by a plain session", held, encoded)
			byHand, failed := plain.Generate(ctx, "", options...)
			ok(t, failed)
			equal(t, "its answer", byHand.Text, step.Answer)
			_, err = s.Answer(ctx, options...)
			ok(t, err)
			ok(t, chat.Truncate(-1))
			stream, failed := s.StreamAnswer(ctx, options...)
			ok(t, failed)
			var pieces strings.Builder
			for stream.Next() {
				for _, piece := range stream.Token().Pieces {
					pieces.WriteString(piece.Text)
				}
			}
			r, err = stream.Result(), stream.Err()
			equal(t, "pieces", pieces.String(), step.Answer)
		default:
			t.Fatalf("step %d: what is %q?", i, step.Do)
		}
		ok(t, err)
		if r == nil {
			continue
		}
		equal(t, "answer", r.Text, step.Answer)
		equal(t, "length", s.Length(), step.Length)
		tokens, err := story.EncodeChat(chat, false)
		ok(t, err)
		equals(t, "the conversation", tokens, step.Tokens)
	}
	equal(t, "progress", s.Progress(), 1.0)
}

func TestTableTemplate(t *testing.T) {
	template, err := generate.NewTemplate(table.Template.Template)
	ok(t, err)
	defer template.Close()
	text, err := template.Render(table.Template.Request)
	ok(t, err)
	var rendered struct{ Text string }
	ok(t, json.Unmarshal([]byte(text), &rendered))
	equal(t, "rendered", rendered.Text, table.Template.Rendered.Text)
	if _, err = generate.NewTemplate("{% if %}"); !errors.Is(err, generate.ErrFormat) {
		t.Error(err)
	}
	own, err := story.Tokenizer().Template()
	ok(t, err)
	defer own.Close()
	text, err = own.Render(table.Template.Request)
	ok(t, err)
	ok(t, json.Unmarshal([]byte(text), &rendered))
	if !strings.HasPrefix(rendered.Text, "<|im_start|>user\n<|im_end|>") {
		t.Error(rendered.Text)
	}
}

func TestTableDrafts(t *testing.T) {
	draft, err := generate.LoadModel(source("examples/demo_model/draft.gguf"))
	ok(t, err)
	defer draft.Close()
	for _, want := range table.Drafts {
		t.Run(want.Name, func(t *testing.T) {
			var options []generate.GeneratorOption
			for key, value := range want.Options {
				options = append(options, generate.WithGeneratorSetting(key, value))
			}
			if want.DraftLength > 0 {
				options = append(options, generate.WithSpeculativeDraft(draft, want.DraftLength))
			}
			r, err := generator(t, options...).Generate(ctx, want.Prompt, settings(want.Sampling)...)
			ok(t, err)
			equals(t, "tokens", r.Tokens, want.Tokens)
			equal(t, "drafted", r.Usage.Drafted, want.Drafted)
			equal(t, "accepted", r.Usage.Accepted, want.Accepted)
			drafted, accepted := 0, 0
			for _, pass := range r.Drafts {
				drafted += len(pass.Tokens)
				accepted += len(pass.Accepted)
				for i, at := range pass.Accepted {
					if pass.Index+i == len(r.Tokens) {
						break // a stop token
					}
					equal(t, "accepted token", pass.Tokens[at], r.Tokens[pass.Index+i])
				}
			}
			equal(t, "drafts", drafted, want.Drafted)
			equal(t, "accepted drafts", accepted, want.Accepted)
		})
	}
}

func TestTableSeveral(t *testing.T) {
	want, g := table.Several, generator(t)
	results, err := g.GenerateN(ctx, want.Prompt, want.N, want.BestOf, settings(want.Sampling)...)
	ok(t, err)
	equal(t, "texts", len(results), len(want.Texts))
	for i, r := range results {
		equal(t, "text", r.Text, want.Texts[i])
	}
	if _, err = g.GenerateN(ctx, "a", 3, 2); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err = story.Tokenizer().EncodeFillInMiddle("a", "b", 0); !errors.Is(err, generate.ErrUnsupported) {
		t.Error(err)
	}
}

// toolFunctions are the tools of the table; the last one cancels the agent.
func toolFunctions(cancel func()) map[string]generate.ToolFunc {
	return map[string]generate.ToolFunc{
		"add": func(_ context.Context, call generate.ToolCall) (string, error) {
			var numbers struct{ A, B int }
			err := json.Unmarshal(call.Arguments, &numbers)
			return strconv.Itoa(numbers.A + numbers.B), err
		},
		"fail": func(context.Context, generate.ToolCall) (string, error) { return "", errors.New("no") },
		"echo": func(_ context.Context, call generate.ToolCall) (string, error) {
			var arguments struct{ Text string }
			err := json.Unmarshal(call.Arguments, &arguments)
			return arguments.Text, err
		},
		"stop": func(told context.Context, _ generate.ToolCall) (string, error) {
			cancel()
			<-told.Done()
			return "told", nil
		},
	}
}

func TestTableTools(t *testing.T) {
	for _, want := range table.Tools.Rows {
		t.Run(want.Name, func(t *testing.T) {
			running, cancel := context.WithCancel(ctx)
			defer cancel()
			tools := must(generate.NewTools())
			defer tools.Close()
			for name, run := range toolFunctions(cancel) {
				ok(t, tools.Add(name, "", table.Tools.Functions[name], run))
			}
			equal(t, "tools", tools.Len(), len(table.Tools.Functions))
			var options []generate.AgentOption
			for key, value := range want.Options {
				options = append(options, generate.WithAgentSetting(key, value))
			}
			agent := must(generate.NewAgent(tools, options...))
			defer agent.Close()
			for _, step := range want.Steps {
				finished, err := agent.StepOutput(running, step.Output)
				ends := 0
				var e *generate.Error
				if errors.As(err, &e) {
					ends = int(e.Code)
				} else if finished {
					ends = 1
				}
				equal(t, "the end of "+step.Output, ends, step.Ends)
			}
			var record any
			ok(t, json.Unmarshal(must(json.Marshal(must(agent.Describe()))), &record))
			if !reflect.DeepEqual(record, want.Record) {
				t.Errorf("the record is %v, not %v", record, want.Record)
			}
		})
	}
}

func TestTableHasEverything(t *testing.T) {
	if len(table.Texts) < 9 || len(table.Streams) < 2 || len(table.Statuses) < 19 || len(table.Session.Steps) < 8 ||
		len(table.Tokenizer) < 8 || len(table.Chat.Messages) < 2 || len(table.ChatSession.Steps) < 11 || len(table.Several.Texts) < 2 ||
		len(table.Drafts) < 4 || len(table.Tools.Rows) < 9 {
		t.Error("the table lacks something")
	}
	if _, err := os.Stat(storyPath()); err != nil {
		t.Error(err)
	}
}
