// SPDX-License-Identifier: Apache-2.0
// Settings of all kinds: plain objects, made native for the call that uses them. What has no property yet has a name.
using System;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>Settings by name, applied after the properties.</summary>
    public abstract class Settings
    {
        readonly List<KeyValuePair<string, string>> named = new List<KeyValuePair<string, string>>();

        internal Settings()
        {
        }

        internal Settings(Settings other)
        {
            named.AddRange(other.named);
        }

        internal delegate void SetByName(Handle settings, byte[] key, byte[] value);

        internal void Add(string key, string value)
        {
            if (key == null) throw new ArgumentNullException("key");
            if (value == null) throw new ArgumentNullException("value");
            named.Add(new KeyValuePair<string, string>(key, value));
        }

        internal void ApplyNamed(Handle settings, SetByName set)
        {
            foreach (KeyValuePair<string, string> pair in named)
            {
                set(settings, Utf8.Terminated(pair.Key, "key"), Utf8.Terminated(pair.Value, "value"));
            }
        }

        // The native form, to be disposed of; on failure there is none.
        internal static Handle Apply(HandleKind kind, IntPtr address, Action<Handle> apply)
        {
            var handle = new Handle(kind, address);
            try
            {
                apply(handle);
                return handle;
            }
            catch
            {
                handle.Dispose();
                throw;
            }
        }
    }

    /// <summary>How to load a model. What is left null is as the library has it.</summary>
    public sealed class ModelOptions : Settings
    {
        /// <summary>The backend; "cpu" if null.</summary>
        public string Backend { get; set; }
        /// <summary>The backend's device.</summary>
        public int? Device { get; set; }
        /// <summary>For GpuLayers and GpuExpertLayers: every layer.</summary>
        public const int AllGpuLayers = -1;
        /// <summary>For GpuLayers and GpuExpertLayers: as many as the device has memory for.</summary>
        public const int AutoGpuLayers = -2;
        /// <summary>How many layers, the last ones, run on the backend's device; the others run on the CPU.</summary>
        public int? GpuLayers { get; set; }
        /// <summary>For how many of these layers, the last ones, the experts are on the device, too.</summary>
        public int? GpuExpertLayers { get; set; }
        /// <summary>Threads of a pool of the model's own, the calling one included.</summary>
        public int? Threads { get; set; }
        /// <summary>A pool to share instead.</summary>
        public WorkerPool Pool { get; set; }
        /// <summary>A gen_allocator for weights, workspaces and caches.</summary>
        public NativeSymbol Allocator { get; set; }
        /// <summary>Whether the file is mapped rather than read.</summary>
        public bool? MapFile { get; set; }
        /// <summary>Whether the weights are locked in memory; the load fails where the system does not let it.</summary>
        public bool? LockMemory { get; set; }
        /// <summary>Where all memory on a device comes from; not disposed of before the load.</summary>
        public GpuAllocator GpuAllocator { get; set; }
        /// <summary>A gen_progress_callback, called on the loading thread.</summary>
        public NativeSymbol Progress { get; set; }
        /// <summary>Passed to Progress.</summary>
        public IntPtr ProgressUser { get; set; }
        /// <summary>Limits the context to fewer tokens than the model was trained for.</summary>
        public int? MaxSequenceLength { get; set; }
        /// <summary>Whether every weight is read and NaN and infinity refused.</summary>
        public bool? CheckTensors { get; set; }

        /// <summary>Sets one by name.</summary>
        public ModelOptions Set(string key, string value)
        {
            Add(key, value);
            return this;
        }

        /// <summary>All options as JSON.</summary>
        public string Describe()
        {
            using (Handle native = ToNative())
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.gen_model_options_describe(native, buf, capacity, out n));
            }
        }

        internal Handle ToNative()
        {
            Loader.Ensure();
            IntPtr options;
            Native.gen_model_options_new(out options);
            return Apply(HandleKind.ModelOptions, options, native =>
            {
                if (Backend != null) Native.gen_model_options_set_backend(native, Utf8.Terminated(Backend, "Backend"));
                if (Device != null) Native.gen_model_options_set_device(native, Device.Value);
                if (GpuLayers != null) Native.gen_model_options_set_gpu_layers(native, GpuLayers.Value);
                if (GpuExpertLayers != null) Native.gen_model_options_set_gpu_expert_layers(native, GpuExpertLayers.Value);
                if (Threads != null) Native.gen_model_options_set_threads(native, Threads.Value);
                if (Pool != null) Native.gen_model_options_set_thread_pool(native, Pool.Handle);
                if (Allocator.Address != IntPtr.Zero) Native.gen_model_options_set_allocator(native, Allocator.Address);
                if (GpuAllocator != null) Native.gen_model_options_set_gpu_allocator(native, GpuAllocator.Handle);
                if (MapFile != null) Native.gen_model_options_set_mmap(native, MapFile.Value ? 1 : 0);
                if (LockMemory != null) Native.gen_model_options_set_mlock(native, LockMemory.Value ? 1 : 0);
                if (Progress.Address != IntPtr.Zero)
                {
                    Native.gen_model_options_set_progress(native, Progress.Address, ProgressUser);
                }
                if (MaxSequenceLength != null) Native.gen_model_options_set_max_seq_len(native, MaxSequenceLength.Value);
                if (CheckTensors != null) Native.gen_model_options_set_check_tensors(native, CheckTensors.Value ? 1 : 0);
                ApplyNamed(native, Native.gen_model_options_set);
            });
        }
    }

    /// <summary>How to generate: the kind of cache, batching. What is left null is as the library has it.</summary>
    public sealed class GeneratorOptions : Settings
    {
        /// <summary>What keys and values are kept as: "fp32", "fp16", "fp8", "q4", "q3", or "fp8/q4".</summary>
        public string KvType { get; set; }
        /// <summary>In which form keys are kept: "rotated", "hadamard" or "best".</summary>
        public string KvKeyForm { get; set; }
        /// <summary>MiB of a pool of blocks for all sessions; 0 for none.</summary>
        public int? PagedKvMemory { get; set; }
        /// <summary>Positions in a block of that pool.</summary>
        public int PagedKvBlockSize { get; set; } = 16;
        /// <summary>Blocks of the pool to keep for prompts with a common prefix.</summary>
        public int? PrefixCache { get; set; }
        /// <summary>Positions of which the compressed cache makes one.</summary>
        public int? CompressedKv { get; set; }
        /// <summary>Keeps older positions in a file.</summary>
        public TierConfig TieredKv { get; set; }
        /// <summary>What happens when the context is full: "stop" or "shift".</summary>
        public string ContextPolicy { get; set; }
        /// <summary>First tokens that "shift" never drops.</summary>
        public int ContextKeep { get; set; } = 4;
        /// <summary>Tokens between snapshots of a recurrent model's state, for texts that are cut anywhere; 0: none within prompts and answers.</summary>
        public int? StateSnapshotEvery { get; set; }
        /// <summary>Most MiB of a session's snapshots of such a state; -1: those of eight, 0: none.</summary>
        public int? StateSnapshotBudget { get; set; }
        /// <summary>Tokens of a prompt that run at once.</summary>
        public int? PrefillChunk { get; set; }
        /// <summary>Sessions that run in one step.</summary>
        public int? MaxBatch { get; set; }
        /// <summary>Calls that may wait beyond MaxBatch.</summary>
        public int? MaxQueue { get; set; }
        /// <summary>Steps that a call may be left out of for others of higher priority; with 0 they take turns.</summary>
        public int? Fairness { get; set; }
        /// <summary>The bits of a text depend on nothing that runs beside it, on a device too; on the CPU they never do.</summary>
        public bool? Deterministic { get; set; }
        /// <summary>Tokens to match in the text, whose continuation is drafted; results do not change. 0: none.</summary>
        public int? PromptLookup { get; set; }
        /// <summary>Tokens of a draft; 0 means 8.</summary>
        public int PromptLookupLength { get; set; }
        /// <summary>A smaller model that drafts the next tokens; results do not change.</summary>
        public Model SpeculativeDraft { get; set; }
        /// <summary>Tokens of a draft; 0 means 4.</summary>
        public int SpeculativeDraftLength { get; set; }
        /// <summary>
        /// The path of an EAGLE file, whose head drafts where lookups find nothing; results do not change. Without a file there
        /// are no drafts by it: see Generator.EagleEnabled.
        /// </summary>
        public string Eagle { get; set; }
        /// <summary>Where metrics are collected.</summary>
        public MetricsCollector Metrics { get; set; }
        /// <summary>A gen_metrics_sink to tell metrics to, instead.</summary>
        public NativeSymbol MetricsSink { get; set; }
        /// <summary>Where every forward pass is recorded.</summary>
        public Tracer Tracer { get; set; }

        /// <summary>Sets one by name.</summary>
        public GeneratorOptions Set(string key, string value)
        {
            Add(key, value);
            return this;
        }

        /// <summary>All options as JSON.</summary>
        public string Describe()
        {
            using (Handle native = ToNative())
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.gen_options_describe(native, buf, capacity, out n));
            }
        }

        internal Handle ToNative()
        {
            Loader.Ensure();
            IntPtr options;
            Native.gen_options_new(out options);
            return Apply(HandleKind.GeneratorOptions, options, native =>
            {
                if (KvType != null) Native.gen_options_set_kv_dtype(native, Utf8.Terminated(KvType, "KvType"));
                if (KvKeyForm != null) Native.gen_options_set_kv_key_form(native, Utf8.Terminated(KvKeyForm, "KvKeyForm"));
                if (PagedKvMemory != null) Native.gen_options_set_paged_kv(native, PagedKvMemory.Value, PagedKvBlockSize);
                if (PrefixCache != null) Native.gen_options_set_prefix_cache(native, PrefixCache.Value);
                if (CompressedKv != null) Native.gen_options_set_compressed_kv(native, CompressedKv.Value);
                if (TieredKv != null)
                {
                    using (Handle config = TieredKv.ToNative()) Native.gen_options_set_tiered_kv(native, config);
                }
                if (ContextPolicy != null)
                {
                    Native.gen_options_set_context_policy(native, Utf8.Terminated(ContextPolicy, "ContextPolicy"), ContextKeep);
                }
                if (StateSnapshotEvery != null) Native.gen_options_set_state_snapshot_every(native, StateSnapshotEvery.Value);
                if (StateSnapshotBudget != null) Native.gen_options_set_state_snapshot_budget(native, StateSnapshotBudget.Value);
                if (PrefillChunk != null) Native.gen_options_set_prefill_chunk(native, PrefillChunk.Value);
                if (MaxBatch != null) Native.gen_options_set_max_batch(native, MaxBatch.Value);
                if (MaxQueue != null) Native.gen_options_set_max_queue(native, MaxQueue.Value);
                if (Fairness != null) Native.gen_options_set_fairness(native, Fairness.Value);
                if (Deterministic != null) Native.gen_options_set_deterministic(native, Deterministic.Value ? 1 : 0);
                if (PromptLookup != null) Native.gen_options_set_prompt_lookup(native, PromptLookup.Value, PromptLookupLength);
                if (SpeculativeDraft != null)
                {
                    Native.gen_options_set_speculative_draft(native, SpeculativeDraft.Handle, SpeculativeDraftLength);
                }
                if (Eagle != null) Native.gen_options_set_eagle(native, Utf8.Terminated(Eagle, "Eagle"));
                if (MetricsSink.Address != IntPtr.Zero) Native.gen_options_set_metrics(native, MetricsSink.Address);
                if (Metrics != null) Metrics.Attach(native);
                if (Tracer != null) Native.gen_options_set_tracer(native, Tracer.Handle);
                ApplyNamed(native, Native.gen_options_set);
            });
        }
    }

    /// <summary>Tiered caches: memory, then files. What is left null is as the library has it.</summary>
    public sealed class TierConfig : Settings
    {
        /// <summary>Number of layers.</summary>
        public int? Layers { get; set; }
        /// <summary>Maximum positions of a layer.</summary>
        public int? MaxSequenceLength { get; set; }
        /// <summary>Positions that the warm form "mean" makes one of.</summary>
        public int? ChunkSize { get; set; }
        /// <summary>Uses that save a layer from going down.</summary>
        public int? DemoteThreshold { get; set; }
        /// <summary>Uses that take a layer up.</summary>
        public int? PromoteThreshold { get; set; }
        /// <summary>Folder for files; a temporary one if null.</summary>
        public string ColdFolder { get; set; }
        /// <summary>The cache's name in the folder.</summary>
        public string StoreId { get; set; }
        /// <summary>"fp32", "fp16", "fp8", "q4", "q3" or "mean".</summary>
        public string WarmForm { get; set; }
        /// <summary>MiB for a generating session.</summary>
        public int? HotMemory { get; set; }
        /// <summary>Blocks of newest positions that stay in memory.</summary>
        public int? HotBlocks { get; set; }
        /// <summary>Positions that move at once.</summary>
        public int? BlockSize { get; set; }
        /// <summary>Layers that are read ahead.</summary>
        public int? PrefetchLayers { get; set; }
        /// <summary>A gen_allocator for the memory of caches.</summary>
        public NativeSymbol Allocator { get; set; }
        /// <summary>Where hot layers are kept, a device's memory.</summary>
        public GpuAllocator HotLayersOnGpu { get; set; }

        /// <summary>Sets one by name.</summary>
        public TierConfig Set(string key, string value)
        {
            Add(key, value);
            return this;
        }

        /// <summary>All fields as JSON.</summary>
        public string Describe()
        {
            using (Handle native = ToNative())
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.kv_cache_tier_config_describe(native, buf, capacity, out n));
            }
        }

        internal Handle ToNative()
        {
            Loader.Ensure();
            IntPtr config;
            Native.kv_cache_tier_config_new(out config);
            return Apply(HandleKind.TierConfig, config, native =>
            {
                if (Layers != null) Native.kv_cache_tier_config_set_num_layers(native, Layers.Value);
                if (MaxSequenceLength != null) Native.kv_cache_tier_config_set_max_seq_len(native, MaxSequenceLength.Value);
                if (ChunkSize != null) Native.kv_cache_tier_config_set_chunk_size(native, ChunkSize.Value);
                if (DemoteThreshold != null) Native.kv_cache_tier_config_set_demote_threshold(native, DemoteThreshold.Value);
                if (PromoteThreshold != null)
                {
                    Native.kv_cache_tier_config_set_promote_threshold(native, PromoteThreshold.Value);
                }
                if (ColdFolder != null)
                {
                    Native.kv_cache_tier_config_set_cold_dir(native, Utf8.Terminated(ColdFolder, "ColdFolder"));
                }
                if (StoreId != null) Native.kv_cache_tier_config_set_store_id(native, Utf8.Terminated(StoreId, "StoreId"));
                if (WarmForm != null) Native.kv_cache_tier_config_set_warm_form(native, Utf8.Terminated(WarmForm, "WarmForm"));
                if (HotMemory != null) Native.kv_cache_tier_config_set_hot_memory(native, HotMemory.Value);
                if (HotBlocks != null) Native.kv_cache_tier_config_set_hot_blocks(native, HotBlocks.Value);
                if (BlockSize != null) Native.kv_cache_tier_config_set_block_size(native, BlockSize.Value);
                if (PrefetchLayers != null) Native.kv_cache_tier_config_set_prefetch_layers(native, PrefetchLayers.Value);
                if (Allocator.Address != IntPtr.Zero) Native.kv_cache_tier_config_set_allocator(native, Allocator.Address);
                if (HotLayersOnGpu != null) Native.kv_cache_tier_config_set_gpu_allocator(native, HotLayersOnGpu.Handle);
                ApplyNamed(native, Native.kv_cache_tier_config_set);
            });
        }
    }

    /// <summary>Sizes of a custom model. What is left null is as the library has it.</summary>
    public sealed class CustomModelConfig : Settings
    {
        /// <summary>Tokens of the vocabulary. Must be set.</summary>
        public int? VocabularySize { get; set; }
        /// <summary>Maximum tokens of a sequence. Must be set.</summary>
        public int? MaxSequenceLength { get; set; }
        /// <summary>The token that ends a text, beside those that the tokenizer knows.</summary>
        public int? EndToken { get; set; }
        /// <summary>The token that Model.BeginToken tells of.</summary>
        public int? BeginToken { get; set; }
        /// <summary>Number of layers.</summary>
        public int? Layers { get; set; }
        /// <summary>Query heads of a layer.</summary>
        public int? Heads { get; set; }
        /// <summary>Key and value heads of a layer.</summary>
        public int? KvHeads { get; set; }
        /// <summary>Elements of a head.</summary>
        public int? HeadSize { get; set; }
        /// <summary>Width of the hidden state.</summary>
        public int? HiddenSize { get; set; }
        /// <summary>Layers in which the function uses gen_forward_attention.</summary>
        public int? KvLayers { get; set; }
        /// <summary>The name that Model.Describe shows.</summary>
        public string Name { get; set; }

        /// <summary>Sets one by name.</summary>
        public CustomModelConfig Set(string key, string value)
        {
            Add(key, value);
            return this;
        }

        /// <summary>All of them as JSON.</summary>
        public string Describe()
        {
            using (Handle native = ToNative())
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.gen_model_config_describe(native, buf, capacity, out n));
            }
        }

        internal Handle ToNative()
        {
            Loader.Ensure();
            IntPtr config;
            Native.gen_model_config_new(out config);
            return Apply(HandleKind.CustomModelConfig, config, native =>
            {
                if (VocabularySize != null) Native.gen_model_config_set_vocab_size(native, VocabularySize.Value);
                if (MaxSequenceLength != null) Native.gen_model_config_set_max_seq_len(native, MaxSequenceLength.Value);
                if (EndToken != null) Native.gen_model_config_set_eos(native, EndToken.Value);
                if (BeginToken != null) Native.gen_model_config_set_bos(native, BeginToken.Value);
                if (Layers != null) Native.gen_model_config_set_num_layers(native, Layers.Value);
                if (Heads != null) Native.gen_model_config_set_num_heads(native, Heads.Value);
                if (KvHeads != null) Native.gen_model_config_set_num_kv_heads(native, KvHeads.Value);
                if (HeadSize != null) Native.gen_model_config_set_head_dim(native, HeadSize.Value);
                if (HiddenSize != null) Native.gen_model_config_set_hidden(native, HiddenSize.Value);
                if (KvLayers != null) Native.gen_model_config_set_kv_layers(native, KvLayers.Value);
                if (Name != null) Native.gen_model_config_set_name(native, Utf8.Terminated(Name, "Name"));
                ApplyNamed(native, Native.gen_model_config_set);
            });
        }
    }
}
