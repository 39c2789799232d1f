// SPDX-License-Identifier: Apache-2.0
// Speculative decoding: a model with a smaller draft model, and the steps of the loop.
using System;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>
    /// A model with a smaller draft model: the same text as the model's own, in less time. Any number of threads use one.
    /// Sessions and batches with a draft model come from a Generator with GeneratorOptions.SpeculativeDraft.
    /// </summary>
    public sealed class Speculative : NativeObject
    {
        /// <summary>Combines target with a draft model, which drafts at most length tokens at a time; 0 means 4.</summary>
        public Speculative(Model draft, Model target, int length = 0, GeneratorOptions options = null)
            : base(Make(draft, target, length, options))
        {
        }

        static Handle Make(Model draft, Model target, int length, GeneratorOptions options)
        {
            Loader.Ensure();
            if (draft == null) throw new ArgumentNullException("draft");
            if (target == null) throw new ArgumentNullException("target");
            using (new Use(Of(options?.Metrics)))
            using (Handle native = options?.ToNative())
            {
                IntPtr speculative;
                Native.gen_speculative_new(draft.Handle, target.Handle, length, native, out speculative);
                return new Handle(HandleKind.Speculative, speculative);
            }
        }

        /// <summary>Continues a prompt, as Generator.Generate does with the model alone.</summary>
        public Result Generate(string prompt, Sampling sampling = null,
                               CancellationToken cancellationToken = default(CancellationToken))
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            byte[] text = Utf8.Bytes(prompt);
            return Call.Run(sampling, cancellationToken, (Handle native, out IntPtr result) =>
                Native.gen_speculative_generate(Handle, text, Utf8.Length(text), native, out result));
        }

        /// <summary>The same on a separate thread.</summary>
        public Task<Result> GenerateAsync(string prompt, Sampling sampling = null,
                                          CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() => Generate(prompt, sampling, cancellationToken), cancellationToken);
        }

        /// <summary>Whether the draft length adapts to the acceptance rate, as it does by default.</summary>
        public void SetAdaptive(bool adaptive)
        {
            Native.gen_speculative_set_adaptive(Handle, adaptive ? 1 : 0);
        }

        /// <summary>
        /// Statistics of drafts so far, by key: see gen_generator_draft_stats of speculative.h.
        /// </summary>
        public double Stats(string key)
        {
            double value;
            Native.gen_speculative_stats(Handle, Utf8.Terminated(key, "key"), out value);
            return value;
        }
    }

    /// <summary>
    /// Drafting and verification as separate steps, for programs with their own loop. One thread at a time, a second one gets
    /// Status.Busy.
    /// </summary>
    public sealed class Draft : NativeObject
    {
        const int Most = 63;

        /// <summary>From a model that drafts, and one that verifies, which may be null.</summary>
        public Draft(Model draft, Model target = null, GeneratorOptions options = null)
            : base(Make(draft, target, -1, options))
        {
        }

        Draft(Handle made)
            : base(made)
        {
        }

        /// <summary>From the model's own first layers; 0 means half of them.</summary>
        public static Draft OfLayers(Model model, int layers = 0, GeneratorOptions options = null)
        {
            return new Draft(Make(model, null, Math.Max(layers, 0), options));
        }

        static Handle Make(Model draft, Model target, int layers, GeneratorOptions options)
        {
            Loader.Ensure();
            if (draft == null) throw new ArgumentNullException("draft");
            using (Handle native = options?.ToNative())
            {
                IntPtr made;
                if (layers >= 0) Native.gen_draft_new_self(draft.Handle, layers, native, out made);
                else Native.gen_draft_new(draft.Handle, Of(target), native, out made);
                return new Handle(HandleKind.Draft, made);
            }
        }

        /// <summary>Layers that draft.</summary>
        public int Depth
        {
            get { return Native.gen_draft_depth(Handle); }
        }

        /// <summary>Drafts the next tokens, with the log-probability of each.</summary>
        public int[] Generate(int[] tokens, int length, out float[] logprobs)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            var ids = new int[Most];
            logprobs = new float[Most];
            long n;
            Native.gen_draft_generate(Handle, tokens, tokens.Length, length, ids, logprobs, Most, out n);
            Array.Resize(ref ids, (int)n);
            Array.Resize(ref logprobs, (int)n);
            return ids;
        }

        /// <summary>
        /// How many draft tokens the target accepts, and its token after these; -1 where its context is full.
        /// </summary>
        public int Verify(int[] tokens, int[] guesses, out int correction)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            if (guesses == null) throw new ArgumentNullException("guesses");
            int accepted;
            Native.gen_draft_verify(Handle, tokens, tokens.Length, guesses, guesses.Length, out accepted, out correction);
            return accepted;
        }

        /// <summary>Drafts once, 4 tokens for a length of 0: the acceptance rate.</summary>
        public double AcceptanceRate(int[] tokens, int length = 0)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            double rate;
            Native.gen_draft_acceptance_rate(Handle, tokens, tokens.Length, length, out rate);
            return rate;
        }

        /// <summary>
        /// Speculative sampling: of tokens drawn from a draft's probabilities, K rows of vocab, keeps those that leave the
        /// distribution of the target's, K + 1 rows, and draws one more with the numbers of seed and step + i. Without
        /// draftProbs there are no draws: a token is kept while it is the target's most probable one.
        /// </summary>
        public static int[] AcceptTokens(int[] tokens, float[] draftProbs, float[] targetProbs, int vocab, ulong seed, ulong step,
                                         out double rate)
        {
            Loader.Ensure();
            if (tokens == null) throw new ArgumentNullException("tokens");
            if (targetProbs == null) throw new ArgumentNullException("targetProbs");
            if (vocab < 1 || targetProbs.Length < (tokens.Length + 1L) * vocab ||
                (draftProbs != null && draftProbs.Length < (long)tokens.Length * vocab))
            {
                throw new ArgumentException("fewer probabilities than the tokens have");
            }
            var ids = new int[tokens.Length + 1];
            long n;
            Native.gen_draft_accept_tokens(tokens, tokens.Length, draftProbs, targetProbs, vocab, draftProbs == null ? 1 : 0,
                                           seed, step, ids, ids.Length, out n, out rate);
            Array.Resize(ref ids, (int)n);
            return ids;
        }
    }
}
