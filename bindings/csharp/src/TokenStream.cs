// SPDX-License-Identifier: Apache-2.0
// Streams: a generation pulled piece by piece. Per token there is one native call, and no garbage but the text.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Threading;

namespace LibGenerate
{
    /// <summary>What TokenStream.Poll found.</summary>
    public enum PollState
    {
        /// <summary>Nothing yet: poll again.</summary>
        Pending = Native.GEN_STREAM_PENDING,
        /// <summary>A piece.</summary>
        Token = Native.GEN_STREAM_TOKEN,
        /// <summary>All pieces have been given.</summary>
        End = Native.GEN_STREAM_END
    }

    /// <summary>
    /// One generation as a sequence of pieces, which can be gone through once. A loop that is left early ends the
    /// generation; the session keeps the tokens committed so far. One thread at a time, except Dispose.
    /// </summary>
    public sealed partial class TokenStream : NativeObject, IEnumerable<Token>
    {
        readonly CancelFlag cancel;
        readonly long[] fields = new long[Native.GEN_BINDING_EVENT_FIELDS];
        readonly byte[] text = new byte[256];
        int busy;
        bool ended;
        bool done;
        Result result;

        TokenStream(Handle handle, CancelFlag cancel)
            : base(handle)
        {
            this.cancel = cancel;
        }

        internal static TokenStream Open(Session session, string prompt, Sampling sampling, CancellationToken token)
        {
            byte[] bytes = Utf8.Bytes(prompt);
            return Open((Handle native, out IntPtr stream) =>
                Native.gen_stream_open(session.Handle, bytes, Utf8.Length(bytes), native, out stream), sampling, token);
        }

        internal delegate void Opening(Handle sampling, out IntPtr stream);

        internal static TokenStream Open(Opening open, Sampling sampling, CancellationToken token)
        {
            var cancel = new CancelFlag(token);
            try
            {
                using (Handle native = Sampling.Make(sampling, cancel.Handle))
                {
                    IntPtr stream;
                    open(native, out stream);
                    // The flag stays until some thread closes the stream.
                    return new TokenStream(new Handle(HandleKind.TokenStream, stream, cancel.Handle), cancel);
                }
            }
            catch
            {
                cancel.Dispose();
                throw;
            }
        }

        /// <summary>Runs the model until the next piece is there; false at the end.</summary>
        public bool Next(out Token token)
        {
            return Advance(false, out token) == PollState.Token;
        }

        /// <summary>As Next, but never waits for another thread: for one thread that drives many streams.</summary>
        public PollState Poll(out Token token)
        {
            return Advance(true, out token);
        }

        /// <summary>
        /// The most probable tokens at the position of the last piece, best first, with LogProbabilities above 0.
        /// </summary>
        public Candidate[] Alternatives()
        {
            if (Interlocked.CompareExchange(ref busy, 1, 0) != 0)
            {
                throw new GenerateException(Status.Busy, "the stream is in use by another thread");
            }
            try
            {
                if (ended) return new Candidate[0];
                using (new Use(Handle))
                {
                    IntPtr ids, probabilities;
                    long n = Native.gen_stream_alternatives(Handle, out ids, out probabilities);
                    return Result.Candidates(ids, probabilities, n);
                }
            }
            finally
            {
                Volatile.Write(ref busy, 0);
            }
        }

        PollState Advance(bool poll, out Token token)
        {
            token = default(Token);
            if (Interlocked.CompareExchange(ref busy, 1, 0) != 0)
            {
                throw new GenerateException(Status.Busy, "the stream is in use by another thread");
            }
            try
            {
                if (ended && !IsDisposed) return PollState.End;
                // A piece that is longer than the buffer is read after the call.
                using (new Use(Handle))
                {
                    if (poll)
                    {
                        Native.gen_binding_stream_poll(Handle, fields, text, text.Length);
                    }
                    else
                    {
                        Native.gen_binding_stream_next(Handle, fields, text, text.Length);
                    }
                    var state = (PollState)fields[Native.GEN_BINDING_EVENT_STATE];
                    if (state == PollState.Token) token = Read();
                    if (state == PollState.End) End();
                    return state;
                }
            }
            catch (GenerationCanceledException e)
            {
                End();
                throw Call.Canceled(e, result, cancel.Token);
            }
            catch (GenerateException e)
            {
                End();
                e.Result = result;
                throw;
            }
            finally
            {
                Volatile.Write(ref busy, 0);
            }
        }

        unsafe Token Read()
        {
            long length = fields[Native.GEN_BINDING_EVENT_TEXT_LEN];
            string piece = length == 0 ? ""
                : length <= text.Length ? Utf8.Text(text, length)
                : Utf8.Text(new IntPtr(fields[Native.GEN_BINDING_EVENT_TEXT]), length);
            int bits = (int)fields[Native.GEN_BINDING_EVENT_LOGPROB];
            done = fields[Native.GEN_BINDING_EVENT_DONE] != 0;
            return new Token((int)fields[Native.GEN_BINDING_EVENT_ID], piece, *(float*)&bits, (int)fields[Native.GEN_BINDING_EVENT_INDEX], done, (FinishReason)fields[Native.GEN_BINDING_EVENT_FINISH_REASON], ReadPieces());
        }

        static readonly Piece[] noPieces = new Piece[0];

        Piece[] ReadPieces()
        {
            long count = fields[Native.GEN_BINDING_EVENT_PIECE_COUNT];
            if (count == 0) return noPieces;
            var pieces = new Piece[count];
            var part = new long[Native.GEN_BINDING_PIECE_FIELDS];
            for (int i = 0; i < pieces.Length; ++i)
            {
                Native.gen_binding_piece(fields[Native.GEN_BINDING_EVENT_PIECES], i, part);
                long length = part[Native.GEN_BINDING_PIECE_LEN];
                string text = length == 0 ? "" : Utf8.Text(new IntPtr(part[Native.GEN_BINDING_PIECE_TEXT]), length);
                pieces[i] = new Piece((PieceKind)part[Native.GEN_BINDING_PIECE_KIND], (int)part[Native.GEN_BINDING_PIECE_CALL], text);
            }
            return pieces;
        }

        // Takes the result, so that it is there when the native stream is gone.
        void End()
        {
            if (result == null)
            {
                IntPtr address = IntPtr.Zero;
                try
                {
                    Native.gen_stream_result(Handle, out address);
                }
                catch (GenerateException)
                {
                    return;  // not at its end
                }
                catch (ObjectDisposedException)
                {
                    return;
                }
                result = Result.Take(address);
            }
            ended = true;
            cancel.Unregister();
        }

        /// <summary>The result, when all pieces have been given; it stays when the stream is disposed of.</summary>
        public Result Result
        {
            get
            {
                Token last;
                if (result == null && done) Next(out last);
                if (result == null)
                {
                    throw new GenerateException(Status.State, "the stream has no result: it is not at its end");
                }
                return result;
            }
        }

        internal Result Drain(Action<Token> onToken)
        {
            Token token;
            while (Next(out token)) onToken(token);
            return Result;
        }

        /// <summary>Cancels this generation, from any thread.</summary>
        public void Cancel()
        {
            cancel.Fire();
        }

        /// <summary>The pieces that are still to come; leaving the loop disposes of the stream.</summary>
        public IEnumerator<Token> GetEnumerator()
        {
            return new Enumerator(this);
        }

        IEnumerator IEnumerable.GetEnumerator()
        {
            return GetEnumerator();
        }

        /// <summary>Ends the generation, also in the middle: a call that runs ends within a token.</summary>
        public override void Dispose()
        {
            cancel.Fire();
            base.Dispose();
            cancel.Dispose();
        }

        sealed class Enumerator : IEnumerator<Token>
        {
            readonly TokenStream stream;
            Token current;

            internal Enumerator(TokenStream stream)
            {
                this.stream = stream;
            }

            public Token Current
            {
                get { return current; }
            }

            object IEnumerator.Current
            {
                get { return current; }
            }

            public bool MoveNext()
            {
                return stream.Next(out current);
            }

            public void Reset()
            {
                throw new NotSupportedException();
            }

            public void Dispose()
            {
                stream.Dispose();
            }
        }
    }
}
