// SPDX-License-Identifier: Apache-2.0
// Models: loaded from a file or from memory, or a function in C.
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>Memory of a model in bytes.</summary>
    public enum ModelMemory
    {
        /// <summary>Weights as laid out for the backend.</summary>
        Weights,
        /// <summary>Scratch of finished and running steps.</summary>
        Workspace,
        /// <summary>File pages it still refers to.</summary>
        Mapped,
        /// <summary>Size of its files.</summary>
        File,
        /// <summary>Weights read for one token.</summary>
        Stream
    }

    /// <summary>Weights and tokenizer, ready to run. Any number of generators, sessions and threads share one.</summary>
    public sealed class Model : NativeObject
    {
        readonly Handle config;

        Model(IntPtr model)
            : base(new Handle(HandleKind.Model, model))
        {
            config = new Handle(Handle, HandleKind.Model, Native.gen_model_get_config(Handle));
            IntPtr tokenizer = Native.gen_model_tokenizer(Handle);
            if (tokenizer != IntPtr.Zero) Tokenizer = new Tokenizer(tokenizer, Handle);
        }

        /// <summary>
        /// Loads a GGUF file; the first part of a split one brings the others. The token stops it, but where the options
        /// have a Progress of their own. `progress` is told the share that is done, on a thread of the pool.
        /// </summary>
        public static Model Load(string path, ModelOptions options = null,
                                 CancellationToken cancellationToken = default(CancellationToken),
                                 IProgress<double> progress = null)
        {
            if (path == null) throw new ArgumentNullException("path");
            using (var flag = new ProgressFlag(cancellationToken))
            using (Handle native = (options ?? new ModelOptions()).ToNative())
            {
                if (options == null || options.Progress.Address == IntPtr.Zero)
                {
                    Native.gen_model_options_set_progress(native, ProgressFlag.Callback, flag.User);
                }
                IntPtr model = IntPtr.Zero;
                flag.Run(() => Native.gen_model_load(Utf8.Terminated(path, "path"), native, out model), progress);
                return new Model(model);
            }
        }

        /// <summary>Loads a GGUF file that is in memory. The bytes are needed only during the call.</summary>
        public static Model Load(byte[] file, ModelOptions options = null)
        {
            Loader.Ensure();
            if (file == null) throw new ArgumentNullException("file");
            using (Handle native = options?.ToNative())
            {
                IntPtr model;
                Native.gen_model_load_memory(file, file.Length, native, out model);
                return new Model(model);
            }
        }

        /// <summary>Loads on a thread of its own, until the token stops it.</summary>
        public static Task<Model> LoadAsync(string path, ModelOptions options = null,
                                            CancellationToken cancellationToken = default(CancellationToken),
                                            IProgress<double> progress = null)
        {
            return Background.Run(() => Load(path, options, cancellationToken, progress), cancellationToken);
        }

        /// <summary>A model of a function in C, a gen_forward, in the place of a file. The tokenizer may be null.</summary>
        public static Model Custom(NativeSymbol forward, CustomModelConfig config, Tokenizer tokenizer = null)
        {
            if (config == null) throw new ArgumentNullException("config");
            using (Handle native = config.ToNative())
            {
                IntPtr model;
                Native.gen_model_new_custom(forward.Address, native, Of(tokenizer), out model);
                return new Model(model);
            }
        }

        /// <summary>Writes a GGUF file with the weights of another as "Q4_K_M", "Q8_0", "F16" …</summary>
        public static void Quantize(string input, string output, string type,
                                    CancellationToken cancellationToken = default(CancellationToken),
                                    IProgress<double> progress = null)
        {
            using (var flag = new ProgressFlag(cancellationToken))
            {
                flag.Run(() => Quantize(input, output, type, new NativeSymbol(ProgressFlag.Callback), flag.User), progress);
            }
        }

        /// <summary>The same with a gen_progress_callback in C.</summary>
        public static void Quantize(string input, string output, string type, NativeSymbol progress, IntPtr user)
        {
            Loader.Ensure();
            Native.gen_model_quantize(Utf8.Terminated(input, "input"), Utf8.Terminated(output, "output"),
                                      Utf8.Terminated(type, "type"), progress.Address, user);
        }

        /// <summary>The same with options: which columns of weights count more, and types for single tensors.</summary>
        public static void Quantize(string input, string output, string type, QuantizeOptions options,
                                    CancellationToken cancellationToken = default(CancellationToken),
                                    IProgress<double> progress = null)
        {
            if (options == null) throw new ArgumentNullException("options");
            using (var flag = new ProgressFlag(cancellationToken))
            using (Handle native = options.ToNative())
            {
                flag.Run(() => Native.gen_model_quantize_with(
                             Utf8.Terminated(input, "input"), Utf8.Terminated(output, "output"), Utf8.Terminated(type, "type"),
                             native, new NativeSymbol(ProgressFlag.Callback).Address, flag.User),
                         progress);
            }
        }

        /// <summary>
        /// Writes a GGUF file of a model with an adapter in its weights, multiplied by the scale. The type is as Quantize takes
        /// it; with null every tensor has the type that it has in the model.
        /// </summary>
        public static void MergeAdapter(string model, string adapter, float scale, string output, string type = null,
                                        CancellationToken cancellationToken = default(CancellationToken),
                                        IProgress<double> progress = null)
        {
            using (var flag = new ProgressFlag(cancellationToken))
            {
                flag.Run(() => MergeAdapter(model, adapter, scale, output, type, new NativeSymbol(ProgressFlag.Callback), flag.User),
                         progress);
            }
        }

        /// <summary>The same with a gen_progress_callback in C.</summary>
        public static void MergeAdapter(string model, string adapter, float scale, string output, string type,
                                        NativeSymbol progress, IntPtr user)
        {
            Loader.Ensure();
            Native.gen_adapter_merge(Utf8.Terminated(model, "model"), Utf8.Terminated(adapter, "adapter"), scale,
                                     Utf8.Terminated(output, "output"), Utf8.Terminated(type, "type"), progress.Address, user);
        }

        /// <summary>The model's tokenizer, which is disposed of with the model; null for a custom model without one.</summary>
        public Tokenizer Tokenizer { get; }

        /// <summary>Tokens of the vocabulary.</summary>
        public int VocabularySize
        {
            get { return Native.gen_model_config_vocab_size(config); }
        }

        /// <summary>Maximum tokens of a sequence, prompt included.</summary>
        public int MaxSequenceLength
        {
            get { return Native.gen_model_config_max_seq_len(config); }
        }

        /// <summary>End-of-sequence token, or -1.</summary>
        public int EndToken
        {
            get { return Native.gen_model_config_eos(config); }
        }

        /// <summary>Begin-of-sequence token, or -1.</summary>
        public int BeginToken
        {
            get { return Native.gen_model_config_bos(config); }
        }

        /// <summary>Number of layers.</summary>
        public int Layers
        {
            get { return Native.gen_model_config_num_layers(config); }
        }

        /// <summary>Query heads of a layer.</summary>
        public int Heads
        {
            get { return Native.gen_model_config_num_heads(config); }
        }

        /// <summary>Layers of a cache for a forward pass: fewer than the model has where layers share
        /// keys and values or keep none.</summary>
        public int CacheLayers
        {
            get { return Native.gen_model_config_num_cache_layers(config); }
        }

        /// <summary>Key and value heads of a layer.</summary>
        public int KvHeads
        {
            get { return Native.gen_model_config_num_kv_heads(config); }
        }

        /// <summary>Elements of a head.</summary>
        public int HeadSize
        {
            get { return Native.gen_model_config_head_dim(config); }
        }

        /// <summary>Width of the hidden state.</summary>
        public int HiddenSize
        {
            get { return Native.gen_model_config_hidden(config); }
        }

        /// <summary>Sizes as JSON, as CustomModelConfig.Describe has them.</summary>
        public string DescribeConfig()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_model_config_describe(config, buf, capacity, out n));
        }

        /// <summary>The model's description as JSON.</summary>
        public string Describe()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_model_describe(Handle, buf, capacity, out n));
        }

        /// <summary>Keys of the file's metadata.</summary>
        public IReadOnlyList<string> MetadataKeys
        {
            get
            {
                // The texts are the model's: it must not go between the calls.
                using (new Use(Handle))
                {
                    var keys = new string[Native.gen_model_metadata_count(Handle)];
                    for (int i = 0; i < keys.Length; ++i) keys[i] = Utf8.Text(Native.gen_model_metadata_key(Handle, i));
                    return keys;
                }
            }
        }

        /// <summary>A value of the file's metadata as text; long arrays are shortened.</summary>
        public string Metadata(string key)
        {
            byte[] name = Utf8.Terminated(key, "key");
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_model_metadata_value(Handle, name, buf, capacity, out n));
        }

        /// <summary>Bytes of the model's memory.</summary>
        public long Memory(ModelMemory part)
        {
            long bytes;
            Native.gen_model_memory(Handle, Utf8.Bytes(part.ToString().ToLowerInvariant()), out bytes);
            return bytes;
        }

        /// <summary>
        /// Loads a low-rank adapter (LoRA) from a GGUF file, in the place of one of the same name. The scale multiplies that of
        /// requests.
        /// </summary>
        public void LoadAdapter(string path, string name, float scale = 1)
        {
            Native.gen_adapter_load(Handle, Utf8.Terminated(path, "path"), Utf8.Terminated(name, "name"), scale);
        }

        /// <summary>Forgets a name; calls that use the adapter go on with it.</summary>
        public void UnloadAdapter(string name)
        {
            Native.gen_adapter_unload(Handle, Utf8.Terminated(name, "name"));
        }

        /// <summary>
        /// Limits the memory of the loaded adapters to MiB, 0 for no limit: the least recently used names are forgotten.
        /// </summary>
        public void SetAdapterBudget(int maxMemoryMb)
        {
            Native.gen_adapter_set_budget(Handle, maxMemoryMb);
        }

        /// <summary>Names of the loaded adapters, oldest first.</summary>
        public IReadOnlyList<string> Adapters
        {
            get
            {
                var names = new List<string>();
                for (int i = 0; i < Native.gen_adapter_count(Handle); ++i)
                {
                    int index = i;
                    names.Add(Sized.Text((byte[] buf, long capacity, out long n) =>
                        Native.gen_adapter_name(Handle, index, buf, capacity, out n)));
                }
                return names;
            }
        }

        /// <summary>
        /// Renders a conversation as text, for display. A message that contains the name of a special token is refused here.
        /// </summary>
        public string Format(Chat chat, bool addGenerationPrompt = true)
        {
            if (chat == null) throw new ArgumentNullException("chat");
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_chat_format(Handle, chat.Handle, addGenerationPrompt ? 1 : 0, buf, capacity, out n));
        }

        /// <summary>Renders a conversation as tokens, with begin-of-sequence where the model wants it.</summary>
        public int[] Encode(Chat chat, bool addGenerationPrompt = true)
        {
            if (chat == null) throw new ArgumentNullException("chat");
            return Sized.Array((int[] ids, long capacity, out long n) =>
                Native.gen_chat_encode(Handle, chat.Handle, addGenerationPrompt ? 1 : 0, ids, capacity, out n));
        }

        /// <summary>
        /// Writes an importance matrix: how large the inputs of the model's matrices are on the tokens of a text, in windows
        /// of `context` tokens, 0 for the usual number. The file keeps the text's name, which may be null.
        /// </summary>
        public void Importance(int[] tokens, int context, string textName, string output,
                               CancellationToken cancellationToken = default(CancellationToken),
                               IProgress<double> progress = null)
        {
            using (var flag = new ProgressFlag(cancellationToken))
            {
                flag.Run(() => Importance(tokens, context, textName, output, new NativeSymbol(ProgressFlag.Callback), flag.User),
                         progress);
            }
        }

        /// <summary>The same with a gen_progress_callback in C.</summary>
        public void Importance(int[] tokens, int context, string textName, string output, NativeSymbol progress, IntPtr user)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            Native.gen_model_importance(Handle, tokens, tokens.Length, context,
                                        textName != null ? Utf8.Terminated(textName, "textName") : null,
                                        Utf8.Terminated(output, "output"), progress.Address, user);
        }

        /// <summary>Runs the model over tokens that follow what the cache holds: logits of the last one.</summary>
        public float[] Forward(int[] tokens, KvCache cache)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            var logits = new float[VocabularySize];
            Forward(tokens, cache, logits);
            return logits;
        }

        /// <summary>The same into an array of the caller's.</summary>
        public void Forward(int[] tokens, KvCache cache, float[] logits)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            if (logits == null) throw new ArgumentNullException("logits");
            Native.gen_model_forward(Handle, tokens, tokens.Length, Of(cache), logits, logits.Length);
        }
    }

    /// <summary>What loading a file and filling one session would take, in bytes. Nothing is loaded for it.</summary>
    public sealed class MemoryEstimate
    {
        /// <summary>Weights of the loaded model.</summary>
        public long Weights { get; }
        /// <summary>Scratch of its forward passes.</summary>
        public long Workspace { get; }
        /// <summary>Keys and values of one session with a full context.</summary>
        public long Cache { get; }
        /// <summary>The most that snapshots of its state may take.</summary>
        public long Snapshots { get; }
        /// <summary>The maximum at any time, loading included.</summary>
        public long Peak { get; }
        /// <summary>Weights in a device's memory; those above are in the host's.</summary>
        public long DeviceWeights { get; }
        /// <summary>Scratch in a device's memory.</summary>
        public long DeviceWorkspace { get; }
        /// <summary>Keys and values in a device's memory.</summary>
        public long DeviceCache { get; }
        /// <summary>The most that snapshots of its state may take in a device's memory.</summary>
        public long DeviceSnapshots { get; }
        /// <summary>The maximum of device memory at any time.</summary>
        public long DevicePeak { get; }
        /// <summary>What stays mapped of the file, not part of the peak.</summary>
        public long Mapped { get; }
        /// <summary>Size of the file.</summary>
        public long File { get; }

        /// <summary>Estimates for a GGUF file, of which header, tokenizer and the ends of tensors are read.</summary>
        public MemoryEstimate(string path, ModelOptions modelOptions = null, GeneratorOptions options = null)
        {
            Loader.Ensure();
            IntPtr address;
            using (Handle loading = modelOptions?.ToNative())
            using (Handle generating = options?.ToNative())
            {
                Native.gen_estimate_memory(Utf8.Terminated(path, "path"), loading, generating, out address);
            }
            using (var estimate = new Handle(HandleKind.MemoryEstimate, address))
            {
                Weights = Get(estimate, "weights");
                Workspace = Get(estimate, "workspace");
                Cache = Get(estimate, "cache");
                Snapshots = Get(estimate, "snapshots");
                Peak = Get(estimate, "peak");
                DeviceWeights = Get(estimate, "device_weights");
                DeviceWorkspace = Get(estimate, "device_workspace");
                DeviceCache = Get(estimate, "device_cache");
                DeviceSnapshots = Get(estimate, "device_snapshots");
                DevicePeak = Get(estimate, "device_peak");
                Mapped = Get(estimate, "mapped");
                File = Get(estimate, "file");
            }
        }

        static long Get(Handle estimate, string key)
        {
            long bytes;
            Native.gen_memory_estimate_get(estimate, Utf8.Bytes(key), out bytes);
            return bytes;
        }
    }
}
