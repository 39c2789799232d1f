// SPDX-License-Identifier: Apache-2.0
// Asynchronous streams, for frameworks that have them.
#nullable enable
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    public sealed partial class TokenStream
    {
        /// <summary>
        /// The pieces that are still to come, for `await foreach`; each is waited for on a thread of the pool. A token that
        /// fires, this one or that of the stream, ends it with a GenerationCanceledException. Leaving the loop disposes of
        /// the stream.
        /// </summary>
        public async IAsyncEnumerable<Token> ReadAllAsync(
            [EnumeratorCancellation] CancellationToken cancellationToken = default)
        {
            using CancellationTokenRegistration registration =
                cancellationToken.Register(static state => ((TokenStream)state!).Cancel(), this);
            try
            {
                while (true)
                {
                    Token token = default;
                    bool more;
                    try
                    {
                        more = await Task.Run(() => Next(out token), CancellationToken.None).ConfigureAwait(false);
                    }
                    catch (GenerationCanceledException e) when (cancellationToken.IsCancellationRequested)
                    {
                        throw Call.Canceled(e, e.Result, cancellationToken);
                    }
                    if (!more) yield break;
                    yield return token;
                }
            }
            finally
            {
                Dispose();
            }
        }
    }
}
