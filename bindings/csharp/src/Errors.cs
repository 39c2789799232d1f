// SPDX-License-Identifier: Apache-2.0
// Statuses and the exceptions that carry them.
using System;
using System.Collections.Generic;
using System.Threading;

namespace LibGenerate
{
    /// <summary>Why a call failed.</summary>
    public enum Status
    {
        /// <summary>It did not.</summary>
        Ok = Native.GEN_OK,
        /// <summary>An argument is invalid in itself.</summary>
        InvalidArgument = Native.GEN_ERROR_INVALID_ARGUMENT,
        /// <summary>Memory could not be had.</summary>
        OutOfMemory = Native.GEN_ERROR_OUT_OF_MEMORY,
        /// <summary>A file could not be read or written.</summary>
        Io = Native.GEN_ERROR_IO,
        /// <summary>A bad or hostile file.</summary>
        Format = Native.GEN_ERROR_FORMAT,
        /// <summary>Not known to this build, or not for this object.</summary>
        Unsupported = Native.GEN_ERROR_UNSUPPORTED,
        /// <summary>A cache has no room.</summary>
        CacheFull = Native.GEN_ERROR_CACHE_FULL,
        /// <summary>A pool has no free block.</summary>
        PoolExhausted = Native.GEN_ERROR_POOL_EXHAUSTED,
        /// <summary>An id, index or capacity outside its limit.</summary>
        OutOfRange = Native.GEN_ERROR_OUT_OF_RANGE,
        /// <summary>An append at the wrong position.</summary>
        Sequence = Native.GEN_ERROR_SEQUENCE,
        /// <summary>The object is in use by another call.</summary>
        Busy = Native.GEN_ERROR_BUSY,
        /// <summary>The call was cancelled.</summary>
        Cancelled = Native.GEN_ERROR_CANCELLED,
        /// <summary>A grammar is wrong or too large.</summary>
        Grammar = Native.GEN_ERROR_GRAMMAR,
        /// <summary>A device failed.</summary>
        Device = Native.GEN_ERROR_DEVICE,
        /// <summary>The prompt does not fit the context.</summary>
        ContextFull = Native.GEN_ERROR_CONTEXT_FULL,
        /// <summary>A call in the wrong order.</summary>
        State = Native.GEN_ERROR_STATE,
        /// <summary>The forward pass failed or gave NaN.</summary>
        Model = Native.GEN_ERROR_MODEL,
        /// <summary>Text could not be made tokens.</summary>
        Tokenizer = Native.GEN_ERROR_TOKENIZER,
        /// <summary>A mistake of the library's own.</summary>
        Internal = Native.GEN_ERROR_INTERNAL
    }

    /// <summary>A call failed: with a status, a message that names the thing, and what there was by then.</summary>
    public class GenerateException : Exception
    {
        internal GenerateException(Status status, string message)
            : base(message)
        {
            Status = status;
        }

        /// <summary>Why.</summary>
        public Status Status { get; }

        /// <summary>What was generated before the failure; null if generating had not begun.</summary>
        public Result Result { get; internal set; }

        /// <summary>Throws what a native call gave, unless it is nothing.</summary>
        internal static void Check(IntPtr failure)
        {
            if (failure != IntPtr.Zero) throw Take(failure);
        }

        static unsafe Exception Take(IntPtr failure)
        {
            var status = (Status)(*(int*)failure);
            string message = Utf8.Text(failure + sizeof(int));
            NativePINVOKE.gen_binding_failure_free(failure);
            if (status == Status.Cancelled)
            {
                AtExit.Park();
                return new GenerationCanceledException(message, (Result)null, CancellationToken.None);
            }
            return new GenerateException(status, message);
        }
    }

    /// <summary>
    /// A call was cancelled: by its CancellationToken, by disposing of its session or stream, or by the model itself. It is
    /// an OperationCanceledException, so that tasks end as cancelled and handlers for cancelling work.
    /// </summary>
    public class GenerationCanceledException : OperationCanceledException
    {
        internal GenerationCanceledException(string message, Result result, CancellationToken token)
            : base(message, token)
        {
            Result = result;
        }

        internal GenerationCanceledException(string message, IReadOnlyList<Result> results, CancellationToken token)
            : base(message, token)
        {
            Results = results;
        }

        /// <summary>Always Cancelled.</summary>
        public Status Status
        {
            get { return Status.Cancelled; }
        }

        /// <summary>What was generated before; null if generating had not begun, and for a batch.</summary>
        public Result Result { get; }

        /// <summary>Of a batch, what became of each request; else null.</summary>
        public IReadOnlyList<Result> Results { get; }
    }
}
