// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"time"

	"libgenerate.dev/generate/internal/native"
)

// LoadModelContext is LoadModel that the context ends. Progress, which may be nil, is told the share of the work that is
// done, now and then, on a goroutine of its own that is gone when LoadModelContext returns.
func LoadModelContext(ctx context.Context, path string, progress func(share float64), options ...ModelOption) (model *Model, err error) {
	err = watched(ctx, progress, func(callback, user Symbol) (err error) {
		model, err = LoadModel(path, append(options[:len(options):len(options)], WithLoadProgress(callback, user))...)
		return err
	})
	return model, err
}

// QuantizeContext is Quantize that the context ends, with progress as LoadModelContext tells it.
func QuantizeContext(ctx context.Context, in, out, kind string, progress func(share float64)) error {
	return watched(ctx, progress, func(callback, user Symbol) error { return QuantizeProgress(in, out, kind, callback, user) })
}

// ImportanceContext is Importance that the context ends, with progress as LoadModelContext tells it.
func (m *Model) ImportanceContext(ctx context.Context, tokens []int32, window int, textName, out string, progress func(share float64)) error {
	return watched(ctx, progress, func(callback, user Symbol) error {
		return m.ImportanceProgress(tokens, window, textName, out, callback, user)
	})
}

// QuantizeWith is QuantizeContext with options.
func QuantizeWith(ctx context.Context, in, out, kind string, progress func(share float64), options ...QuantizeOption) error {
	return build(options, native.GenQuantizeOptionsNew, native.GenQuantizeOptionsFree, func(o uintptr) error {
		return watched(ctx, progress, func(callback, user Symbol) error {
			return native.GenModelQuantizeWith(in, out, kind, o, uintptr(callback), uintptr(user))
		})
	})
}

// MergeAdapterContext is MergeAdapter that the context ends, with progress as LoadModelContext tells it.
func MergeAdapterContext(ctx context.Context, model, adapter string, scale float32, out, kind string, progress func(share float64)) error {
	return watched(ctx, progress, func(callback, user Symbol) error {
		return MergeAdapterProgress(model, adapter, scale, out, kind, callback, user)
	})
}

// watched runs a call with a progress callback in C, which tells and asks a few numbers in C; a goroutine looks at these.
func watched(ctx context.Context, progress func(share float64), call func(callback, user Symbol) error) error {
	if ctx.Err() != nil {
		return notBegun(ctx)
	}
	state := native.GenBindingProgressNew()
	if state == 0 {
		return &Error{Code: CodeOutOfMemory, Message: "out of memory"}
	}
	defer native.GenBindingProgressFree(state)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		ended, told := ctx.Done(), 0.0
		for {
			select {
			case <-ended:
				native.GenBindingProgressStop(state)
				ended = nil
			case <-ticks.C:
				if share := native.GenBindingProgressShare(state); progress != nil && share > told {
					told = share
					progress(share)
				}
			case <-over:
				return
			}
		}
	}()
	err := call(Symbol(native.GenBindingProgressFunction()), Symbol(state))
	close(over)
	<-done
	if err == nil && progress != nil {
		progress(1)
	}
	return cancelled(ctx, err)
}
