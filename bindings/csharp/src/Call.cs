// SPDX-License-Identifier: Apache-2.0
// One generating call: its own cancel flag, which a CancellationToken fires, and its own native sampling.
using System;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>A flag that stops the calls that use it.</summary>
    internal sealed class CancelFlag : IDisposable
    {
        static readonly Action<object> fire = state => ((CancelFlag)state).Fire();

        internal readonly Handle Handle;
        internal readonly CancellationToken Token;
        CancellationTokenRegistration registration;

        /// <summary>A flag that the token fires. A token that has fired already ends it here.</summary>
        internal CancelFlag(CancellationToken token)
        {
            Token = token;
            Loader.Ensure();
            ThrowIfFired(token);
            IntPtr flag;
            Native.gen_cancel_new(out flag);
            Handle = new Handle(HandleKind.Cancel, flag);
            registration = token.Register(fire, this);
        }

        internal static void ThrowIfFired(CancellationToken token)
        {
            if (token.IsCancellationRequested)
            {
                throw new GenerationCanceledException("cancelled before it began", (Result)null, token);
            }
        }

        internal void Fire()
        {
            try
            {
                if (!Handle.Closed) Native.gen_cancel_fire(Handle);
            }
            catch (ObjectDisposedException)
            {
                // another thread was faster
            }
        }

        /// <summary>The token no longer reaches the flag.</summary>
        internal void Unregister()
        {
            registration.Dispose();
        }

        public void Dispose()
        {
            Unregister();
            Handle.Dispose();
        }
    }

    /// <summary>What a load or a quantisation is stopped with, by a callback in C that looks at it.</summary>
    internal sealed class ProgressFlag : IDisposable
    {
        readonly long state;
        readonly CancellationToken token;
        readonly CancellationTokenRegistration registration;

        /// <summary>A flag that the token fires. A token that has fired already ends it here.</summary>
        internal ProgressFlag(CancellationToken token)
        {
            Loader.Ensure();
            CancelFlag.ThrowIfFired(token);
            this.token = token;
            state = Native.gen_binding_progress_new();
            if (state == 0) throw new OutOfMemoryException();
            registration = token.Register(() => Native.gen_binding_progress_stop(state));
        }

        internal static IntPtr Callback
        {
            get { return (IntPtr)Native.gen_binding_progress_function(); }
        }

        internal IntPtr User
        {
            get { return (IntPtr)state; }
        }

        /// <summary>Runs the call; `progress`, which may be null, is told now and then, and 1 at the end.</summary>
        internal void Run(Action call, IProgress<double> progress)
        {
            var clock = progress == null ? null : new Timer(_ => progress.Report(Native.gen_binding_progress_share(state)), null, 20, 20);
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
                Stop(clock);
            }
            progress?.Report(1);
        }

        static void Stop(Timer clock)
        {
            if (clock == null) return;
            using (var stopped = new ManualResetEvent(false))
            {
                if (clock.Dispose(stopped)) stopped.WaitOne();
            }
        }

        public void Dispose()
        {
            registration.Dispose();  // waits for a token that is firing
            Native.gen_binding_progress_free(state);
        }
    }

    internal delegate void Generating(Handle sampling, out IntPtr result);

    internal static class Call
    {
        /// <summary>Runs a call that gives a result; a failure has the partial result.</summary>
        internal static Result Run(Sampling sampling, CancellationToken token, Generating generate)
        {
            IntPtr result = IntPtr.Zero;
            using (var cancel = new CancelFlag(token))
            using (Handle native = Sampling.Make(sampling, cancel.Handle))
            {
                try
                {
                    generate(native, out result);
                }
                catch (GenerationCanceledException e)
                {
                    throw Canceled(e, Result.Take(result), token);
                }
                catch (GenerateException e)
                {
                    e.Result = Result.Take(result);
                    throw;
                }
            }
            return Result.Take(result);
        }

        internal static GenerationCanceledException Canceled(GenerationCanceledException e, Result result,
                                                             CancellationToken token)
        {
            return new GenerationCanceledException(e.Message, result,
                                                   token.IsCancellationRequested ? token : CancellationToken.None);
        }
    }

    internal static class Background
    {
        // A thread for each: generating blocks for long, and would take the thread pool's few away from all others.
        internal static Task<T> Run<T>(Func<T> work, CancellationToken token)
        {
            return Task.Factory.StartNew(work, token,
                                         TaskCreationOptions.LongRunning | TaskCreationOptions.DenyChildAttach,
                                         TaskScheduler.Default);
        }
    }
}
