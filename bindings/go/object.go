// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"math"
	"sync/atomic"
)

// object is what every type with a Close has in it: a handle of the C library with the number of calls that are using it.
// Close forbids further calls, and the memory goes when the last of those that run has ended; so it may be called at any
// time, from any goroutine, and again. There is no finaliser: what is never closed stays, and OpenObjects counts it.
type object struct {
	users   atomic.Int64 // calls that run, and the closed bit
	address uintptr
	kind    kind
	free    func(address uintptr) // nil for what is borrowed from owner
	owner   *object
	stop    func() // cancels what runs when Close is called; may be nil
}

const closedBit = 1 << 62

// enter begins a call; leave must follow if it returns nil.
func (o *object) enter() error {
	if o.owner != nil {
		if err := o.owner.enter(); err != nil {
			return err
		}
	}
	for {
		n := o.users.Load()
		if n&closedBit != 0 {
			if o.owner != nil {
				o.owner.leave()
			}
			return &Error{Code: CodeState, Message: "the " + kindNames[o.kind] + " was closed", cause: ErrClosed}
		}
		if o.users.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

func (o *object) leave() {
	if o.users.Add(-1) == closedBit {
		o.end()
	}
	if o.owner != nil {
		o.owner.leave()
	}
}

func (o *object) end() {
	if o.free != nil {
		o.free(o.address)
		open[o.kind].Add(-1)
	}
}

// Close gives the object up. Calls that are running on it end first, and later ones fail with ErrClosed. Everything made
// from it goes on working: the order in which objects are closed does not matter. Closing again does nothing.
func (o *object) Close() error {
	for {
		n := o.users.Load()
		if n&closedBit != 0 || o.address == 0 {
			return nil
		}
		if o.users.CompareAndSwap(n, n+1|closedBit) {
			break
		}
	}
	if o.stop != nil {
		o.stop()
	}
	if o.users.Add(-1) == closedBit {
		o.end()
	}
	return nil
}

// with runs a call on the object.
func (o *object) with(call func(address uintptr) error) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	return call(o.address)
}

// get is with for calls that do not fail; it returns the zero value for a closed object.
func get[T any](o *object, call func(address uintptr) T) (value T) {
	if o.enter() == nil {
		defer o.leave()
		value = call(o.address)
	}
	return value
}

// take becomes a handle that create makes.
func (o *object) take(kind kind, free func(uintptr), create func(out []uintptr) error) error {
	if unfit != nil {
		return unfit
	}
	var out [1]uintptr
	if err := create(out[:]); err != nil {
		return err
	}
	o.address, o.kind, o.free = out[0], kind, free
	open[kind].Add(1)
	return nil
}

// optional is with for an object that may be nil, whose address is then 0.
func (o *object) optional(call func(address uintptr) error) error {
	if o == nil {
		return call(0)
	}
	return o.with(call)
}

type kind int

const (
	kindModel kind = iota
	kindTokenizer
	kindGenerator
	kindSession
	kindStream
	kindThreadPool
	kindMetrics
	kindTracer
	kindCache
	kindPool
	kindPrefix
	kindRadix
	kindSsmState
	kindProfile
	kindGrammar
	kindMatcher
	kindGPUAllocator
	kindChat
	kindChatSession
	kindTemplate
	kindSpeculative
	kindEagle
	kindDraft
	kindTools
	kindAgent
	kindSupervisor
	kinds
)

var kindNames = [kinds]string{"model", "tokenizer", "generator", "session", "stream", "thread pool", "metrics", "tracer",
	"cache", "block pool", "prefix cache", "radix tree", "ssm state", "profile", "grammar", "grammar matcher", "GPU allocator", "chat", "chat session", "template",
	"speculative generator", "EAGLE generator", "draft", "tools", "agent", "supervisor"}

var open [kinds]atomic.Int64

// OpenObjects counts the objects that were made and have not been closed, by kind: what a test may want to be empty at its end.
func OpenObjects() map[string]int {
	counts := map[string]int{}
	for k := range open {
		if n := open[k].Load(); n != 0 {
			counts[kindNames[k]] = int(n)
		}
	}
	return counts
}

// build makes an object of options for one call; without options it is 0, the defaults.
func build[O ~func(uintptr) error](options []O, create func([]uintptr) error, free func(uintptr), use func(uintptr) error) error {
	if len(options) == 0 {
		return use(0)
	}
	var out [1]uintptr
	if err := create(out[:]); err != nil {
		return err
	}
	defer free(out[0])
	for _, option := range options {
		if option == nil {
			continue
		}
		if err := option(out[0]); err != nil {
			return err
		}
	}
	return use(out[0])
}

// sized gets what has a length that must be asked for first; extra elements are room for a NUL.
func sized[T any](extra int, get func(buffer []T, capacity int, n []int) error) ([]T, error) {
	var n [1]int
	if err := get(nil, 0, n[:]); err != nil {
		return nil, err
	}
	for {
		buffer := make([]T, n[0]+extra)
		if len(buffer) == 0 {
			return nil, nil
		}
		err := get(buffer, len(buffer), n[:])
		if err == nil {
			return buffer[:n[0]], nil
		}
		if n[0]+extra <= len(buffer) {
			return nil, err // it did not just grow meanwhile
		}
	}
}

func text(get func(buffer []byte, capacity int, n []int) error) (string, error) {
	bytes, err := sized(1, get)
	return string(bytes), err
}

// i32 is n as the C library takes it; what does not fit becomes the largest or smallest number, which is then refused.
func i32(n int) int32 {
	if n > math.MaxInt32 {
		return math.MaxInt32
	}
	if n < math.MinInt32 {
		return math.MinInt32
	}
	return int32(n)
}

func i32s(numbers []int) []int32 {
	out := make([]int32, len(numbers))
	for i, n := range numbers {
		out[i] = i32(n)
	}
	return out
}

func flag(on bool) int32 {
	if on {
		return 1
	}
	return 0
}

func invalid(format string, values ...any) error {
	return &Error{Code: CodeInvalidArgument, Message: fmt.Sprintf(format, values...)}
}
