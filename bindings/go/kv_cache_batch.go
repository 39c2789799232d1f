// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math"

	"libgenerate.dev/generate/internal/native"
)

// BatchCache is keys and values of many sequences in one store, driven pass by pass:
//
//	Init                                             once
//	StartForward                                     for each pass
//	SetLayer, Put, GetMasked                         for each layer of the pass
//	Remove, CopyPrefix, Compact                      between passes
//
// Data is float32, fastest dimension first: keys [dim, heads, n] means that element d of head h of token i is
// k[(i * heads + h) * dim + d]. One goroutine at a time: a second one gets ErrBusy.
type BatchCache struct {
	object
	half bool // masks are binary16
}

// ToTheEnd is the end of a range of positions: all from its begin on.
const ToTheEnd = math.MaxInt32

func newBatchCache(create func(out []uintptr) error) (*BatchCache, error) {
	c := new(BatchCache)
	if err := c.take(kindCache, native.KvCacheFree, create); err != nil {
		return nil, err
	}
	return c, nil
}

// NewCausalCache makes a cache whose tokens see all earlier positions of their sequence.
func NewCausalCache() (*BatchCache, error) { return newBatchCache(native.KvCacheCausalNew) }

// NewSlidingCache makes a cache whose tokens see window earlier positions and themselves, and which drops older ones.
func NewSlidingCache(window int) (*BatchCache, error) {
	return newBatchCache(func(out []uintptr) error { return native.KvCacheSwaNew(i32(window), out) })
}

// NewSlidingMemoryCache is NewSlidingCache, but positions up to memory back are kept, so that a sequence can go back.
func NewSlidingMemoryCache(window, memory int) (*BatchCache, error) {
	return newBatchCache(func(out []uintptr) error { return native.KvCacheSwaMemNew(i32(window), i32(memory), out) })
}

// NewChunkedCache makes a cache whose tokens see earlier positions of the same chunk only.
func NewChunkedCache(chunk int) (*BatchCache, error) {
	return newBatchCache(func(out []uintptr) error { return native.KvCacheChunkedNew(i32(chunk), out) })
}

// NewEncoderCache makes a cache for the output of an encoder, such as images, for cross attention.
func NewEncoderCache() (*BatchCache, error) { return newBatchCache(native.KvCacheEncoderNew) }

// NewWrapperCache makes one cache of several, one for each type of layer. They pass into the wrapper: they are still to be
// closed, and good for nothing else.
func NewWrapperCache(caches ...*BatchCache) (*BatchCache, error) {
	addresses := make([]uintptr, len(caches))
	for i, c := range caches {
		if c == nil {
			continue
		}
		if err := c.enter(); err != nil {
			return nil, err
		}
		defer c.leave()
		addresses[i] = c.address
	}
	return newBatchCache(func(out []uintptr) error { return native.KvCacheWrapperNew(addresses, len(addresses), out) })
}

// SetAllocator takes the cache's memory from a gen_allocator in C.
func (c *BatchCache) SetAllocator(table Symbol) error {
	return c.with(func(a uintptr) error { return native.KvCacheSetAllocator(a, uintptr(table)) })
}

// SetConfig sets the form of GetMasked's output, before Init: histories begin and end at multiples of padding, values come
// as [n, dim, heads] if permuted, and masks are "fp32" or "fp16".
func (c *BatchCache) SetConfig(padding int, permutedV bool, maskType string) error {
	return c.with(func(a uintptr) error {
		err := native.KvCacheSetConfig(a, i32(padding), flag(permutedV), maskType)
		if err == nil {
			c.half = maskType == "fp16"
		}
		return err
	})
}

// SetShift sets a kv_cache_shift_fn in C that rotates keys to shifted positions.
func (c *BatchCache) SetShift(function, user Symbol) error {
	return c.with(func(a uintptr) error { return native.KvCacheSetShift(a, uintptr(function), uintptr(user)) })
}

// SetQuota is the maximum number of entries of one sequence; 0 for no quota.
func (c *BatchCache) SetQuota(entries int) error {
	return c.with(func(a uintptr) error { return native.KvCacheSetQuota(a, i32(entries)) })
}

// Init sets the size, once. Type is "fp16", "fp32", "q8_0" or "q4_0".
func (c *BatchCache) Init(kind string, maxSequences, capacity, maxBatch int) error {
	return c.with(func(a uintptr) error {
		return native.KvCacheInit(a, kind, i32(maxSequences), i32(capacity), i32(maxBatch))
	})
}

// SetLayer chooses the layer that Put and GetMasked are about.
func (c *BatchCache) SetLayer(layer int) error {
	return c.with(func(a uintptr) error { return native.KvCacheSetLayer(a, i32(layer)) })
}

// SetLayerType chooses the cache of a wrapper.
func (c *BatchCache) SetLayerType(kind int) error {
	return c.with(func(a uintptr) error { return native.KvCacheSetLayerType(a, i32(kind)) })
}

// StartForward begins a pass of tokens with these positions in these sequences. With reserve it is for the largest history
// there can be, and changes nothing. Multimodal tokens stand for items of an encoder.
func (c *BatchCache) StartForward(positions, sequences []int32, reserve bool, multimodal ...int32) error {
	if len(positions) != len(sequences) {
		return invalid("%d positions do not go with %d sequences", len(positions), len(sequences))
	}
	return c.with(func(a uintptr) error {
		return native.KvCacheStartForward(a, positions, sequences, len(positions), flag(reserve), multimodal, len(multimodal))
	})
}

// Put stores this pass's keys [kDim, kHeads, n] and values [vDim, vHeads, n] in the chosen layer.
func (c *BatchCache) Put(k []float32, kHeads, kDim int, v []float32, vHeads, vDim, n int) error {
	wantK, okK := product(kHeads, kDim, n)
	wantV, okV := product(vHeads, vDim, n)
	if okK && okV && (len(k) < wantK || len(v) < wantV) {
		return invalid("keys and values take %d and %d elements, not %d and %d", wantK, wantV, len(k), len(v))
	}
	return c.with(func(a uintptr) error {
		return native.KvCachePut(a, k, i32(kHeads), i32(kDim), v, i32(vHeads), i32(vDim), i32(n))
	})
}

// Masked is what the tokens of a pass may see in a layer.
type Masked struct {
	K, V           []float32
	Mask           []float32 // 0 where a token may see a cell, else negative infinity; nil if nothing is hidden
	Mask16         []uint16  // in its place, if masks are binary16
	KShape, VShape [3]int    // dim, heads, length; or length, dim, heads for permuted values
	MaskShape      [2]int    // length, n
}

// GetMasked copies what the tokens of this pass may see in the chosen layer.
func (c *BatchCache) GetMasked() (*Masked, error) {
	m := new(Masked)
	err := c.with(func(a uintptr) error {
		var ks, vs [3]int32
		var ms [2]int32
		if err := native.KvCacheGetMasked(a, nil, 0, nil, 0, nil, 0, ks[:], vs[:], ms[:]); err != nil {
			return err
		}
		for i := range ks {
			m.KShape[i], m.VShape[i] = int(ks[i]), int(vs[i])
		}
		m.MaskShape = [2]int{int(ms[0]), int(ms[1])}
		m.K = make([]float32, m.KShape[0]*m.KShape[1]*m.KShape[2])
		m.V = make([]float32, m.VShape[0]*m.VShape[1]*m.VShape[2])
		n := m.MaskShape[0] * m.MaskShape[1]
		var mask []byte
		switch {
		case n == 0:
		case c.half:
			m.Mask16 = make([]uint16, n)
			mask = bytesOf(m.Mask16)
		default:
			m.Mask = make([]float32, n)
			mask = bytesOf(m.Mask)
		}
		return native.KvCacheGetMasked(a, m.K, len(m.K), m.V, len(m.V), mask, n, ks[:], vs[:], ms[:])
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// SetCausal lets tokens of this pass see later positions, too.
func (c *BatchCache) SetCausal(except ...int32) error {
	return c.with(func(a uintptr) error { return native.KvCacheSetCausal(a, except, len(except)) })
}

// CopyPrefix replaces a sequence by a prefix of another.
func (c *BatchCache) CopyPrefix(from, to, length int) error {
	return c.with(func(a uintptr) error { return native.KvCacheCopyPrefix(a, i32(from), i32(to), i32(length)) })
}

// CanResume tells whether a sequence may continue with a token at a position.
func (c *BatchCache) CanResume(sequence, position int) (bool, error) {
	var can [1]int32
	err := c.with(func(a uintptr) error { return native.KvCacheCanResume(a, i32(sequence), i32(position), can[:]) })
	return can[0] != 0, err
}

// Remove removes positions [begin, end) from a sequence; those after them move down.
func (c *BatchCache) Remove(sequence, begin, end int) error {
	return c.with(func(a uintptr) error { return native.KvCacheRemove(a, i32(sequence), i32(begin), i32(end)) })
}

// Compact moves at most budget entries into free cells, and tells how many were moved.
func (c *BatchCache) Compact(budget int) (int, error) {
	var moved [1]int32
	err := c.with(func(a uintptr) error { return native.KvCacheCompact(a, i32(budget), moved[:]) })
	return int(moved[0]), err
}

// EncoderCached tells whether a sequence has items in an encoder cache.
func (c *BatchCache) EncoderCached(sequence int) (bool, error) {
	var cached [1]int32
	err := c.with(func(a uintptr) error { return native.KvCacheEncoderCached(a, i32(sequence), cached[:]) })
	return cached[0] != 0, err
}

// Release gives the memory back before Close; all other calls fail from then on.
func (c *BatchCache) Release() error { return c.with(native.KvCacheClose) }

// Memory tells what the cache takes.
func (c *BatchCache) Memory() (CacheMemory, error) { return c.cacheMemory() }

// Describe tells kind and size as JSON.
func (c *BatchCache) Describe() (string, error) { return c.describeCache() }

// Kind is the kind's name.
func (c *BatchCache) Kind() string { return get(&c.object, native.KvCacheKind) }

// Lossy tells whether stored values may differ from those written.
func (c *BatchCache) Lossy() bool { return get(&c.object, native.KvCacheIsLossy) != 0 }

// DType is what rows are kept as; "" before Init.
func (c *BatchCache) DType() string { return get(&c.object, native.KvCacheDtype) }

// Underlying is the cache of a wrapper that SetLayerType chose, for its getters, or nil for any other. It is usable until c
// is closed, and need not be closed itself.
func (c *BatchCache) Underlying() (*BatchCache, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	address := native.KvCacheUnderlying(c.address)
	if address == 0 {
		return nil, nil
	}
	return &BatchCache{object: object{address: address, kind: kindCache, owner: &c.object}}, nil
}
