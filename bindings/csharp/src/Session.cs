// SPDX-License-Identifier: Apache-2.0
// Sessions: one growing sequence each.
using System;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>
    /// One conversation: tokens, cache, position. One thread at a time, a second one gets Status.Busy; Length, Progress,
    /// Cancel and Dispose are free of that.
    /// </summary>
    public sealed class Session : NativeObject
    {
        /// <summary>An empty session of a generator, of which it keeps what it needs.</summary>
        public Session(Generator generator)
            : this(Make(generator))
        {
        }

        Session(IntPtr session)
            : base(new Handle(HandleKind.Session, session))
        {
            Cache = new KvCache(Native.gen_session_cache(Handle), Handle);
            IntPtr state = Native.gen_session_ssm_state(Handle);
            if (state != IntPtr.Zero) State = new SsmState(state, Handle);
        }

        static IntPtr Make(Generator generator)
        {
            Loader.Ensure();
            if (generator == null) throw new ArgumentNullException("generator");
            IntPtr session;
            Native.gen_session_new(generator.Handle, out session);
            return session;
        }

        /// <summary>Adds a prompt, which may be empty in a session that is not, and generates.</summary>
        public Result Generate(string prompt, Sampling sampling = null,
                               CancellationToken cancellationToken = default(CancellationToken))
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            byte[] text = Utf8.Bytes(prompt);
            return Call.Run(sampling, cancellationToken, (Handle native, out IntPtr result) =>
                Native.gen_session_generate(Handle, text, Utf8.Length(text), native, out result));
        }

        /// <summary>The same on a separate thread.</summary>
        public Task<Result> GenerateAsync(string prompt, Sampling sampling = null,
                                          CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() => Generate(prompt, sampling, cancellationToken), cancellationToken);
        }

        /// <summary>Adds a prompt and generates piece by piece. The session is in use until the stream is disposed of.</summary>
        public TokenStream Stream(string prompt, Sampling sampling = null,
                                  CancellationToken cancellationToken = default(CancellationToken))
        {
            if (prompt == null) throw new ArgumentNullException("prompt");
            return TokenStream.Open(this, prompt, sampling, cancellationToken);
        }

        /// <summary>Gives each piece to `onToken`, which is called on a thread of the call's own.</summary>
        public Task<Result> StreamAsync(string prompt, Action<Token> onToken, Sampling sampling = null,
                                        CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() =>
            {
                using (TokenStream stream = Stream(prompt, sampling, cancellationToken)) return stream.Drain(onToken);
            }, cancellationToken);
        }

        /// <summary>Adds text without generating. After a cancel the tokens run so far stay.</summary>
        public void Append(string text, CancellationToken cancellationToken = default(CancellationToken))
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            Cancellable(cancellationToken, () => Native.gen_session_append(Handle, bytes, Utf8.Length(bytes)));
        }

        /// <summary>Adds tokens as they are.</summary>
        public void Append(int[] tokens, CancellationToken cancellationToken = default(CancellationToken))
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            // No tokens are no array for C.
            int[] some = tokens.Length > 0 ? tokens : new int[1];
            Cancellable(cancellationToken, () => Native.gen_session_append_tokens(Handle, some, tokens.Length));
        }

        /// <summary>
        /// Makes the session hold a conversation, so that generating with an empty prompt answers it. What the session has of
        /// it stays, and only the rest is run. After a cancel what was run so far stays.
        /// </summary>
        public void Append(Chat chat, bool addGenerationPrompt = true,
                           CancellationToken cancellationToken = default(CancellationToken))
        {
            if (chat == null) throw new ArgumentNullException("chat");
            Cancellable(cancellationToken, () =>
                Native.gen_session_append_chat(Handle, chat.Handle, addGenerationPrompt ? 1 : 0));
        }

        /// <summary>Log-probabilities of a text's tokens as a continuation. The session is unchanged.</summary>
        public float[] Score(string text, CancellationToken cancellationToken = default(CancellationToken))
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            float[] scores = null;
            Cancellable(cancellationToken, () => scores = Sized.Array((float[] values, long capacity, out long n) =>
                Native.gen_session_score(Handle, bytes, Utf8.Length(bytes), values, capacity, out n)));
            return scores;
        }

        // A call that has no sampling: its flag is the session's meanwhile.
        void Cancellable(CancellationToken token, Action call)
        {
            if (!token.CanBeCanceled)
            {
                call();
                return;
            }
            using (var cancel = new CancelFlag(token))
            {
                Native.gen_session_set_cancel(Handle, cancel.Handle);
                try
                {
                    call();
                }
                catch (GenerationCanceledException e)
                {
                    throw Call.Canceled(e, null, token);
                }
                finally
                {
                    cancel.Unregister();
                    Native.gen_cancel_reset(cancel.Handle);
                    try
                    {
                        if (!IsDisposed) Native.gen_session_set_cancel(Handle, null);
                    }
                    catch (GenerateException)
                    {
                        // In use by another thread: what it still has is a flag that nobody fires.
                    }
                    catch (ObjectDisposedException)
                    {
                        // closed meanwhile
                    }
                }
            }
        }

        /// <summary>The tokens that the session holds.</summary>
        public int[] Tokens
        {
            get
            {
                return Sized.Array((int[] ids, long capacity, out long n) =>
                    Native.gen_session_tokens(Handle, ids, capacity, out n));
            }
        }

        /// <summary>Number of tokens held.</summary>
        public int Length
        {
            get { return Native.gen_session_length(Handle); }
        }

        /// <summary>Share of the current prompt that has been run, 0 to 1.</summary>
        public double Progress
        {
            get { return Native.gen_session_progress(Handle); }
        }

        /// <summary>The session's cache, for reading. It is closed with the session.</summary>
        public KvCache Cache { get; }

        /// <summary>
        /// What the session's model keeps beside keys and values, for reading and for going back; null for a model without
        /// such a state. It is closed with the session.
        /// </summary>
        public SsmState State { get; }

        /// <summary>Keeps the first n tokens.</summary>
        public void Truncate(int n)
        {
            Native.gen_session_truncate(Handle, n);
        }

        /// <summary>Empties the session and clears a pending Cancel.</summary>
        public void Reset()
        {
            Native.gen_session_reset(Handle);
        }

        /// <summary>An independent session that continues from the same tokens.</summary>
        public Session Fork()
        {
            IntPtr session;
            Native.gen_session_fork(Handle, out session);
            return new Session(session);
        }

        /// <summary>Saves tokens and cache to a file.</summary>
        public void Save(string path)
        {
            Native.gen_session_save(Handle, Utf8.Terminated(path, "path"));
        }

        /// <summary>The same to memory.</summary>
        public byte[] Save()
        {
            return Sized.Array((byte[] buf, long capacity, out long n) =>
                Native.gen_session_save_buffer(Handle, buf, capacity, out n));
        }

        /// <summary>Continues a saved session in an empty one.</summary>
        public void Load(string path)
        {
            Native.gen_session_load(Handle, Utf8.Terminated(path, "path"));
        }

        /// <summary>The same from memory.</summary>
        public void Load(byte[] state)
        {
            if (state == null) throw new ArgumentNullException("state");
            Native.gen_session_load_buffer(Handle, state, state.Length);
        }

        /// <summary>
        /// Stops the running call or, if there is none, the next generating one. What a CancellationToken stops is its own
        /// call and no other; prefer that.
        /// </summary>
        public void Cancel()
        {
            Native.gen_session_cancel(Handle);
        }

        /// <summary>Gives the session up. What runs on it is cancelled, and ends within a token.</summary>
        public override void Dispose()
        {
            try
            {
                if (!IsDisposed) Native.gen_session_cancel(Handle);
            }
            catch (ObjectDisposedException)
            {
                // another thread was faster
            }
            base.Dispose();
        }
    }
}
