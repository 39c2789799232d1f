// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back.
using System;

namespace LibGenerate
{
    /// <summary>How text becomes tokens.</summary>
    [Flags]
    public enum EncodeFlags
    {
        /// <summary>As it is.</summary>
        None = 0,
        /// <summary>Begin-of-sequence first, if the vocabulary wants one.</summary>
        AddBegin = Native.GEN_ENCODE_ADD_BOS,
        /// <summary>Texts of special tokens become those tokens.</summary>
        ParseSpecial = Native.GEN_ENCODE_PARSE_SPECIAL,
        /// <summary>The text continues text encoded before, not a special token.</summary>
        Continue = Native.GEN_ENCODE_CONTINUE
    }

    /// <summary>Kinds of special tokens.</summary>
    public enum SpecialToken
    {
        /// <summary>Begin of sequence.</summary>
        Begin = Native.GEN_SPECIAL_BOS,
        /// <summary>End of sequence.</summary>
        End = Native.GEN_SPECIAL_EOS,
        /// <summary>Unknown.</summary>
        Unknown = Native.GEN_SPECIAL_UNK,
        /// <summary>Padding.</summary>
        Padding = Native.GEN_SPECIAL_PAD,
        /// <summary>Separator.</summary>
        Separator = Native.GEN_SPECIAL_SEP,
        /// <summary>End of turn.</summary>
        EndOfTurn = Native.GEN_SPECIAL_EOT
    }

    /// <summary>Text to tokens and back. Any number of threads share one.</summary>
    public sealed class Tokenizer : NativeObject
    {
        /// <summary>That of a GGUF file or a SentencePiece model file.</summary>
        public Tokenizer(string path)
            : base(Load(path, null))
        {
        }

        /// <summary>The same with a model's options, of which "pre_tokenizer" counts.</summary>
        public Tokenizer(string path, ModelOptions options)
            : base(Load(path, options))
        {
        }

        internal Tokenizer(IntPtr tokenizer, Handle model)
            : base(new Handle(model, HandleKind.Tokenizer, tokenizer))
        {
        }

        static Handle Load(string path, ModelOptions options)
        {
            Loader.Ensure();
            if (path == null) throw new ArgumentNullException("path");
            byte[] name = Utf8.Terminated(path, "path");
            IntPtr tokenizer;
            if (options == null)
            {
                Native.gen_tokenizer_load(name, out tokenizer);
                return new Handle(HandleKind.Tokenizer, tokenizer);
            }
            using (Handle native = options.ToNative())
            {
                Native.gen_tokenizer_load_with(name, native, out tokenizer);
                return new Handle(HandleKind.Tokenizer, tokenizer);
            }
        }

        /// <summary>Text to token ids.</summary>
        public int[] Encode(string text, EncodeFlags flags = EncodeFlags.None)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            return Sized.Array((int[] ids, long capacity, out long n) =>
                Native.gen_tokenizer_encode(Handle, bytes, Utf8.Length(bytes), (uint)flags, ids, capacity, out n));
        }

        /// <summary>
        /// The prompt that asks a model of code for what stands between two texts, for Session.Append or a Request of tokens.
        /// Status.Unsupported where the vocabulary has no tokens for it.
        /// </summary>
        public int[] EncodeFillInMiddle(string prefix, string suffix, EncodeFlags flags = EncodeFlags.AddBegin)
        {
            if (prefix == null) throw new ArgumentNullException("prefix");
            if (suffix == null) throw new ArgumentNullException("suffix");
            byte[] before = Utf8.Bytes(prefix);
            byte[] after = Utf8.Bytes(suffix);
            return Sized.Array((int[] ids, long capacity, out long n) =>
                Native.gen_tokenizer_encode_fim(Handle, before, Utf8.Length(before), after, Utf8.Length(after), (uint)flags,
                                                ids, capacity, out n));
        }

        /// <summary>The chat template of the vocabulary; Status.Unsupported if there is none.</summary>
        public ChatTemplate Template()
        {
            return new ChatTemplate(this);
        }

        /// <summary>Token ids to text. Control tokens give none.</summary>
        public string Decode(int[] ids)
        {
            if (ids == null) throw new ArgumentNullException("ids");
            if (ids.Length == 0) return "";
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_tokenizer_decode(Handle, ids, ids.Length, buf, capacity, out n));
        }

        /// <summary>The bytes of a token, which need not be whole characters.</summary>
        public byte[] Piece(int id)
        {
            long length = 0;
            byte[] bytes = Sized.Array((byte[] buf, long capacity, out long n) =>
            {
                Native.gen_tokenizer_piece(Handle, id, buf, capacity, out length);
                n = length + 1;
            });
            Array.Resize(ref bytes, (int)length);
            return bytes;
        }

        /// <summary>Number of tokens.</summary>
        public int VocabularySize
        {
            get { return Native.gen_tokenizer_vocab_size(Handle); }
        }

        /// <summary>Id of a special token, or -1.</summary>
        public int Special(SpecialToken kind)
        {
            return Native.gen_tokenizer_special(Handle, (int)kind);
        }
    }
}
