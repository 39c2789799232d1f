// SPDX-License-Identifier: Apache-2.0
// Which texts are allowed.
using System;
using System.Collections;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>How to make a grammar. What is left null is as the library has it.</summary>
    public sealed class GrammarOptions : Settings
    {
        /// <summary>Texts that hold a match of a regular expression are members; else all of a text must match.</summary>
        public bool? RegexSearch { get; set; }

        readonly List<KeyValuePair<string, string>> documents = new List<KeyValuePair<string, string>>();

        /// <summary>A document to which "$ref" of JSON Schemas may point, by its URI; nothing is fetched.</summary>
        public GrammarOptions AddSchema(string uri, string schema)
        {
            if (uri == null) throw new ArgumentNullException("uri");
            if (schema == null) throw new ArgumentNullException("schema");
            documents.Add(new KeyValuePair<string, string>(uri, schema));
            return this;
        }

        /// <summary>Sets one by name.</summary>
        public GrammarOptions Set(string key, string value)
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
                    Native.gen_grammar_options_describe(native, buf, capacity, out n));
            }
        }

        internal Handle ToNative()
        {
            Loader.Ensure();
            IntPtr options;
            Native.gen_grammar_options_new(out options);
            return Apply(HandleKind.GrammarOptions, options, native =>
            {
                if (RegexSearch != null)
                {
                    string match = RegexSearch.Value ? "search" : "whole";
                    Native.gen_grammar_options_set(native, Utf8.Bytes("regex_match"), Utf8.Bytes(match));
                }
                foreach (KeyValuePair<string, string> document in documents)
                {
                    byte[] text = Utf8.Bytes(document.Value);
                    Native.gen_grammar_options_add_schema(native, Utf8.Terminated(document.Key, "uri"), text,
                        Utf8.Length(text));
                }
                ApplyNamed(native, Native.gen_grammar_options_set);
            });
        }
    }

    /// <summary>Which texts are allowed, for Sampling.Grammar. Any number of threads share one.</summary>
    public sealed class Grammar : NativeObject
    {
        delegate void Maker(Handle options, out IntPtr grammar);

        Grammar(GrammarOptions options, Maker make)
            : base(Make(options, make))
        {
        }

        static Handle Make(GrammarOptions options, Maker make)
        {
            Loader.Ensure();
            IntPtr grammar;
            using (Handle native = options?.ToNative()) make(native, out grammar);
            return new Handle(HandleKind.Grammar, grammar);
        }

        /// <summary>
        /// From GBNF, the notation of llama.cpp: rules like <c>root ::= "yes" | "no"</c>, of which root is the whole text.
        /// What is wrong is Status.Grammar and names line and column.
        /// </summary>
        public static Grammar Gbnf(string text, GrammarOptions options = null)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            return new Grammar(options, (Handle native, out IntPtr grammar) =>
                Native.gen_grammar_from_gbnf(bytes, Utf8.Length(bytes), native, out grammar));
        }

        /// <summary>
        /// From a Lark file in llguidance's dialect, of which the rule start is the whole text; gen_grammar_from_lark of
        /// grammar.h describes it.
        /// </summary>
        public static Grammar Lark(string text, GrammarOptions options = null)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            return new Grammar(options, (Handle native, out IntPtr grammar) =>
                Native.gen_grammar_from_lark(bytes, Utf8.Length(bytes), native, out grammar));
        }

        /// <summary>
        /// From a regular expression in JavaScript's syntax, without slashes and flags. It is not a Regex of .NET: a class
        /// like \w is that of JavaScript.
        /// </summary>
        public static Grammar Regex(string pattern, GrammarOptions options = null)
        {
            if (pattern == null) throw new ArgumentNullException("pattern");
            byte[] bytes = Utf8.Bytes(pattern);
            return new Grammar(options, (Handle native, out IntPtr grammar) =>
                Native.gen_grammar_from_regex(bytes, Utf8.Length(bytes), native, out grammar));
        }

        /// <summary>
        /// Free text with constrained parts, as tool calls are, from a JSON object like
        /// <c>{"tags": [{"begin": "(add ", "regex": "[0-9]+", "end": ")"}]}</c>; gen_grammar_from_tags of grammar.h tells
        /// all there can be.
        /// </summary>
        public static Grammar Tags(string text, GrammarOptions options = null)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            return new Grammar(options, (Handle native, out IntPtr grammar) =>
                Native.gen_grammar_from_tags(bytes, Utf8.Length(bytes), native, out grammar));
        }

        /// <summary>
        /// The JSON texts that are valid under a JSON Schema, of draft 4 to 2020-12. What cannot be kept exactly is refused
        /// with the keyword's JSON pointer.
        /// </summary>
        public static Grammar JsonSchema(string schema, GrammarOptions options = null)
        {
            if (schema == null) throw new ArgumentNullException("schema");
            byte[] bytes = Utf8.Bytes(schema);
            return new Grammar(options, (Handle native, out IntPtr grammar) =>
                Native.gen_grammar_from_json_schema(bytes, Utf8.Length(bytes), native, out grammar));
        }

        /// <summary>Any JSON value.</summary>
        public static Grammar AnyJson(GrammarOptions options = null)
        {
            return new Grammar(options, Native.gen_grammar_any_json);
        }

        /// <summary>The grammar as JSON: its kind, the states of its automata, their memory.</summary>
        public string Describe()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_grammar_describe(Handle, buf, capacity, out n));
        }

        /// <summary>
        /// Which strings, such as a vocabulary of the caller's, may follow a text. Meant for a few positions: a matcher is far
        /// faster over many.
        /// </summary>
        public BitArray TokenMask(string text, IReadOnlyList<string> strings)
        {
            if (text == null) throw new ArgumentNullException("text");
            if (strings == null) throw new ArgumentNullException("strings");
            var bytes = new List<byte[]>();
            foreach (string item in strings)
            {
                byte[] terminated = Utf8.Bytes(item);
                if (terminated != null) Array.Resize(ref terminated, terminated.Length - 1);
                bytes.Add(terminated);
            }
            byte[] before = Utf8.Bytes(text);
            Array.Resize(ref before, before.Length - 1);
            return TokenMask(before, bytes);
        }

        /// <summary>The same of bytes, which need not be whole characters.</summary>
        public BitArray TokenMask(byte[] text, IReadOnlyList<byte[]> strings)
        {
            if (text == null) throw new ArgumentNullException("text");
            if (strings == null) throw new ArgumentNullException("strings");
            var lengths = new long[strings.Count];
            // What is empty has no address: each has one element more than is told.
            var all = new List<byte>();
            for (int i = 0; i < lengths.Length; ++i)
            {
                if (strings[i] == null) throw new ArgumentException("must not hold null", "strings");
                lengths[i] = strings[i].Length;
                all.AddRange(strings[i]);
            }
            all.Add(0);
            long length = text.Length;
            Array.Resize(ref text, text.Length + 1);
            var bits = new int[Words(lengths.Length) + 1];
            Native.gen_binding_token_mask(
                Handle, text, length, all.ToArray(), lengths, lengths.Length, bits, bits.Length);
            return Set(bits, lengths.Length);
        }

        internal static int Words(int count)
        {
            return (int)(((long)count + 31) / 32);
        }

        internal static BitArray Set(int[] bits, int count)
        {
            return new BitArray(bits) { Length = count };
        }
    }
}
