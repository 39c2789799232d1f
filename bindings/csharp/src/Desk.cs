// SPDX-License-Identifier: Apache-2.0
// Tools and events without calls from C: a thread takes what the C library lays on a desk, and answers.
using System;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace LibGenerate
{
    /// <summary>What lies on a desk, with copies of its texts; of kind -1 for a tool.</summary>
    internal sealed class Matter
    {
        const int Fields = 11;

        readonly long number;
        internal readonly int Kind, Step, Call;
        internal readonly string Name, Id, Text;
        internal readonly bool IsError;

        Matter(long[] fields)
        {
            number = fields[0];
            Kind = (int)fields[1];
            Name = Read(fields, 2);
            Id = Read(fields, 4);
            Text = Read(fields, 6);
            Step = (int)fields[8];
            Call = (int)fields[9];
            IsError = fields[10] != 0;
        }

        static string Read(long[] fields, int at)
        {
            var bytes = new byte[fields[at + 1]];
            if (bytes.Length > 0) Marshal.Copy((IntPtr)fields[at], bytes, 0, bytes.Length);
            return Encoding.UTF8.GetString(bytes);
        }

        /// <summary>Waits; null once the desk is closed.</summary>
        internal static Matter Next(long desk)
        {
            var fields = new long[Fields];
            Native.gen_binding_desk_next(desk, fields);
            return fields[0] != 0 ? new Matter(fields) : null;
        }

        /// <summary>Whether nobody waits for a tool's output any more.</summary>
        internal bool Stopped
        {
            get { return Native.gen_binding_desk_stopped(number) != 0; }
        }

        internal void Answer(string output, bool failed)
        {
            byte[] bytes = Encoding.UTF8.GetBytes(output);
            Native.gen_binding_desk_answer(number, bytes, bytes.Length, failed ? 1 : 0);
        }
    }

    internal static class Desk
    {
        internal static long Open()
        {
            Loader.Ensure();
            long desk = Native.gen_binding_desk_new();
            if (desk == 0) throw new OutOfMemoryException();
            return desk;
        }

        internal static Thread Start(ThreadStart body)
        {
            var thread = new Thread(body) { IsBackground = true, Name = "LibGenerate tools" };
            thread.Start();
            return thread;
        }
    }
}
