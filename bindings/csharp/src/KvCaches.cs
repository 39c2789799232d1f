// SPDX-License-Identifier: Apache-2.0
// Caches of one sequence that can do more: pooled means, fixed buffers, tiers.
using System;

namespace LibGenerate
{
    /// <summary>A cache of which each full chunk of positions becomes one entry, their mean.</summary>
    public sealed class CompressedKvCache : KvCache
    {
        /// <summary>An empty one; heads and dim may be 0 if unknown.</summary>
        public CompressedKvCache(int layers, int heads, int dim, int chunkSize)
            : base(Make(layers, heads, dim, chunkSize))
        {
        }

        static IntPtr Make(int layers, int heads, int dim, int chunkSize)
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_compressed_new(layers, heads, dim, chunkSize, out cache);
            return cache;
        }

        /// <summary>The positions of an entry: its first position and their number.</summary>
        public void Entry(int layer, int entry, out int first, out int positions)
        {
            Native.kv_cache_compressed_entry(Handle, layer, entry, out first, out positions);
        }
    }

    /// <summary>A cache whose layers are buffers of a fixed shape [batch, max positions, dim].</summary>
    public sealed class TensorKvCache : KvCache
    {
        /// <summary>An empty one where the model computes, or on the host; "fp32" or "fp16".</summary>
        public TensorKvCache(Model model, int layers, int maxSequenceLength, string type = null)
            : base(Make(model, layers, maxSequenceLength, type))
        {
        }

        static IntPtr Make(Model model, int layers, int maxSequenceLength, string type)
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_tensor_new(Of(model), layers, maxSequenceLength, Utf8.Terminated(type, "type"), out cache);
            return cache;
        }

        /// <summary>Moves an empty one to a device.</summary>
        public void SetGpuAllocator(GpuAllocator allocator)
        {
            Native.kv_cache_tensor_set_gpu_allocator(Handle, allocator.Handle);
        }

        /// <summary>All the memory of a layer.</summary>
        public KvSpan FullBuffer(int layer)
        {
            var fields = new long[Native.GEN_BINDING_SPAN_FIELDS];
            Native.gen_binding_full_buffer(Handle, layer, fields);
            return new KvSpan(fields);
        }

        /// <summary>Address on the device of the number of positions that attention reads; zero without a device.</summary>
        public IntPtr LengthOnDevice
        {
            get { return Native.kv_cache_seq_len_device_ptr(Handle); }
        }

        /// <summary>Address on the device of the position that is written next; zero without a device.</summary>
        public IntPtr CounterOnDevice
        {
            get { return Native.kv_cache_counter_device_ptr(Handle); }
        }

        /// <summary>Takes the length of every layer from the device.</summary>
        public void SyncCounter()
        {
            Native.kv_cache_sync_counter(Handle);
        }
    }

    /// <summary>Where a layer is.</summary>
    public enum KvTier
    {
        /// <summary>float32 in memory.</summary>
        Hot = Native.KV_CACHE_TIER_HOT,
        /// <summary>The warm form in memory.</summary>
        Warm = Native.KV_CACHE_TIER_WARM,
        /// <summary>The warm form in a file.</summary>
        Cold = Native.KV_CACHE_TIER_COLD
    }

    /// <summary>A cache that moves layers between memory and files. Its own functions here may be called from any thread.</summary>
    public sealed class TieredKvCache : KvCache
    {
        /// <summary>An empty one, all layers hot.</summary>
        public TieredKvCache(TierConfig config)
            : this(Make(config, false))
        {
        }

        TieredKvCache(IntPtr cache)
            : base(cache)
        {
        }

        /// <summary>The cache that another left in the configured folder.</summary>
        public static TieredKvCache Open(TierConfig config)
        {
            return new TieredKvCache(Make(config, true));
        }

        static IntPtr Make(TierConfig config, bool open)
        {
            Loader.Ensure();
            if (config == null) throw new ArgumentNullException("config");
            IntPtr cache;
            using (Handle native = config.ToNative())
            {
                if (open)
                {
                    Native.kv_cache_tiered_open(native, out cache);
                }
                else
                {
                    Native.kv_cache_tiered_new(native, out cache);
                }
            }
            return cache;
        }

        /// <summary>The tier of a layer.</summary>
        public KvTier Tier(int layer)
        {
            return (KvTier)Native.kv_cache_tiered_tier(Handle, layer);
        }

        /// <summary>How often a layer was used since the last Manage or Reset.</summary>
        public long AccessCount(int layer)
        {
            return Native.kv_cache_tiered_access_count(Handle, layer);
        }

        /// <summary>Whether the content of the layer has been through a lossy warm form.</summary>
        public bool IsLayerLossy(int layer)
        {
            return Native.kv_cache_tiered_is_lossy(Handle, layer) != 0;
        }

        /// <summary>Moves a layer one tier up.</summary>
        public void Promote(int layer)
        {
            Native.kv_cache_tiered_promote(Handle, layer);
        }

        /// <summary>Moves a layer one tier down.</summary>
        public void Demote(int layer)
        {
            Native.kv_cache_tiered_demote(Handle, layer);
        }

        /// <summary>Moves layers by how often they were used.</summary>
        public void Manage()
        {
            Native.kv_cache_tiered_manage(Handle);
        }

        /// <summary>Has copies of layers made in the background.</summary>
        public void Prefetch(params int[] layers)
        {
            if (layers == null) throw new ArgumentNullException("layers");
            Native.kv_cache_tiered_prefetch_async(Handle, layers, layers.Length);
        }

        /// <summary>Takes the copy of a layer; null if there is none. Does not wait for it.</summary>
        public KvLayer TakePrefetched(int layer)
        {
            var shape = new int[3];
            Native.kv_cache_tiered_get_prefetched(Handle, layer, null, 0, null, 0, shape);
            long size = Size(shape);
            if (size == 0) return null;
            var keys = new float[size];
            var values = new float[size];
            Native.kv_cache_tiered_get_prefetched(Handle, layer, keys, size, values, size, shape);
            return Size(shape) == 0 ? null : new KvLayer(keys, values, shape, shape);
        }

        /// <summary>Ends it: files of a configured folder stay for Open. Dispose does the same, without telling a failure.</summary>
        public void Close()
        {
            Native.kv_cache_tiered_close(Handle);
        }
    }
}
