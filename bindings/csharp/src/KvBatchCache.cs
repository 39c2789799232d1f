// SPDX-License-Identifier: Apache-2.0
// Caches of many sequences.
using System;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>What the tokens of a pass may see in a layer.</summary>
    public sealed class KvMasked
    {
        internal KvMasked(float[] keys, float[] values, float[] mask, ushort[] halfMask, int[] keyShape, int[] valueShape,
                          int[] maskShape)
        {
            Keys = keys;
            Values = values;
            Mask = mask;
            HalfMask = halfMask;
            KeyShape = keyShape;
            ValueShape = valueShape;
            MaskShape = maskShape;
        }

        /// <summary>Keys.</summary>
        public float[] Keys { get; }
        /// <summary>Values.</summary>
        public float[] Values { get; }
        /// <summary>0 where a token may see a cell, else negative infinity; null with a binary16 mask.</summary>
        public float[] Mask { get; }
        /// <summary>The same as bits of binary16, if SetConfig said so; else null.</summary>
        public ushort[] HalfMask { get; }
        /// <summary>Elements, heads and length.</summary>
        public IReadOnlyList<int> KeyShape { get; }
        /// <summary>Elements, heads and length; or length, elements and heads if permuted.</summary>
        public IReadOnlyList<int> ValueShape { get; }
        /// <summary>Length and tokens.</summary>
        public IReadOnlyList<int> MaskShape { get; }
    }

    /// <summary>Keys and values of many sequences, written and read a batch of tokens at a time.</summary>
    public sealed class KvBatchCache : KvStore
    {
        /// <summary>As the end of a range of positions: all from its begin on.</summary>
        public const int ToTheEnd = int.MaxValue;

        // Whether masks are binary16, as far as the cache was told; of a wrapper its caches, and which one is chosen.
        bool? half;
        KvBatchCache[] parts;
        int part;

        KvBatchCache(IntPtr cache)
            : base(cache)
        {
        }

        KvBatchCache(IntPtr cache, Handle owner)
            : base(cache, owner)
        {
        }

        /// <summary>The cache of a wrapper that SetLayerType chose, for its getters, which ends with it; null for others.</summary>
        public KvBatchCache Underlying
        {
            get
            {
                IntPtr cache = Native.kv_cache_underlying(Handle);
                return cache != IntPtr.Zero ? new KvBatchCache(cache, Handle) : null;
            }
        }

        /// <summary>Tokens see all earlier positions of their sequence.</summary>
        public static KvBatchCache Causal()
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_causal_new(out cache);
            return new KvBatchCache(cache);
        }

        /// <summary>Tokens see `window` earlier positions and themselves.</summary>
        public static KvBatchCache SlidingWindow(int window)
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_swa_new(window, out cache);
            return new KvBatchCache(cache);
        }

        /// <summary>The same, with positions up to `memory` back kept.</summary>
        public static KvBatchCache SlidingWindow(int window, int memory)
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_swa_mem_new(window, memory, out cache);
            return new KvBatchCache(cache);
        }

        /// <summary>Tokens see earlier positions of the same chunk only.</summary>
        public static KvBatchCache Chunked(int chunk)
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_chunked_new(chunk, out cache);
            return new KvBatchCache(cache);
        }

        /// <summary>For the output of an encoder.</summary>
        public static KvBatchCache Encoder()
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_encoder_new(out cache);
            return new KvBatchCache(cache);
        }

        /// <summary>One cache of several, one for each type of layer. They pass into it, and are good for nothing else.</summary>
        public static KvBatchCache Wrapper(params KvBatchCache[] caches)
        {
            if (caches == null) throw new ArgumentNullException("caches");
            Loader.Ensure();
            IntPtr cache;
            using (var held = new UseAll(Array.ConvertAll(caches, Of)))
            {
                Native.kv_cache_wrapper_new(held.Addresses, caches.Length, out cache);
            }
            return new KvBatchCache(cache) { parts = (KvBatchCache[])caches.Clone() };
        }

        /// <summary>The form of GetMasked's output: padding, permuted values, "fp32" or "fp16" masks. Before Init.</summary>
        public void SetConfig(int padding = 0, bool permutedValues = false, string maskType = null)
        {
            Native.kv_cache_set_config(Handle, padding, permutedValues ? 1 : 0, Utf8.Terminated(maskType, "maskType"));
            half = maskType == "fp16";
        }

        /// <summary>A kv_cache_shift_fn that rotates keys to shifted positions.</summary>
        public void SetShift(NativeSymbol shift, IntPtr user = default(IntPtr))
        {
            Native.kv_cache_set_shift(Handle, shift.Address, user);
        }

        /// <summary>Maximum entries of one sequence; 0 for no quota.</summary>
        public void SetQuota(int entries)
        {
            Native.kv_cache_set_quota(Handle, entries);
        }

        /// <summary>Sets the size, once; rows are kept as "fp16", "fp32", "q8_0" or "q4_0".</summary>
        public void Init(string type, int maxSequences, int capacity, int maxBatch)
        {
            Native.kv_cache_init(Handle, Utf8.Terminated(type, "type"), maxSequences, capacity, maxBatch);
        }

        /// <summary>Chooses the layer that Put and GetMasked are about.</summary>
        public void SetLayer(int layer)
        {
            Native.kv_cache_set_layer(Handle, layer);
        }

        /// <summary>Chooses the cache of a wrapper.</summary>
        public void SetLayerType(int type)
        {
            Native.kv_cache_set_layer_type(Handle, type);
            part = type;
        }

        /// <summary>Begins a pass: positions and sequences of its tokens.</summary>
        public void StartForward(int[] positions, int[] sequences, bool reserve = false, int[] multimodal = null)
        {
            if (positions == null) throw new ArgumentNullException("positions");
            if (sequences == null) throw new ArgumentNullException("sequences");
            if (positions.Length != sequences.Length) throw new ArgumentException("there is one sequence for each position");
            Native.kv_cache_start_forward(Handle, positions, sequences, positions.Length, reserve ? 1 : 0, multimodal,
                                          multimodal == null ? 0 : multimodal.Length);
            part = 0;
        }

        /// <summary>Stores this pass's keys [n, keyHeads, keySize] and values in the chosen layer.</summary>
        public void Put(float[] keys, int keyHeads, int keySize, float[] values, int valueHeads, int valueSize, int n)
        {
            KvCache.CheckShape(keys, null, keyHeads, keySize, n);
            KvCache.CheckShape(null, values, valueHeads, valueSize, n);
            Native.kv_cache_put(Handle, keys, keyHeads, keySize, values, valueHeads, valueSize, n);
        }

        /// <summary>Copies what the tokens of this pass may see in the chosen layer.</summary>
        public unsafe KvMasked GetMasked()
        {
            var keyShape = new int[3];
            var valueShape = new int[3];
            var maskShape = new int[2];
            Native.kv_cache_get_masked(Handle, null, 0, null, 0, IntPtr.Zero, 0, keyShape, valueShape, maskShape);
            var keys = new float[KvCache.Size(keyShape)];
            var values = new float[KvCache.Size(valueShape)];
            long size = KvCache.Size(maskShape);
            // There is room for float32 in any case.
            var mask = new float[size];
            ushort[] halfMask = null;
            fixed (float* wide = mask)
            {
                Native.kv_cache_get_masked(Handle, keys, keys.Length, values, values.Length, (IntPtr)wide, size, keyShape,
                                           valueShape, maskShape);
                if (HasHalfMasks())
                {
                    halfMask = new ushort[size];
                    for (int i = 0; i < halfMask.Length; ++i) halfMask[i] = ((ushort*)wide)[i];
                    mask = null;
                }
            }
            return new KvMasked(keys, values, mask, halfMask, keyShape, valueShape, maskShape);
        }

        // A wrapper tells those of its caches that were not told themselves.
        bool HasHalfMasks()
        {
            KvBatchCache chosen = this;
            bool? told = half;
            while (chosen.parts != null)
            {
                chosen = chosen.parts[chosen.part];
                told = chosen.half ?? told;
            }
            return told ?? false;
        }

        /// <summary>Lets tokens of this pass see later positions too.</summary>
        public void SetCausalExcept(params int[] tokens)
        {
            Native.kv_cache_set_causal(Handle, tokens, tokens == null ? 0 : tokens.Length);
        }

        /// <summary>Replaces a sequence by a prefix of another, without a copy.</summary>
        public void CopyPrefix(int source, int destination, int length)
        {
            Native.kv_cache_copy_prefix(Handle, source, destination, length);
        }

        /// <summary>Whether a sequence may continue with a token at a position.</summary>
        public bool CanResume(int sequence, int position)
        {
            int can;
            Native.kv_cache_can_resume(Handle, sequence, position, out can);
            return can != 0;
        }

        /// <summary>Removes positions [begin, end) from a sequence.</summary>
        public void Remove(int sequence, int begin = 0, int end = ToTheEnd)
        {
            Native.kv_cache_remove(Handle, sequence, begin, end);
        }

        /// <summary>Moves at most `budget` entries into free cells; how many were.</summary>
        public int Compact(int budget)
        {
            int moved;
            Native.kv_cache_compact(Handle, budget, out moved);
            return moved;
        }

        /// <summary>Whether a sequence has items in an encoder cache.</summary>
        public bool HasEncoded(int sequence)
        {
            int cached;
            Native.kv_cache_encoder_cached(Handle, sequence, out cached);
            return cached != 0;
        }

        /// <summary>Gives the memory back, and tells of a failure; Dispose does the rest.</summary>
        public void Close()
        {
            Native.kv_cache_close(Handle);
        }
    }
}
