// SPDX-License-Identifier: Apache-2.0
// The end of the process on mono, which waits until each thread has come out of native code: what runs is cancelled then.
using System;
using System.Collections.Generic;
using System.Threading;

namespace LibGenerate
{
    /// <summary>
    /// Knows what can be cancelled, as addresses: nothing is kept from the collector. The threads whose calls end by it go
    /// no further, so that nobody has to handle an exception because the process ends. .NET needs none of this.
    /// </summary>
    internal static class AtExit
    {
        static readonly object gate = new object();
        static readonly HashSet<IntPtr> flags = new HashSet<IntPtr>();
        static readonly HashSet<IntPtr> sessions = new HashSet<IntPtr>();
        static readonly bool needed = Type.GetType("Mono.Runtime") != null;
        static bool registered;
        static volatile bool exiting;
        static int exitThread;

        static HashSet<IntPtr> Of(HandleKind kind)
        {
            return !needed ? null : kind == HandleKind.Cancel ? flags : kind == HandleKind.Session ? sessions : null;
        }

        internal static void Add(HandleKind kind, IntPtr address)
        {
            HashSet<IntPtr> known = Of(kind);
            if (known == null) return;
            lock (gate)
            {
                if (!registered) AppDomain.CurrentDomain.ProcessExit += Exit;
                registered = true;
                known.Add(address);
            }
            Park();
        }

        internal static void Remove(HandleKind kind, IntPtr address)
        {
            HashSet<IntPtr> known = Of(kind);
            if (known == null) return;
            lock (gate) known.Remove(address);
        }

        /// <summary>Does not return once the process ends, but on the thread that ends it.</summary>
        internal static void Park()
        {
            if (exiting && Thread.CurrentThread.ManagedThreadId != exitThread) Thread.Sleep(Timeout.Infinite);
        }

        static void Exit(object sender, EventArgs e)
        {
            exitThread = Thread.CurrentThread.ManagedThreadId;
            exiting = true;
            lock (gate)
            {
                // What is freed is taken out of the sets before.
                foreach (IntPtr flag in flags) NativePINVOKE.gen_cancel_fire(flag);
                foreach (IntPtr session in sessions) NativePINVOKE.gen_session_cancel(session);
            }
        }
    }
}
