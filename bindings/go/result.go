// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"time"
	"unsafe"

	"libgenerate.dev/generate/internal/native"
)

// FinishReason says why a generation ended. Numbers are those of the C library and never change.
type FinishReason int32

// Reasons.
const (
	FinishNone            FinishReason = 0
	FinishStopToken       FinishReason = 1
	FinishStopString      FinishReason = 2
	FinishLength          FinishReason = 3
	FinishContextFull     FinishReason = 4
	FinishGrammarComplete FinishReason = 5
	FinishGrammarDeadEnd  FinishReason = 6
	FinishCancelled       FinishReason = 7
	FinishCallback        FinishReason = 8
	FinishError           FinishReason = 9
)

func (r FinishReason) String() string {
	names := [...]string{"none", "stop_token", "stop_string", "length", "context_full", "grammar_complete",
		"grammar_dead_end", "cancelled", "callback", "error"}
	if r < 0 || int(r) >= len(names) {
		return "unknown"
	}
	return names[r]
}

// Result is the outcome of a generation, also of one that was cancelled or failed halfway. It is a plain value.
type Result struct {
	Text         string // whole characters, without the prompt, stop token and stop string
	Tokens       []int32
	Logprobs     []float32      // of Tokens, with WithLogprobs
	TopLogprobs  [][]TopLogprob // at each step, with WithLogprobs above 0
	FinishReason FinishReason
	Usage        Usage
	Timings      Timings
	Drafts       []DraftedPass // passes that had drafts to verify
	Answer       Answer        // what a chat session read in the text; else all of it is text
	Err          error         // what ended it, if that was an error
}

// Answer is what a chat session read in an answer.
type Answer struct {
	Text      string
	Reasoning string
	Calls     []ToolCall
	Faults    []Fault // what looked like a call but is none
}

// ToolCall is a call of a tool in an answer. The ID is empty if the model wrote none; the conversation has one for each.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object
}

// Fault says what is wrong at a byte of an answer.
type Fault struct {
	At   int
	What string
}

// TopLogprob is one of the most probable tokens at a step.
type TopLogprob struct {
	Token   int32
	Logprob float32
}

// Usage is numbers of tokens.
type Usage struct {
	Prompt       int // with begin-of-sequence
	PromptCached int // of these, not computed anew
	// Tokens that ran before the first one was drawn, earlier ones that ran again included.
	PromptEvaluated int
	Completion      int
	Dropped         int // oldest tokens of the session that made room
	Drafted         int // draft tokens that were verified
	Accepted        int // of these, accepted ones
	// Not a number of tokens: 1 if what was drawn is a member of the call's grammar, 0 if it is cut before it is one,
	// -1 without a grammar.
	GrammarComplete int
}

// DraftedPass is what was drafted for a pass, and what of it the model confirmed.
type DraftedPass struct {
	Index    int     `json:"index"`   // of the first drafted token among the Tokens of the result
	Drafter  string  `json:"drafter"` // lookup, suffix, head, model or layers
	Tokens   []int32 `json:"tokens"`
	Parents  []int   `json:"parents"`  // of each token, in Tokens; -1 for the text
	Grades   []int   `json:"grades"`   // the drafter's classes of confidence
	Accepted []int   `json:"accepted"` // places in Tokens, in order
}

// Timings is how long a generation took.
type Timings struct {
	Prefill, FirstToken, Decode, Total time.Duration
}

// borrowed copies n elements of memory that the library lends.
func borrowed[T any](address uintptr, n int) []T {
	if address == 0 || n == 0 {
		return nil
	}
	copied := make([]T, n)
	bytes := n * int(unsafe.Sizeof(copied[0]))
	native.GenBindingCopy(int64(address), bytes, unsafe.Slice((*byte)(unsafe.Pointer(&copied[0])), bytes))
	return copied
}

// takeResult makes a Go value of a gen_result and frees that; nil for 0.
func takeResult(address uintptr) *Result {
	if address == 0 {
		return nil
	}
	defer native.GenResultFree(address)
	r := &Result{FinishReason: FinishReason(native.GenResultFinishReason(address))}
	var n [1]int
	bytes := native.GenResultText(address, n[:])
	r.Text = string(borrowed[byte](bytes, n[0]))
	tokens := native.GenResultTokens(address, n[:])
	r.Tokens = borrowed[int32](tokens, n[0])
	logprobs := native.GenResultLogprobs(address, n[:])
	if r.Logprobs = borrowed[float32](logprobs, n[0]); r.Logprobs != nil {
		r.topLogprobs(address)
	}
	for _, field := range [...]struct {
		key   string
		value *int
	}{
		{"prompt", &r.Usage.Prompt}, {"prompt_cached", &r.Usage.PromptCached}, {"prompt_evaluated", &r.Usage.PromptEvaluated},
		{"completion", &r.Usage.Completion}, {"dropped", &r.Usage.Dropped}, {"drafted", &r.Usage.Drafted}, {"accepted", &r.Usage.Accepted},
		{"grammar_complete", &r.Usage.GrammarComplete},
	} {
		var value [1]int64
		if native.GenResultUsage(address, field.key, value[:]) == nil {
			*field.value = int(value[0])
		}
	}
	for _, field := range [...]struct {
		key   string
		value *time.Duration
	}{
		{"prefill", &r.Timings.Prefill}, {"first_token", &r.Timings.FirstToken}, {"decode", &r.Timings.Decode},
		{"total", &r.Timings.Total},
	} {
		var seconds [1]float64
		if native.GenResultTimings(address, field.key, seconds[:]) == nil {
			*field.value = time.Duration(seconds[0] * float64(time.Second))
		}
	}
	if r.Usage.Drafted > 0 {
		r.drafts(address)
	}
	if answer, err := text(func(buffer []byte, capacity int, n []int) error {
		return native.GenResultAnswer(address, buffer, capacity, n)
	}); err != nil || json.Unmarshal([]byte(answer), &r.Answer) != nil {
		r.Answer = Answer{Text: r.Text}
	}
	if code := native.GenBindingResultCode(address); code != 0 {
		r.Err = &Error{Code: Code(code), Message: native.GenBindingResultMessage(address)}
	}
	return r
}

// drafts leaves them out if a pass had no memory for its own.
func (r *Result) drafts(address uintptr) {
	list, err := text(func(buffer []byte, capacity int, n []int) error {
		return native.GenResultDrafts(address, buffer, capacity, n)
	})
	if err == nil && json.Unmarshal([]byte(list), &r.Drafts) != nil {
		r.Drafts = nil
	}
}

func (r *Result) topLogprobs(address uintptr) {
	var ids, logprobs [1]uintptr
	for step := range r.Tokens {
		n := native.GenResultTopLogprobs(address, step, ids[:], logprobs[:])
		if n == 0 {
			return
		}
		r.TopLogprobs = append(r.TopLogprobs, topLogprobsOf(n, ids[0], logprobs[0]))
	}
}

func topLogprobsOf(n int, ids, logprobs uintptr) []TopLogprob {
	if n == 0 {
		return nil
	}
	top := make([]TopLogprob, n)
	tokens, values := borrowed[int32](ids, n), borrowed[float32](logprobs, n)
	for i := range top {
		top[i] = TopLogprob{tokens[i], values[i]}
	}
	return top
}
