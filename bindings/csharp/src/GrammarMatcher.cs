// SPDX-License-Identifier: Apache-2.0
// A text on its way through a grammar.
using System;
using System.Collections;

namespace LibGenerate
{
    /// <summary>
    /// Reads a text token by token and returns which tokens may come next, for programs that draw them themselves. One thread
    /// at a time. Of a call that throws nothing has changed.
    /// </summary>
    public sealed class GrammarMatcher : NativeObject
    {
        readonly int vocabularySize;

        /// <summary>An empty text over the tokens of a tokenizer. Both may be disposed of then.</summary>
        public GrammarMatcher(Grammar grammar, Tokenizer tokenizer)
            : base(Make(grammar, tokenizer))
        {
            vocabularySize = tokenizer.VocabularySize;
        }

        GrammarMatcher(IntPtr matcher, int vocabularySize)
            : base(new Handle(HandleKind.GrammarMatcher, matcher))
        {
            this.vocabularySize = vocabularySize;
        }

        static Handle Make(Grammar grammar, Tokenizer tokenizer)
        {
            if (grammar == null) throw new ArgumentNullException("grammar");
            if (tokenizer == null) throw new ArgumentNullException("tokenizer");
            IntPtr matcher;
            Native.gen_grammar_matcher_new(grammar.Handle, tokenizer.Handle, out matcher);
            return new Handle(HandleKind.GrammarMatcher, matcher);
        }

        /// <summary>
        /// Advances by a token, or by one that ends texts where the text may end; Status.Grammar if it is not allowed.
        /// </summary>
        public void AcceptToken(int token)
        {
            Native.gen_grammar_matcher_accept_token(Handle, token);
        }

        /// <summary>Advances by bytes, which need not be whole characters or tokens.</summary>
        public void AcceptBytes(byte[] bytes)
        {
            if (bytes == null) throw new ArgumentNullException("bytes");
            long length = bytes.Length;
            Array.Resize(ref bytes, bytes.Length + 1); // what is empty has no address
            Native.gen_grammar_matcher_accept_bytes(Handle, bytes, length);
        }

        /// <summary>Advances by text.</summary>
        public void AcceptText(string text)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            Native.gen_grammar_matcher_accept_bytes(Handle, bytes, Utf8.Length(bytes));
        }

        /// <summary>Which tokens may come next: those that AcceptToken would take.</summary>
        public BitArray Mask()
        {
            var bits = new int[Grammar.Words(vocabularySize) + 1];
            Native.gen_grammar_matcher_mask(Handle, bits, bits.Length);
            return Grammar.Set(bits, vocabularySize);
        }

        /// <summary>Which bytes may come next.</summary>
        public BitArray ValidBytes()
        {
            var bits = new int[8];
            Native.gen_grammar_matcher_valid_bytes(Handle, bits);
            return Grammar.Set(bits, 256);
        }

        /// <summary>Undoes the last `count` accepting calls.</summary>
        public void Rollback(int count)
        {
            if (count < 0) throw new ArgumentOutOfRangeException("count");
            Native.gen_grammar_matcher_rollback(Handle, count);
        }

        /// <summary>Another matcher in the same place.</summary>
        public GrammarMatcher Fork()
        {
            IntPtr fork;
            Native.gen_grammar_matcher_fork(Handle, out fork);
            return new GrammarMatcher(fork, vocabularySize);
        }

        /// <summary>Back to the empty text.</summary>
        public void Reset()
        {
            Native.gen_grammar_matcher_reset(Handle);
        }

        /// <summary>Whether the text is a member.</summary>
        public bool IsComplete
        {
            get { return Native.gen_grammar_matcher_complete(Handle) > 0; }
        }

        /// <summary>Whether the text is a member that nothing can follow.</summary>
        public bool IsFinished
        {
            get { return Native.gen_grammar_matcher_complete(Handle) > 1; }
        }

        /// <summary>
        /// Tokens from here on, at most 1024, for which no model needs to be asked: each is the only one that may come, which is
        /// seldom so with vocabularies of SentencePiece. With the option "forced_tokens" "tokenizer" of the grammar they are
        /// those that the tokenizer makes of the bytes that must come.
        /// </summary>
        public int[] Forced()
        {
            return Sized.Array((int[] ids, long capacity, out long n) =>
                Native.gen_grammar_matcher_forced(Handle, ids, capacity, out n));
        }

        /// <summary>
        /// Fewest tokens until the text may end, not counting one that ends it, or, where that would take long to find out,
        /// those of the shortest text that ends it; -1 if no tokens are known to.
        /// </summary>
        public long MinTokens
        {
            get
            {
                long n;
                Native.gen_grammar_matcher_min_tokens(Handle, out n);
                return n;
            }
        }
    }
}
