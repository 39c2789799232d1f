// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"libgenerate.dev/generate/internal/native"
)

// Message is one of a conversation: the role is "system", "user", "assistant" or whatever the template knows.
type Message struct{ Role, Text string }

// Chat is a conversation, rendered as a model was trained to see it, by the chat template of its file. Only what the template
// writes becomes special tokens: a message that holds "<|im_end|>" cannot end its turn. One goroutine at a time: a second one
// gets ErrBusy. A call that fails changes nothing.
type Chat struct{ object }

func (c *Chat) pointer() *object {
	if c == nil {
		return nil
	}
	return &c.object
}

// NewChat makes a conversation.
func NewChat(messages ...Message) (*Chat, error) {
	c := new(Chat)
	if err := c.take(kindChat, native.GenChatFree, native.GenChatNew); err != nil {
		return nil, err
	}
	for _, message := range messages {
		if err := c.Add(message.Role, message.Text); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Add adds a message.
func (c *Chat) Add(role, text string) error {
	return c.with(func(a uintptr) error { return native.GenChatAdd(a, role, text) })
}

// SetName sets the author of the last message.
func (c *Chat) SetName(name string) error {
	return c.with(func(a uintptr) error { return native.GenChatSetName(a, name) })
}

// SetReasoning sets the assistant's reasoning before the last message.
func (c *Chat) SetReasoning(text string) error {
	return c.with(func(a uintptr) error { return native.GenChatSetReasoning(a, text) })
}

// AddToolCall adds a call of a tool to the assistant's last message, or as a new one without text. The id may be empty; the
// arguments are a JSON object.
func (c *Chat) AddToolCall(id, name, arguments string) error {
	if err := noNUL(id, name); err != nil {
		return err
	}
	return c.with(func(a uintptr) error { return native.GenChatAddToolCall(a, id, name, arguments) })
}

// AddToolResult adds the result of a tool call. The id of the call that it answers and the name of the tool may be empty.
func (c *Chat) AddToolResult(id, name, text string) error {
	if err := noNUL(id, name); err != nil {
		return err
	}
	return c.with(func(a uintptr) error { return native.GenChatAddToolResult(a, id, name, text) })
}

// noNUL refuses what C would take for a text that was not given.
func noNUL(names ...string) error {
	for _, name := range names {
		if strings.IndexByte(name, 0) >= 0 {
			return invalid("a name must not hold a NUL")
		}
	}
	return nil
}

// AddTool adds a tool that the model may call: a JSON object in the form of OpenAI's API, {"type": "function", "function":
// {"name": …, "description": …, "parameters": a JSON Schema}}.
func (c *Chat) AddTool(description string) error {
	return c.with(func(a uintptr) error { return native.GenChatAddTool(a, description) })
}

// SetVariable sets a variable of the template, such as enable_thinking, to what encoding/json makes of value.
func (c *Chat) SetVariable(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return invalid("%s: %v", name, err)
	}
	return c.with(func(a uintptr) error { return native.GenChatSetVariable(a, name, string(text)) })
}

// Truncate keeps the first n messages, or removes the last -n, to edit or regenerate them.
func (c *Chat) Truncate(n int) error {
	return c.with(func(a uintptr) error { return native.GenChatTruncate(a, i32(n)) })
}

// Describe tells messages, tools and variables as JSON.
func (c *Chat) Describe() (description string, err error) {
	err = c.with(func(a uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenChatDescribe(a, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// SetTemplate uses another template than the model's, or a built-in form by its name, "chatml" for example; empty for the
// model's own.
func (c *Chat) SetTemplate(text string) error {
	return c.with(func(a uintptr) error { return native.GenChatSetTemplate(a, text) })
}

// Set sets how a chat session deals with answers, by name: Set("tool_choice", "required"). See gen_chat_set and
// DescribeOptions.
func (c *Chat) Set(key, value string) error {
	if err := noNUL(key, value); err != nil {
		return err
	}
	return c.with(func(a uintptr) error { return native.GenChatSet(a, key, value) })
}

// DescribeOptions lists the options of Set as JSON.
func (c *Chat) DescribeOptions() (description string, err error) {
	err = c.with(func(a uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenChatDescribeOptions(a, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// SetTime sets what templates write as today's date; the zero time for the clock of the machine.
func (c *Chat) SetTime(now time.Time) error {
	text := ""
	if !now.IsZero() {
		text = now.Format("2006-01-02T15:04:05")
	}
	return c.with(func(a uintptr) error { return native.GenChatSetTime(a, text) })
}

// FormatChat renders a conversation as text, for display; with reply it ends with the opening of an assistant's turn. A message
// that holds the text of a special token is refused here.
func (m *Model) FormatChat(chat *Chat, reply bool) (formatted string, err error) {
	err = m.with(func(model uintptr) error {
		return chat.pointer().optional(func(c uintptr) (err error) {
			formatted, err = text(func(buffer []byte, capacity int, n []int) error {
				return native.GenChatFormat(model, c, flag(reply), buffer, capacity, n)
			})
			return err
		})
	})
	return formatted, err
}

// EncodeChat renders a conversation as tokens, with begin-of-sequence where the model wants it.
func (m *Model) EncodeChat(chat *Chat, reply bool) (tokens []int32, err error) {
	err = m.with(func(model uintptr) error {
		return chat.pointer().optional(func(c uintptr) (err error) {
			tokens, err = sized(0, func(buffer []int32, capacity int, n []int) error {
				return native.GenChatEncode(model, c, flag(reply), buffer, capacity, n)
			})
			return err
		})
	})
	return tokens, err
}

// ChatSession is a conversation with a session that holds it. One goroutine at a time; Close is for any, and cancels what runs.
//
// With the context policy "shift" a conversation that outgrows the context goes on without its oldest turns; with "stop"
// sending fails then.
type ChatSession struct {
	object
	gate    gate
	session uintptr
}

// NewChatSession makes a chat session of a conversation so far, nil for an empty one. The conversation is shared, not copied: add
// to it what is not the user's, such as the results of tools, and find the answers in it. It may be closed at any time.
func (g *Generator) NewChatSession(chat *Chat) (*ChatSession, error) {
	s := &ChatSession{gate: g.gate}
	err := g.with(func(generator uintptr) error {
		return chat.pointer().optional(func(c uintptr) error {
			return s.take(kindChatSession, native.GenChatSessionFree, func(out []uintptr) error {
				return native.GenChatSessionNew(generator, c, out)
			})
		})
	})
	if err != nil {
		return nil, err
	}
	s.session = native.GenChatSessionSession(s.address)
	s.stop = func() { native.GenSessionCancel(s.session) }
	return s, nil
}

// Send adds a message of the user to the conversation, generates the answer, and adds that as the assistant's message. Only what
// is new since the last turn is run. An answer that the context or a limit ended is added as far as it came; where no token
// came, and after any other failure, the conversation is as before.
func (s *ChatSession) Send(ctx context.Context, text string, options ...SamplingOption) (*Result, error) {
	return s.generate(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenChatSessionSend(s.address, text, sampling, out)
	})
}

// Answer is Send without a message: it answers what the conversation ends with, such as the result of a tool, or goes on with
// the last answer if that was cut.
func (s *ChatSession) Answer(ctx context.Context, options ...SamplingOption) (*Result, error) {
	return s.generate(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenBindingChatAnswer(s.address, sampling, out)
	})
}

// Stream is Send piece by piece; nothing runs before the first Next. While the stream is open the chat session and the conversation are
// busy. At its end the message and the answer are in the conversation; closing it before that cuts the answer.
func (s *ChatSession) Stream(ctx context.Context, text string, options ...SamplingOption) (*Stream, error) {
	return s.open(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenChatSessionOpenStream(s.address, text, sampling, out)
	})
}

// StreamAnswer is Answer piece by piece.
func (s *ChatSession) StreamAnswer(ctx context.Context, options ...SamplingOption) (*Stream, error) {
	return s.open(ctx, options, func(sampling uintptr, out []uintptr) error {
		return native.GenBindingChatOpenAnswer(s.address, sampling, out)
	})
}

func (s *ChatSession) open(ctx context.Context, options []SamplingOption, run func(sampling uintptr, out []uintptr) error) (*Stream, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return openStream(ctx, s.gate, options, run)
}

func (s *ChatSession) generate(ctx context.Context, options []SamplingOption, run func(sampling uintptr, out []uintptr) error) (*Result, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.gate.generate(ctx, options, run)
}

// EndReasoning makes the model end its reasoning and answer, while another goroutine runs the answer. The option
// "reasoning_control" of the conversation must be on.
func (s *ChatSession) EndReasoning() error {
	return s.with(func(a uintptr) error { return native.GenChatSessionEndReasoning(a) })
}

// Length is the number of tokens that the session holds.
func (s *ChatSession) Length() int {
	return int(get(&s.object, func(uintptr) int32 { return native.GenSessionLength(s.session) }))
}

// Progress is the share of the current prompt that has been run, 0 to 1.
func (s *ChatSession) Progress() float64 {
	return get(&s.object, func(uintptr) float64 { return native.GenSessionProgress(s.session) })
}

// Template is a chat template by itself, to see how it renders a conversation. Any number of goroutines may use one.
type Template struct{ object }

// NewTemplate compiles a template: Jinja, as the Transformers library evaluates it for chats.
func NewTemplate(text string) (*Template, error) {
	return newTemplate(func(out []uintptr) error { return native.GenTemplateNew(text, out) })
}

// Template is the vocabulary's own, ErrUnsupported if there is none.
func (t *Tokenizer) Template() (template *Template, err error) {
	err = t.with(func(address uintptr) (err error) {
		template, err = newTemplate(func(out []uintptr) error { return native.GenTemplateFromTokenizer(address, out) })
		return err
	})
	return template, err
}

func newTemplate(create func(out []uintptr) error) (*Template, error) {
	t := new(Template)
	if err := t.take(kindTemplate, native.GenTemplateFree, create); err != nil {
		return nil, err
	}
	return t, nil
}

// Render renders a conversation, from JSON to JSON; gen_template_render of template.h lists the members of both.
func (t *Template) Render(request string) (rendered string, err error) {
	err = t.with(func(a uintptr) (err error) {
		rendered, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenTemplateRender(a, request, buffer, capacity, n)
		})
		return err
	})
	return rendered, err
}
