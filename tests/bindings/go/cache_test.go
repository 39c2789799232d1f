// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"math"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"libgenerate.dev/generate"
)

func random(n int) []float32 {
	out := make([]float32, n)
	r := rand.New(rand.NewSource(int64(n)))
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// near compares rows of dim elements with an error of a share of each row's largest magnitude.
func near(t *testing.T, what string, got, want []float32, dim int, share float64) {
	t.Helper()
	equal(t, what+" elements", len(got), len(want))
	for i := range got {
		largest := 0.0
		for _, x := range want[i/dim*dim : i/dim*dim+dim] {
			largest = math.Max(largest, math.Abs(float64(x)))
		}
		if math.Abs(float64(got[i]-want[i])) > share*largest {
			t.Fatalf("%s: at %d got %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestCachesOfOneSequence(t *testing.T) {
	const batch, seq, dim = 2, 3, 128
	pool := must(generate.NewPool(2, 4, batch*dim, 8, "fp32"))
	defer pool.Close()
	tracer := must(generate.NewTracer())
	defer tracer.Close()
	traced := must(generate.NewCache(2, 16))
	defer traced.Close()
	g := generator(t, generate.WithKVType("q4"))
	for _, c := range []struct {
		kind  string
		cache *generate.Cache
		share float64
	}{
		{"fp32", must(generate.NewCache(2, 16)), 0},
		{"fp16", must(generate.NewFP16Cache(2, 16)), 1.0 / 2048},
		{"fp8", must(generate.NewFP8Cache(2, 16)), 1.0 / 16},
		{"q4", must(generate.NewQ4Cache(2, 16)), 0.5 / 7 * 1.001},
		{"q3", must(generate.NewQ3Cache(2, 16)), 0.5},
		{"compressed", must(generate.NewCompressedCache(2, batch, dim, 8)), 0},
		{"tensor", must(generate.NewTensorCache(nil, 2, 16, "fp32")), 0},
		{"tensor", must(generate.NewTensorCache(nil, 2, 16, "fp16")), 1.0 / 2048},
		{"paged", must(pool.NewCache(2)), 0},
		{"tracing", must(tracer.Trace(traced)), 0},
		{"", must(g.NewCache(0)), 0.5 / 7 * 1.001},
	} {
		cache, k, v := c.cache, random(batch*seq*dim), random(batch*seq*dim + 1)[1:]
		t.Run(cache.Kind(), func(t *testing.T) {
			defer cache.Close()
			if c.kind == "" { // a generator's cache is for its model
				logits, err := story.Forward([]int32{1, 912}, cache)
				ok(t, err)
				equal(t, "logits", len(logits), 4096)
				equal(t, "positions", cache.SeqLen(), 2)
				return
			}
			if c.kind != "paged" && c.kind != "tracing" {
				ok(t, cache.SetAllocator(0))
			}
			for layer := 0; layer < 2; layer++ {
				ok(t, cache.Update(layer, k, v, batch, seq, dim))
			}
			gotK, gotV, kShape, vShape, err := cache.Get(1)
			ok(t, err)
			equal(t, "shape", kShape, generate.Shape{Batch: batch, Seq: seq, Dim: dim})
			equal(t, "shape", vShape, kShape)
			near(t, "keys", gotK, k, dim, c.share)
			near(t, "values", gotV, v, dim, c.share)
			equal(t, "lossy", cache.Lossy(), c.share > 0 || c.kind == "compressed")
			equal(t, "positions", cache.SeqLen(), seq)
			equal(t, "of the layer", cache.LayerSeqLen(1), seq)
			equal(t, "entries", cache.KVLen(1), seq)
			equal(t, "layers", cache.NumLayers(), 2)
			if c.kind != "compressed" && c.kind != "paged" {
				equal(t, "most", cache.MaxSeqLen(), 16)
			}
			memory, err := cache.Memory()
			ok(t, err)
			if memory.Payload < 2*2*batch*seq*dim*3/8 || memory.Resident < memory.Payload {
				t.Errorf("memory %+v", memory)
			}

			state, err := cache.SaveBytes()
			ok(t, err)
			if cache.Capabilities()&generate.CanClone != 0 {
				clone := must(cache.Clone())
				defer clone.Close()
				ok(t, clone.Truncate(1))
				equal(t, "clone", clone.SeqLen(), 1)
				equal(t, "and the cloned", cache.SeqLen(), seq)
			}
			path := t.TempDir() + "/cache"
			ok(t, cache.Save(path))
			for _, load := range []func() error{func() error { return cache.Load(path) }, func() error { return cache.LoadBytes(state) }} {
				ok(t, cache.Reset())
				equal(t, "emptied", cache.SeqLen(), 0)
				ok(t, load())
			}
			again := make([]float32, len(gotK))
			kShape, _, err = cache.GetInto(1, again, nil)
			ok(t, err)
			equals(t, "loaded", again, gotK)
			if _, _, err = cache.GetInto(1, again[:5], nil); !errors.Is(err, generate.ErrOutOfRange) {
				t.Error(err)
			}

			if cache.Capabilities()&generate.CanView != 0 {
				ok(t, cache.View(1, func(view *generate.LayerView) error {
					equal(t, "view", view.Seq, seq)
					for b := 0; b < batch; b++ {
						for p := 0; p < seq; p++ {
							at := (b*seq + p) * dim
							if view.Type == generate.TypeF32 {
								equals(t, "row", view.K(b, p), gotK[at:at+dim])
								equals(t, "row", view.V(b, p), gotV[at:at+dim])
							} else {
								equal(t, "row", len(view.K16(b, p)), dim)
								equal(t, "row", halfOf(view.V16(b, p)[7]), gotV[at+7])
							}
						}
					}
					return nil
				}))
			} else if err := cache.View(1, nil); !errors.Is(err, generate.ErrUnsupported) {
				t.Error(err)
			}
			if cache.Capabilities()&generate.HasFullBuffer != 0 {
				ok(t, cache.FullBuffer(1, func(view *generate.LayerView) error {
					equal(t, "full buffer", view.Seq, 16)
					return nil
				}))
				equal(t, "no device", cache.SeqLenDeviceAddress(), cache.CounterDeviceAddress())
				if err := cache.SyncCounter(); !errors.Is(err, generate.ErrState) {
					t.Error(err)
				}
			}
			if err := cache.Update(7, k, v, batch, seq, dim); !errors.Is(err, generate.ErrOutOfRange) {
				t.Error(err)
			}
			if err := cache.Update(0, k[:3], v, batch, seq, dim); !errors.Is(err, generate.ErrInvalidArgument) {
				t.Error("too few elements:", err)
			}
			if err := cache.Update(0, k, v, 1<<40, seq, dim); !errors.Is(err, generate.ErrInvalidArgument) {
				t.Error("a size beyond 32 bits:", err)
			}
			if c.kind == "fp32" {
				if err := cache.Update(0, random(batch*14*dim), random(batch*14*dim), batch, 14, dim); !errors.Is(err, generate.ErrCacheFull) {
					t.Error(err)
				}
			}
		})
	}
	if tracer.Count() == 0 {
		t.Error("nothing was traced")
	}
	op, err := tracer.Op(0)
	ok(t, err)
	if len(op) < 10 || op[0] != '{' {
		t.Error(op)
	}
	ok(t, tracer.WriteDot(t.TempDir()+"/a"))
	ok(t, tracer.WriteJSON(t.TempDir()+"/b"))
}

// halfOf is binary16, normal numbers and zero only.
func halfOf(bits uint16) float32 {
	if bits&0x7fff == 0 {
		return 0
	}
	return float32(math.Ldexp(1-2*float64(bits>>15), int(bits>>10&31)-15) * (1 + float64(bits&1023)/1024))
}

func TestCompressedEntries(t *testing.T) {
	c := must(generate.NewCompressedCache(1, 1, 2, 2))
	defer c.Close()
	ok(t, c.Update(0, []float32{1, 2, 3, 4, 5, 6}, []float32{0, 0, 2, 2, 9, 9}, 1, 3, 2))
	k, v, _, _, err := c.Get(0)
	ok(t, err)
	equals(t, "means", k, []float32{2, 3, 5, 6})
	equals(t, "means", v, []float32{1, 1, 9, 9})
	first, positions, err := c.CompressedEntry(0, 1)
	ok(t, err)
	equal(t, "first", first, 2)
	equal(t, "positions", positions, 1)
}

func TestPoolsAndPrefixes(t *testing.T) {
	pool := must(generate.NewPool(1, 2, 4, 1, "fp32"))
	defer pool.Close()
	ok(t, pool.SetAllocator(0))
	cache := must(pool.NewCache(1))
	defer cache.Close()
	rows := random(5 * 4)
	ok(t, cache.Update(0, rows, rows, 1, 5, 4))
	blocks := must(cache.BlockTable(pool))
	equal(t, "blocks", len(blocks), 3)
	equal(t, "used", blocks[2].Used(), 1)
	equal(t, "available", pool.Available(), pool.Cap()-3)
	equal(t, "block size", pool.BlockSize(), 2)
	equal(t, "fragmentation", math.Round(6e9*pool.Fragmentation()), 1e9)
	if pool.ResidentBytes() < 3*2*2*4*4 {
		t.Error(pool.ResidentBytes())
	}
	ok(t, blocks[1].View(func(k, v []byte) error {
		equal(t, "bytes", len(k), 2*4*4)
		bits := uint32(k[0]) | uint32(k[1])<<8 | uint32(k[2])<<16 | uint32(k[3])<<24
		equal(t, "an element", math.Float32frombits(bits), rows[2*4])
		return nil
	}))

	prefix := must(pool.NewPrefixCache(8))
	defer prefix.Close()
	tokens := []int32{7, 8, 9, 10, 11}
	ok(t, prefix.Insert(1, tokens, blocks))
	equal(t, "kept", prefix.Size(), 3)
	found, matched, err := prefix.Match(1, []int32{7, 8, 9, 99})
	ok(t, err)
	equal(t, "matched", matched, 3)
	other := must(pool.NewCache(1))
	defer other.Close()
	ok(t, other.InjectBlocks(found, matched, 1, 4))
	k, _, _, _, err := other.Get(0)
	ok(t, err)
	equals(t, "shared", k, rows[:3*4])
	_, matched, err = prefix.Match(2, tokens)
	ok(t, err)
	equal(t, "another domain", matched, 0)

	block := must(pool.Alloc())
	ok(t, block.Retain())
	ok(t, block.Free())
	ok(t, block.Free())
	if err := block.Free(); !errors.Is(err, generate.ErrState) {
		t.Error("freed too often:", err)
	}
	small := must(generate.NewPool(1, 512, 512, 2, "fp32"))
	defer small.Close()
	must(small.Alloc())
	if _, err := small.Alloc(); !errors.Is(err, generate.ErrPoolExhausted) {
		t.Error(err)
	}
}

func TestRadixTree(t *testing.T) {
	r := must(generate.NewRadixTree(2, 4))
	defer r.Close()
	ids := must(r.Insert([]int32{1, 2, 3, 4, 5}))
	equal(t, "blocks", len(ids), 3)
	matched, found, err := r.Match([]int32{1, 2, 3, 4, 6})
	ok(t, err)
	equal(t, "matched", matched, 4)
	equals(t, "ids", found, ids[:2])
	matched, _, err = r.Pin([]int32{1, 2})
	ok(t, err)
	equal(t, "pinned", matched, 2)
	if _, err := r.Remove(nil); !errors.Is(err, generate.ErrBusy) {
		t.Error("what is pinned stays:", err)
	}
	ok(t, r.Unpin([]int32{1, 2}))
	equal(t, "evicted", must(r.Evict()), ids[2])
	equal(t, "removed", must(r.Remove(nil)), 2)
	equal(t, "empty", r.Size(), 0)
	equal(t, "nothing to evict", must(r.Evict()), -1)
	matched, found, err = r.Match(nil)
	ok(t, err)
	equal(t, "nothing", matched+len(found), 0)
	equal(t, "stats", must(r.Stats()), generate.RadixStats{Hits: 1, Misses: 1, Evictions: 1})
	ok(t, r.SetEvictFunction(0, 0))

	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		i := int32(i)
		all.Add(1)
		go func() {
			defer all.Done()
			for n := int32(0); n < 200; n++ {
				must(r.Insert([]int32{i, n, 3}))
				_, _, err := r.Match([]int32{i, n, 3})
				ok(t, err)
			}
		}()
	}
	all.Wait()
	if r.Size() > 4 {
		t.Error(r.Size())
	}
}

func TestBatchCaches(t *testing.T) {
	// Two sequences, one key and value head of two elements, all kinds of who sees whom.
	positions, sequences := []int32{0, 1, 2, 3, 0, 1}, []int32{0, 0, 0, 0, 1, 1}
	for _, c := range []struct {
		name  string
		cache *generate.BatchCache
		sees  func(from, to int32) bool
	}{
		{"causal", must(generate.NewCausalCache()), func(from, to int32) bool { return to <= from }},
		{"sliding", must(generate.NewSlidingCache(1)), func(from, to int32) bool { return to <= from && from-to <= 1 }},
		{"with a memory", must(generate.NewSlidingMemoryCache(2, 3)), func(from, to int32) bool { return to <= from && from-to <= 2 }},
		{"chunked", must(generate.NewChunkedCache(2)), func(from, to int32) bool { return to <= from && from/2 == to/2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.cache.Close()
			ok(t, c.cache.SetAllocator(0))
			ok(t, c.cache.SetConfig(1, false, "fp32"))
			if err := c.cache.SetShift(0, 0); !errors.Is(err, generate.ErrInvalidArgument) {
				t.Error(err)
			}
			ok(t, c.cache.Init("fp32", 2, 8, 8))
			ok(t, c.cache.SetQuota(0))
			ok(t, c.cache.StartForward(positions, sequences, false))
			ok(t, c.cache.SetLayer(3))
			k, v := random(12), random(13)[:12]
			ok(t, c.cache.Put(k, 1, 2, v, 1, 2, 6))
			m := must(c.cache.GetMasked())
			equal(t, "keys", m.KShape, [3]int{2, 1, 6})
			equals(t, "keys", m.K, k)
			equals(t, "values", m.V, v)
			equal(t, "mask", m.MaskShape, [2]int{6, 6})
			for token := range positions {
				for cell := range positions {
					want := float32(math.Inf(-1))
					if sequences[token] == sequences[cell] && c.sees(positions[token], positions[cell]) {
						want = 0
					}
					equal(t, "mask", m.Mask[token*6+cell], want)
				}
			}
			can, err := c.cache.CanResume(0, 4)
			ok(t, err)
			equal(t, "can go on", can, true)
			ok(t, c.cache.CopyPrefix(0, 1, 1))
			ok(t, c.cache.Remove(0, 2, generate.ToTheEnd))
			_ = must(c.cache.Compact(10))
			if err := c.cache.Remove(0, 0, 1); !errors.Is(err, generate.ErrUnsupported) {
				t.Error("there is no function to shift with:", err)
			}
			if err := c.cache.StartForward([]int32{1}, nil, false); !errors.Is(err, generate.ErrInvalidArgument) {
				t.Error(err)
			}
			if _, err := c.cache.EncoderCached(0); !errors.Is(err, generate.ErrUnsupported) {
				t.Error(err)
			}
			if memory := must(c.cache.Memory()); memory.Resident == 0 || c.cache.Kind() == "" || c.cache.Lossy() {
				t.Error(memory, c.cache.Kind(), c.cache.Lossy())
			}
			ok(t, c.cache.Release())
			if err := c.cache.SetLayer(0); !errors.Is(err, generate.ErrState) {
				t.Error(err)
			}
		})
	}
}

func TestUnderlyingCaches(t *testing.T) {
	tracer := must(generate.NewTracer())
	defer tracer.Close()
	inner := must(generate.NewFP16Cache(1, 8))
	cache := must(tracer.Trace(inner))
	below := must(cache.Underlying())
	equal(t, "kind", below.Kind(), "fp16")
	equal(t, "type", cache.DType(), "fp16")
	if none := must(inner.Underlying()); none != nil {
		t.Error("below a plain cache:", none.Kind())
	}
	ok(t, inner.Close())
	ok(t, cache.Update(0, random(2), random(2), 1, 1, 2))
	equal(t, "positions", below.SeqLen(), 1)
	if err := below.Truncate(0); !errors.Is(err, generate.ErrState) {
		t.Error("written to:", err)
	}
	ok(t, below.Close())
	ok(t, cache.Close())
	equal(t, "kind of a closed one", below.Kind(), "")

	sliding, causal := must(generate.NewSlidingCache(2)), must(generate.NewCausalCache())
	wrapper := must(generate.NewWrapperCache(sliding, causal))
	defer wrapper.Close()
	ok(t, sliding.Close())
	ok(t, causal.Close())
	equal(t, "type before Init", wrapper.DType(), "")
	ok(t, wrapper.Init("q8_0", 1, 8, 4))
	ok(t, wrapper.SetLayerType(1))
	chosen := must(wrapper.Underlying())
	equal(t, "chosen", chosen.Kind()+" "+chosen.DType(), "causal q8_0")
	if said := must(chosen.Describe()); !strings.HasPrefix(said, `{"kind":"causal","dtype":"q8_0"`) {
		t.Error(said)
	}
	if none := must(chosen.Underlying()); none != nil {
		t.Error("below a causal cache:", none.Kind())
	}
}

func TestWrappersAndEncoders(t *testing.T) {
	causal, encoder := must(generate.NewCausalCache()), must(generate.NewEncoderCache())
	c := must(generate.NewWrapperCache(causal, encoder))
	ok(t, causal.Close())
	ok(t, encoder.Close())
	defer c.Close()
	ok(t, c.SetConfig(1, false, "fp16"))
	ok(t, c.Init("fp32", 1, 8, 4))
	ok(t, c.StartForward([]int32{0, 1}, []int32{0, 0}, false, 1))
	ok(t, c.Put(random(4), 1, 2, random(4), 1, 2, 2))
	m := must(c.GetMasked())
	equals(t, "mask of binary16", m.Mask16, []uint16{0, 0xfc00, 0, 0})
	ok(t, c.SetLayerType(1))
	rows := random(6)
	ok(t, c.Put(rows, 1, 2, rows, 1, 2, 3))
	m = must(c.GetMasked())
	equals(t, "an item", m.K, rows)
	equal(t, "cached", must(c.EncoderCached(0)), true)
	ok(t, c.SetLayerType(0))
	ok(t, c.SetCausal(0))
	m = must(c.GetMasked())
	equals(t, "the first sees all", m.Mask16, []uint16{0, 0, 0, 0})
}

func TestTieredCache(t *testing.T) {
	dir := t.TempDir()
	options := []generate.TierOption{generate.WithTierLayers(2), generate.WithTierMaxSeqLen(8), generate.WithColdDir(dir),
		generate.WithStoreID("a"), generate.WithWarmForm("fp16"), generate.WithDemoteThreshold(1), generate.WithPromoteThreshold(2),
		generate.WithTierChunkSize(4), generate.WithTierSetting("chunk_size", "2")}
	for _, other := range []generate.TierOption{generate.WithHotMemory(1), generate.WithHotBlocks(1),
		generate.WithTierBlockSize(16), generate.WithPrefetchLayers(1)} {
		_, err := generate.NewTieredCache(append(options[:len(options):len(options)], other)...)
		if !errors.Is(err, generate.ErrInvalidArgument) {
			t.Errorf("a field of sessions: %v", err)
		}
	}
	c := must(generate.NewTieredCache(options...))
	rows := []float32{1, 2, 3, 4}
	ok(t, c.Update(0, rows, rows, 1, 2, 2))
	ok(t, c.Update(1, rows, rows, 1, 2, 2))
	ok(t, c.Demote(1))
	equal(t, "tier", c.Tier(1), generate.TierWarm)
	equal(t, "lossy", c.LayerLossy(1), true)
	ok(t, c.Demote(1))
	equal(t, "tier", c.Tier(1), generate.TierCold)
	ok(t, c.Prefetch(1))
	if _, _, s, err := c.GetPrefetched(0); err != nil || s != (generate.Shape{}) {
		t.Error(s, err)
	}
	if c.AccessCount(0) == 0 {
		t.Error("a layer that was written was used")
	}
	ok(t, c.Promote(1))
	ok(t, c.Demote(1))
	ok(t, c.CloseFiles())
	ok(t, c.Close())
	c = must(generate.OpenTieredCache(options...))
	defer c.Close()
	k, _, _, _, err := c.Get(1)
	ok(t, err)
	equals(t, "what the other left", k, rows)
	ok(t, c.Manage())
	if _, err := generate.OpenTieredCache(options...); !errors.Is(err, generate.ErrBusy) {
		t.Error(err)
	}
}

func TestSSMState(t *testing.T) {
	for _, batch := range []int{1, 2} {
		s := must(generate.NewSSMState(2, batch, 2, 3))
		defer s.Close()
		equal(t, "layers", s.Layers(), 2)
		equal(t, "position", s.Position(), 0)
		equal(t, "kind", s.LayerKind(1)+s.LayerKind(2), "host")
		equal(t, "index", s.LayerIndex(1), 1)
		equal(t, "no index", s.LayerIndex(2), -1)
		h := random(batch * 6)
		ok(t, s.SetLayer(1, h, batch, 2, 3))
		number := must(s.Snapshot())
		ok(t, s.Reset())
		got, of, err := s.Layer(1)
		ok(t, err)
		equal(t, "shape", of, generate.Shape{Batch: batch, Seq: 2, Dim: 3})
		equals(t, "zeros", got, make([]float32, batch*6))
		ok(t, s.Restore(number))
		got, _, err = s.Layer(1)
		ok(t, err)
		equals(t, "restored", got, h)
		equal(t, "bytes", s.MemoryBytes(), int64(2*batch*6*4))
		if err := s.SetLayer(1, h[:1], batch, 2, 3); !errors.Is(err, generate.ErrInvalidArgument) {
			t.Error(err)
		}
	}
}

func TestCachesOnADevice(t *testing.T) {
	gpu := must(generate.NewHostGPUAllocator())
	defer gpu.Close()
	model := must(generate.LoadModel(storyPath(), generate.WithGPUAllocator(gpu)))
	model.Close()
	if cuda, err := generate.NewCUDAGPUAllocator(0); err == nil {
		cuda.Close()
	} else if !errors.Is(err, generate.ErrUnsupported) {
		t.Error(err)
	}
	cache := must(generate.NewGPUCache(gpu, 1, 4, 2, 2))
	defer cache.Close()
	row := []float32{1, 2, 3, 4}
	ok(t, cache.Append(0, row, row, 0))
	k, v, length, err := cache.Pointers(0)
	ok(t, err)
	equal(t, "length", length, 1)
	ok(t, cache.AppendDevice(0, k, v))
	ok(t, cache.AppendStream(0, k, v, 0))
	if err := cache.AppendStream(0, k, v, 1); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	ok(t, cache.SyncLength())
	equal(t, "positions", cache.SeqLen(), 3)
	if err := cache.Append(0, row, row, 1); !errors.Is(err, generate.ErrSequence) {
		t.Error(err)
	}
	if err := cache.Append(0, row[:3], row, 3); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	k, v, err = cache.PointerArrays()
	ok(t, err)
	if k == 0 || v == 0 || cache.CounterAddress() == 0 {
		t.Error("no addresses")
	}
	equal(t, "pieces", must(gpu.Counters()).Allocations, 5)
	before := must(gpu.Counters()).Bytes
	halves := must(generate.NewTypedGPUCache(gpu, 1, 4, 2, 2, "fp16"))
	equal(t, "bytes", must(gpu.Counters()).Bytes-before, 2*4*4*2+12)
	ok(t, halves.Append(0, []float32{1, 2049, 65519, 65520}, row, 0))
	keys, _, _, _, err := halves.Get(0)
	ok(t, err)
	equals(t, "nearest", keys, []float32{1, 2048, 65504, float32(math.Inf(1))})
	ok(t, halves.Close())
	if _, err := generate.NewTypedGPUCache(gpu, 1, 4, 2, 2, "q4_0"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	tensor := must(generate.NewTensorCache(nil, 1, 4, "fp32"))
	defer tensor.Close()
	ok(t, tensor.SetGPUAllocator(gpu))
	equal(t, "positions", tensor.SeqLen(), 0)
	if tensor.CounterDeviceAddress() == 0 {
		t.Error("no counter")
	}
	pool := must(generate.NewPool(1, 4, 4, 1, "fp32"))
	defer pool.Close()
	ok(t, pool.SetGPUAllocator(gpu))
	paged := must(pool.NewCache(1))
	defer paged.Close()
	ok(t, paged.Update(0, row, row, 1, 1, 4))
	equal(t, "pieces", must(gpu.Counters()).Allocations, 6+1)
	tiered := must(generate.NewTieredCache(generate.WithTierLayers(1), generate.WithTierMaxSeqLen(4), generate.WithHotLayersOnGPU(gpu)))
	defer tiered.Close()
	ok(t, tiered.Update(0, row, row, 1, 1, 4))
	equal(t, "pieces", must(gpu.Counters()).Allocations, 6+2)
	ok(t, tiered.Demote(0))
	equal(t, "pieces", must(gpu.Counters()).Allocations, 6+1)
}
