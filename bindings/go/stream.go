// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"io"
	"math"
	"sync"

	"libgenerate.dev/generate/internal/native"
)

// Token is one piece of a generation.
type Token struct {
	ID           int32  // -1 on the last piece
	Text         string // whole characters; may be empty
	Logprob      float32
	Index        int  // number of tokens drawn before this one
	Done         bool // the last piece of a generation, which always comes
	FinishReason FinishReason
	Pieces       []Piece // of a chat session: what is text, reasoning or part of a call; see gen_token in generator.h
}

// PieceKind says what a Piece is.
type PieceKind int32

// Kinds of pieces.
const (
	PieceText       PieceKind = iota // of the answer
	PieceReasoning                   // of the model before it
	PieceCallName                    // a call begins: the text is the function's name
	PieceArguments                   // more of the JSON of the call's arguments
	PieceCallEnd                     // the call is complete
	PieceCallBroken                  // the call is none; what was written of it follows as text or reasoning
)

// Piece is a part of an answer that a chat session has read.
type Piece struct {
	Kind PieceKind
	Call int // number of the call in the answer, from 0
	Text string
}

// Stream is a generation pulled piece by piece:
//
//	stream, err := session.Stream(ctx, prompt)
//	…
//	defer stream.Close()
//	for stream.Next() {
//		fmt.Print(stream.Token().Text)
//	}
//	err = stream.Err()
//
// One goroutine at a time calls Next, Token, Tokens, WriteTo, Poll, Err and Result; Cancel and Close are for any. While one
// is open its session is busy. A stream that came to its end has given back all that it held, as if it had been closed.
type Stream struct {
	object
	gate   gate
	ctx    context.Context
	cancel uintptr
	over   chan struct{} // closed by Close and at the end

	mutex sync.Mutex
	event [10]int64 // as gen_binding_stream_next fills it: see support.h
	text  [512]byte
	token Token

	result *Result
	err    error
}

const (
	eventState = iota
	eventID
	eventDone
	eventFinishReason
	eventIndex
	eventLogprob
	eventText
	eventTextLen
	eventPieces
	eventPieceCount
)

// StreamState is what Poll found.
type StreamState int32

// States of a stream.
const (
	StreamPending StreamState = 0 // nothing yet: poll again
	StreamToken   StreamState = 1 // Token has a piece
	StreamEnd     StreamState = 2 // all pieces have been given, or Err says why not
)

// Stream opens a generation on the session; nothing runs before the first Next. The context ends it within one token.
func (s *Session) Stream(ctx context.Context, prompt string, options ...SamplingOption) (*Stream, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return openStream(ctx, s.gate, options, func(sampling uintptr, out []uintptr) error {
		return native.GenStreamOpen(s.address, prompt, sampling, out)
	})
}

func openStream(ctx context.Context, gate gate, options []SamplingOption, open func(sampling uintptr, out []uintptr) error) (*Stream, error) {
	if ctx.Err() != nil {
		return nil, notBegun(ctx)
	}
	var cancel [1]uintptr
	if err := native.GenCancelNew(cancel[:]); err != nil {
		return nil, err
	}
	stream := &Stream{gate: gate, ctx: ctx, cancel: cancel[0], over: make(chan struct{})}
	options = append(options[:len(options):len(options)], withCancel(cancel[0]))
	err := stream.take(kindStream, native.GenStreamClose, func(out []uintptr) error {
		return build(options, native.GenSamplingNew, native.GenSamplingFree, func(sampling uintptr) error {
			return open(sampling, out)
		})
	})
	if err != nil {
		native.GenCancelFree(cancel[0])
		return nil, err
	}
	end := watch(ctx, func() { native.GenCancelFire(stream.cancel) })
	stream.free = func(address uintptr) {
		end()
		native.GenStreamClose(address)
		native.GenCancelFree(stream.cancel)
	}
	stream.stop = func() {
		native.GenCancelFire(stream.cancel)
		close(stream.over)
	}
	return stream, nil
}

// Stream opens a generation on a session of its own.
func (g *Generator) Stream(ctx context.Context, prompt string, options ...SamplingOption) (*Stream, error) {
	session, err := g.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.forget()
	return session.Stream(ctx, prompt, options...)
}

// Next runs the model until the next piece is there; false at the end.
func (s *Stream) Next() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.enter() != nil {
		return s.closed()
	}
	defer s.leave()
	entered := s.wait()
	err := native.GenBindingStreamNext(s.address, s.event[:], s.text[:], len(s.text))
	if entered {
		s.gate.leave()
	}
	return s.took(err) == StreamToken
}

// wait enters the gate, or tells that there is no need: a call that was cancelled meanwhile ends at once.
func (s *Stream) wait() bool {
	select {
	case s.gate <- struct{}{}:
		return true
	default:
	}
	select {
	case s.gate <- struct{}{}:
		return true
	case <-s.ctx.Done():
		native.GenCancelFire(s.cancel)
	case <-s.over:
	}
	return false
}

// Poll is Next for one goroutine that drives many streams: it never waits for another thread. The first call says that
// the stream wants its next piece, a later one runs one step for all streams of the generator that do.
func (s *Stream) Poll() StreamState {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.enter() != nil {
		s.closed()
		return StreamEnd
	}
	defer s.leave()
	return s.took(native.GenBindingStreamPoll(s.address, s.event[:], s.text[:], len(s.text)))
}

func (s *Stream) closed() bool {
	if s.result == nil && s.err == nil {
		s.err = &Error{Code: CodeState, Message: "the stream was closed", cause: ErrClosed}
	}
	return false
}

// took makes a Token of the event, or ends the stream.
func (s *Stream) took(err error) StreamState {
	state := StreamState(s.event[eventState])
	if err == nil && state == StreamToken {
		e := &s.event
		text := s.text[:]
		if n := int(e[eventTextLen]); n <= len(text) {
			text = text[:n]
		} else {
			text = borrowed[byte](uintptr(e[eventText]), n)
		}
		s.token = Token{ID: int32(e[eventID]), Text: string(text), Index: int(e[eventIndex]), Done: e[eventDone] != 0,
			FinishReason: FinishReason(e[eventFinishReason]), Logprob: math.Float32frombits(uint32(e[eventLogprob]))}
		for i := 0; i < int(e[eventPieceCount]); i++ {
			var fields [4]int64
			native.GenBindingPiece(e[eventPieces], i, fields[:])
			s.token.Pieces = append(s.token.Pieces, Piece{Kind: PieceKind(fields[0]), Call: int(fields[1]),
				Text: string(borrowed[byte](uintptr(fields[2]), int(fields[3])))})
		}
		return StreamToken
	}
	if err == nil && state == StreamPending {
		return StreamPending
	}
	s.token = Token{}
	s.err = cancelled(s.ctx, err)
	var out [1]uintptr
	if native.GenStreamResult(s.address, out[:]) == nil {
		s.result = takeResult(out[0])
		s.result.Err = s.err
	}
	s.Close()
	return StreamEnd
}

// Token is the piece that Next or Poll got.
func (s *Stream) Token() Token { return s.token }

// Alternatives are the most probable tokens at the position of Token, best first, with WithLogprobs above 0.
func (s *Stream) Alternatives() []TopLogprob {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.enter() != nil {
		return nil
	}
	defer s.leave()
	var ids, logprobs [1]uintptr
	return topLogprobsOf(native.GenStreamAlternatives(s.address, ids[:], logprobs[:]), ids[0], logprobs[0])
}

// Err is what ended the stream, nil if it came to its end or has not yet.
func (s *Stream) Err() error { return s.err }

// Result is the whole generation when Next has returned false, also after an error or Cancel; nil before that, and if the
// stream was closed in the middle.
func (s *Stream) Result() *Result { return s.result }

// Cancel makes the stream end with ErrCancelled within one token.
func (s *Stream) Cancel() {
	if s.enter() == nil {
		defer s.leave()
		native.GenCancelFire(s.cancel)
	}
}

// Tokens gives all pieces to a channel, which is closed at the end; Err and Result are for afterwards. Who stops reading
// before must close the stream or end its context.
func (s *Stream) Tokens() <-chan Token {
	tokens := make(chan Token)
	go func() {
		defer close(tokens)
		for s.Next() {
			select {
			case tokens <- s.token:
			case <-s.over:
			case <-s.ctx.Done():
			}
		}
	}()
	return tokens
}

// WriteTo writes the text of all pieces as they come. It ends with the stream, or with the writer's error.
func (s *Stream) WriteTo(w io.Writer) (written int64, err error) {
	for s.Next() {
		if s.token.Text == "" {
			continue
		}
		n, err := io.WriteString(w, s.token.Text)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, s.Err()
}
