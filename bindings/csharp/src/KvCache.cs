// SPDX-License-Identifier: Apache-2.0
// Caches of one sequence, of every kind.
using System;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>What a cache can do.</summary>
    [Flags]
    public enum KvCapabilities
    {
        /// <summary>Nothing beyond what all can.</summary>
        None = 0,
        /// <summary>Be cut.</summary>
        Truncate = Native.KV_CACHE_CAN_TRUNCATE,
        /// <summary>Be cloned.</summary>
        Clone = Native.KV_CACHE_CAN_CLONE,
        /// <summary>Show layers in place.</summary>
        View = Native.KV_CACHE_CAN_VIEW,
        /// <summary>Results do not depend on how many tokens came at once.</summary>
        OneRowOneResult = Native.KV_CACHE_ONE_ROW_ONE_RESULT,
        /// <summary>Show whole buffers.</summary>
        FullBuffer = Native.KV_CACHE_HAS_FULL_BUFFER
    }

    /// <summary>A copy of the content of a layer: float32 [batch, seq, dim] in its own shape.</summary>
    public sealed class KvLayer
    {
        internal KvLayer(float[] keys, float[] values, int[] keyShape, int[] valueShape)
        {
            Keys = keys;
            Values = values;
            KeyShape = keyShape;
            ValueShape = valueShape;
        }

        /// <summary>Keys.</summary>
        public float[] Keys { get; }
        /// <summary>Values.</summary>
        public float[] Values { get; }
        /// <summary>Batch, positions and elements of the keys; zeros for a miss.</summary>
        public IReadOnlyList<int> KeyShape { get; }
        /// <summary>Those of the values.</summary>
        public IReadOnlyList<int> ValueShape { get; }
    }

    /// <summary>A layer in place: addresses and strides in bytes, for as long as the cache says. All 0 for a miss.</summary>
    public struct KvSpan
    {
        internal KvSpan(long[] fields)
        {
            IsHalf = fields[0] == Native.KV_CACHE_TYPE_F16;
            Keys = new IntPtr(fields[1]);
            Values = new IntPtr(fields[2]);
            Batch = (int)fields[3];
            Length = (int)fields[4];
            KeySize = (int)fields[5];
            ValueSize = (int)fields[6];
            KeyBatchStride = fields[7];
            KeyStride = fields[8];
            ValueBatchStride = fields[9];
            ValueStride = fields[10];
        }

        /// <summary>Elements are binary16 rather than float32.</summary>
        public bool IsHalf { get; }
        /// <summary>Address of the keys.</summary>
        public IntPtr Keys { get; }
        /// <summary>Address of the values.</summary>
        public IntPtr Values { get; }
        /// <summary>Lanes.</summary>
        public int Batch { get; }
        /// <summary>Positions.</summary>
        public int Length { get; }
        /// <summary>Elements of a key row.</summary>
        public int KeySize { get; }
        /// <summary>Elements of a value row.</summary>
        public int ValueSize { get; }
        /// <summary>Bytes from lane to lane.</summary>
        public long KeyBatchStride { get; }
        /// <summary>Bytes from position to position.</summary>
        public long KeyStride { get; }
        /// <summary>Bytes from lane to lane.</summary>
        public long ValueBatchStride { get; }
        /// <summary>Bytes from position to position.</summary>
        public long ValueStride { get; }
    }

    /// <summary>Bytes of a cache.</summary>
    public struct KvMemory
    {
        internal KvMemory(long resident, long payload, long metadata)
        {
            Resident = resident;
            Payload = payload;
            Metadata = metadata;
        }

        /// <summary>What is allocated.</summary>
        public long Resident { get; }
        /// <summary>What keys and values take.</summary>
        public long Payload { get; }
        /// <summary>What scales, tables and bookkeeping take.</summary>
        public long Metadata { get; }
    }

    /// <summary>What caches of one and of many sequences have in common. One thread at a time.</summary>
    public abstract class KvStore : NativeObject
    {
        internal KvStore(IntPtr cache)
            : base(new Handle(HandleKind.KvCache, cache))
        {
        }

        internal KvStore(IntPtr cache, Handle owner)
            : base(new Handle(owner, HandleKind.KvCache, cache))
        {
        }

        /// <summary>The kind's name, as "fp32" or "q4".</summary>
        public string Kind
        {
            get { return Utf8.Text(Native.kv_cache_kind(Handle)); }
        }

        /// <summary>What elements are kept as, "fp32" or "fp8/q4" for example; null for one of many sequences before Init.</summary>
        public string DType
        {
            get { return Utf8.Text(Native.kv_cache_dtype(Handle)); }
        }

        /// <summary>Whether stored values may differ from those written.</summary>
        public bool IsLossy
        {
            get { return Native.kv_cache_is_lossy(Handle) != 0; }
        }

        /// <summary>Kind, size and which layers keep only a window, as JSON.</summary>
        public string Describe()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.kv_cache_describe(Handle, buf, capacity, out n));
        }

        /// <summary>Bytes that it takes.</summary>
        public KvMemory Memory
        {
            get
            {
                long resident, payload, metadata;
                Native.kv_cache_memory_bytes(Handle, out resident, out payload, out metadata);
                return new KvMemory(resident, payload, metadata);
            }
        }

        /// <summary>Takes memory from a gen_allocator; default goes back to the system's. Before the first write.</summary>
        public void SetAllocator(NativeSymbol allocator)
        {
            Native.kv_cache_set_allocator(Handle, allocator.Address);
        }
    }

    /// <summary>
    /// Keys and values of one sequence, layer by layer. Its first write decides its shape: Update or Model.Forward; the two
    /// do not mix.
    /// </summary>
    public class KvCache : KvStore
    {
        internal delegate void Maker(int layers, int maxSequenceLength, out IntPtr cache);

        internal KvCache(IntPtr cache)
            : base(cache)
        {
        }

        internal KvCache(IntPtr cache, Handle owner)
            : base(cache, owner)
        {
        }

        /// <summary>The cache that a tracing one wraps, for reading, which ends with this one; null for any other.</summary>
        public KvCache Underlying
        {
            get
            {
                IntPtr cache = Native.kv_cache_underlying(Handle);
                return cache != IntPtr.Zero ? new KvCache(cache, Handle) : null;
            }
        }

        static KvCache Make(Maker make, int layers, int maxSequenceLength)
        {
            Loader.Ensure();
            IntPtr cache;
            make(layers, maxSequenceLength, out cache);
            return new KvCache(cache);
        }

        /// <summary>Keeps float32.</summary>
        public static KvCache Float32(int layers, int maxSequenceLength)
        {
            return Make(Native.kv_cache_new, layers, maxSequenceLength);
        }

        /// <summary>Keeps binary16.</summary>
        public static KvCache Float16(int layers, int maxSequenceLength)
        {
            return Make(Native.kv_cache_fp16_new, layers, maxSequenceLength);
        }

        /// <summary>Keeps 8 bits an element, E4M3.</summary>
        public static KvCache Float8(int layers, int maxSequenceLength)
        {
            return Make(Native.kv_cache_fp8_new, layers, maxSequenceLength);
        }

        /// <summary>Keeps 4 bits an element.</summary>
        public static KvCache Q4(int layers, int maxSequenceLength)
        {
            return Make(Native.kv_cache_q4_new, layers, maxSequenceLength);
        }

        /// <summary>Keeps 3 bits an element.</summary>
        public static KvCache Q3(int layers, int maxSequenceLength)
        {
            return Make(Native.kv_cache_q3_new, layers, maxSequenceLength);
        }

        /// <summary>Passes everything on to another cache and records it.</summary>
        public static KvCache Tracing(KvCache inner, Tracer tracer)
        {
            IntPtr cache;
            Native.kv_cache_tracing_new(Of(inner), Of(tracer), out cache);
            return new KvCache(cache);
        }

        /// <summary>Appends positions to a layer: keys and values [batch, seq, dim], row-major.</summary>
        public void Update(int layer, float[] keys, float[] values, int batch, int seq, int dim)
        {
            CheckShape(keys, values, batch, seq, dim);
            Native.kv_cache_update(Handle, layer, keys, values, batch, seq, dim);
        }

        internal static void CheckShape(float[] keys, float[] values, int batch, int seq, int dim)
        {
            long elements = batch < 0 || seq < 0 || dim < 0 ? 0 : checked((long)batch * seq * dim);
            if (keys != null && keys.Length < elements || values != null && values.Length < elements)
            {
                throw new ArgumentException("keys or values have fewer elements than batch * seq * dim");
            }
        }

        /// <summary>Copies the content of a layer.</summary>
        public KvLayer Get(int layer)
        {
            var keyShape = new int[3];
            var valueShape = new int[3];
            Native.kv_cache_get(Handle, layer, null, 0, null, 0, keyShape, valueShape);
            var keys = new float[Size(keyShape)];
            var values = new float[Size(valueShape)];
            if (keys.Length > 0)
            {
                Native.kv_cache_get(Handle, layer, keys, keys.Length, values, values.Length, keyShape, valueShape);
            }
            return new KvLayer(keys, values, keyShape, valueShape);
        }

        internal static long Size(int[] shape)
        {
            long size = 1;
            foreach (int n in shape) size *= n;
            return size;
        }

        /// <summary>Shows a layer in place.</summary>
        public KvSpan View(int layer)
        {
            var fields = new long[Native.GEN_BINDING_SPAN_FIELDS];
            Native.gen_binding_view(Handle, layer, fields);
            return new KvSpan(fields);
        }

        /// <summary>Positions of the cache as a whole.</summary>
        public int Length
        {
            get { return Native.kv_cache_seq_len(Handle); }
        }

        /// <summary>Positions of a layer.</summary>
        public int LayerLength(int layer)
        {
            return Native.kv_cache_layer_seq_len(Handle, layer);
        }

        /// <summary>Entries of a layer that attention reads.</summary>
        public int Entries(int layer)
        {
            return Native.kv_cache_kv_len(Handle, layer);
        }

        /// <summary>Number of layers.</summary>
        public int Layers
        {
            get { return Native.kv_cache_num_layers(Handle); }
        }

        /// <summary>Maximum positions of a layer.</summary>
        public int MaxSequenceLength
        {
            get { return Native.kv_cache_max_seq_len(Handle); }
        }

        /// <summary>What it can do.</summary>
        public KvCapabilities Capabilities
        {
            get { return (KvCapabilities)Native.kv_cache_capabilities(Handle); }
        }

        /// <summary>Keeps the first n positions of every layer.</summary>
        public void Truncate(int n)
        {
            Native.kv_cache_truncate(Handle, n);
        }

        /// <summary>Forgets everything; memory stays.</summary>
        public void Reset()
        {
            Native.kv_cache_reset(Handle);
        }

        /// <summary>Saves to a file.</summary>
        public void Save(string path)
        {
            Native.kv_cache_save(Handle, Utf8.Terminated(path, "path"));
        }

        /// <summary>Saves to memory.</summary>
        public byte[] Save()
        {
            return Sized.Array((byte[] buf, long capacity, out long n) =>
                Native.kv_cache_save_buffer(Handle, buf, capacity, out n));
        }

        /// <summary>Takes, into an empty cache, what was saved.</summary>
        public void Load(string path)
        {
            Native.kv_cache_load(Handle, Utf8.Terminated(path, "path"));
        }

        /// <summary>The same from memory.</summary>
        public void Load(byte[] state)
        {
            if (state == null) throw new ArgumentNullException("state");
            Native.kv_cache_load_buffer(Handle, state, state.Length);
        }

        /// <summary>An independent copy.</summary>
        public KvCache Clone()
        {
            IntPtr cache;
            Native.kv_cache_clone(Handle, out cache);
            return new KvCache(cache);
        }
    }
}
