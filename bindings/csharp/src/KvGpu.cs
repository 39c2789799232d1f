// SPDX-License-Identifier: Apache-2.0
// Caches in a device's memory, and where that comes from.
using System;

namespace LibGenerate
{
    /// <summary>The source of device memory for caches and models. They keep what they use of it alive.</summary>
    public sealed class GpuAllocator : NativeObject
    {
        /// <summary>One over host memory that acts as a device.</summary>
        public GpuAllocator()
            : base(Make())
        {
        }

        /// <summary>A gen_gpu_allocator in C, which must work until the caches that use it are disposed of.</summary>
        public GpuAllocator(NativeSymbol table)
            : base(new Handle(HandleKind.GpuAllocator, table.Address))
        {
        }

        GpuAllocator(Handle handle)
            : base(handle)
        {
        }

        /// <summary>One over the memory of a device of the backend "cuda".</summary>
        public static GpuAllocator Cuda(int device)
        {
            Loader.Ensure();
            IntPtr table;
            Native.gen_gpu_allocator_cuda(device, out table);
            return new GpuAllocator(new Handle(HandleKind.GpuAllocator, table));
        }

        static Handle Make()
        {
            Loader.Ensure();
            IntPtr table;
            Native.gen_gpu_allocator_host(out table);
            return new Handle(HandleKind.GpuAllocator, table);
        }

        /// <summary>What is taken from an allocator of the library, and the maximum.</summary>
        public void Counters(out long allocations, out long bytes, out long peakBytes)
        {
            Native.gen_gpu_allocator_counters(Handle, out allocations, out bytes, out peakBytes);
        }
    }

    /// <summary>A cache whose layers are float32 or float16 buffers [max length, heads, head size] on a device.</summary>
    public sealed class GpuKvCache : KvCache
    {
        readonly int heads;
        readonly int headSize;

        /// <summary>
        /// An empty one with all of its memory. Update takes batch 1 and heads * headSize elements. The type is "fp32" or
        /// "fp16", to which it rounds what is appended.
        /// </summary>
        public GpuKvCache(GpuAllocator allocator, int layers, int maxSequenceLength, int heads, int headSize, string type = "fp32")
            : base(Make(allocator, layers, maxSequenceLength, heads, headSize, type))
        {
            this.heads = heads;
            this.headSize = headSize;
        }

        static IntPtr Make(GpuAllocator allocator, int layers, int maxSequenceLength, int heads, int headSize, string type)
        {
            IntPtr cache;
            Native.kv_cache_gpu_new_typed(
                allocator.Handle, layers, maxSequenceLength, heads, headSize, Utf8.Terminated(type, "type"), out cache);
            return cache;
        }

        /// <summary>Appends one position to one layer. The length moves when all layers have it.</summary>
        public void Append(int layer, float[] keys, float[] values, int position)
        {
            CheckShape(keys, values, 1, heads, headSize);
            Native.kv_cache_gpu_append(Handle, layer, keys, values, position);
        }

        /// <summary>The same of the next position, from addresses of float32 on the device.</summary>
        public void AppendOnDevice(int layer, long keys, long values)
        {
            Native.gen_binding_gpu_append_device(Handle, layer, keys, values);
        }

        /// <summary>
        /// The same, enqueued on a CUDA stream: a cudaStream_t of the allocator's device, 0 in host memory that acts as one.
        /// Streams that are captured take it into their graph, whose replays move only the counter: SyncLength takes the
        /// length then. Make the stream wait before other methods look at the cache.
        /// </summary>
        public void AppendOnStream(int layer, long keys, long values, long stream)
        {
            Native.gen_binding_gpu_append_stream(Handle, layer, keys, values, stream);
        }

        /// <summary>Addresses on the device of a layer's keys and values; 0 for one that does not exist.</summary>
        public void Pointers(int layer, out long keys, out long values)
        {
            var fields = new long[3];
            Native.gen_binding_gpu_pointers(Handle, layer, fields);
            keys = fields[0];
            values = fields[1];
        }

        /// <summary>Addresses on the device of arrays of all layers' addresses.</summary>
        public void PointerArrays(out long keys, out long values)
        {
            var fields = new long[2];
            Native.gen_binding_gpu_pointer_arrays(Handle, fields);
            keys = fields[0];
            values = fields[1];
        }

        /// <summary>Address on the device of the position that is written next.</summary>
        public IntPtr Counter
        {
            get { return Native.kv_cache_gpu_counter_ptr(Handle); }
        }

        /// <summary>
        /// Takes the length from the device. Throws once if appends on a stream were dropped because the cache was full.
        /// </summary>
        public void SyncLength()
        {
            Native.kv_cache_gpu_sync_counter(Handle);
        }
    }
}
