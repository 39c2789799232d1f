// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"libgenerate.dev/generate/internal/native"
)

// ToolFunc runs a tool, whose arguments fit its schema: it returns the output, or an error that the model is told. The context ends when nobody waits for the
// output any more. It runs on a goroutine of its own, several at once.
type ToolFunc func(ctx context.Context, call ToolCall) (string, error)

// Tools is a set of functions that a model may call. Any number of goroutines and agents may use one. Calls that come after
// Close fail.
type Tools struct {
	object
	desk  desk
	mutex sync.Mutex
	funcs map[string]ToolFunc
}

// NewTools makes an empty set.
func NewTools() (*Tools, error) {
	t := &Tools{funcs: map[string]ToolFunc{}}
	if err := t.take(kindTools, native.GenToolRegistryFree, native.GenToolRegistryNew); err != nil {
		return nil, err
	}
	var err error
	if t.desk, err = newDesk(); err != nil {
		t.Close()
		return nil, err
	}
	t.stop = t.desk.close
	go t.serve()
	return t, nil
}

func (t *Tools) serve() {
	for {
		m, ok := t.desk.next()
		if !ok {
			return
		}
		go t.run(m)
	}
}

func (t *Tools) run(m matter) {
	output, failed := "", true
	defer func() {
		if p := recover(); p != nil {
			output, failed = fmt.Sprintf("tool %q panicked: %v", m.name, p), true
		}
		m.answer(output, failed)
	}()
	t.mutex.Lock()
	run := t.funcs[m.name]
	t.mutex.Unlock()
	if run == nil {
		output = fmt.Sprintf("tool %q not found", m.name)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticks.C:
				if native.GenBindingDeskStopped(m.number) != 0 {
					cancel()
				}
			}
		}
	}()
	defer func() {
		close(over)
		<-watching // it looks at what the answer ends
		cancel()
	}()
	text, err := run(ctx, ToolCall{ID: m.id, Name: m.name, Arguments: json.RawMessage(m.text)})
	if err != nil {
		output = err.Error()
		return
	}
	output, failed = text, false
}

// Add adds a tool. The schema of its arguments is JSON Schema; empty: it has none.
func (t *Tools) Add(name, description, schema string, run ToolFunc) error {
	if err := noNUL(name, description, schema); err != nil {
		return err
	}
	if run == nil {
		return invalid("the function of tool %q is nil", name)
	}
	return t.with(func(a uintptr) error {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		err := native.GenToolRegistryAdd(a, name, description, schema, uintptr(native.GenBindingDeskToolFunction()), t.desk.user())
		if err == nil {
			t.funcs[name] = run
		}
		return err
	})
}

// AddTool adds a function of a struct, whose fields are the arguments of the tool: the schema is SchemaOf[T]. What it returns
// becomes JSON, but a string stays as it is.
func AddTool[T, R any](t *Tools, name, description string, run func(ctx context.Context, arguments T) (R, error)) error {
	schema, err := SchemaOf[T]()
	if err != nil {
		return invalid("tool %q: %v", name, err)
	}
	return t.Add(name, description, schema, func(ctx context.Context, call ToolCall) (string, error) {
		var arguments T
		if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
			return "", err
		}
		result, err := run(ctx, arguments)
		if err != nil {
			return "", err
		}
		if text, ok := any(result).(string); ok {
			return text, nil
		}
		bytes, err := json.Marshal(result)
		return string(bytes), err
	})
}

// Remove removes a tool. A call of it that runs finishes.
func (t *Tools) Remove(name string) error {
	return t.with(func(a uintptr) error {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		err := native.GenToolRegistryRemove(a, name)
		if err == nil {
			delete(t.funcs, name)
		}
		return err
	})
}

// Len is the number of tools.
func (t *Tools) Len() int {
	return get(&t.object, func(a uintptr) int { return native.GenToolRegistryCount(a) })
}

// Describe tells all tools as JSON, in the form of OpenAI's API, sorted by name.
func (t *Tools) Describe() (description string, err error) {
	err = t.with(func(a uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenToolRegistryDescribe(a, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// Get tells one tool as JSON.
func (t *Tools) Get(name string) (description string, err error) {
	err = t.with(func(a uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenToolRegistryGet(a, name, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// ToolResult is what a call gave.
type ToolResult struct {
	CallID  string `json:"tool_call_id"`
	Output  string `json:"output"`
	IsError bool   `json:"is_error"`
}

// MaxToolResult limits what Call returns, in bytes of JSON.
const MaxToolResult = 1 << 20

// Call calls a tool as an agent does. An unknown tool, arguments that do not fit and an error are results with IsError.
func (t *Tools) Call(call ToolCall) (result ToolResult, err error) {
	if err := noNUL(call.ID, call.Name); err != nil {
		return result, err
	}
	err = t.with(func(a uintptr) error {
		buffer, n := make([]byte, MaxToolResult), make([]int, 1)
		if err := native.GenToolRegistryCall(a, call.ID, call.Name, string(call.Arguments), buffer, len(buffer), n); err != nil {
			return err
		}
		return json.Unmarshal(buffer[:n[0]], &result)
	})
	return result, err
}

// ParseToolCalls finds the calls in a text that a model wrote, as JSON; see gen_tool_calls_parse. An empty format is "json".
func ParseToolCalls(format, output string) (string, error) {
	if err := noNUL(format); err != nil {
		return "", err
	}
	return text(func(buffer []byte, capacity int, n []int) error {
		return native.GenToolCallsParse(format, output, buffer, capacity, n)
	})
}

// FormatToolResult writes a result as JSON.
func FormatToolResult(result ToolResult) (string, error) {
	if err := noNUL(result.CallID); err != nil {
		return "", err
	}
	return text(func(buffer []byte, capacity int, n []int) error {
		return native.GenToolResultFormat(result.CallID, result.Output, flag(result.IsError), buffer, capacity, n)
	})
}
