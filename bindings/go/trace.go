// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// Tracer is a record of what caches and forward passes did, see WithTracer. One goroutine at a time, together with all
// that writes to it.
type Tracer struct{ object }

func (t *Tracer) pointer() *object {
	if t == nil {
		return nil
	}
	return &t.object
}

// NewTracer makes an empty record.
func NewTracer() (*Tracer, error) {
	t := new(Tracer)
	if err := t.take(kindTracer, native.GenTracerFree, native.GenTracerNew); err != nil {
		return nil, err
	}
	return t, nil
}

// Count is the number of operations recorded.
func (t *Tracer) Count() int { return get(&t.object, native.GenTracerOpCount) }

// Op is one operation as JSON.
func (t *Tracer) Op(index int) (op string, err error) {
	err = t.with(func(address uintptr) (err error) {
		op, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenTracerOp(address, index, buffer, capacity, n)
		})
		return err
	})
	return op, err
}

// WriteDot writes the record as a Graphviz graph.
func (t *Tracer) WriteDot(path string) error {
	return t.with(func(address uintptr) error { return native.GenTracerWriteDot(address, path) })
}

// WriteJSON writes the record as JSON.
func (t *Tracer) WriteJSON(path string) error {
	return t.with(func(address uintptr) error { return native.GenTracerWriteJson(address, path) })
}

// Trace makes a cache that passes everything on to another and records it.
func (t *Tracer) Trace(inner *Cache) (*Cache, error) {
	return newCache(func(out []uintptr) error {
		return t.with(func(tracer uintptr) error {
			return inner.with(func(cache uintptr) error { return native.KvCacheTracingNew(cache, tracer, out) })
		})
	})
}
