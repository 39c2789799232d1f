// SPDX-License-Identifier: Apache-2.0
// Generators: a model with cache settings and a scheduler, from which sessions come; generating once, and in batches.
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>A model with cache settings. Any number of threads use one; their calls share forward passes.</summary>
    public sealed class Generator : NativeObject
    {
        /// <summary>A generator, which keeps of the model what it needs.</summary>
        public Generator(Model model, GeneratorOptions options = null)
            : base(Make(model, options))
        {
            MaxBatch = options?.MaxBatch ?? 64;
        }

        internal int MaxBatch { get; }

        static Handle Make(Model model, GeneratorOptions options)
        {
            Loader.Ensure();
            if (model == null) throw new ArgumentNullException("model");
            // A collector is kept by the generator, and until then by this.
            using (new Use(Of(options?.Metrics)))
            using (Handle native = options?.ToNative())
            {
                IntPtr generator;
                Native.gen_create(model.Handle, native, out generator);
                return new Handle(HandleKind.Generator, generator);
            }
        }

        /// <summary>An empty session.</summary>
        public Session NewSession()
        {
            return new Session(this);
        }

        /// <summary>
        /// Continues a prompt. A token that fires ends it within a token, also inside a long prompt, with a
        /// GenerationCanceledException that has the partial result.
        /// </summary>
        public Result Generate(string prompt, Sampling sampling = null,
                               CancellationToken cancellationToken = default(CancellationToken))
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            byte[] text = Utf8.Bytes(prompt);
            return Call.Run(sampling, cancellationToken, (Handle native, out IntPtr result) =>
                Native.gen_generate(Handle, text, Utf8.Length(text), native, out result));
        }

        /// <summary>The same on a separate thread.</summary>
        public Task<Result> GenerateAsync(string prompt, Sampling sampling = null,
                                          CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() => Generate(prompt, sampling, cancellationToken), cancellationToken);
        }

        /// <summary>Continues a prompt piece by piece, in a session of its own.</summary>
        public TokenStream Stream(string prompt, Sampling sampling = null,
                                  CancellationToken cancellationToken = default(CancellationToken))
        {
            var session = new Session(this);
            try
            {
                return session.Stream(prompt, sampling, cancellationToken);
            }
            finally
            {
                // The stream keeps what it needs of it. Not Dispose, which would cancel.
                session.Handle.Dispose();
            }
        }

        /// <summary>Gives each piece to `onToken`, which is called on a thread of the call's own.</summary>
        public Task<Result> StreamAsync(string prompt, Action<Token> onToken, Sampling sampling = null,
                                        CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() =>
            {
                using (TokenStream stream = Stream(prompt, sampling, cancellationToken)) return stream.Drain(onToken);
            }, cancellationToken);
        }

        /// <summary>
        /// Runs all requests together. There is a result for each, also for one that failed: its Status tells. A token that
        /// fires ends all with a GenerationCanceledException that has the results.
        /// </summary>
        public IReadOnlyList<Result> Generate(IEnumerable<Request> requests,
                                              CancellationToken cancellationToken = default(CancellationToken))
        {
            if (requests == null) throw new ArgumentNullException("requests");
            var natives = new List<Handle>();
            using (var cancel = new CancelFlag(cancellationToken))
            {
                try
                {
                    foreach (Request request in requests)
                    {
                        if (request == null) throw new ArgumentException("a request is null", "requests");
                        natives.Add(request.ToNative(cancel.Handle));
                    }
                    var addresses = new IntPtr[natives.Count];
                    using (var used = new UseAll(natives))
                    {
                        Native.gen_batch_generate(Handle, used.Addresses, natives.Count, addresses);
                    }
                    return Take(addresses, addresses.Length, cancellationToken);
                }
                finally
                {
                    foreach (Handle native in natives) native.Dispose();
                }
            }
        }

        /// <summary>The same on a separate thread.</summary>
        public Task<IReadOnlyList<Result>> GenerateAsync(IEnumerable<Request> requests,
                                                         CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() => Generate(requests, cancellationToken), cancellationToken);
        }

        /// <summary>
        /// The pieces of all requests as they come, from one thread that drives them together: at most
        /// GeneratorOptions.MaxBatch run at once. Each request ends with a piece that is done, or with one that has an Error.
        /// Priorities do not count here.
        /// </summary>
        public IEnumerable<BatchToken> Stream(IEnumerable<Request> requests,
                                              CancellationToken cancellationToken = default(CancellationToken))
        {
            if (requests == null) throw new ArgumentNullException("requests");
            var all = new List<Request>(requests);
            if (all.Contains(null)) throw new ArgumentException("a request is null", "requests");
            return BatchStream.Run(this, all, cancellationToken);
        }

        /// <summary>
        /// Several texts from one prompt, which is run once: text i is what Generate gives with a seed that is larger by i. With
        /// bestOf above n so many are generated, and the n most probable returned, best first. A token that fires ends all with a
        /// GenerationCanceledException that has the results.
        /// </summary>
        public IReadOnlyList<Result> Generate(string prompt, int n, int bestOf, Sampling sampling = null,
                                              CancellationToken cancellationToken = default(CancellationToken))
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            byte[] text = Utf8.Bytes(prompt);
            var addresses = new IntPtr[MaxTexts];
            using (var cancel = new CancelFlag(cancellationToken))
            using (Handle native = Sampling.Make(sampling, cancel.Handle))
            {
                Native.gen_generate_n(Handle, text, Utf8.Length(text), native, n, bestOf, addresses);
                return Take(addresses, n, cancellationToken);
            }
        }

        const int MaxTexts = 128;  // of gen_generate_n

        static Result[] Take(IntPtr[] addresses, int n, CancellationToken token)
        {
            var results = new Result[n];
            for (int i = 0; i < n; ++i) results[i] = Result.Take(addresses[i]);
            if (token.IsCancellationRequested && Array.Exists(results, result => result.Status == Status.Cancelled))
            {
                throw new GenerationCanceledException("the batch was cancelled", results, token);
            }
            return results;
        }

        /// <summary>A chat session of a conversation so far, or of an empty one.</summary>
        public ChatSession NewChatSession(Chat chat = null)
        {
            return new ChatSession(this, chat);
        }

        /// <summary>Statistics of GeneratorOptions.PrefixCache so far; Status.State without one.</summary>
        public PrefixStats PrefixStats
        {
            get { return new PrefixStats(Handle); }
        }

        /// <summary>
        /// Statistics of drafts so far, by key: see gen_generator_draft_stats of speculative.h.
        /// </summary>
        public double DraftStats(string key)
        {
            double value;
            Native.gen_generator_draft_stats(Handle, Utf8.Terminated(key, "key"), out value);
            return value;
        }

        /// <summary>Whether the head of GeneratorOptions.Eagle drafts: its file was there.</summary>
        public bool EagleEnabled
        {
            get { return Native.gen_generator_eagle_enabled(Handle) != 0; }
        }

        /// <summary>The path that GeneratorOptions.Eagle was given; empty if none was.</summary>
        public string EaglePath
        {
            get
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.gen_generator_eagle_path(Handle, buf, capacity, out n));
            }
        }

        /// <summary>Gives the blocks of GeneratorOptions.PrefixCache back, except those that sessions use.</summary>
        public void ClearPrefixCache()
        {
            Native.gen_generator_prefix_clear(Handle);
        }

        /// <summary>An empty cache of the kind that sessions have, for Model.Forward.</summary>
        public KvCache NewCache(int maxSequenceLength = 0)
        {
            IntPtr cache;
            Native.kv_cache_generator_new(Handle, maxSequenceLength, out cache);
            return new KvCache(cache);
        }
    }

    /// <summary>Statistics of a generator's prefix cache.</summary>
    public struct PrefixStats
    {
        internal PrefixStats(Handle generator)
        {
            Lookups = Value(generator, "lookups");
            Hits = Value(generator, "hits");
            Tokens = Value(generator, "tokens");
            Blocks = Value(generator, "blocks");
            Evictions = Value(generator, "evictions");
        }

        static long Value(Handle generator, string key)
        {
            long value;
            Native.gen_generator_prefix_stats(generator, Utf8.Bytes(key), out value);
            return value;
        }

        /// <summary>Calls that looked for a beginning of theirs.</summary>
        public long Lookups { get; }
        /// <summary>Those that found one.</summary>
        public long Hits { get; }
        /// <summary>Tokens that were not evaluated again.</summary>
        public long Tokens { get; }
        /// <summary>Blocks held now.</summary>
        public long Blocks { get; }
        /// <summary>Blocks that had to go.</summary>
        public long Evictions { get; }
    }
}
