// SPDX-License-Identifier: Apache-2.0
// Blocks that paged caches share, and what is found in them by tokens.
using System;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>Blocks for paged caches. Any number of threads share one; caches keep what they use.</summary>
    public sealed class KvPool : NativeObject
    {
        /// <summary>A pool of at most `memory` MiB, of "fp32" or "fp16".</summary>
        public KvPool(int layers, int blockSize, int rowSize, int memory, string type = "fp32")
            : base(Make(layers, blockSize, rowSize, memory, type))
        {
        }

        static Handle Make(int layers, int blockSize, int rowSize, int memory, string type)
        {
            Loader.Ensure();
            IntPtr pool;
            Native.kv_cache_pool_new(layers, blockSize, rowSize, memory, Utf8.Terminated(type, "type"), out pool);
            return new Handle(HandleKind.KvPool, pool);
        }

        /// <summary>Takes memory from a gen_allocator, before the first block is taken.</summary>
        public void SetAllocator(NativeSymbol allocator)
        {
            Native.kv_cache_pool_set_allocator(Handle, allocator.Address);
        }

        /// <summary>Keeps the blocks in a device's memory, before the first block is taken.</summary>
        public void SetGpuAllocator(GpuAllocator allocator)
        {
            Native.kv_cache_pool_set_gpu_allocator(Handle, allocator.Handle);
        }

        /// <summary>Takes a block.</summary>
        public KvBlock Allocate()
        {
            IntPtr block;
            Native.kv_cache_pool_alloc(Handle, out block);
            return new KvBlock(block, Handle);
        }

        /// <summary>Blocks in all.</summary>
        public long Capacity
        {
            get { return Native.kv_cache_pool_cap(Handle); }
        }

        /// <summary>Blocks that are free now.</summary>
        public long Available
        {
            get { return Native.kv_cache_pool_available(Handle); }
        }

        /// <summary>Positions in a block.</summary>
        public int BlockSize
        {
            get { return Native.kv_cache_pool_block_size(Handle); }
        }

        /// <summary>Positions of taken blocks that are not written, as a share.</summary>
        public double Fragmentation
        {
            get { return Native.kv_cache_pool_fragmentation(Handle); }
        }

        /// <summary>Bytes taken.</summary>
        public long ResidentBytes
        {
            get { return Native.kv_cache_pool_resident_bytes(Handle); }
        }
    }

    /// <summary>One reference to a block of a pool; Dispose gives it back.</summary>
    public sealed class KvBlock : NativeObject
    {
        internal KvBlock(IntPtr block, Handle pool)
            : base(new Handle(HandleKind.KvBlock, block, pool))
        {
        }

        /// <summary>Address of the keys [layers, block size, row size]. The only holder of the block may write.</summary>
        public IntPtr Keys
        {
            get { return Native.kv_cache_block_k(Handle); }
        }

        /// <summary>Address of the values.</summary>
        public IntPtr Values
        {
            get { return Native.kv_cache_block_v(Handle); }
        }

        /// <summary>Positions that caches have written.</summary>
        public int Used
        {
            get { return Native.kv_cache_block_used(Handle); }
        }

        /// <summary>Blocks that come with a reference each.</summary>
        internal static KvBlock[] Take(IntPtr[] addresses, long n, KvPool pool)
        {
            var blocks = new KvBlock[n];
            for (int i = 0; i < blocks.Length; ++i) blocks[i] = new KvBlock(addresses[i], pool.Handle);
            return blocks;
        }

        internal static UseAll Hold(IReadOnlyList<KvBlock> blocks)
        {
            if (blocks == null) throw new ArgumentNullException("blocks");
            var handles = new Handle[blocks.Count];
            for (int i = 0; i < handles.Length; ++i) handles[i] = Of(blocks[i]);
            return new UseAll(handles);
        }
    }

    /// <summary>A cache of one sequence over a pool. A clone shares all blocks.</summary>
    public sealed class PagedKvCache : KvCache
    {
        readonly KvPool pool;

        /// <summary>An empty one.</summary>
        public PagedKvCache(KvPool pool, int layers)
            : this(Make(pool, layers), pool)
        {
        }

        PagedKvCache(IntPtr cache, KvPool pool)
            : base(cache)
        {
            this.pool = pool;
        }

        static IntPtr Make(KvPool pool, int layers)
        {
            Loader.Ensure();
            IntPtr cache;
            Native.kv_cache_paged_new(Of(pool), layers, out cache);
            return cache;
        }

        /// <summary>The cache's blocks in order, with a reference to each, to be disposed of.</summary>
        public IReadOnlyList<KvBlock> Blocks()
        {
            // The list is borrowed until the cache changes; the references are taken before that.
            IntPtr[] addresses = Sized.Array((IntPtr[] blocks, long capacity, out long n) =>
                Native.kv_cache_block_table(Handle, blocks, capacity, out n));
            var taken = new List<KvBlock>();
            try
            {
                foreach (IntPtr address in addresses)
                {
                    using (var borrowed = new Handle(pool.Handle, HandleKind.KvBlock, address))
                    {
                        Native.kv_cache_pool_retain_block(pool.Handle, borrowed);
                    }
                    taken.Add(new KvBlock(address, pool.Handle));
                }
                return taken;
            }
            catch
            {
                foreach (KvBlock block in taken) block.Dispose();
                throw;
            }
        }

        /// <summary>Fills an empty cache with blocks that are already written. The caller's references stay the caller's.</summary>
        public void Inject(IReadOnlyList<KvBlock> blocks, int positions, int batch, int dim)
        {
            using (UseAll held = KvBlock.Hold(blocks))
            {
                // A reference to each passes to the cache: one of its own.
                int retained = 0;
                try
                {
                    for (; retained < blocks.Count; ++retained)
                    {
                        Native.kv_cache_pool_retain_block(pool.Handle, Of(blocks[retained]));
                    }
                    Native.kv_cache_inject_blocks(Handle, held.Addresses, blocks.Count, positions, batch, dim);
                }
                catch
                {
                    for (int i = 0; i < retained; ++i) Native.kv_cache_pool_free_block(pool.Handle, blocks[i].Handle);
                    throw;
                }
            }
        }
    }

    /// <summary>Keys and values of prompt prefixes, kept for later prompts that begin alike. Any number of threads share one.</summary>
    public sealed class PrefixCache : NativeObject
    {
        readonly KvPool pool;

        /// <summary>Keeps at most `capacity` blocks of a pool.</summary>
        public PrefixCache(int capacity, KvPool pool)
            : base(Make(capacity, pool))
        {
            this.pool = pool;
        }

        static Handle Make(int capacity, KvPool pool)
        {
            Loader.Ensure();
            IntPtr prefix;
            Native.kv_cache_prefix_new(capacity, Of(pool), out prefix);
            return new Handle(HandleKind.PrefixCache, prefix);
        }

        /// <summary>Keeps the blocks that hold a sequence, by references of its own.</summary>
        public void Insert(ulong domain, int[] tokens, IReadOnlyList<KvBlock> blocks)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            using (UseAll held = KvBlock.Hold(blocks))
            {
                Native.kv_cache_prefix_insert(Handle, domain, tokens, tokens.Length, held.Addresses, blocks.Count);
            }
        }

        /// <summary>The longest cached prefix of a sequence: its blocks, to be disposed of, and its length.</summary>
        public IReadOnlyList<KvBlock> Match(ulong domain, int[] tokens, out int matched)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            using (new Use(pool.Handle))
            {
                var addresses = new IntPtr[tokens.Length / pool.BlockSize + 1];
                long n, found;
                Native.kv_cache_prefix_match(Handle, domain, tokens, tokens.Length, addresses, addresses.Length, out n,
                                             out found);
                matched = (int)found;
                return KvBlock.Take(addresses, n, pool);
            }
        }

        /// <summary>Blocks that are kept.</summary>
        public int Count
        {
            get { return Native.kv_cache_prefix_size(Handle); }
        }
    }
}
