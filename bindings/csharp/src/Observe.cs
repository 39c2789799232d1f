// SPDX-License-Identifier: Apache-2.0
// What can be seen of a running library: metrics and records of operations.
using System;

namespace LibGenerate
{
    /// <summary>A collector of metrics in memory. Any number of threads share one.</summary>
    public sealed class MetricsCollector : NativeObject
    {
        /// <summary>An empty one, for GeneratorOptions.Metrics.</summary>
        public MetricsCollector()
            : base(Make())
        {
        }

        static Handle Make()
        {
            Loader.Ensure();
            IntPtr memory;
            Native.gen_metrics_memory_new(out memory);
            return new Handle(HandleKind.MetricsCollector, memory);
        }

        internal void Attach(Handle options)
        {
            using (new Use(Handle)) Native.gen_options_set_metrics(options, Native.gen_metrics_memory_sink(Handle));
        }

        /// <summary>One moment of all metrics as JSON.</summary>
        public string Snapshot()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_metrics_memory_snapshot(Handle, buf, capacity, out n));
        }

        /// <summary>A counter or gauge, or "NAME.count" or "NAME.sum" of a histogram; 0 for what was never told.</summary>
        public double Value(string name)
        {
            return Native.gen_metrics_memory_value(Handle, Utf8.Terminated(name, "name"));
        }
    }

    /// <summary>A record of operations. One thread at a time, together with the caches and generations that write to it.</summary>
    public sealed class Tracer : NativeObject
    {
        /// <summary>An empty one.</summary>
        public Tracer()
            : base(Make())
        {
        }

        static Handle Make()
        {
            Loader.Ensure();
            IntPtr tracer;
            Native.gen_tracer_new(out tracer);
            return new Handle(HandleKind.Tracer, tracer);
        }

        /// <summary>Operations recorded so far.</summary>
        public long Count
        {
            get { return Native.gen_tracer_op_count(Handle); }
        }

        /// <summary>One operation as JSON.</summary>
        public string Operation(long index)
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_tracer_op(Handle, index, buf, capacity, out n));
        }

        /// <summary>Writes the record as a Graphviz graph.</summary>
        public void WriteDot(string path)
        {
            Native.gen_tracer_write_dot(Handle, Utf8.Terminated(path, "path"));
        }

        /// <summary>Writes the record as JSON.</summary>
        public void WriteJson(string path)
        {
            Native.gen_tracer_write_json(Handle, Utf8.Terminated(path, "path"));
        }
    }

    /// <summary>Functions that may change.</summary>
    public static class Experimental
    {
        /// <summary>
        /// One forward pass over rows of several sequences: logits of the wanted rows, one after another.
        /// </summary>
        public static float[] ForwardBatch(Model model, int[] tokens, int[] sequences, bool[] wantsLogits, KvCache[] caches,
                                           Profile profile = null)
        {
            if (model == null) throw new ArgumentNullException("model");
            if (tokens == null) throw new ArgumentNullException("tokens");
            if (caches == null) throw new ArgumentNullException("caches");
            byte[] wants = null;
            int wanted = tokens.Length;
            if (wantsLogits != null)
            {
                wants = new byte[wantsLogits.Length];
                wanted = 0;
                for (int i = 0; i < wants.Length; ++i)
                {
                    if (wantsLogits[i]) ++wanted;
                    wants[i] = (byte)(wantsLogits[i] ? 1 : 0);
                }
            }
            if (sequences != null && sequences.Length != tokens.Length || wants != null && wants.Length != tokens.Length)
            {
                throw new ArgumentException("there is one entry for each token");
            }
            var logits = new float[(long)wanted * model.VocabularySize];
            using (var held = new UseAll(Array.ConvertAll(caches, NativeObject.Of)))
            {
                if (profile == null)
                {
                    Native.gen_model_forward_batch(model.Handle, tokens, sequences, wants, tokens.Length, held.Addresses,
                                                   caches.Length, logits, logits.Length);
                }
                else
                {
                    Native.gen_model_forward_profiled(model.Handle, tokens, sequences, wants, tokens.Length, held.Addresses,
                                                      caches.Length, logits, logits.Length, profile.Handle);
                }
            }
            return logits;
        }

        /// <summary>The layer of ForwardHidden for the states after the final norm.</summary>
        public const int HiddenNormed = -1;

        /// <summary>
        /// Evaluates tokens of one sequence, which follow what the cache holds. Returns for each layer the hidden states of
        /// all tokens, one after another: those before layer i, after the last one for the number of layers, or HiddenNormed.
        /// </summary>
        public static float[][] ForwardHidden(Model model, int[] tokens, KvCache cache, params int[] layers)
        {
            if (model == null) throw new ArgumentNullException("model");
            if (tokens == null) throw new ArgumentNullException("tokens");
            if (cache == null) throw new ArgumentNullException("cache");
            if (layers == null) throw new ArgumentNullException("layers");
            int width = checked(tokens.Length * model.HiddenSize);
            var all = new float[(long)layers.Length * width];
            Native.gen_model_forward_hidden(model.Handle, tokens, tokens.Length, cache.Handle, layers, layers.Length, all,
                                            all.Length);
            var states = new float[layers.Length][];
            for (int i = 0; i < states.Length; ++i)
            {
                states[i] = new float[width];
                Array.Copy(all, (long)i * width, states[i], 0, width);
            }
            return states;
        }

        /// <summary>What this machine can do: "read_bandwidth", "fma_f32", "dot_i8", "dot_bf16", a second.</summary>
        public static double MeasurePeak(int threads, string what)
        {
            Loader.Ensure();
            double value;
            Native.gen_measure_peaks(threads, Utf8.Terminated(what, "what"), out value);
            return value;
        }
    }

    /// <summary>Time, bytes and operations of each instruction of a model's forward passes.</summary>
    public sealed class Profile : NativeObject
    {
        /// <summary>An empty one, for Experimental.ForwardBatch.</summary>
        public Profile()
            : base(Make())
        {
        }

        static Handle Make()
        {
            Loader.Ensure();
            IntPtr profile;
            Native.gen_profile_new(out profile);
            return new Handle(HandleKind.Profile, profile);
        }

        /// <summary>Number of instructions seen.</summary>
        public long Count
        {
            get { return Native.gen_profile_count(Handle); }
        }

        /// <summary>Name of an instruction.</summary>
        public string Name(long index)
        {
            using (new Use(Handle)) return Utf8.Text(Native.gen_profile_name(Handle, index));
        }

        /// <summary>A sum over its runs: "seconds", "calls", "rows", "bytes", "operations".</summary>
        public double Get(long index, string key)
        {
            double value;
            Native.gen_profile_get(Handle, index, Utf8.Terminated(key, "key"), out value);
            return value;
        }

        /// <summary>When instructions ran, in the format of chrome://tracing and ui.perfetto.dev.</summary>
        public string ChromeTrace()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_profile_chrome_trace(Handle, buf, capacity, out n));
        }
    }
}
