// SPDX-License-Identifier: Apache-2.0
// An index from token sequences to ids of blocks.
using System;

namespace LibGenerate
{
    /// <summary>An index for programs that keep blocks of keys and values themselves. Any number of threads share one.</summary>
    public sealed class RadixTree : NativeObject
    {
        readonly int blockSize;

        /// <summary>An empty one.</summary>
        public RadixTree(int blockSize, int maxBlocks)
            : base(Make(blockSize, maxBlocks))
        {
            this.blockSize = blockSize;
        }

        static Handle Make(int blockSize, int maxBlocks)
        {
            Loader.Ensure();
            IntPtr radix;
            Native.kv_cache_radix_new(blockSize, maxBlocks, out radix);
            return new Handle(HandleKind.RadixTree, radix);
        }

        /// <summary>Adds the blocks of a sequence; the ids of those that are there now.</summary>
        public int[] Insert(int[] tokens)
        {
            var ids = Room(tokens);
            long n;
            Native.kv_cache_radix_insert(Handle, tokens, tokens.Length, ids, ids.Length, out n);
            return Cut(ids, n);
        }

        /// <summary>The longest indexed prefix, in whole blocks: its length and the ids.</summary>
        public int[] Match(int[] tokens, out int matched)
        {
            var ids = Room(tokens);
            long n, found;
            Native.kv_cache_radix_match(Handle, tokens, tokens.Length, out found, ids, ids.Length, out n);
            matched = (int)found;
            return Cut(ids, n);
        }

        /// <summary>As Match, and what is found stays until Unpin.</summary>
        public int[] Pin(int[] tokens, out int matched)
        {
            var ids = Room(tokens);
            long n, found;
            Native.kv_cache_radix_pin(Handle, tokens, tokens.Length, out found, ids, ids.Length, out n);
            matched = (int)found;
            return Cut(ids, n);
        }

        /// <summary>Takes one Pin back: the tokens that it found.</summary>
        public void Unpin(int[] tokens)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            Native.kv_cache_radix_unpin(Handle, tokens, tokens.Length);
        }

        /// <summary>Removes the least recently used leaf: its id, or -1.</summary>
        public int Evict()
        {
            int id;
            Native.kv_cache_radix_evict(Handle, out id);
            return id;
        }

        /// <summary>Removes all sequences that begin with these tokens: how many blocks.</summary>
        public long Remove(int[] tokens)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            long removed;
            Native.kv_cache_radix_remove(Handle, tokens, tokens.Length, out removed);
            return removed;
        }

        /// <summary>Blocks that are there.</summary>
        public int Count
        {
            get { return Native.kv_cache_radix_size(Handle); }
        }

        /// <summary>Matches that found something, those that did not, and leaves that made room.</summary>
        public void Statistics(out ulong hits, out ulong misses, out ulong evictions)
        {
            Native.kv_cache_radix_stats(Handle, out hits, out misses, out evictions);
        }

        /// <summary>A kv_cache_radix_evict_callback that is told of each id that is free again; default for nobody.</summary>
        public void SetEvictCallback(NativeSymbol callback, IntPtr user = default(IntPtr))
        {
            Native.kv_cache_radix_set_evict_callback(Handle, callback.Address, user);
        }

        int[] Room(int[] tokens)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            return new int[tokens.Length / blockSize + 1];
        }

        static int[] Cut(int[] ids, long n)
        {
            Array.Resize(ref ids, (int)n);
            return ids;
        }
    }
}
