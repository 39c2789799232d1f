// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// SSMState is the state of recurrent layers, of one sequence or several in step. One goroutine at a time.
type SSMState struct{ object }

// NewSSMState makes a state of zeros for batch sequences: [batch, dInner, dState] in each layer.
func NewSSMState(layers, batch, dInner, dState int) (*SSMState, error) {
	s := new(SSMState)
	if err := s.take(kindSsmState, native.GenSsmStateFree, func(out []uintptr) error {
		if batch == 1 {
			return native.GenSsmStateNew(i32(layers), i32(dInner), i32(dState), out)
		}
		return native.GenSsmStateNewBatch(i32(layers), i32(batch), i32(dInner), i32(dState), out)
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// Layers is their number.
func (s *SSMState) Layers() int { return int(get(&s.object, native.GenSsmStateNumLayers)) }

// Position is the number of tokens that a session's state is after; 0 for one of NewSSMState. Also while a call runs.
func (s *SSMState) Position() int { return int(get(&s.object, native.GenSsmStatePosition)) }

// LayerKind is what a layer is, such as "delta net"; empty if there is no such layer.
func (s *SSMState) LayerKind(layer int) string {
	return get(&s.object, func(a uintptr) string { return native.GenSsmStateLayerKind(a, i32(layer)) })
}

// LayerIndex is the layer of the model that a layer of the state belongs to; -1 if there is no such layer.
func (s *SSMState) LayerIndex(layer int) int {
	return int(get(&s.object, func(a uintptr) int32 { return native.GenSsmStateLayerIndex(a, i32(layer)) }))
}

// Layer copies the state of a layer.
func (s *SSMState) Layer(layer int) (h []float32, of Shape, err error) {
	err = s.with(func(a uintptr) error {
		var numbers [3]int32
		if err := native.GenSsmStateGetLayer(a, i32(layer), nil, 0, numbers[:]); err != nil {
			return err
		}
		of = shape(numbers)
		h = make([]float32, of.size())
		return native.GenSsmStateGetLayer(a, i32(layer), h, len(h), numbers[:])
	})
	return h, of, err
}

// SetLayer replaces the state of a layer, but not of a session: h is [batch, dInner, dState].
func (s *SSMState) SetLayer(layer int, h []float32, batch, dInner, dState int) error {
	if want, ok := product(batch, dInner, dState); ok && len(h) < want {
		return invalid("a state of %d x %d x %d takes %d elements, not %d", batch, dInner, dState, want, len(h))
	}
	return s.with(func(a uintptr) error {
		return native.GenSsmStateSetLayer(a, i32(layer), h, i32(batch), i32(dInner), i32(dState))
	})
}

// Snapshot keeps a copy of all layers, and of what else a session holds, and returns its number; the last 16 are kept.
func (s *SSMState) Snapshot() (int64, error) {
	var number [1]int64
	err := s.with(func(a uintptr) error { return native.GenSsmStateSnapshot(a, number[:]) })
	return number[0], err
}

// Restore makes the state that of a snapshot. A session then holds again what it held when it was taken.
func (s *SSMState) Restore(snapshot int64) error {
	return s.with(func(a uintptr) error { return native.GenSsmStateRestore(a, snapshot) })
}

// Reset sets all layers to zeros.
func (s *SSMState) Reset() error { return s.with(native.GenSsmStateReset) }

// MemoryBytes is what the state takes; 0 for a custom model. Each snapshot of a state of NewSSMState takes as much.
func (s *SSMState) MemoryBytes() int64 { return get(&s.object, native.GenSsmStateMemoryBytes) }
