// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"encoding/json"

	"libgenerate.dev/generate/internal/native"
)

// AgentOption says how an agent works.
type AgentOption func(options uintptr) error

// WithAgentSetting sets an option by name: WithAgentSetting("max_steps", "5"). All are in docs/options.md.
func WithAgentSetting(key, value string) AgentOption {
	return func(o uintptr) error {
		if err := noNUL(key, value); err != nil {
			return err
		}
		return native.GenAgentOptionsSet(o, key, value)
	}
}

// WithSystem sets the system message.
func WithSystem(text string) AgentOption { return WithAgentSetting("system", text) }

// WithAgentSampling says how answers are generated.
func WithAgentSampling(options ...SamplingOption) AgentOption {
	return func(o uintptr) error {
		return build(options, native.GenSamplingNew, native.GenSamplingFree, func(sampling uintptr) error {
			return native.GenAgentOptionsSetSampling(o, sampling)
		})
	}
}

// DescribeAgentOptions lists all options of WithAgentSetting as JSON.
func DescribeAgentOptions(options ...AgentOption) (description string, err error) {
	options = append(options[:len(options):len(options)], func(uintptr) error { return nil })
	err = build(options, native.GenAgentOptionsNew, native.GenAgentOptionsFree, func(o uintptr) error {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenAgentOptionsDescribe(o, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// AgentEventKind says what happens in a run.
type AgentEventKind int32

// Kinds of events.
const (
	AgentText       AgentEventKind = 0 // of the answer
	AgentReasoning  AgentEventKind = 1
	AgentCallName   AgentEventKind = 2 // a call begins
	AgentArguments  AgentEventKind = 3 // more of its JSON
	AgentCallEnd    AgentEventKind = 4
	AgentCallBroken AgentEventKind = 5 // it is none after all
	AgentStepBegan  AgentEventKind = 6
	AgentToolBegan  AgentEventKind = 7
	AgentToolEnded  AgentEventKind = 8 // the text is the output
	AgentStepEnded  AgentEventKind = 9 // the text is the model's output
)

// AgentEvent is what happens in a run.
type AgentEvent struct {
	Kind           AgentEventKind
	Step           int // from 1
	Call           int // in its step, from 0; -1 where the event is not about one
	Name, ID, Text string
	IsError        bool
}

// AgentRun is the record of a run.
type AgentRun struct {
	Steps []struct {
		Step        int    `json:"step"`
		ModelOutput string `json:"model_output"`
		Text        string `json:"text"`
		Reasoning   string `json:"reasoning"`
		Calls       []struct {
			ID        string          `json:"id"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"calls"`
		Results []ToolResult `json:"results"`
		Faults  []struct {
			At   int    `json:"at"`
			What string `json:"what"`
		} `json:"faults"`
		Tokens int `json:"tokens"`
	} `json:"steps"`
	Finished    bool   `json:"finished"`
	FinalOutput string `json:"final_output"`
	TotalTokens int    `json:"total_tokens"`
	StopReason  string `json:"stop_reason"` // "no_tools", "max_tokens", "tool_error", "max_steps", "cancelled" or ""
}

// Agent is a conversation in which a model calls tools until it has an answer. One goroutine at a time; Close is for any, and
// cancels what runs.
type Agent struct {
	object
	chat Chat
}

// NewAgent makes an agent whose answers the generator writes.
func (g *Generator) NewAgent(tools *Tools, options ...AgentOption) (a *Agent, err error) {
	err = g.with(func(generator uintptr) (err error) {
		a, err = newAgent(generator, tools, options)
		return err
	})
	return a, err
}

// NewAgent makes an agent for steps with the outputs of a model of one's own.
func NewAgent(tools *Tools, options ...AgentOption) (*Agent, error) {
	return newAgent(0, tools, options)
}

func newAgent(generator uintptr, tools *Tools, options []AgentOption) (*Agent, error) {
	if tools == nil {
		return nil, invalid("tools are nil")
	}
	a := new(Agent)
	err := tools.with(func(registry uintptr) error {
		return build(options, native.GenAgentOptionsNew, native.GenAgentOptionsFree, func(o uintptr) error {
			return a.take(kindAgent, native.GenAgentFree, func(out []uintptr) error {
				return native.GenAgentNew(generator, registry, o, out)
			})
		})
	})
	if err != nil {
		return nil, err
	}
	a.stop = func() { native.GenAgentCancel(a.address) }
	a.chat = Chat{object{address: native.GenAgentChat(a.address), kind: kindChat, owner: &a.object}}
	return a, nil
}

// Chat is the conversation, with calls and their results. It is closed with the agent, and busy while that runs.
func (a *Agent) Chat() *Chat { return &a.chat }

// Run gives the agent a task. Events, which may be nil, is told what happens; false ends the run. The context does, too.
func (a *Agent) Run(ctx context.Context, task string, events func(AgentEvent) bool) (*Result, error) {
	return a.run(ctx, events, func(callback, user uintptr, out []uintptr) error {
		return native.GenAgentRun(a.address, task, callback, user, out)
	})
}

// GoOn runs on without a task, after a failure or with messages that were added to the conversation.
func (a *Agent) GoOn(ctx context.Context, events func(AgentEvent) bool) (*Result, error) {
	return a.run(ctx, events, func(callback, user uintptr, out []uintptr) error {
		return native.GenBindingAgentGoOn(a.address, callback, user, out)
	})
}

// Step runs one step with a generated answer: whether it was the last.
func (a *Agent) Step(ctx context.Context) (finished bool, err error) {
	_, err = a.run(ctx, nil, func(callback, user uintptr, _ []uintptr) error {
		var last [1]int32
		defer func() { finished = last[0] != 0 }()
		return native.GenBindingAgentStep(a.address, callback, user, last[:])
	})
	return finished, err
}

// StepOutput runs one step with the output of a model of one's own.
func (a *Agent) StepOutput(ctx context.Context, output string) (finished bool, err error) {
	_, err = a.run(ctx, nil, func(callback, user uintptr, _ []uintptr) error {
		var last [1]int32
		defer func() { finished = last[0] != 0 }()
		return native.GenAgentStep(a.address, output, callback, user, last[:])
	})
	return finished, err
}

func (a *Agent) run(ctx context.Context, events func(AgentEvent) bool, call func(callback, user uintptr, out []uintptr) error) (*Result, error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.leave()
	return agentRun(ctx, events, func(cancel uintptr) error { return native.GenAgentSetCancel(a.address, cancel) }, call)
}

// agentRun runs a call that the context cancels, with events.
func agentRun(ctx context.Context, events func(AgentEvent) bool, setCancel func(cancel uintptr) error, call func(callback, user uintptr, out []uintptr) error) (*Result, error) {
	if ctx.Err() != nil {
		return nil, notBegun(ctx)
	}
	var callback, user uintptr
	told := make(chan struct{})
	if events != nil {
		d, err := newDesk()
		if err != nil {
			return nil, err
		}
		callback, user = uintptr(native.GenBindingDeskEventFunction()), d.user()
		go func() {
			defer close(told)
			for m, ok := d.next(); ok; m, ok = d.next() {
				goOn := events(AgentEvent{AgentEventKind(m.kind), m.step, m.call, m.name, m.id, m.text, m.isError})
				m.answer("", !goOn)
			}
		}()
		defer func() {
			d.close()
			<-told
		}()
	}
	var out [1]uintptr
	err := cancellable(ctx, func(cancel uintptr) error {
		if err := setCancel(cancel); err != nil {
			return err
		}
		return call(callback, user, out[:])
	})
	err = cancelled(ctx, err)
	result := takeResult(out[0])
	if result != nil {
		result.Err = err
	}
	return result, err
}

// Describe is the record of the last run.
func (a *Agent) Describe() (run AgentRun, err error) {
	err = a.with(func(address uintptr) error {
		description, err := text(func(buffer []byte, capacity int, n []int) error {
			return native.GenAgentDescribe(address, buffer, capacity, n)
		})
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(description), &run)
	})
	return run, err
}

// Reset empties the conversation and forgets the last run.
func (a *Agent) Reset() error {
	return a.with(func(address uintptr) error { return native.GenAgentReset(address) })
}

// Supervisor is several agents on one task. One goroutine at a time.
type Supervisor struct{ object }

// NewSupervisor makes one without agents.
func NewSupervisor() (*Supervisor, error) {
	s := new(Supervisor)
	if err := s.take(kindSupervisor, native.GenSupervisorFree, native.GenSupervisorNew); err != nil {
		return nil, err
	}
	s.stop = func() { native.GenSupervisorCancel(s.address) }
	return s, nil
}

// Add adds an agent: the first gets the task, and the others are tools to it.
func (s *Supervisor) Add(name, description string, agent *Agent) error {
	if err := noNUL(name, description); err != nil {
		return err
	}
	if agent == nil {
		return invalid("the agent is nil")
	}
	return s.with(func(address uintptr) error {
		return agent.with(func(a uintptr) error { return native.GenSupervisorAddAgent(address, name, description, a) })
	})
}

// SetBudget limits the tokens of all agents in a run; 0: no limit.
func (s *Supervisor) SetBudget(tokens int64) error {
	return s.with(func(a uintptr) error { return native.GenSupervisorSetBudget(a, tokens) })
}

// Run gives the first agent a task, as Agent.Run.
func (s *Supervisor) Run(ctx context.Context, task string, events func(AgentEvent) bool) (*Result, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	setCancel := func(cancel uintptr) error { return native.GenSupervisorSetCancel(s.address, cancel) }
	return agentRun(ctx, events, setCancel, func(callback, user uintptr, out []uintptr) error {
		return native.GenSupervisorRun(s.address, task, callback, user, out)
	})
}

// Describe is the last run as JSON; see gen_supervisor_describe.
func (s *Supervisor) Describe() (description string, err error) {
	err = s.with(func(a uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenSupervisorDescribe(a, buffer, capacity, n)
		})
		return err
	})
	return description, err
}
