// SPDX-License-Identifier: Apache-2.0
// Handles: what frees native objects, when the last call that uses one is over. The only finalizer there is.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace LibGenerate
{
    /// <summary>What a handle is of; the name is what ObjectDisposedException tells.</summary>
    internal enum HandleKind
    {
        Request,
        Cancel,
        Generator,
        KvCache,
        KvPool,
        PrefixCache,
        WorkerPool,
        Model,
        MemoryEstimate,
        MetricsCollector,
        Tracer,
        Profile,
        RadixTree,
        Sampling,
        Session,
        ModelOptions,
        GeneratorOptions,
        Grammar,
        GrammarMatcher,
        GrammarOptions,
        QuantizeOptions,
        TierConfig,
        CustomModelConfig,
        SsmState,
        GpuAllocator,
        Result,
        TokenStream,
        Tokenizer,
        Chat,
        ChatSession,
        ChatTemplate,
        Speculative,
        Eagle,
        Draft,
        Tools,
        AgentOptions,
        Agent,
        Supervisor,
        KvBlock
    }

    /// <summary>One native object: an owned one, or one that is part of another and lives as long.</summary>
    internal sealed class Handle : SafeHandle
    {
        internal readonly HandleKind Kind;
        internal readonly Handle Owner;
        readonly Handle kept;
        /// <summary>Of tools: number of the desk that is closed with them.</summary>
        internal long Desk;
        volatile bool closed;

        /// <summary>An object of its own. It holds `kept` for as long as it lives itself.</summary>
        internal Handle(HandleKind kind, IntPtr address, Handle kept = null)
            : base(IntPtr.Zero, true)
        {
            Kind = kind;
            if (kept != null)
            {
                bool added = false;
                kept.DangerousAddRef(ref added);
                this.kept = kept;
            }
            SetHandle(address);
            AtExit.Add(kind, address);
        }

        /// <summary>A part of another object: closed with it, never freed by itself.</summary>
        internal Handle(Handle owner, HandleKind kind, IntPtr address)
            : base(IntPtr.Zero, false)
        {
            Kind = kind;
            Owner = owner;
            SetHandle(address);
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        /// <summary>Whether Dispose was called; SafeHandle's own IsClosed waits for calls that still run.</summary>
        internal bool Closed
        {
            get { return closed || (Owner != null && Owner.closed); }
        }

        protected override void Dispose(bool disposing)
        {
            closed = true;
            base.Dispose(disposing);
        }

        protected override bool ReleaseHandle()
        {
            AtExit.Remove(Kind, handle);
            Free();
            if (kept != null) kept.DangerousRelease();
            return true;
        }

        void Free()
        {
            switch (Kind)
            {
                case HandleKind.Request: NativePINVOKE.gen_request_free(handle); break;
                case HandleKind.Cancel: NativePINVOKE.gen_cancel_free(handle); break;
                case HandleKind.Generator: NativePINVOKE.gen_free(handle); break;
                case HandleKind.KvCache: NativePINVOKE.kv_cache_free(handle); break;
                case HandleKind.KvPool: NativePINVOKE.kv_cache_pool_free(handle); break;
                case HandleKind.PrefixCache: NativePINVOKE.kv_cache_prefix_free(handle); break;
                case HandleKind.WorkerPool: NativePINVOKE.gen_thread_pool_free(handle); break;
                case HandleKind.Model: NativePINVOKE.gen_model_free(handle); break;
                case HandleKind.MemoryEstimate: NativePINVOKE.gen_memory_estimate_free(handle); break;
                case HandleKind.MetricsCollector: NativePINVOKE.gen_metrics_memory_free(handle); break;
                case HandleKind.Tracer: NativePINVOKE.gen_tracer_free(handle); break;
                case HandleKind.Profile: NativePINVOKE.gen_profile_free(handle); break;
                case HandleKind.RadixTree: NativePINVOKE.kv_cache_radix_free(handle); break;
                case HandleKind.Sampling: NativePINVOKE.gen_sampling_free(handle); break;
                case HandleKind.Session: NativePINVOKE.gen_session_free(handle); break;
                case HandleKind.ModelOptions: NativePINVOKE.gen_model_options_free(handle); break;
                case HandleKind.GeneratorOptions: NativePINVOKE.gen_options_free(handle); break;
                case HandleKind.Grammar: NativePINVOKE.gen_grammar_free(handle); break;
                case HandleKind.GrammarMatcher: NativePINVOKE.gen_grammar_matcher_free(handle); break;
                case HandleKind.GrammarOptions: NativePINVOKE.gen_grammar_options_free(handle); break;
                case HandleKind.QuantizeOptions: NativePINVOKE.gen_quantize_options_free(handle); break;
                case HandleKind.TierConfig: NativePINVOKE.kv_cache_tier_config_free(handle); break;
                case HandleKind.CustomModelConfig: NativePINVOKE.gen_model_config_free(handle); break;
                case HandleKind.GpuAllocator: NativePINVOKE.gen_gpu_allocator_release(handle); break;
                case HandleKind.SsmState: NativePINVOKE.gen_ssm_state_free(handle); break;
                case HandleKind.Result: NativePINVOKE.gen_result_free(handle); break;
                case HandleKind.TokenStream: NativePINVOKE.gen_stream_close(handle); break;
                case HandleKind.Tokenizer: NativePINVOKE.gen_tokenizer_free(handle); break;
                case HandleKind.Chat: NativePINVOKE.gen_chat_free(handle); break;
                case HandleKind.ChatSession: NativePINVOKE.gen_chat_session_free(handle); break;
                case HandleKind.ChatTemplate: NativePINVOKE.gen_template_free(handle); break;
                case HandleKind.Speculative: NativePINVOKE.gen_speculative_free(handle); break;
                case HandleKind.Eagle: NativePINVOKE.gen_eagle_free(handle); break;
                case HandleKind.Draft: NativePINVOKE.gen_draft_free(handle); break;
                case HandleKind.Tools:
                    NativePINVOKE.gen_binding_desk_close(Desk);
                    NativePINVOKE.gen_tool_registry_free(handle);
                    break;
                case HandleKind.AgentOptions: NativePINVOKE.gen_agent_options_free(handle); break;
                case HandleKind.Agent: NativePINVOKE.gen_agent_free(handle); break;
                case HandleKind.Supervisor: NativePINVOKE.gen_supervisor_free(handle); break;
                case HandleKind.KvBlock:
                    // The pool is kept until after this, also where its own handle has been closed.
                    IntPtr failure = NativePINVOKE.kv_cache_pool_free_block(kept.handle, handle);
                    if (failure != IntPtr.Zero) NativePINVOKE.gen_binding_failure_free(failure);
                    break;
            }
        }
    }

    /// <summary>Holds a handle during a call, so that closing it meanwhile waits for the call's end.</summary>
    internal struct Use : IDisposable
    {
        internal readonly IntPtr Address;
        readonly Handle held;

        /// <summary>Address zero for null; ObjectDisposedException for a closed handle.</summary>
        internal Use(Handle handle)
        {
            Address = IntPtr.Zero;
            held = null;
            if (handle == null) return;
            Handle counted = handle.Owner ?? handle;
            bool added = false;
            try
            {
                if (!handle.Closed) counted.DangerousAddRef(ref added);
            }
            catch (ObjectDisposedException)
            {
            }
            if (!added) throw new ObjectDisposedException(handle.Kind.ToString());
            held = counted;
            Address = handle.DangerousGetHandle();
        }

        public void Dispose()
        {
            if (held != null) held.DangerousRelease();
        }
    }

    /// <summary>Holds many handles during a call.</summary>
    internal sealed class UseAll : IDisposable
    {
        internal readonly IntPtr[] Addresses;
        readonly Use[] uses;

        internal UseAll(IList<Handle> handles)
        {
            Addresses = new IntPtr[handles.Count];
            uses = new Use[handles.Count];
            try
            {
                for (int i = 0; i < uses.Length; ++i)
                {
                    uses[i] = new Use(handles[i]);
                    Addresses[i] = uses[i].Address;
                }
            }
            catch
            {
                Dispose();
                throw;
            }
        }

        public void Dispose()
        {
            foreach (Use use in uses) use.Dispose();
        }
    }

    /// <summary>
    /// A native object. Dispose may be called more than once, from any thread and while another thread is in a call, which
    /// then ends normally; calls that begin later throw ObjectDisposedException. What other objects need of a disposed
    /// one stays for them.
    /// </summary>
    public abstract class NativeObject : IDisposable
    {
        internal readonly Handle Handle;

        internal NativeObject(Handle handle)
        {
            Handle = handle;
        }

        /// <summary>Whether Dispose has been called.</summary>
        public bool IsDisposed
        {
            get { return Handle.Closed; }
        }

        /// <summary>Releases the native object.</summary>
        public virtual void Dispose()
        {
            Handle.Dispose();
        }

        internal static Handle Of(NativeObject item)
        {
            return item == null ? null : item.Handle;
        }
    }
}
