// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// NewTensorCache makes an empty cache whose layers are buffers of a fixed shape, where the model computes; nil for the
// host. Type is "fp32" or "fp16".
func NewTensorCache(model *Model, layers, maxSeqLen int, kind string) (*Cache, error) {
	return newCache(func(out []uintptr) error {
		return model.pointer().optional(func(m uintptr) error {
			return native.KvCacheTensorNew(m, i32(layers), i32(maxSeqLen), kind, out)
		})
	})
}

// FullBuffer is View of all the memory of a tensor cache's layer, with Seq as its most positions.
func (c *Cache) FullBuffer(layer int, use func(view *LayerView) error) error {
	return c.view(native.GenBindingFullBuffer, layer, use)
}

// SeqLenDeviceAddress is where a device finds the number of positions; 0 without a device.
func (c *Cache) SeqLenDeviceAddress() uintptr { return get(&c.object, native.KvCacheSeqLenDevicePtr) }

// CounterDeviceAddress is where a device finds the position that is written next; 0 without a device.
func (c *Cache) CounterDeviceAddress() uintptr { return get(&c.object, native.KvCacheCounterDevicePtr) }

// SyncCounter takes the lengths from the device.
func (c *Cache) SyncCounter() error { return c.with(native.KvCacheSyncCounter) }
