// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"

	"libgenerate.dev/generate/internal/native"
)

// LoadAdapter loads a low-rank adapter (LoRA) from a GGUF file, in the place of one of the same name. scale multiplies that of
// requests.
func (m *Model) LoadAdapter(path, name string, scale float32) error {
	return m.with(func(address uintptr) error { return native.GenAdapterLoad(address, path, name, scale) })
}

// UnloadAdapter forgets a name; calls that use the adapter go on with it.
func (m *Model) UnloadAdapter(name string) error {
	return m.with(func(address uintptr) error { return native.GenAdapterUnload(address, name) })
}

// SetAdapterBudget limits the memory of the loaded adapters to MiB, 0 for no limit: the least recently used names are
// forgotten.
func (m *Model) SetAdapterBudget(maxMemoryMB int) error {
	return m.with(func(address uintptr) error { return native.GenAdapterSetBudget(address, i32(maxMemoryMB)) })
}

// Adapters are the names of the loaded adapters, oldest first.
func (m *Model) Adapters() (names []string, err error) {
	err = m.with(func(address uintptr) error {
		for i := 0; i < native.GenAdapterCount(address); i++ {
			name, err := text(func(buffer []byte, capacity int, n []int) error {
				return native.GenAdapterName(address, i, buffer, capacity, n)
			})
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// MergeAdapter writes a model file with an adapter in its weights, multiplied by scale: every tensor of the type that it has in
// the model if kind is "", else as Quantize writes them.
func MergeAdapter(model, adapter string, scale float32, out, kind string) error {
	return MergeAdapterProgress(model, adapter, scale, out, kind, 0, 0)
}

// MergeAdapterProgress is MergeAdapter with a gen_progress_callback in C.
func MergeAdapterProgress(model, adapter string, scale float32, out, kind string, callback, user Symbol) error {
	if strings.Contains(kind, "\x00") {
		return invalid("%q has a NUL in it", kind) // in C no type is the model's
	}
	return native.GenAdapterMerge(model, adapter, scale, out, kind, uintptr(callback), uintptr(user))
}

// WithAdapter lets a call use the model's adapter of that name, with scale 1, and no other; "" for none.
func WithAdapter(name string) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingSetAdapter(s, name) }
}

// WithMixedAdapter adds an adapter to those that a call uses.
func WithMixedAdapter(name string, scale float32) SamplingOption {
	return func(s uintptr) error { return native.GenSamplingAddAdapter(s, name, scale) }
}
