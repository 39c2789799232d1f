// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// GPUAllocator is the source of device memory for caches and models, and the means by which caches copy.
type GPUAllocator struct{ object }

// NewHostGPUAllocator makes one over host memory that acts as a device. Caches keep what they use of it alive.
func NewHostGPUAllocator() (*GPUAllocator, error) { return gpuAllocator(native.GenGpuAllocatorHost) }

// NewCUDAGPUAllocator makes one over the memory of a device of the backend "cuda".
func NewCUDAGPUAllocator(device int) (*GPUAllocator, error) {
	return gpuAllocator(func(out []uintptr) error { return native.GenGpuAllocatorCuda(i32(device), out) })
}

// GPUAllocatorAt is a gen_gpu_allocator in C, which must work until the caches that use it are closed.
func GPUAllocatorAt(table Symbol) (*GPUAllocator, error) {
	return gpuAllocator(func(out []uintptr) error {
		out[0] = uintptr(table)
		return nil
	})
}

func gpuAllocator(create func(out []uintptr) error) (*GPUAllocator, error) {
	a := new(GPUAllocator)
	if err := a.take(kindGPUAllocator, native.GenGpuAllocatorRelease, create); err != nil {
		return nil, err
	}
	return a, nil
}

// What a copy that a gen_gpu_allocator in C is asked for is between.
const (
	GPUCopyToDevice = 0
	GPUCopyToHost   = 1
	GPUCopyOnDevice = 2
)

// GPUMemory is what is taken from an allocator of the library.
type GPUMemory struct{ Allocations, Bytes, PeakBytes int }

// Counters tells what is taken; of one in C it fails with ErrInvalidArgument.
func (a *GPUAllocator) Counters() (GPUMemory, error) {
	var allocations, bytes, peak [1]int
	err := a.with(func(table uintptr) error {
		return native.GenGpuAllocatorCounters(table, allocations[:], bytes[:], peak[:])
	})
	return GPUMemory{allocations[0], bytes[0], peak[0]}, err
}

// GPUCache is a cache whose layers are float32 or float16 buffers [maxSeqLen, heads, headDim] on a device, one of keys and one
// of values. Update takes batch 1 and dim heads * headDim.
type GPUCache struct {
	Cache
	row int
}

// NewGPUCache makes an empty one of float32 with all of its memory.
func NewGPUCache(allocator *GPUAllocator, layers, maxSeqLen, heads, headDim int) (*GPUCache, error) {
	return NewTypedGPUCache(allocator, layers, maxSeqLen, heads, headDim, "fp32")
}

// NewTypedGPUCache makes an empty one with all of its memory. Kind is fp32 or fp16, to which it rounds what is appended.
func NewTypedGPUCache(allocator *GPUAllocator, layers, maxSeqLen, heads, headDim int, kind string) (*GPUCache, error) {
	row, _ := product(heads, headDim)
	c := &GPUCache{row: row}
	if err := c.take(kindCache, native.KvCacheFree, func(out []uintptr) error {
		return allocator.with(func(table uintptr) error {
			return native.KvCacheGpuNewTyped(table, i32(layers), i32(maxSeqLen), i32(heads), i32(headDim), kind, out)
		})
	}); err != nil {
		return nil, err
	}
	return c, nil
}

// Append appends one position to one layer: k and v are [heads, headDim]. The length moves when all layers have it.
func (c *GPUCache) Append(layer int, k, v []float32, position int) error {
	if len(k) < c.row || len(v) < c.row {
		return invalid("a position takes %d elements, not %d and %d", c.row, len(k), len(v))
	}
	return c.with(func(a uintptr) error { return native.KvCacheGpuAppend(a, i32(layer), k, v, i32(position)) })
}

// AppendDevice is Append of the next position from addresses of float32 on the device.
func (c *GPUCache) AppendDevice(layer int, k, v uintptr) error {
	return c.with(func(a uintptr) error {
		return native.GenBindingGpuAppendDevice(a, i32(layer), int64(k), int64(v))
	})
}

// AppendStream enqueues AppendDevice on a CUDA stream, a cudaStream_t of the allocator's device; 0 in host memory that acts
// as one. Streams that are captured take it into their graph, whose replays move only the counter: SyncLength takes the
// length then. Make the stream wait before other methods look at the cache.
func (c *GPUCache) AppendStream(layer int, k, v, stream uintptr) error {
	return c.with(func(a uintptr) error {
		return native.GenBindingGpuAppendStream(a, i32(layer), int64(k), int64(v), int64(stream))
	})
}

// Pointers are the addresses on the device of a layer's keys and values; 0 for a layer that does not exist.
func (c *GPUCache) Pointers(layer int) (k, v uintptr, length int, err error) {
	var fields [3]int64
	err = c.with(func(a uintptr) error { return native.GenBindingGpuPointers(a, i32(layer), fields[:]) })
	return uintptr(fields[0]), uintptr(fields[1]), int(fields[2]), err
}

// PointerArrays are the addresses on the device of arrays of all layers' addresses.
func (c *GPUCache) PointerArrays() (k, v uintptr, err error) {
	var fields [2]int64
	err = c.with(func(a uintptr) error { return native.GenBindingGpuPointerArrays(a, fields[:]) })
	return uintptr(fields[0]), uintptr(fields[1]), err
}

// CounterAddress is where a device finds the position that is written next.
func (c *GPUCache) CounterAddress() uintptr { return get(&c.object, native.KvCacheGpuCounterPtr) }

// SyncLength takes the length from the device. It fails once with ErrCacheFull if appends on a stream were dropped
// because the cache was full.
func (c *GPUCache) SyncLength() error { return c.with(native.KvCacheGpuSyncCounter) }

// SetGPUAllocator moves an empty tensor cache to a device.
func (c *Cache) SetGPUAllocator(allocator *GPUAllocator) error {
	return c.with(func(a uintptr) error {
		return allocator.with(func(table uintptr) error { return native.KvCacheTensorSetGpuAllocator(a, table) })
	})
}
