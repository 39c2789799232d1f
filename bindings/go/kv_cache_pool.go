// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// Pool is blocks that paged caches share. Any number of goroutines may use one.
type Pool struct {
	object
	bytes    int // of a block's keys, as of its values
	onDevice bool
}

// NewPool makes a pool of blocks of blockSize positions of all layers, as many as fit into maxMemoryMB MiB. A row has
// rowDim elements, batch * dim of the updates. Type is "fp32" or "fp16".
func NewPool(layers, blockSize, rowDim, maxMemoryMB int, kind string) (*Pool, error) {
	size := 4
	if kind == "fp16" {
		size = 2
	}
	p := &Pool{bytes: layers * blockSize * rowDim * size}
	if err := p.take(kindPool, native.KvCachePoolFree, func(out []uintptr) error {
		return native.KvCachePoolNew(i32(layers), i32(blockSize), i32(rowDim), i32(maxMemoryMB), kind, out)
	}); err != nil {
		return nil, err
	}
	return p, nil
}

// SetAllocator takes the blocks' memory from a gen_allocator in C, before the first block is taken.
func (p *Pool) SetAllocator(table Symbol) error {
	return p.with(func(a uintptr) error {
		err := native.KvCachePoolSetAllocator(a, uintptr(table))
		p.onDevice = p.onDevice && err != nil
		return err
	})
}

// SetGPUAllocator keeps the blocks in a device's memory, before the first block is taken. Their bytes are not shown then.
func (p *Pool) SetGPUAllocator(allocator *GPUAllocator) error {
	return p.with(func(a uintptr) error {
		err := allocator.with(func(table uintptr) error { return native.KvCachePoolSetGpuAllocator(a, table) })
		p.onDevice = p.onDevice || err == nil
		return err
	})
}

// Block is one block of a pool, for as long as the caller or a cache has a reference to it.
type Block struct {
	pool    *Pool
	address uintptr
}

// Alloc takes a block with one reference, the caller's.
func (p *Pool) Alloc() (Block, error) {
	var out [1]uintptr
	err := p.with(func(a uintptr) error { return native.KvCachePoolAlloc(a, out[:]) })
	return Block{p, out[0]}, err
}

// Retain adds a reference.
func (b Block) Retain() error {
	return b.pool.with(func(a uintptr) error { return native.KvCachePoolRetainBlock(a, b.address) })
}

// Free drops a reference; a block without any is the next to be taken.
func (b Block) Free() error {
	return b.pool.with(func(a uintptr) error { return native.KvCachePoolFreeBlock(a, b.address) })
}

// Used is the number of positions that caches have written.
func (b Block) Used() int {
	return int(get(&b.pool.object, func(uintptr) int32 { return native.KvCacheBlockUsed(b.address) }))
}

// View shows keys and values in place while use runs: [layers, blockSize, rowDim] of the pool's type. The only holder of
// the block may write. Of a pool on a device both are empty.
func (b Block) View(use func(k, v []byte) error) error {
	return b.pool.with(func(uintptr) error {
		bytes := b.pool.bytes
		if b.pool.onDevice {
			bytes = 0
		}
		return use(lent[byte](native.KvCacheBlockK(b.address), bytes), lent[byte](native.KvCacheBlockV(b.address), bytes))
	})
}

// Cap is the number of blocks in all.
func (p *Pool) Cap() int { return get(&p.object, native.KvCachePoolCap) }

// Available is the number of blocks that are free now.
func (p *Pool) Available() int { return get(&p.object, native.KvCachePoolAvailable) }

// BlockSize is the number of positions in a block.
func (p *Pool) BlockSize() int { return int(get(&p.object, native.KvCachePoolBlockSize)) }

// Fragmentation is the share of taken blocks' positions that is not written.
func (p *Pool) Fragmentation() float64 { return get(&p.object, native.KvCachePoolFragmentation) }

// ResidentBytes is what was taken from the allocator.
func (p *Pool) ResidentBytes() int64 { return int64(get(&p.object, native.KvCachePoolResidentBytes)) }

// NewCache makes an empty cache for one sequence over the pool.
func (p *Pool) NewCache(layers int) (*Cache, error) {
	return newCache(func(out []uintptr) error {
		return p.with(func(pool uintptr) error { return native.KvCachePagedNew(pool, i32(layers), out) })
	})
}

// BlockTable lists the blocks of a paged cache over pool; they are borrowed until the cache changes.
func (c *Cache) BlockTable(pool *Pool) ([]Block, error) {
	var addresses []uintptr
	err := c.with(func(a uintptr) (err error) {
		addresses, err = sized(0, func(buffer []uintptr, capacity int, n []int) error {
			return native.KvCacheBlockTable(a, buffer, capacity, n)
		})
		return err
	})
	return pool.blocks(addresses), err
}

func (p *Pool) blocks(addresses []uintptr) []Block {
	blocks := make([]Block, len(addresses))
	for i, address := range addresses {
		blocks[i] = Block{p, address}
	}
	return blocks
}

func addresses(blocks []Block) []uintptr {
	out := make([]uintptr, len(blocks))
	for i, block := range blocks {
		out[i] = block.address
	}
	return out
}

// InjectBlocks fills an empty paged cache with blocks that are written; one reference to each passes to the cache.
func (c *Cache) InjectBlocks(blocks []Block, positions, batch, dim int) error {
	return c.with(func(a uintptr) error {
		return native.KvCacheInjectBlocks(a, addresses(blocks), len(blocks), i32(positions), i32(batch), i32(dim))
	})
}
