// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"unsafe"

	"libgenerate.dev/generate/internal/native"
)

// Cache is keys and values of one sequence, layer by layer, for direct use and for Model.Forward. Its first write decides:
// Update makes it a store of [batch, seq, dim] tensors, Forward a cache of that model. One goroutine at a time: a second
// one gets ErrBusy. Caches of many sequences are BatchCache.
type Cache struct{ object }

func (c *Cache) pointer() *object {
	if c == nil {
		return nil
	}
	return &c.object
}

func newCache(create func(out []uintptr) error) (*Cache, error) {
	c := new(Cache)
	if err := c.take(kindCache, native.KvCacheFree, create); err != nil {
		return nil, err
	}
	return c, nil
}

// NewCache makes an empty cache that keeps float32.
func NewCache(layers, maxSeqLen int) (*Cache, error) {
	return sizedCache(native.KvCacheNew, layers, maxSeqLen)
}

// NewFP16Cache makes an empty cache that keeps binary16.
func NewFP16Cache(layers, maxSeqLen int) (*Cache, error) {
	return sizedCache(native.KvCacheFp16New, layers, maxSeqLen)
}

// NewFP8Cache makes an empty cache that keeps E4M3 with a scale for each row.
func NewFP8Cache(layers, maxSeqLen int) (*Cache, error) {
	return sizedCache(native.KvCacheFp8New, layers, maxSeqLen)
}

// NewQ4Cache makes an empty cache that keeps 4 bits an element.
func NewQ4Cache(layers, maxSeqLen int) (*Cache, error) {
	return sizedCache(native.KvCacheQ4New, layers, maxSeqLen)
}

// NewQ3Cache makes an empty cache that keeps 3 bits an element.
func NewQ3Cache(layers, maxSeqLen int) (*Cache, error) {
	return sizedCache(native.KvCacheQ3New, layers, maxSeqLen)
}

func sizedCache(create func(int32, int32, []uintptr) error, layers, maxSeqLen int) (*Cache, error) {
	return newCache(func(out []uintptr) error { return create(i32(layers), i32(maxSeqLen), out) })
}

// NewCompressedCache makes an empty cache of any length of which each full chunk of positions becomes one entry, their
// mean. Heads and dim may be 0 if they are not known.
func NewCompressedCache(layers, heads, dim, chunkSize int) (*Cache, error) {
	return newCache(func(out []uintptr) error {
		return native.KvCacheCompressedNew(i32(layers), i32(heads), i32(dim), i32(chunkSize), out)
	})
}

// NewCache makes an empty cache of the kind that sessions of the generator have; 0 for as many positions as theirs.
func (g *Generator) NewCache(maxSeqLen int) (*Cache, error) {
	return newCache(func(out []uintptr) error {
		return g.with(func(generator uintptr) error { return native.KvCacheGeneratorNew(generator, i32(maxSeqLen), out) })
	})
}

// SetAllocator takes the cache's memory from a gen_allocator in C, before the first write.
func (c *Cache) SetAllocator(table Symbol) error {
	return c.with(func(a uintptr) error { return native.KvCacheSetAllocator(a, uintptr(table)) })
}

// Update appends positions to one layer: k and v are [batch, seq, dim].
func (c *Cache) Update(layer int, k, v []float32, batch, seq, dim int) error {
	want, ok := product(batch, seq, dim)
	if ok && (len(k) < want || len(v) < want) {
		return invalid("keys and values of %d x %d x %d take %d elements, not %d and %d", batch, seq, dim, want, len(k), len(v))
	}
	return c.with(func(a uintptr) error {
		return native.KvCacheUpdate(a, i32(layer), k, v, i32(batch), i32(seq), i32(dim))
	})
}

// product is how many elements a shape has; not ok for one that the C library refuses.
func product(sizes ...int) (n int, ok bool) {
	n = 1
	for _, size := range sizes {
		if size < 0 || int(i32(size)) != size {
			return 0, false
		}
		if size > 0 && n > (1<<62)/size {
			return 1 << 62, true // more than any slice has
		}
		n *= size
	}
	return n, true
}

// Shape is batch, seq and dim of a layer's keys or values, all 0 where nothing is stored.
type Shape struct{ Batch, Seq, Dim int }

func shape(numbers [3]int32) Shape {
	return Shape{int(numbers[0]), int(numbers[1]), int(numbers[2])}
}

func (s Shape) size() int { return s.Batch * s.Seq * s.Dim }

// Get copies the content of a layer as float32 [batch, seq, dim]; shapes of 0 for one that is empty.
func (c *Cache) Get(layer int) (k, v []float32, kShape, vShape Shape, err error) {
	err = c.with(func(a uintptr) error {
		var ks, vs [3]int32
		if err := native.KvCacheGet(a, i32(layer), nil, 0, nil, 0, ks[:], vs[:]); err != nil {
			return err
		}
		kShape, vShape = shape(ks), shape(vs)
		k, v = make([]float32, kShape.size()), make([]float32, vShape.size())
		return native.KvCacheGet(a, i32(layer), k, len(k), v, len(v), ks[:], vs[:])
	})
	return k, v, kShape, vShape, err
}

// GetInto is Get with memory of the caller's; nil leaves keys or values out.
func (c *Cache) GetInto(layer int, k, v []float32) (kShape, vShape Shape, err error) {
	var ks, vs [3]int32
	err = c.with(func(a uintptr) error {
		return native.KvCacheGet(a, i32(layer), k, len(k), v, len(v), ks[:], vs[:])
	})
	return shape(ks), shape(vs), err
}

// LayerView is a layer in place. Rows are good for as long as the function that got it runs.
type LayerView struct {
	Type         CacheType
	Batch, Seq   int
	KDim, VDim   int
	k, v         uintptr
	kBatch, kSeq int // strides in bytes
	vBatch, vSeq int
}

// CacheType is the type of a view's elements.
type CacheType int32

// Types.
const (
	TypeF32 CacheType = 0
	TypeF16 CacheType = 1
)

// K is a row of keys, if Type is TypeF32.
func (v *LayerView) K(batch, seq int) []float32 {
	return row[float32](v, TypeF32, v.k, batch, seq, v.kBatch, v.kSeq, v.KDim)
}

// V is a row of values, if Type is TypeF32.
func (v *LayerView) V(batch, seq int) []float32 {
	return row[float32](v, TypeF32, v.v, batch, seq, v.vBatch, v.vSeq, v.VDim)
}

// K16 is a row of keys as binary16, if Type is TypeF16.
func (v *LayerView) K16(batch, seq int) []uint16 {
	return row[uint16](v, TypeF16, v.k, batch, seq, v.kBatch, v.kSeq, v.KDim)
}

// V16 is a row of values as binary16, if Type is TypeF16.
func (v *LayerView) V16(batch, seq int) []uint16 {
	return row[uint16](v, TypeF16, v.v, batch, seq, v.vBatch, v.vSeq, v.VDim)
}

func row[T any](v *LayerView, kind CacheType, base uintptr, batch, seq, batchStride, seqStride, dim int) []T {
	if v.Type != kind || batch < 0 || batch >= v.Batch || seq < 0 || seq >= v.Seq {
		panic("generate: no such row in the view, or it has another type")
	}
	return lent[T](base+uintptr(batch*batchStride+seq*seqStride), dim)
}

// lent is n elements of memory of the C library's.
func lent[T any](address uintptr, n int) []T {
	// The address is not one of Go's, so that no collector moves or frees what it points to.
	return unsafe.Slice((*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), n)
}

// View shows a layer in place, without a copy, while use runs, which must not write to the cache or keep rows.
func (c *Cache) View(layer int, use func(view *LayerView) error) error {
	return c.view(native.GenBindingView, layer, use)
}

func (c *Cache) view(get func(uintptr, int32, []int64) error, layer int, use func(view *LayerView) error) error {
	return c.with(func(a uintptr) error {
		var f [11]int64 // GEN_BINDING_SPAN_… of support.h
		if err := get(a, i32(layer), f[:]); err != nil {
			return err
		}
		return use(&LayerView{Type: CacheType(f[0]), k: uintptr(f[1]), v: uintptr(f[2]), Batch: int(f[3]), Seq: int(f[4]),
			KDim: int(f[5]), VDim: int(f[6]), kBatch: int(f[7]), kSeq: int(f[8]), vBatch: int(f[9]), vSeq: int(f[10])})
	})
}

// SeqLen is the number of positions on which all layers last agreed.
func (c *Cache) SeqLen() int { return int(get(&c.object, native.KvCacheSeqLen)) }

// LayerSeqLen is the number of positions of one layer.
func (c *Cache) LayerSeqLen(layer int) int {
	return int(get(&c.object, func(a uintptr) int32 { return native.KvCacheLayerSeqLen(a, i32(layer)) }))
}

// KVLen is the number of entries of one layer that attention reads.
func (c *Cache) KVLen(layer int) int {
	return int(get(&c.object, func(a uintptr) int32 { return native.KvCacheKvLen(a, i32(layer)) }))
}

// NumLayers is the number of layers.
func (c *Cache) NumLayers() int { return int(get(&c.object, native.KvCacheNumLayers)) }

// MaxSeqLen is the maximum number of positions of a layer.
func (c *Cache) MaxSeqLen() int { return int(get(&c.object, native.KvCacheMaxSeqLen)) }

// Truncate keeps the first n positions of every layer.
func (c *Cache) Truncate(n int) error {
	return c.with(func(a uintptr) error { return native.KvCacheTruncate(a, i32(n)) })
}

// Reset forgets everything.
func (c *Cache) Reset() error { return c.with(native.KvCacheReset) }

// CacheMemory is bytes of a cache.
type CacheMemory struct {
	Resident int64 // allocated, whether or not it was written
	Payload  int64 // keys and values
	Metadata int64 // scales, tables and bookkeeping
}

func (o *object) cacheMemory() (CacheMemory, error) {
	var resident, payload, metadata [1]int
	err := o.with(func(a uintptr) error { return native.KvCacheMemoryBytes(a, resident[:], payload[:], metadata[:]) })
	return CacheMemory{int64(resident[0]), int64(payload[0]), int64(metadata[0])}, err
}

// Memory tells what the cache takes.
func (c *Cache) Memory() (CacheMemory, error) { return c.cacheMemory() }

func (o *object) describeCache() (description string, err error) {
	err = o.with(func(a uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.KvCacheDescribe(a, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// Describe tells kind, size and which layers keep only a window as JSON.
func (c *Cache) Describe() (string, error) { return c.describeCache() }

// Kind is the kind's name, "fp32" or "q4" for example.
func (c *Cache) Kind() string { return get(&c.object, native.KvCacheKind) }

// DType is what elements are kept as, "fp32" or "fp8/q4" for example.
func (c *Cache) DType() string { return get(&c.object, native.KvCacheDtype) }

// Underlying is the cache that a tracing one wraps, to be read only, or nil for any other. It is usable until c is closed,
// and need not be closed itself.
func (c *Cache) Underlying() (*Cache, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	address := native.KvCacheUnderlying(c.address)
	if address == 0 {
		return nil, nil
	}
	return &Cache{object{address: address, kind: kindCache, owner: &c.object}}, nil
}

// Capabilities are what a cache can do.
type Capabilities uint32

// Capabilities of caches.
const (
	CanTruncate     Capabilities = 1 << 0
	CanClone        Capabilities = 1 << 1
	CanView         Capabilities = 1 << 2
	OneRowOneResult Capabilities = 1 << 3 // results do not depend on how many tokens came at once
	HasFullBuffer   Capabilities = 1 << 4
)

// Capabilities tells what the cache can do.
func (c *Cache) Capabilities() Capabilities {
	return Capabilities(get(&c.object, native.KvCacheCapabilities))
}

// Lossy tells whether stored values may differ from those written.
func (c *Cache) Lossy() bool { return get(&c.object, native.KvCacheIsLossy) != 0 }

// Save writes the content of the cache to a file.
func (c *Cache) Save(path string) error {
	return c.with(func(a uintptr) error { return native.KvCacheSave(a, path) })
}

// SaveBytes is Save to memory.
func (c *Cache) SaveBytes() (state []byte, err error) {
	err = c.with(func(a uintptr) (err error) {
		state, err = sized(0, func(buffer []byte, capacity int, n []int) error {
			return native.KvCacheSaveBuffer(a, buffer, capacity, n)
		})
		return err
	})
	return state, err
}

// Load takes what Save wrote; this cache must be empty.
func (c *Cache) Load(path string) error {
	return c.with(func(a uintptr) error { return native.KvCacheLoad(a, path) })
}

// LoadBytes is Load from memory.
func (c *Cache) LoadBytes(state []byte) error {
	return c.with(func(a uintptr) error { return native.KvCacheLoadBuffer(a, state, len(state)) })
}

// Clone makes an independent copy.
func (c *Cache) Clone() (*Cache, error) {
	return newCache(func(out []uintptr) error {
		return c.with(func(a uintptr) error { return native.KvCacheClone(a, out) })
	})
}

// CompressedEntry tells which positions an entry of a compressed cache represents.
func (c *Cache) CompressedEntry(layer, entry int) (first, positions int, err error) {
	var f, p [1]int32
	err = c.with(func(a uintptr) error { return native.KvCacheCompressedEntry(a, i32(layer), i32(entry), f[:], p[:]) })
	return int(f[0]), int(p[0]), err
}
