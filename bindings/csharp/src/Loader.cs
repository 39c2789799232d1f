// SPDX-License-Identifier: Apache-2.0
// Finds the native library, once, before the first call; a failure names every place that was tried.
using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace LibGenerate
{
    /// <summary>
    /// What may be the first call into the library calls Ensure before it. Generated methods are not inlined, so that mono,
    /// which looks for the library of a call when it compiles the method around it, does not look too early.
    /// </summary>
    internal static partial class Loader
    {
        internal const string Variable = "LIBGENERATE_NATIVE";
        const string FileName = "libgenerate_csharp.so";
        const int Now = 2;

        static readonly object gate = new object();
        static volatile bool loaded;

        // The library as dlopen gave it; zero where the runtime found it by itself.
        static IntPtr library;

        internal static void Ensure()
        {
            if (!loaded) Load();
        }

        static void Load()
        {
            lock (gate)
            {
                if (loaded) return;
                var tried = new StringBuilder();
                // Opened by its path here, it is the one that the runtime then gets for its name.
                foreach (string path in Candidates())
                {
                    if (Open(path, tried)) break;
                }
                BeforeFirstCall();
                try
                {
                    FirstCall();
                }
                catch (DllNotFoundException e)
                {
                    throw new DllNotFoundException(
                        "the native library of LibGenerate was not found; tried:" + tried + "\n  " + FileName +
                        ", where the system looks: " + e.Message + "\nThe environment variable " + Variable +
                        " may name its folder.");
                }
                loaded = true;
            }
        }

        // A method of its own, as all of Native are: mono looks for the library when it compiles one.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void FirstCall()
        {
            Native.gen_binding_check();
        }

        // On .NET: the library that was opened is that of the assembly, whatever else the runtime would find.
        static partial void BeforeFirstCall();

        static bool Open(string path, StringBuilder tried)
        {
            tried.Append("\n  ").Append(path).Append(": ");
            if (!File.Exists(path))
            {
                tried.Append("no such file");
                return false;
            }
            try
            {
                library = dlopen(Utf8.Terminated(path, "path"), Now);
                if (library != IntPtr.Zero) return true;
                tried.Append(Utf8.Text(dlerror()));
            }
            catch (DllNotFoundException)
            {
                tried.Append("not a system that this build is for");
            }
            return false;
        }

        static List<string> Candidates()
        {
            var paths = new List<string>();
            string chosen = Environment.GetEnvironmentVariable(Variable);
            if (!string.IsNullOrEmpty(chosen))
            {
                paths.Add(Path.Combine(chosen, FileName));
                return paths;
            }
            string machine = Path.Combine("runtimes", "linux-x64", "native", FileName);
            string assembly = Path.GetDirectoryName(typeof(Loader).Assembly.Location);
            var folders = new List<string>();
            if (!string.IsNullOrEmpty(assembly)) folders.Add(assembly);
            string application = AppDomain.CurrentDomain.BaseDirectory;
            if (!string.IsNullOrEmpty(application) && Path.GetFullPath(application).TrimEnd('/') != assembly)
            {
                folders.Add(application.TrimEnd('/'));
            }
            foreach (string folder in folders)
            {
                paths.Add(Path.Combine(folder, FileName));
                paths.Add(Path.Combine(folder, machine));
            }
            // An unpacked package: lib/netstandard2.0/LibGenerate.dll.
            if (!string.IsNullOrEmpty(assembly)) paths.Add(Path.GetFullPath(Path.Combine(assembly, "..", "..", machine)));
            return paths;
        }

        [DllImport("libdl.so.2")]
        static extern IntPtr dlopen(byte[] path, int flags);

        [DllImport("libdl.so.2")]
        static extern IntPtr dlerror();
    }
}
