// SPDX-License-Identifier: Apache-2.0
// On .NET the runtime would look in the application's own folders first; what the loader opened comes before that.
#nullable enable
using System;
using System.Runtime.InteropServices;

namespace LibGenerate
{
    internal static partial class Loader
    {
        static bool resolving;

        static partial void BeforeFirstCall()
        {
            if (library == IntPtr.Zero || resolving) return;
            NativeLibrary.SetDllImportResolver(typeof(Loader).Assembly,
                                               static (name, _, _) => name == "generate_csharp" ? library : IntPtr.Zero);
            resolving = true;
        }
    }
}
