// SPDX-License-Identifier: Apache-2.0

// Package native is the low layer: the functions of the C API, which SWIG writes into generate_native.go and
// generate_native_wrap.c beside this file when the module is assembled. Nothing but package generate uses it.
package native

// #cgo pkg-config: generate
// #cgo CFLAGS: -O1
// #cgo LDFLAGS: -ldl
import "C"
