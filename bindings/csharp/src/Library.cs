// SPDX-License-Identifier: Apache-2.0
// What the library tells of itself, its log, and threads that models share.
using System;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>The library as a whole.</summary>
    public static class Library
    {
        /// <summary>Its version, "MAJOR.MINOR.PATCH".</summary>
        public static string Version
        {
            get
            {
                Loader.Ensure();
                return Utf8.Text(Native.gen_version());
            }
        }

        /// <summary>The version of its binary interface.</summary>
        public static int AbiVersion
        {
            get
            {
                Loader.Ensure();
                return Native.gen_abi_version();
            }
        }

        /// <summary>One line of JSON: version, compiler, CPU level, backends, formats, architectures, cache kinds.</summary>
        public static string BuildInfo
        {
            get
            {
                Loader.Ensure();
                return Sized.Text(Native.gen_build_info);
            }
        }

        /// <summary>Cache kinds as JSON.</summary>
        public static string CacheKinds
        {
            get
            {
                Loader.Ensure();
                return Sized.Text(Native.gen_kv_kind_describe);
            }
        }

        /// <summary>All metrics as JSON.</summary>
        public static string MetricsDescription
        {
            get
            {
                Loader.Ensure();
                return Sized.Text(Native.gen_metrics_describe);
            }
        }

        /// <summary>Names of the backends that this build knows.</summary>
        public static IReadOnlyList<string> Backends
        {
            get
            {
                Loader.Ensure();
                var names = new string[Native.gen_backend_count()];
                for (int i = 0; i < names.Length; ++i) names[i] = Utf8.Text(Native.gen_backend_name(i));
                return names;
            }
        }

        /// <summary>Whether a backend can be used here; if not, `reason` says why.</summary>
        public static bool IsBackendAvailable(string name, out string reason)
        {
            Loader.Ensure();
            reason = null;
            try
            {
                Native.gen_backend_available(Utf8.Terminated(name, "name"));
                return true;
            }
            catch (GenerateException e) when (e.Status == Status.Unsupported)
            {
                reason = e.Message;
                return false;
            }
        }

        /// <summary>Number of devices of a backend.</summary>
        public static int DeviceCount(string backend)
        {
            Loader.Ensure();
            return Native.gen_device_count(Utf8.Terminated(backend, "backend"));
        }

        /// <summary>One line of JSON about a device.</summary>
        public static string DescribeDevice(string backend, int device)
        {
            Loader.Ensure();
            byte[] name = Utf8.Terminated(backend, "backend");
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_device_describe(name, device, buf, capacity, out n));
        }

        /// <summary>The name of a status in C, "GEN_ERROR_FORMAT".</summary>
        public static string NameOf(Status status)
        {
            Loader.Ensure();
            return Utf8.Text(Native.gen_status_name((int)status));
        }

        /// <summary>Where log lines go: a gen_log_callback in C, or default for silence. It may be called on any thread.</summary>
        public static void SetLog(NativeSymbol callback, IntPtr user = default(IntPtr))
        {
            Loader.Ensure();
            Native.gen_log_set_callback(callback.Address, user);
        }

        /// <summary>The highest level that is logged; Off at the start.</summary>
        public static void SetLogLevel(LogLevel level)
        {
            Loader.Ensure();
            Native.gen_log_set_level((int)level);
        }

        /// <summary>
        /// Sequences of different lengths as rows of equal length, each at the right end of its row with `pad` before it.
        /// </summary>
        public static int[] PadLeft(IReadOnlyList<int[]> sequences, int pad, out int width)
        {
            if (sequences == null) throw new ArgumentNullException("sequences");
            Loader.Ensure();
            var lengths = new long[sequences.Count];
            var tokens = new List<int>();
            for (int i = 0; i < lengths.Length; ++i)
            {
                lengths[i] = sequences[i].Length;
                tokens.AddRange(sequences[i]);
            }
            tokens.Add(0);
            int[] all = tokens.ToArray();
            long needed;
            Native.gen_pad_left(all, lengths, lengths.Length, pad, null, 0, out needed);
            var rows = new int[needed * lengths.Length];
            if (rows.Length > 0) Native.gen_pad_left(all, lengths, lengths.Length, pad, rows, rows.Length, out needed);
            width = (int)needed;
            return rows;
        }
    }

    /// <summary>Levels of the log.</summary>
    public enum LogLevel
    {
        /// <summary>Nothing.</summary>
        Off = Native.GEN_LOG_OFF,
        /// <summary>Errors.</summary>
        Error = Native.GEN_LOG_ERROR,
        /// <summary>Warnings too.</summary>
        Warning = Native.GEN_LOG_WARNING,
        /// <summary>What happens.</summary>
        Info = Native.GEN_LOG_INFO,
        /// <summary>In detail.</summary>
        Debug = Native.GEN_LOG_DEBUG
    }

    /// <summary>
    /// A function or table in C that is passed on: an allocator, a forward function, a sink for metrics, a callback. Nothing
    /// native ever calls managed code, so these are always addresses.
    /// </summary>
    public struct NativeSymbol
    {
        /// <summary>The address; zero for none.</summary>
        public IntPtr Address { get; }

        /// <summary>A symbol at an address that the caller knows.</summary>
        public NativeSymbol(IntPtr address)
        {
            Address = address;
        }

        /// <summary>A symbol of a shared library, which stays open.</summary>
        public NativeSymbol(string library, string name)
        {
            Loader.Ensure();
            long address;
            Native.gen_binding_symbol(Utf8.Terminated(library, "library"), Utf8.Terminated(name, "name"), out address);
            Address = new IntPtr(address);
        }

        /// <summary>The same as new NativeSymbol(address).</summary>
        public static implicit operator NativeSymbol(IntPtr address)
        {
            return new NativeSymbol(address);
        }
    }

    /// <summary>Threads that several models share. They sleep while idle.</summary>
    public sealed class WorkerPool : NativeObject
    {
        /// <summary>A pool of `threads` threads, the calling one included; 0 for one per CPU. They may be pinned to CPUs.</summary>
        public WorkerPool(int threads = 0, int[] cpus = null)
            : base(Make(threads, cpus))
        {
        }

        static Handle Make(int threads, int[] cpus)
        {
            Loader.Ensure();
            IntPtr pool;
            Native.gen_thread_pool_new(threads, cpus, cpus == null ? 0 : cpus.Length, out pool);
            return new Handle(HandleKind.WorkerPool, pool);
        }
    }
}
