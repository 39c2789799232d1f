// SPDX-License-Identifier: Apache-2.0
// Everything else that the headers declare, called once or more with results that are known.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using LibGenerate;

static class Caches
{
    static readonly float[] rows = { 1, 2, 3, 4, 5, 6, 7, 8 };

    static string Folder()
    {
        string path = Path.Combine(Path.GetTempPath(), "libgenerate-cs-" + Guid.NewGuid().ToString("N"));
        Directory.CreateDirectory(path);
        return path;
    }

    [Test]
    static unsafe void EveryPlainKind()
    {
        var makers = new Dictionary<string, Func<int, int, KvCache>>
        {
            { "fp32", KvCache.Float32 }, { "fp16", KvCache.Float16 }, { "fp8", KvCache.Float8 }, { "q4", KvCache.Q4 },
            { "q3", KvCache.Q3 }
        };
        foreach (KeyValuePair<string, Func<int, int, KvCache>> maker in makers)
        {
            using (KvCache cache = maker.Value(2, 16))
            {
                Check.Equal(maker.Key, cache.Kind, "kind");
                Check.That(cache.Describe().StartsWith("{\"kind\":\"" + maker.Key), "as JSON");
                cache.Update(1, rows, rows, 1, 2, 4);
                cache.Update(0, rows, rows, 1, 2, 4);
                Check.Equal(2, cache.Length, "length");
                KvLayer layer = cache.Get(1);
                Check.Same(new[] { 1, 2, 4 }, layer.KeyShape, "shape");
                for (int i = 0; i < 8; ++i) Check.That(Math.Abs(layer.Keys[i] - rows[i]) < 1.2, maker.Key + " key " + i);
                Check.Equal(maker.Key != "fp32" && maker.Key != "fp16", cache.IsLossy && maker.Key != "fp16", "lossy");
                if ((cache.Capabilities & KvCapabilities.View) != 0 && maker.Key == "fp32")
                {
                    KvSpan view = cache.View(1);
                    Check.Equal(6f, ((float*)((byte*)view.Values + view.ValueStride))[1], "in place");
                }
                using (KvCache copy = cache.Clone())
                using (KvCache loaded = maker.Value(2, 16))
                {
                    loaded.Load(cache.Save());
                    cache.Truncate(1);
                    Check.Equal(1, cache.LayerLength(1), "cut");
                    Check.Equal(2, copy.Entries(1), "clone");
                    Check.Same(layer.Values, loaded.Get(1).Values, "state");
                }
                Check.That(cache.Memory.Resident > 0 && cache.MaxSequenceLength == 16 && cache.Layers == 2, "figures");
                Check.Fails(Status.OutOfRange, () => cache.Update(5, rows, rows, 1, 2, 4), "no such layer");
                Check.Throws<ArgumentException>(() => cache.Update(0, rows, rows, 1, 3, 4), "too few elements");
                cache.Reset();
                Check.Equal(0, cache.Get(0).Keys.Length, "empty");
            }
        }
    }

    [Test]
    static void CompressedTensorAndTiered()
    {
        using (var cache = new CompressedKvCache(1, 0, 0, 2))
        {
            cache.Update(0, rows, rows, 1, 4, 2);
            int first, positions;
            cache.Entry(0, 1, out first, out positions);
            Check.Equal(2, first, "first");
            Check.Equal(2, positions, "positions");
            // Means of (1,2)(3,4) and (5,6)(7,8).
            Check.Same(new float[] { 2, 3, 6, 7 }, cache.Get(0).Keys, "means");
        }
        using (var cache = new TensorKvCache(null, 2, 16))
        {
            cache.Update(0, rows, rows, 1, 2, 4);
            KvSpan all = cache.FullBuffer(0);
            Check.Equal(16, all.Length, "all positions");
            Check.Equal(5f, (float)Marshal.PtrToStructure(all.Keys + (int)all.KeyStride, typeof(float)), "in place");
            Check.Equal(IntPtr.Zero, cache.LengthOnDevice, "no device");
            Check.Equal(IntPtr.Zero, cache.CounterOnDevice, "no device");
            Check.Fails(Status.State, () => cache.SyncCounter(), "no counter");
        }
        using (var gpu = new GpuAllocator())
        {
            Model.Load(File.ReadAllBytes(Given.StoryPath), new ModelOptions { GpuAllocator = gpu }).Dispose();
            try
            {
                GpuAllocator.Cuda(0).Dispose();
            }
            catch (GenerateException e)
            {
                Check.Equal(Status.Unsupported, e.Status, e.Message);
            }
        }
        using (var gpu = new GpuAllocator())
        using (var cache = new GpuKvCache(gpu, 1, 4, 2, 2))
        {
            long keys, values, allocations, bytes, peak;
            cache.Append(0, rows, rows, 0);
            cache.Pointers(0, out keys, out values);
            Check.That(keys != 0 && values != 0, "addresses");
            cache.AppendOnDevice(0, keys, values);
            cache.AppendOnStream(0, keys, values, 0);
            Check.Fails(Status.InvalidArgument, () => cache.AppendOnStream(0, keys, values, 1), "no streams");
            Check.Equal(3, cache.Length, "three positions");
            Check.Same(new float[] { 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4 }, cache.Get(0).Keys, "rows");
            cache.PointerArrays(out keys, out values);
            Check.That(cache.Counter != IntPtr.Zero && keys != values, "more addresses");
            cache.SyncLength();
            gpu.Counters(out allocations, out bytes, out peak);
            Check.Equal(5L, allocations, "pieces");
            using (var halves = new GpuKvCache(gpu, 1, 4, 2, 2, "fp16"))
            {
                long before = bytes;
                gpu.Counters(out allocations, out bytes, out peak);
                Check.Equal(2L * 4 * 4 * 2 + 12, bytes - before, "bytes");
                halves.Append(0, new float[] { 1, 2049, 65519, 65520 }, rows, 0);
                Check.Same(new float[] { 1, 2048, 65504, float.PositiveInfinity }, halves.Get(0).Keys, "nearest");
            }
            Check.Fails(Status.InvalidArgument, () => new GpuKvCache(gpu, 1, 4, 2, 2, "q4_0"), "a type");
            Check.Fails(Status.Sequence, () => cache.Append(0, rows, rows, 1), "another position");
            using (var tensor = new TensorKvCache(null, 1, 4))
            {
                tensor.SetGpuAllocator(gpu);
                Check.That(tensor.CounterOnDevice != IntPtr.Zero, "a counter");
                tensor.SyncCounter();
            }
        }
        using (var gpu = new GpuAllocator())
        using (var pool = new KvPool(1, 4, 4, 1))
        {
            long allocations, bytes, peak;
            pool.SetGpuAllocator(gpu);
            using (var paged = new PagedKvCache(pool, 1))
            using (var tiered = new TieredKvCache(new TierConfig { Layers = 1, MaxSequenceLength = 4, HotLayersOnGpu = gpu }))
            {
                paged.Update(0, rows, rows, 1, 1, 4);
                tiered.Update(0, rows, rows, 1, 1, 4);
                gpu.Counters(out allocations, out bytes, out peak);
                Check.Equal(2L, allocations, "a segment of blocks and a layer");
                tiered.Demote(0);
                gpu.Counters(out allocations, out bytes, out peak);
                Check.Equal(1L, allocations, "the layer is in the host's memory");
            }
        }
        string folder = Folder();
        var config = new TierConfig { Layers = 2, MaxSequenceLength = 16, ColdFolder = folder, StoreId = "one" };
        Check.That(config.Describe().Contains("\"one\""), "described");
        using (var cache = new TieredKvCache(config))
        {
            cache.Update(0, rows, rows, 1, 2, 4);
            cache.Update(1, rows, rows, 1, 2, 4);
            Check.Equal(1L, cache.AccessCount(0), "uses");
            cache.Demote(0);
            Check.Equal(KvTier.Warm, cache.Tier(0), "warm");
            cache.Demote(0);
            Check.Equal(KvTier.Cold, cache.Tier(0), "cold");
            cache.Prefetch(0);
            KvLayer copy = null;
            while (copy == null)
            {
                System.Threading.Thread.Sleep(1);
                copy = cache.TakePrefetched(0);
            }
            Check.Same(rows, copy.Keys, "prefetched");
            cache.Promote(0);
            Check.Equal(KvTier.Warm, cache.Tier(0), "promoted");
            cache.Demote(0);
            Check.That(!cache.IsLayerLossy(0), "nothing is lost");
            cache.Manage();
            cache.Close();
        }
        using (TieredKvCache again = TieredKvCache.Open(config)) Check.Same(rows, again.Get(0).Values, "opened");
        Directory.Delete(folder, true);
    }

    [Test]
    static void BlocksAndPrefixes()
    {
        using (var pool = new KvPool(1, 2, 4, 1))
        using (var prefix = new PrefixCache(16, pool))
        {
            long all = pool.Capacity;
            Check.Equal(all, pool.Available, "free");
            Check.Equal(2, pool.BlockSize, "block size");
            int[] tokens = { 7, 8, 9, 10 };
            using (var cache = new PagedKvCache(pool, 1))
            {
                cache.Update(0, rows.Concat(rows).ToArray(), rows.Concat(rows).ToArray(), 1, 4, 4);
                IReadOnlyList<KvBlock> blocks = cache.Blocks();
                Check.Equal(2, blocks.Count, "blocks");
                Check.Equal(2, blocks[1].Used, "used");
                Check.Equal(1f, (float)Marshal.PtrToStructure(blocks[1].Keys, typeof(float)), "a block's key");
                Check.Equal(1f, (float)Marshal.PtrToStructure(blocks[1].Values, typeof(float)), "a block's value");
                prefix.Insert(1, tokens, blocks);
                Check.Equal(2, prefix.Count, "kept");
                foreach (KvBlock block in blocks) block.Dispose();
                Check.Throws<ObjectDisposedException>(() => blocks[0].Used.ToString(), "a block that was given back");
            }
            Check.Equal(all - 2, pool.Available, "only the prefix cache holds them");
            Check.That(pool.Fragmentation == 0 && pool.ResidentBytes > 0, "figures");
            int matched;
            IReadOnlyList<KvBlock> found = prefix.Match(1, new[] { 7, 8, 9, 11 }, out matched);
            Check.Equal(3, matched, "matched");
            using (var other = new PagedKvCache(pool, 1))
            {
                other.Inject(found, matched, 1, 4);
                foreach (KvBlock block in found) block.Dispose();
                Check.Equal(3, other.Length, "injected");
                Check.Equal(8f, other.Get(0).Keys[7], "its content");
                Check.Fails(Status.State, () => other.Inject(prefix.Match(1, tokens, out matched), 4, 1, 4), "not empty");
            }
            prefix.Match(2, tokens, out matched);
            Check.Equal(0, matched, "another domain");
            KvBlock left = pool.Allocate();
            pool.Dispose();
            left.Dispose();
        }
        using (var radix = new RadixTree(2, 8))
        {
            int[] ids = radix.Insert(new[] { 1, 2, 3, 4, 5 });
            Check.Equal(3, ids.Length, "blocks");
            int matched;
            Check.Same(ids.Take(2).ToArray(), radix.Match(new[] { 1, 2, 3, 4, 9 }, out matched), "ids");
            Check.Equal(4, matched, "matched");
            radix.Pin(new[] { 1, 2 }, out matched);
            Check.Fails(Status.Busy, () => radix.Remove(new[] { 1 , 2 }), "pinned");
            radix.Unpin(new[] { 1, 2 });
            Check.Equal(ids[2], radix.Evict(), "evicted");
            Check.Equal(2, radix.Count, "left");
            ulong hits, misses, evictions;
            radix.Statistics(out hits, out misses, out evictions);
            Check.Equal(1UL, hits, "hits");
            Check.Equal(0UL, misses, "misses");
            Check.Equal(1UL, evictions, "evictions");
            Check.Equal(2L, radix.Remove(new int[0]), "removed");
            radix.SetEvictCallback(default(NativeSymbol));
        }
    }

    [Test]
    static void ManySequences()
    {
        using (KvBatchCache cache = KvBatchCache.Causal())
        {
            cache.SetQuota(0);
            cache.Init("fp32", 2, 8, 4);
            cache.StartForward(new[] { 0, 1, 0 }, new[] { 0, 0, 1 });
            cache.SetLayer(0);
            float[] keys = { 1, 2, 3, 4, 5, 6 };
            cache.Put(keys, 1, 2, keys, 1, 2, 3);
            KvMasked seen = cache.GetMasked();
            Check.Same(new[] { 2, 1, 3 }, seen.KeyShape, "shape");
            Check.Same(keys, seen.Keys, "keys");
            Check.Same(new[] { 3, 3 }, seen.MaskShape, "mask");
            float no = float.NegativeInfinity;
            Check.Same(new[] { 0, no, no, 0, 0, no, no, no, 0 }, seen.Mask, "who sees what");
            cache.SetCausalExcept(0);
            Check.Equal(0f, cache.GetMasked().Mask[1], "an exception");
            cache.CopyPrefix(0, 1, 1);
            Check.That(cache.CanResume(1, 1), "resume");
            cache.Remove(0);
            Check.That(cache.Compact(4) >= 0 && !cache.IsLossy && cache.Memory.Resident > 0, "figures");
            cache.Close();
            Check.Fails(Status.State, () => cache.SetLayer(0), "closed");
        }
        using (KvBatchCache first = KvBatchCache.SlidingWindow(2))
        using (KvBatchCache second = KvBatchCache.SlidingWindow(2, 4))
        using (KvBatchCache encoder = KvBatchCache.Encoder())
        {
            second.SetConfig(0, false, "fp16");
            using (KvBatchCache wrapper = KvBatchCache.Wrapper(first, second, encoder))
            {
                wrapper.Init("fp16", 2, 8, 4);
                wrapper.StartForward(new[] { 0 }, new[] { 0 });
                wrapper.SetLayerType(1);
                Check.Equal("swa_mem fp16", wrapper.Underlying.Kind + " " + wrapper.Underlying.DType, "the chosen one");
                wrapper.Put(new float[] { 1, 2 }, 1, 2, new float[] { 1, 2 }, 1, 2, 1);
                Check.Same(new ushort[] { 0 }, wrapper.GetMasked().HalfMask, "binary16 of the second");
                wrapper.SetLayerType(0);
                wrapper.Put(new float[] { 1, 2 }, 1, 2, new float[] { 1, 2 }, 1, 2, 1);
                Check.Same(new float[] { 0 }, wrapper.GetMasked().Mask, "float32 of the first");
                Check.That(!wrapper.HasEncoded(0), "no items");
            }
            Check.Fails(Status.State, () => first.SetLayer(0), "passed into a wrapper");
        }
        using (KvBatchCache chunked = KvBatchCache.Chunked(2))
        {
            chunked.SetConfig(1, true, "fp16");
            chunked.Init("fp32", 1, 8, 4);
            chunked.StartForward(new[] { 1, 2 }, new[] { 0, 0 });
            chunked.Put(rows, 1, 4, rows, 1, 4, 2);
            KvMasked seen = chunked.GetMasked();
            Check.That(seen.Mask == null && seen.HalfMask.Length == 4, "binary16");
            Check.Equal((ushort)0xFC00, seen.HalfMask[2], "negative infinity");
            Check.Same(new[] { 2, 4, 1 }, seen.ValueShape, "permuted");
        }
    }

    [Test]
    static void ForwardAndStates()
    {
        Model model = Given.Story;
        int[] prompt = { 1, 912, 1465, 263, 476 };
        using (var generator = new Generator(model))
        using (KvCache cache = generator.NewCache())
        using (KvCache other = KvCache.Float32(model.Layers, 64))
        {
            float[] logits = model.Forward(prompt, cache);
            // What greedy sampling of the same prompt takes.
            Check.Equal(generator.Generate("Once upon a time", Sampling.Greedy(1)).Tokens[0],
                        Array.IndexOf(logits, logits.Max()), "most probable");
            using (var profile = new Profile())
            {
                float[] batch = Experimental.ForwardBatch(model, prompt, null, new[] { false, false, false, false, true },
                                                          new[] { other }, profile);
                Check.Same(logits, batch, "a batch of one");
                Check.That(profile.Count > 0 && profile.Get(0, "calls") == 1 && profile.Name(0).Length > 0, "profile");
                Check.That(profile.ChromeTrace().Contains("\"ph\":\"X\""), "trace");
            }
            other.Truncate(0);
            float[][] states = Experimental.ForwardHidden(model, new[] { 7, 9, 7 }, other, 0, Experimental.HiddenNormed);
            int width = model.HiddenSize;
            Check.Equal(2, states.Length, "layers");
            Check.Equal(3 * width, states[1].Length, "values");
            Check.Same(states[0].Take(width).ToArray(), states[0].Skip(2 * width).ToArray(), "the embedding of a token");
            Check.That(!states[1].Take(width).SequenceEqual(states[1].Skip(2 * width)), "what is made of it");
            Check.Fails(Status.OutOfRange, () => Experimental.ForwardHidden(model, prompt, other, 99), "no such layer");
            Check.Fails(Status.OutOfRange, () => model.Forward(new[] { -1 }, cache), "no such token");
        }
        using (var state = new SsmState(2, 2, 2))
        {
            Check.Equal(2, state.Layers, "layers");
            Check.Equal(0, state.Position, "position");
            Check.Equal("host", state.LayerKind(1), "kind");
            Check.Equal(1, state.LayerIndex(1), "index");
            Check.Equal(-1, state.LayerIndex(2), "no such layer's index");
            state.SetLayer(1, new float[] { 1, 2, 3, 4 });
            long kept = state.Snapshot();
            state.Reset();
            Check.Same(new float[4], state.GetLayer(1), "zeros");
            state.Restore(kept);
            Check.Same(new float[] { 1, 2, 3, 4 }, state.GetLayer(1), "restored");
            Check.Equal(32L, state.MemoryBytes, "bytes");
            Check.Same(new[] { 1, 2, 2 }, state.Shape(0), "shape");
            Check.Fails(Status.OutOfRange, () => state.GetLayer(2), "no such layer");
        }
        using (var state = new SsmState(1, 2, 2, 3)) Check.Equal(12, state.GetLayer(0).Length, "three sequences");
    }

    [Test]
    static void TracersAndMetrics()
    {
        string folder = Folder();
        using (var tracer = new Tracer())
        using (KvCache inner = KvCache.Float32(1, 8))
        using (KvCache cache = KvCache.Tracing(inner, tracer))
        {
            cache.Update(0, rows, rows, 1, 2, 4);
            Check.Equal("fp32", cache.Underlying.Kind, "what is traced");
            Check.Equal("fp32", cache.DType, "type");
            Check.That(cache.Underlying.Underlying == null, "nothing below it");
            Check.Fails(Status.State, () => cache.Underlying.Truncate(0), "for reading");
            Check.Equal(2L, tracer.Count, "operations");
            Check.That(tracer.Operation(0).Contains("KVCacheAppendK"), "named");
            tracer.WriteDot(Path.Combine(folder, "graph.dot"));
            tracer.WriteJson(Path.Combine(folder, "grüße.json"));
            Check.That(File.ReadAllText(Path.Combine(folder, "grüße.json")).Contains("\"ops\""), "written");
            Check.Fails(Status.Io, () => tracer.WriteDot("/no/such/folder/x"), "no folder");
        }
        using (var metrics = new MetricsCollector())
        using (var tracer = new Tracer())
        {
            using (var generator = new Generator(Given.Story, new GeneratorOptions { Metrics = metrics, Tracer = tracer }))
            {
                generator.Generate("Once", Sampling.Greedy(7));
            }
            Check.Equal(7.0, metrics.Value("completion_tokens"), "counter");
            Check.That(metrics.Snapshot().Contains("\"histograms\"") && tracer.Count > 0, "told");
        }
        Directory.Delete(folder, true);
    }

    [Test]
    static void TheLibraryAndModels()
    {
        Check.Equal("0.1.0", Library.Version, "version");
        Check.Equal(0, Library.AbiVersion, "interface");
        Check.That(Library.BuildInfo.Contains("\"version\"") && Library.CacheKinds.Contains("\"q4\""), "JSON");
        Check.That(Library.MetricsDescription.Contains("completion_tokens"), "metrics");
        Check.That(Library.Backends.Contains("cpu"), "backends");
        string reason;
        Check.That(Library.IsBackendAvailable("cpu", out reason), "cpu");
        Check.Fails(Status.InvalidArgument, () => Library.IsBackendAvailable("abacus", out reason), "no backend");
        Check.That(Library.DeviceCount("cpu") == 1 && Library.DescribeDevice("cpu", 0).Contains("{"), "device");
        Check.Fails(Status.OutOfRange, () => Library.DescribeDevice("cpu", 1), "no device");
        Library.SetLogLevel(LogLevel.Off);
        Library.SetLog(default(NativeSymbol));
        int width;
        Check.Same(new[] { 0, 1, 2, 3 }, Library.PadLeft(new[] { new[] { 1 }, new[] { 2, 3 } }, 0, out width), "padded");
        Check.Equal(2, width, "width");
        Check.That(Experimental.MeasurePeak(1, "fma_f32") > 1e8, "peak");

        Model model = Given.Story;
        Check.That(model.Describe().Contains("\"llama\"") && model.DescribeConfig().Contains("vocab_size"), "described");
        Check.Equal("llama", model.Metadata("general.architecture"), "metadata");
        Check.That(model.MetadataKeys.Contains("general.architecture"), "keys");
        Check.Fails(Status.Format, () => model.LoadAdapter(Given.StoryPath, "a"), "an adapter");
        Check.Fails(Status.InvalidArgument, () => model.UnloadAdapter("a"), "an adapter");
        Check.Fails(Status.InvalidArgument, () => model.SetAdapterBudget(-1), "a budget");
        model.SetAdapterBudget(1);
        model.SetAdapterBudget(0);
        Check.Equal(0, model.Adapters.Count, "adapters");
        Check.That(model.Memory(ModelMemory.Weights) > 0 && model.HiddenSize > 0 && model.Heads > 0, "sizes");
        Check.That(model.CacheLayers > 0, "layers of a cache");
        Check.That(model.KvHeads > 0 && model.HeadSize > 0 && model.MaxSequenceLength > 0, "sizes");
        Check.Equal(1, model.BeginToken, "begin");
        Check.That(model.EndToken > 0, "end");
        var estimate = new MemoryEstimate(Given.StoryPath, null, new GeneratorOptions { KvType = "q4" });
        Check.That(estimate.Cache < new MemoryEstimate(Given.StoryPath).Cache && estimate.Peak > estimate.Weights, "estimate");
        using (var pool = new WorkerPool(1, new[] { 0 }))
        using (Model small = Model.Load(File.ReadAllBytes(Given.StoryPath),
                                        new ModelOptions { Pool = pool, MaxSequenceLength = 64, MapFile = false, Device = 0,
                                                           Backend = "cpu", CheckTensors = true }.Set("repack", "0")))
        {
            Check.Equal(64, small.MaxSequenceLength, "capped");
        }
        string folder = Folder();
        string quantized = Path.Combine(folder, "kleiner ü.gguf");
        Model.Quantize(Given.StoryPath, quantized, "Q8_0");
        using (Model smaller = Model.LoadAsync(quantized).Result)
        {
            Check.That(smaller.Memory(ModelMemory.File) < model.Memory(ModelMemory.File) * 1.2, "quantised");
        }
        string importance = Path.Combine(folder, "importance.gguf");
        model.Importance(new[] { 1, 2, 3, 4, 5 }, 4, "text", importance);
        Check.That(File.ReadAllText(importance).Contains("blk.0.attn_q.weight.in_sum2"), "importance");
        Check.Fails(Status.OutOfRange, () => model.Importance(new[] { 1 }, 1 << 20, null, importance), "a window");
        long eight = new FileInfo(quantized).Length;
        var some = new QuantizeOptions { Types = "blk.0.*=F16" };
        Check.That(some.Describe().Contains("blk.0.*=F16"), "described");
        Model.Quantize(Given.StoryPath, quantized, "Q8_0", some);
        Check.That(new FileInfo(quantized).Length > eight, "more bits for one layer");
        Check.Fails(Status.Io, () => Model.Quantize(Given.StoryPath, quantized, "Q8_0", new QuantizeOptions { Importance = "/no/such" }),
                    "no importance");
        Check.Fails(Status.Format, () => Model.MergeAdapter(Given.StoryPath, Given.StoryPath, 1, quantized), "no adapter");
        Check.Fails(Status.InvalidArgument, () => Model.MergeAdapter(Given.StoryPath, Given.StoryPath, 1, quantized, "Q9"), "a type");
        Check.Fails(Status.InvalidArgument, () => Model.MergeAdapter(Given.StoryPath, quantized, 1, quantized), "the adapter's file");
        Directory.Delete(folder, true);
        GenerateException missing = Check.Throws<GenerateException>(() => Model.Load("/nö/such/file"), "no file");
        Check.That(missing.Status == Status.Io && missing.Message.Contains("/nö/such/file"), missing.Message);
        Check.Throws<ArgumentException>(() => Model.Load("a\0b"), "a NUL in a path");
        Check.Fails(Status.Io, () => new NativeSymbol("/no/such.so", "x").ToString(), "no library");
        Check.Fails(Status.InvalidArgument, () => new NativeSymbol(Given.TestModels, "nothing").ToString(), "no symbol");
    }

    [Test]
    static void OptionsOfEveryKind()
    {
        var options = new GeneratorOptions
        {
            KvType = "fp16/q4", KvKeyForm = "rotated", PagedKvMemory = 16, PrefixCache = 64, ContextPolicy = "shift",
            StateSnapshotEvery = 64, StateSnapshotBudget = 8, PrefillChunk = 32, MaxBatch = 4, MaxQueue = 2, Fairness = 5, PromptLookup = 3
        };
        Check.That(options.Describe().Contains("\"shift,4\""), "described: " + options.Describe());
        using (var generator = new Generator(Given.Story, options))
        {
            string prompt = string.Concat(Enumerable.Repeat("Once upon a time there was a dog. ", 4));
            generator.Generate(prompt, Sampling.Greedy(2));
            long cached = generator.Generate(prompt, Sampling.Greedy(2)).CachedPromptTokens;
            Check.That(cached > 8, "a prefix that was known");
            PrefixStats stats = generator.PrefixStats;
            Check.Equal(2L, stats.Lookups, "lookups");
            Check.Equal(1L, stats.Hits, "hits");
            Check.Equal(cached, stats.Tokens, "tokens of the cache");
            generator.ClearPrefixCache();
            Check.Equal(0L, generator.PrefixStats.Blocks, "blocks");
        }
        using (var generator = new Generator(Given.Story, new GeneratorOptions { CompressedKv = 8 }))
        {
            Check.Equal(3, generator.Generate("Once", Sampling.Greedy(3)).Tokens.Count, "compressed");
        }
        using (var generator = new Generator(Given.Story, new GeneratorOptions { TieredKv = new TierConfig { HotMemory = 64 } }))
        {
            Check.Equal(3, generator.Generate("Once", Sampling.Greedy(3)).Tokens.Count, "tiered");
        }
        Check.Fails(Status.InvalidArgument, () => new GeneratorOptions { KvType = "fp7" }.Describe(), "no kind");
        Check.Fails(Status.InvalidArgument, () => new Sampling().Set("no such key", "1").Describe(), "no setting");
        var sampling = new Sampling
        {
            TypicalP = 0.9, CompoundPenalty = true, PenalizePrompt = true, PenaltyWindow = 16, StopTokens = { 3 },
            LogitBias = { { 5, float.NegativeInfinity } }, StopStrings = { "ende" }
        };
        Check.That(sampling.Describe().Contains("\"ende\""), "described: " + sampling.Describe());
        Check.That(new ModelOptions { Threads = 1 }.Describe().Contains("threads"), "model options");
        Check.That(new CustomModelConfig { VocabularySize = 7, Name = "seven" }.Describe().Contains("seven"), "config");
    }

    // Every function of the generated layer is used by the classes, except those that managed code
    // cannot use.
    [Test]
    static void NothingIsForgotten()
    {
        Assembly assembly = typeof(Model).Assembly;
        Type low = assembly.GetType("LibGenerate.Native");
        string sources = string.Concat(Directory.GetFiles(Path.Combine(Given.Source, "bindings/csharp/src"), "*.cs")
            .Select(File.ReadAllText));
        var unused = new HashSet<string>
        {
            "gen_generate_stream", "gen_session_generate_stream", "gen_batch_generate_stream", "gen_chat_session_send_stream",
            "gen_speculative_generate_stream", "gen_eagle_generate_stream",  // call back
            "gen_binding_chat_answer", "gen_binding_chat_open_answer", "gen_binding_agent_go_on", "gen_binding_agent_step",  // null
            "gen_grammar_options_set_cancel",  // making a grammar is not cancelled from C#
            "gen_forward_attention", "gen_forward_cancelled",  // for functions in C
            "gen_result_user_code",  // of a callback
            "kv_cache_gpu_new",  // kv_cache_gpu_new_typed
            "gen_options_set_kv_types",  // KvType = "fp8/q4"
            "gen_binding_copy"  // Marshal copies
        };
        foreach (MethodInfo method in low.GetMethods(BindingFlags.Static | BindingFlags.Public | BindingFlags.DeclaredOnly))
        {
            bool used = System.Text.RegularExpressions.Regex.IsMatch(sources, @"Native(PINVOKE)?\." + method.Name + @"\b");
            Check.Equal(!unused.Contains(method.Name), used, method.Name + " is used");
        }
        foreach (FieldInfo field in low.GetFields(BindingFlags.Static | BindingFlags.Public))
        {
            if (field.Name.StartsWith("GEN_ERROR_")) Check.That(sources.Contains("Native." + field.Name + ","
                ) || sources.Contains("Native." + field.Name + "\n") , field.Name);
        }
    }
}
