// SPDX-License-Identifier: Apache-2.0
// What generating gives: pieces, and a result.
using System;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>Why a generation ended.</summary>
    public enum FinishReason
    {
        /// <summary>It did not.</summary>
        None = Native.GEN_FINISH_NONE,
        /// <summary>A stop token, or the model's own end.</summary>
        StopToken = Native.GEN_FINISH_STOP_TOKEN,
        /// <summary>A stop string.</summary>
        StopString = Native.GEN_FINISH_STOP_STRING,
        /// <summary>MaxNewTokens.</summary>
        Length = Native.GEN_FINISH_LENGTH,
        /// <summary>The context is full.</summary>
        ContextFull = Native.GEN_FINISH_CONTEXT_FULL,
        /// <summary>A grammar is complete.</summary>
        GrammarComplete = Native.GEN_FINISH_GRAMMAR_COMPLETE,
        /// <summary>A grammar allows no token.</summary>
        GrammarDeadEnd = Native.GEN_FINISH_GRAMMAR_DEAD_END,
        /// <summary>It was cancelled.</summary>
        Cancelled = Native.GEN_FINISH_CANCELLED,
        /// <summary>A callback in C stopped it.</summary>
        Callback = Native.GEN_FINISH_CALLBACK,
        /// <summary>It failed.</summary>
        Error = Native.GEN_FINISH_ERROR
    }

    /// <summary>One streamed piece.</summary>
    public struct Token
    {
        internal Token(int id, string text, float logProbability, int index, bool done, FinishReason finishReason, Piece[] pieces)
        {
            Pieces = pieces;
            Id = id;
            Text = text;
            LogProbability = logProbability;
            Index = index;
            Done = done;
            FinishReason = finishReason;
        }

        /// <summary>The token drawn; -1 when done.</summary>
        public int Id { get; }
        /// <summary>Whole characters; may be empty.</summary>
        public string Text { get; }
        /// <summary>Of the token, if asked for; else 0.</summary>
        public float LogProbability { get; }
        /// <summary>Number of tokens drawn before this one.</summary>
        public int Index { get; }
        /// <summary>Whether this is the last piece, which always comes.</summary>
        public bool Done { get; }
        /// <summary>Set when done.</summary>
        public FinishReason FinishReason { get; }
        /// <summary>Of a chat session: what is text, reasoning or part of a call.</summary>
        public IReadOnlyList<Piece> Pieces { get; }

        /// <summary>The text.</summary>
        public override string ToString()
        {
            return Text ?? "";
        }
    }

    /// <summary>What a piece is.</summary>
    public enum PieceKind
    {
        /// <summary>Text of the answer.</summary>
        Text = Native.GEN_PIECE_TEXT,
        /// <summary>Text of the model's reasoning.</summary>
        Reasoning = Native.GEN_PIECE_REASONING,
        /// <summary>A call begins; the text is the function's name.</summary>
        CallName = Native.GEN_PIECE_CALL_NAME,
        /// <summary>More of the JSON of the call's arguments.</summary>
        Arguments = Native.GEN_PIECE_ARGUMENTS,
        /// <summary>The call is complete.</summary>
        CallEnd = Native.GEN_PIECE_CALL_END,
        /// <summary>The call is none; what was written of it follows as text or reasoning.</summary>
        CallBroken = Native.GEN_PIECE_CALL_BROKEN
    }

    /// <summary>A part of an answer that a chat session has read.</summary>
    public struct Piece
    {
        internal Piece(PieceKind kind, int call, string text)
        {
            Kind = kind;
            Call = call;
            Text = text;
        }

        /// <summary>What it is.</summary>
        public PieceKind Kind { get; }
        /// <summary>Number of the call in the answer, from 0.</summary>
        public int Call { get; }
        /// <summary>Its text.</summary>
        public string Text { get; }
    }

    /// <summary>One of the most probable tokens at a step.</summary>
    public struct Candidate
    {
        internal Candidate(int id, float logProbability)
        {
            Id = id;
            LogProbability = logProbability;
        }

        /// <summary>The token.</summary>
        public int Id { get; }
        /// <summary>Its log-probability.</summary>
        public float LogProbability { get; }
    }

    /// <summary>The outcome of a generation. Holds nothing native.</summary>
    public sealed class Result
    {
        static readonly byte[] prompt = Utf8.Bytes("prompt");
        static readonly byte[] cached = Utf8.Bytes("prompt_cached");
        static readonly byte[] evaluated = Utf8.Bytes("prompt_evaluated");
        static readonly byte[] completion = Utf8.Bytes("completion");
        static readonly byte[] dropped = Utf8.Bytes("dropped");
        static readonly byte[] drafted = Utf8.Bytes("drafted");
        static readonly byte[] accepted = Utf8.Bytes("accepted");
        static readonly byte[] complete = Utf8.Bytes("grammar_complete");
        static readonly byte[] prefill = Utf8.Bytes("prefill");
        static readonly byte[] firstToken = Utf8.Bytes("first_token");
        static readonly byte[] decode = Utf8.Bytes("decode");
        static readonly byte[] total = Utf8.Bytes("total");
        static readonly int[] noTokens = new int[0];
        static readonly float[] noFloats = new float[0];
        static readonly Candidate[][] noCandidates = new Candidate[0][];

        /// <summary>The text, without prompt, stop token and stop string.</summary>
        public string Text { get; }
        /// <summary>The tokens drawn, without a stop token.</summary>
        public IReadOnlyList<int> Tokens { get; }
        /// <summary>Of each token, if asked for; else empty.</summary>
        public IReadOnlyList<float> LogProbabilities { get; }
        /// <summary>The most probable tokens at each step, if asked for; else empty.</summary>
        public IReadOnlyList<IReadOnlyList<Candidate>> TopLogProbabilities { get; }
        /// <summary>Why it ended.</summary>
        public FinishReason FinishReason { get; }
        /// <summary>Ok, or why it failed.</summary>
        public Status Status { get; }
        /// <summary>The failure's message; "" if there is none.</summary>
        public string ErrorMessage { get; }
        /// <summary>Tokens of the prompt, begin-of-sequence included.</summary>
        public long PromptTokens { get; }
        /// <summary>Of these, those that were not computed anew.</summary>
        public long CachedPromptTokens { get; }
        /// <summary>Tokens that ran before the first one was drawn, earlier ones that ran again included.</summary>
        public long EvaluatedPromptTokens { get; }
        /// <summary>Tokens drawn.</summary>
        public long CompletionTokens { get; }
        /// <summary>Oldest tokens of the session that made room.</summary>
        public long DroppedTokens { get; }
        /// <summary>Draft tokens that were verified.</summary>
        public long DraftedTokens { get; }
        /// <summary>Of these, accepted ones.</summary>
        public long AcceptedTokens { get; }
        /// <summary>
        /// What was drafted for each pass, and what of it the model confirmed, as JSON: objects with "index" (of the first
        /// drafted token in Tokens), "drafter", "tokens", "parents", "grades" and "accepted" (places in "tokens").
        /// </summary>
        public string Drafts { get; }
        /// <summary>
        /// What a chat session read in the answer, as JSON: "text", "reasoning", "calls" with "name" and "arguments", and
        /// "faults". Of other results all of the text is "text".
        /// </summary>
        public string Answer { get; }
        /// <summary>Whether what was drawn is a member of the call's grammar; null without one.</summary>
        public bool? GrammarComplete { get; }
        /// <summary>Time that the prompt took.</summary>
        public TimeSpan PrefillTime { get; }
        /// <summary>Time from the call to the first token.</summary>
        public TimeSpan FirstTokenTime { get; }
        /// <summary>Time of all further tokens.</summary>
        public TimeSpan DecodeTime { get; }
        /// <summary>Time of all.</summary>
        public TimeSpan TotalTime { get; }

        /// <summary>The text.</summary>
        public override string ToString()
        {
            return Text;
        }

        /// <summary>Copies a native result and frees it; null for zero.</summary>
        internal static Result Take(IntPtr address)
        {
            if (address == IntPtr.Zero) return null;
            using (var result = new Handle(HandleKind.Result, address)) return new Result(result);
        }

        Result(Handle result)
        {
            long n;
            IntPtr text = Native.gen_result_text(result, out n);
            Text = Utf8.Text(text, n);
            IntPtr tokens = Native.gen_result_tokens(result, out n);
            Tokens = Sized.Copy(tokens, n, noTokens);
            IntPtr probabilities = Native.gen_result_logprobs(result, out n);
            LogProbabilities = Sized.Copy(probabilities, n, noFloats);
            TopLogProbabilities = n == 0 ? noCandidates : ReadCandidates(result, n);
            FinishReason = (FinishReason)Native.gen_result_finish_reason(result);
            Status = (Status)Native.gen_binding_result_code(result);
            ErrorMessage = Status == Status.Ok ? "" : Utf8.Text(Native.gen_binding_result_message(result));
            PromptTokens = Usage(result, prompt);
            CachedPromptTokens = Usage(result, cached);
            EvaluatedPromptTokens = Usage(result, evaluated);
            CompletionTokens = Usage(result, completion);
            DroppedTokens = Usage(result, dropped);
            DraftedTokens = Usage(result, drafted);
            AcceptedTokens = Usage(result, accepted);
            Answer = Sized.Text((byte[] buf, long capacity, out long size) =>
                Native.gen_result_answer(result, buf, capacity, out size));
            Drafts = DraftedTokens == 0 ? "[]" : ReadDrafts(result);
            long member = Usage(result, complete);
            GrammarComplete = member < 0 ? (bool?)null : member > 0;
            PrefillTime = Time(result, prefill);
            FirstTokenTime = Time(result, firstToken);
            DecodeTime = Time(result, decode);
            TotalTime = Time(result, total);
        }

        static string ReadDrafts(Handle result)
        {
            try
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.gen_result_drafts(result, buf, capacity, out n));
            }
            catch (GenerateException)
            {
                return "[]"; // a pass had no memory for its own
            }
        }

        static Candidate[][] ReadCandidates(Handle result, long steps)
        {
            var all = new Candidate[steps][];
            bool any = false;
            for (int step = 0; step < all.Length; ++step)
            {
                IntPtr ids, probabilities;
                long n = Native.gen_result_top_logprobs(result, step, out ids, out probabilities);
                all[step] = Candidates(ids, probabilities, n);
                any = any || n > 0;
            }
            return any ? all : noCandidates;
        }

        internal static Candidate[] Candidates(IntPtr ids, IntPtr probabilities, long n)
        {
            int[] id = Sized.Copy(ids, n, noTokens);
            float[] probability = Sized.Copy(probabilities, n, noFloats);
            var all = new Candidate[n];
            for (int i = 0; i < id.Length; ++i) all[i] = new Candidate(id[i], probability[i]);
            return all;
        }

        static long Usage(Handle result, byte[] key)
        {
            long value;
            Native.gen_result_usage(result, key, out value);
            return value;
        }

        static TimeSpan Time(Handle result, byte[] key)
        {
            double seconds;
            Native.gen_result_timings(result, key, out seconds);
            return TimeSpan.FromTicks((long)(seconds * TimeSpan.TicksPerSecond));
        }
    }
}
