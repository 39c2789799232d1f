// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"

	"libgenerate.dev/generate/internal/native"
)

// Code says what went wrong. Numbers are those of the C library and never change.
type Code int32

// Codes of errors. For each there is an error value to compare with: errors.Is(err, ErrCacheFull).
const (
	CodeOK              Code = 0
	CodeInvalidArgument Code = -1 // an argument is invalid in itself
	CodeOutOfMemory     Code = -2
	CodeIO              Code = -3
	CodeFormat          Code = -4 // a bad or hostile file
	CodeUnsupported     Code = -5
	CodeCacheFull       Code = -6
	CodePoolExhausted   Code = -7
	CodeOutOfRange      Code = -8  // an id, index or capacity outside its limit
	CodeSequence        Code = -9  // append at the wrong position
	CodeBusy            Code = -10 // the object is in use by another call
	CodeCancelled       Code = -11
	CodeGrammar         Code = -12
	CodeDevice          Code = -13
	CodeContextFull     Code = -14 // the prompt does not fit the context
	CodeState           Code = -15 // wrong order of calls, or use after Close
	CodeModel           Code = -16 // the forward pass failed or gave NaN
	CodeTokenizer       Code = -17
	CodeInternal        Code = -18
)

// String is the name of the code in C, GEN_ERROR_FORMAT for example.
func (c Code) String() string { return native.GenStatusName(int32(c)) }

// Error is what every failing function of this package returns: a code and one line that names the value and the limit.
type Error struct {
	Code    Code
	Message string

	cause    error
	sentinel bool
}

func (e *Error) Error() string { return "generate: " + e.Message }

// Is tells whether target is the error value of e's code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.sentinel && t.Code == e.Code
}

// Unwrap is the context's error where a context ended the call.
func (e *Error) Unwrap() error { return e.cause }

// Errors to compare with.
var (
	ErrInvalidArgument = sentinel(CodeInvalidArgument, "invalid argument")
	ErrOutOfMemory     = sentinel(CodeOutOfMemory, "out of memory")
	ErrIO              = sentinel(CodeIO, "input or output failed")
	ErrFormat          = sentinel(CodeFormat, "bad file")
	ErrUnsupported     = sentinel(CodeUnsupported, "not supported")
	ErrCacheFull       = sentinel(CodeCacheFull, "cache full")
	ErrPoolExhausted   = sentinel(CodePoolExhausted, "pool exhausted")
	ErrOutOfRange      = sentinel(CodeOutOfRange, "out of range")
	ErrSequence        = sentinel(CodeSequence, "wrong position")
	ErrBusy            = sentinel(CodeBusy, "in use")
	ErrCancelled       = sentinel(CodeCancelled, "cancelled")
	ErrGrammar         = sentinel(CodeGrammar, "grammar")
	ErrDevice          = sentinel(CodeDevice, "device failed")
	ErrContextFull     = sentinel(CodeContextFull, "context full")
	ErrState           = sentinel(CodeState, "wrong order of calls")
	ErrModel           = sentinel(CodeModel, "model failed")
	ErrTokenizer       = sentinel(CodeTokenizer, "tokenizer failed")
	ErrInternal        = sentinel(CodeInternal, "internal error")

	// ErrClosed is returned by calls on something that was closed. It is an ErrState, too.
	ErrClosed = errors.New("closed")
)

func sentinel(code Code, message string) error {
	return &Error{Code: code, Message: message, sentinel: true}
}

// Whether the library that was found is the one that this package was compiled for.
var unfit error

func init() {
	native.Failure = func(code int32, message string) error { return &Error{Code: Code(code), Message: message} }
	unfit = native.GenBindingCheck()
}

// cancelled makes err the context's where that is why the call was cancelled.
func cancelled(ctx context.Context, err error) error {
	var e *Error
	if err == nil || ctx.Err() == nil || !errors.As(err, &e) || e.Code != CodeCancelled {
		return err
	}
	return &Error{Code: CodeCancelled, Message: e.Message, cause: ctx.Err()}
}

// notBegun is the error of a call whose context had ended before.
func notBegun(ctx context.Context) error {
	return &Error{Code: CodeCancelled, Message: "cancelled before it began: " + ctx.Err().Error(), cause: ctx.Err()}
}
