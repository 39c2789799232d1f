// SPDX-License-Identifier: Apache-2.0
// How models are quantised.
using System;

namespace LibGenerate
{
    /// <summary>How to quantise a model. What is left null is as the library has it.</summary>
    public sealed class QuantizeOptions : Settings
    {
        /// <summary>File of an importance matrix, by which the errors of columns count.</summary>
        public string Importance { get; set; }

        /// <summary>
        /// Types of matrices by name, "blk.*.attn_v.weight=Q6_K,output.weight=Q8_0": the first pattern that matches.
        /// </summary>
        public string Types { get; set; }

        /// <summary>Sets one by name.</summary>
        public QuantizeOptions Set(string key, string value)
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
                    Native.gen_quantize_options_describe(native, buf, capacity, out n));
            }
        }

        internal Handle ToNative()
        {
            Loader.Ensure();
            IntPtr options;
            Native.gen_quantize_options_new(out options);
            return Apply(HandleKind.QuantizeOptions, options, native =>
            {
                if (Importance != null) Put(native, "importance", Importance);
                if (Types != null) Put(native, "types", Types);
                ApplyNamed(native, Native.gen_quantize_options_set);
            });
        }

        static void Put(Handle native, string key, string value)
        {
            Native.gen_quantize_options_set(native, Utf8.Terminated(key, "key"), Utf8.Terminated(value, "value"));
        }
    }
}
