// SPDX-License-Identifier: Apache-2.0
// Many generations from one thread.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

namespace LibGenerate
{
    /// <summary>A prompt and how to continue it, for Generator.Generate and Generator.Stream.</summary>
    public sealed class Request
    {
        /// <summary>Continues text.</summary>
        public Request(string prompt, Sampling sampling = null)
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            Prompt = prompt;
            Sampling = sampling;
        }

        /// <summary>Continues tokens, taken as they are.</summary>
        public Request(int[] tokens, Sampling sampling = null)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            Tokens = tokens;
            Sampling = sampling;
        }

        /// <summary>The prompt; null if it is tokens.</summary>
        public string Prompt { get; }
        /// <summary>The prompt as tokens; null if it is text.</summary>
        public int[] Tokens { get; }
        /// <summary>How tokens are chosen.</summary>
        public Sampling Sampling { get; }
        /// <summary>Those of higher priority go first where not all fit into a step.</summary>
        public int Priority { get; set; }
        /// <summary>Cancels the request that long after the call began; zero for never.</summary>
        public TimeSpan Deadline { get; set; }

        internal Handle ToNative(Handle cancel)
        {
            Loader.Ensure();
            IntPtr address;
            Native.gen_request_new(out address);
            var request = new Handle(HandleKind.Request, address);
            try
            {
                if (Tokens != null)
                {
                    Native.gen_request_set_prompt_tokens(request, Tokens, Tokens.Length);
                }
                else
                {
                    byte[] text = Utf8.Bytes(Prompt);
                    Native.gen_request_set_prompt(request, text, Utf8.Length(text));
                }
                using (Handle sampling = LibGenerate.Sampling.Make(Sampling, cancel))
                {
                    Native.gen_request_set_sampling(request, sampling);
                }
                if (Priority != 0) Native.gen_request_set_priority(request, Priority);
                if (Deadline > TimeSpan.Zero)
                {
                    Native.gen_request_set_deadline_ms(request, Math.Max(1, (long)Deadline.TotalMilliseconds));
                }
                return request;
            }
            catch
            {
                request.Dispose();
                throw;
            }
        }
    }

    /// <summary>One piece of one of many requests.</summary>
    public struct BatchToken
    {
        internal BatchToken(int request, Token token, Exception error, Result result)
        {
            Request = request;
            Token = token;
            Error = error;
            Result = result;
        }

        /// <summary>Which request.</summary>
        public int Request { get; }
        /// <summary>The piece.</summary>
        public Token Token { get; }
        /// <summary>Why the request failed, then with nothing else; null if it did not.</summary>
        public Exception Error { get; }
        /// <summary>With the last piece of a request its result, else null.</summary>
        public Result Result { get; }
    }

    /// <summary>Streams that one thread polls.</summary>
    internal sealed class BatchStream : IDisposable
    {
        readonly int index;
        readonly TimeSpan deadline;
        readonly Session session;
        readonly TokenStream stream;

        BatchStream(Generator generator, int index, Request request, CancellationToken token)
        {
            this.index = index;
            deadline = request.Deadline;
            session = new Session(generator);
            try
            {
                if (request.Tokens != null) session.Append(request.Tokens);
                stream = session.Stream(request.Prompt ?? "", request.Sampling, token);
            }
            catch
            {
                session.Dispose();
                throw;
            }
        }

        public void Dispose()
        {
            stream.Dispose();
            session.Dispose();
        }

        internal static IEnumerable<BatchToken> Run(Generator generator, List<Request> requests, CancellationToken token)
        {
            CancelFlag.ThrowIfFired(token);
            var clock = Stopwatch.StartNew();
            var open = new List<BatchStream>();
            int next = 0, idle = 0;
            try
            {
                while (next < requests.Count || open.Count > 0)
                {
                    while (next < requests.Count && open.Count < generator.MaxBatch)
                    {
                        BatchToken refused;
                        if (!TryOpen(generator, next, requests[next], token, open, out refused)) yield return refused;
                        ++next;
                    }
                    bool any = false;
                    for (int i = 0; i < open.Count;)
                    {
                        BatchToken piece;
                        bool last;
                        if (open[i].TryAdvance(clock, out piece, out last))
                        {
                            any = true;
                            yield return piece;
                        }
                        if (last)
                        {
                            open[i].Dispose();
                            open.RemoveAt(i);
                        }
                        else
                        {
                            ++i;
                        }
                    }
                    // A second round without a piece means that another thread runs the steps.
                    idle = any ? 0 : idle + 1;
                    if (idle > 1) Thread.Sleep(idle > 20 ? 1 : 0);
                    CancelFlag.ThrowIfFired(token);
                }
            }
            finally
            {
                foreach (BatchStream stream in open) stream.Dispose();
            }
        }

        static bool TryOpen(Generator generator, int index, Request request, CancellationToken token,
                            List<BatchStream> open, out BatchToken refused)
        {
            refused = default(BatchToken);
            try
            {
                open.Add(new BatchStream(generator, index, request, token));
                return true;
            }
            catch (GenerateException e)
            {
                refused = new BatchToken(index, default(Token), e, null);
                return false;
            }
        }

        bool TryAdvance(Stopwatch clock, out BatchToken piece, out bool last)
        {
            piece = default(BatchToken);
            last = false;
            try
            {
                if (deadline > TimeSpan.Zero && clock.Elapsed > deadline) stream.Cancel();
                Token token;
                PollState state = stream.Poll(out token);
                last = state == PollState.End || (state == PollState.Token && token.Done);
                if (state != PollState.Token) return false;
                piece = new BatchToken(index, token, null, last ? stream.Result : null);
                return true;
            }
            catch (GenerateException e)
            {
                last = true;
                piece = new BatchToken(index, default(Token), e, e.Result);
                return true;
            }
            catch (GenerationCanceledException e)
            {
                last = true;
                piece = new BatchToken(index, default(Token), e, e.Result);
                return true;
            }
        }
    }
}
