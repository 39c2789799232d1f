// SPDX-License-Identifier: Apache-2.0
// Text crosses as UTF-8 with a length. Texts, numbers and bytes of a size that the library tells.
using System;
using System.Runtime.InteropServices;
using System.Text;

namespace LibGenerate
{
    internal static unsafe class Utf8
    {
        // A string with half a surrogate pair has no UTF-8: EncoderFallbackException, an ArgumentException.
        static readonly UTF8Encoding strict = new UTF8Encoding(false, true);
        static readonly UTF8Encoding lenient = new UTF8Encoding(false, false);

        /// <summary>The bytes with a NUL behind them; null for null. The length is one less than the array's.</summary>
        internal static byte[] Bytes(string text)
        {
            if (text == null) return null;
            var bytes = new byte[strict.GetByteCount(text) + 1];
            strict.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        internal static long Length(byte[] bytes)
        {
            return bytes == null ? 0 : bytes.Length - 1;
        }

        /// <summary>Bytes for an argument that ends at its first NUL, and so must not have one in it.</summary>
        internal static byte[] Terminated(string text, string name)
        {
            if (text != null && text.IndexOf('\0') >= 0) throw new ArgumentException("must not hold a NUL", name);
            return Bytes(text);
        }

        internal static string Text(byte[] bytes, long length)
        {
            return lenient.GetString(bytes, 0, checked((int)length));
        }

        internal static string Text(IntPtr address, long length)
        {
            return length == 0 ? "" : lenient.GetString((byte*)address, checked((int)length));
        }

        /// <summary>Text up to its NUL; null for address zero.</summary>
        internal static string Text(IntPtr address)
        {
            if (address == IntPtr.Zero) return null;
            long length = 0;
            for (var p = (byte*)address; *p != 0; ++p) ++length;
            return Text(address, length);
        }
    }

    internal delegate void ReadInto<T>(T[] buffer, long capacity, out long n);

    /// <summary>Calls of the form (buffer, capacity, n), which tell the size without a buffer.</summary>
    internal static class Sized
    {
        internal static string Text(ReadInto<byte> read)
        {
            long n;
            byte[] bytes = Read(read, 1, out n);
            return Utf8.Text(bytes, n);
        }

        internal static T[] Array<T>(ReadInto<T> read)
        {
            long n;
            T[] items = Read(read, 0, out n);
            if (n < items.Length) System.Array.Resize(ref items, (int)n);
            return items;
        }

        // A size may grow between the calls.
        static T[] Read<T>(ReadInto<T> read, int extra, out long n)
        {
            read(null, 0, out n);
            for (;;)
            {
                var buffer = new T[n + extra];
                if (buffer.Length == 0) return buffer;
                long needed = 0;
                try
                {
                    read(buffer, buffer.Length, out needed);
                    n = needed;
                    return buffer;
                }
                catch (GenerateException e) when (e.Status == Status.OutOfRange && needed + extra > buffer.Length)
                {
                    n = needed;
                }
            }
        }

        internal static int[] Copy(IntPtr address, long n, int[] none)
        {
            if (n == 0) return none;
            var items = new int[n];
            Marshal.Copy(address, items, 0, items.Length);
            return items;
        }

        internal static float[] Copy(IntPtr address, long n, float[] none)
        {
            if (n == 0) return none;
            var items = new float[n];
            Marshal.Copy(address, items, 0, items.Length);
            return items;
        }
    }
}
