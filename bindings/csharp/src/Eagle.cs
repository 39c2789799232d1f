// SPDX-License-Identifier: Apache-2.0
// Speculative decoding with a head: a model and a small network that was trained for it.
using System;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>
    /// A head of two products in memory: it guesses the hidden state of the next row from that of a row x, as
    /// silu(norm(x) Fc1Weight) Fc2Weight, where the norm has a mean, a variance, and an epsilon of 1e-5.
    /// </summary>
    public sealed class EagleTensors
    {
        /// <summary>One number for each of the model's hidden state.</summary>
        public float[] NormWeight { get; set; }
        /// <summary>The same.</summary>
        public float[] NormBias { get; set; }
        /// <summary>Hidden times hidden numbers, inputs by outputs: y = x W.</summary>
        public float[] Fc1Weight { get; set; }
        /// <summary>The same.</summary>
        public float[] Fc2Weight { get; set; }
        /// <summary>A row of hidden numbers for each token; null for the model's output layer, which custom models lack.</summary>
        public float[] LmHead { get; set; }

        internal void Check()
        {
            if (NormWeight == null || NormBias == null || Fc1Weight == null || Fc2Weight == null)
            {
                throw new ArgumentException("a tensor is null", "tensors");
            }
            int hidden = NormWeight.Length;
            long square = (long)hidden * hidden;
            if (hidden == 0 || NormBias.Length != hidden || Fc1Weight.Length != square || Fc2Weight.Length != square ||
                (LmHead != null && LmHead.Length % hidden != 0))
            {
                throw new ArgumentException("tensors of " + hidden + ", " + NormBias.Length + ", " + Fc1Weight.Length + " and " +
                                            Fc2Weight.Length + " numbers are no head", "tensors");
            }
        }
    }

    /// <summary>
    /// A model with a head that was trained for it and drafts: the same text as the model's own, in less time. Any number of
    /// threads use one. Sessions and batches with a head come from a Generator with GeneratorOptions.Eagle.
    /// </summary>
    public sealed class Eagle : NativeObject
    {
        /// <summary>
        /// Combines target with the head of a file, which drafts at most length tokens at a time; 0 means 4. Without a path
        /// the head is that of the model's own file.
        /// </summary>
        public Eagle(Model target, string path = null, int length = 0, GeneratorOptions options = null)
            : base(Make(target, Utf8.Terminated(path, "path"), length, options))
        {
        }

        /// <summary>The same with a head in memory, which is copied.</summary>
        public Eagle(Model target, EagleTensors tensors, int length = 0, GeneratorOptions options = null)
            : base(Make(target, tensors, length, options))
        {
        }

        static Handle Make(Model target, byte[] path, int length, GeneratorOptions options)
        {
            Loader.Ensure();
            if (target == null) throw new ArgumentNullException("target");
            using (new Use(Of(options?.Metrics)))
            using (Handle native = options?.ToNative())
            {
                IntPtr eagle;
                Native.gen_eagle_new(target.Handle, path, length, native, out eagle);
                return new Handle(HandleKind.Eagle, eagle);
            }
        }

        static Handle Make(Model target, EagleTensors tensors, int length, GeneratorOptions options)
        {
            Loader.Ensure();
            if (target == null) throw new ArgumentNullException("target");
            if (tensors == null) throw new ArgumentNullException("tensors");
            tensors.Check();
            using (new Use(Of(options?.Metrics)))
            using (Handle native = options?.ToNative())
            {
                IntPtr eagle;
                int hidden = tensors.NormWeight.Length;
                int vocabulary = tensors.LmHead == null ? 0 : tensors.LmHead.Length / hidden;
                Native.gen_binding_eagle_new_tensors(target.Handle, hidden, vocabulary, tensors.NormWeight, tensors.NormBias,
                    tensors.Fc1Weight, tensors.Fc2Weight, tensors.LmHead, length, native, out eagle);
                return new Handle(HandleKind.Eagle, eagle);
            }
        }

        /// <summary>Continues a prompt, as Generator.Generate does with the model alone.</summary>
        public Result Generate(string prompt, Sampling sampling = null,
                               CancellationToken cancellationToken = default(CancellationToken))
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            byte[] text = Utf8.Bytes(prompt);
            return Call.Run(sampling, cancellationToken, (Handle native, out IntPtr result) =>
                Native.gen_eagle_generate(Handle, text, Utf8.Length(text), native, out result));
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
            Native.gen_eagle_set_adaptive(Handle, adaptive ? 1 : 0);
        }

        /// <summary>
        /// Statistics of drafts so far, by key: see gen_generator_draft_stats of speculative.h.
        /// </summary>
        public double Stats(string key)
        {
            double value;
            Native.gen_eagle_stats(Handle, Utf8.Terminated(key, "key"), out value);
            return value;
        }
    }
}
