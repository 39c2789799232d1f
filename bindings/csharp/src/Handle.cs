// SPDX-License-Identifier: Apache-2.0
// Handles: what frees native objects, when the last call that uses one is over. The only finalizer there is.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace LibGenerate
{
    internal delegate void Free(IntPtr address);

    /// <summary>One native object: an owned one, or one that is part of another and lives as long.</summary>
    internal sealed class Handle : SafeHandle
    {
        internal readonly string What;
        internal readonly Handle Owner;
        readonly Free free;
        readonly Handle kept;

        /// <summary>An object of its own. It holds `kept` for as long as it lives itself.</summary>
        internal Handle(string what, IntPtr address, Free free, Handle kept = null)
            : base(IntPtr.Zero, true)
        {
            What = what;
            this.free = free;
            if (kept != null)
            {
                bool added = false;
                kept.DangerousAddRef(ref added);
                this.kept = kept;
            }
            SetHandle(address);
        }

        /// <summary>A part of another object: closed with it, never freed by itself.</summary>
        internal Handle(string what, IntPtr address, Handle owner)
            : base(IntPtr.Zero, false)
        {
            What = what;
            Owner = owner;
            SetHandle(address);
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        protected override bool ReleaseHandle()
        {
            free(handle);
            if (kept != null) kept.DangerousRelease();
            return true;
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
                if (!handle.IsClosed) counted.DangerousAddRef(ref added);
            }
            catch (ObjectDisposedException)
            {
            }
            if (!added) throw new ObjectDisposedException(handle.What);
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
            get { return Handle.IsClosed || (Handle.Owner != null && Handle.Owner.IsClosed); }
        }

        /// <summary>Gives the native object up.</summary>
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
