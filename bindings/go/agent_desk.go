// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// Fields of what lies on a desk, see support.h.
const (
	matterNumber  = 0
	matterKind    = 1
	matterName    = 2
	matterID      = 4
	matterText    = 6
	matterStep    = 8
	matterCall    = 9
	matterIsError = 10
	matterFields  = 11
)

// desk serves calls and events of the C library with goroutines of its own.
type desk struct{ number int64 }

// matter is one of them, with copies of its texts.
type matter struct {
	number         int64
	kind           int32 // -1 for a tool
	name, id, text string
	step, call     int
	isError        bool
}

func newDesk() (desk, error) {
	number := native.GenBindingDeskNew()
	if number == 0 {
		return desk{}, &Error{Code: CodeOutOfMemory, Message: "out of memory"}
	}
	return desk{number}, nil
}

// user is what C passes to the desk's callbacks.
func (d desk) user() uintptr { return uintptr(d.number) }

// next waits for a matter; false once the desk is closed.
func (d desk) next() (m matter, ok bool) {
	var fields [matterFields]int64
	native.GenBindingDeskNext(d.number, fields[:])
	if fields[matterNumber] == 0 {
		return m, false
	}
	copied := func(field int) string {
		n := int(fields[field+1])
		if n == 0 {
			return ""
		}
		bytes := make([]byte, n)
		native.GenBindingCopy(fields[field], n, bytes)
		return string(bytes)
	}
	return matter{
		number: fields[matterNumber], kind: int32(fields[matterKind]),
		name: copied(matterName), id: copied(matterID), text: copied(matterText),
		step: int(fields[matterStep]), call: int(fields[matterCall]), isError: fields[matterIsError] != 0,
	}, true
}

func (m matter) answer(output string, failed bool) {
	native.GenBindingDeskAnswer(m.number, output, flag(failed))
}

func (d desk) close() { native.GenBindingDeskClose(d.number) }
