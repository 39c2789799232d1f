// SPDX-License-Identifier: Apache-2.0
// Cancelling: by a token from another thread, from within the loop, inside a long prompt, by disposing.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using LibGenerate;

static class Cancelling
{
    static readonly MetricsCollector Counted = new MetricsCollector(); // by the slow generators

    static T WithSlow<T>(Func<Generator, T> test)
    {
        using (Model model = Given.Custom("test_model_slow"))
        using (var generator = new Generator(model, new GeneratorOptions { Metrics = Counted })) return test(generator);
    }

    static void WithSlow(Action<Generator> test)
    {
        WithSlow(generator =>
        {
            test(generator);
            return 0;
        });
    }

    static GenerationCanceledException Soon(Action action)
    {
        var clock = Stopwatch.StartNew();
        var e = Check.Throws<GenerationCanceledException>(action, "a cancelled call");
        Check.That(clock.ElapsedMilliseconds < 15000, "it took " + clock.ElapsedMilliseconds + " ms");
        return e;
    }

    // On a thread of its own, when the session has got so far.
    static void When(Session session, int length, Action action)
    {
        new Thread(() =>
        {
            while (session.Length < length) Thread.Sleep(1);
            action();
        }).Start();
    }

    // Is cancelled when the slow generators have made a dozen steps more. The one who cancels may be the last to use it.
    static CancellationTokenSource InACall()
    {
        var source = new CancellationTokenSource();
        double end = Counted.Value("steps") + 12;
        new Thread(() =>
        {
            while (Counted.Value("steps") < end) Thread.Sleep(1);
            source.Cancel();
        }) { IsBackground = true }.Start();
        return source;
    }

    [Test]
    static void FromAnotherThread()
    {
        WithSlow(generator =>
        {
            CancellationTokenSource source = InACall();
            GenerationCanceledException e = Soon(() => generator.Generate("a", Given.Endless(), source.Token));
            Check.Equal(source.Token, e.CancellationToken, "whose token");
            Check.Equal(Status.Cancelled, e.Status, "status");
            Check.Equal(FinishReason.Cancelled, e.Result.FinishReason, "partial result");
            Check.That(e.Result.Tokens.Count > 0 && e.Result.Text.All(c => c == 'a'), "partial text " + e.Result.Text);
        });
    }

    // How long these take is not known, so they are tried until the token fires while one runs.
    [Test]
    static void LoadsAndQuantisations()
    {
        string quantized = Path.GetTempFileName();
        var work = new Dictionary<string, Action<CancellationToken>>
        {
            { "load", token => Model.Load(Given.StoryPath, new ModelOptions { MapFile = false }, token).Dispose() },
            { "load on a task", token => Model.LoadAsync(Given.StoryPath, null, token).GetAwaiter().GetResult().Dispose() },
            { "quantise", token => Model.Quantize(Given.StoryPath, quantized, "Q4_K_M", token) }
        };
        foreach (var one in work)
        {
            bool within = false;
            for (int delay = 0; delay < 400 && !within; ++delay)
            {
                using (var source = new CancellationTokenSource())
                {
                    new Thread(() =>
                    {
                        Thread.SpinWait(delay * 2000);
                        source.Cancel();
                    }).Start();
                    try
                    {
                        one.Value(source.Token);
                    }
                    catch (OperationCanceledException e)
                    {
                        var canceled = e as GenerationCanceledException;
                        within = canceled != null && !canceled.Message.Contains("before it began");
                        if (within) Check.Equal(source.Token, canceled.CancellationToken, "whose token");
                    }
                    source.Token.WaitHandle.WaitOne();
                }
            }
            Check.That(within, one.Key + " was never cancelled");
        }
        File.Delete(quantized);
    }

    sealed class Told : IProgress<double>
    {
        internal readonly List<double> Shares = new List<double>();

        public void Report(double share)
        {
            lock (Shares) Shares.Add(share);
        }
    }

    // How long these take is not known: tried until something is told on the way.
    [Test]
    static void ProgressIsTold()
    {
        string quantized = Path.GetTempFileName();
        bool onTheWay = false;
        for (int i = 0; i < 200 && !onTheWay; ++i)
        {
            var told = new Told();
            Model.Quantize(Given.StoryPath, quantized, "Q6_K", CancellationToken.None, told);
            var alsoTold = new Told();
            Model.Load(quantized, null, CancellationToken.None, alsoTold).Dispose();
            foreach (Told one in new[] { told, alsoTold })
            {
                Check.Equal(1.0, one.Shares.Last(), "the end");
                Check.That(one.Shares.All(s => s >= 0 && s <= 1), "shares");
                Check.That(one.Shares.SequenceEqual(one.Shares.OrderBy(s => s)), "never back");
            }
            onTheWay = told.Shares.Any(s => s > 0 && s < 1);
        }
        File.Delete(quantized);
        Check.That(onTheWay, "nothing was told on the way");
    }

    [Test]
    static void ASessionGoesOnAfterwards()
    {
        WithSlow(generator =>
        {
            using (Session session = generator.NewSession())
            {
                using (var source = new CancellationTokenSource())
                {
                    When(session, 10, source.Cancel);
                    Soon(() => session.Generate("a", Given.Endless(), source.Token));
                }
                int length = session.Length;
                Check.That(length >= 10, "what was generated stays");
                // Nothing is left of the cancel.
                Check.Equal("aaa", session.Generate("", new Sampling(Given.Endless()) { MaxNewTokens = 3 }).Text, "next call");
            }
        });
    }

    [Test]
    static void InsideALongPrompt()
    {
        using (Model model = Given.Custom("test_model_slow"))
        using (var generator = new Generator(model, new GeneratorOptions { PrefillChunk = 1, Metrics = Counted }))
        using (Session session = generator.NewSession())
        {
            // 20 seconds of prompt.
            CancellationTokenSource source = InACall();
            GenerationCanceledException e = Soon(() => session.Generate(new string('x', 4000), Given.Endless(), source.Token));
            Check.Equal(source.Token, e.CancellationToken, "whose token");
            Check.That(e.Result == null || e.Result.Tokens.Count == 0, "nothing was generated");
        }
    }

    [Test]
    static void AppendingAndScoring()
    {
        using (Model model = Given.Custom("test_model_slow"))
        using (var generator = new Generator(model, new GeneratorOptions { PrefillChunk = 1, Metrics = Counted }))
        using (Session session = generator.NewSession())
        {
            string text = new string('x', 4000);
            CancellationToken token = InACall().Token;
            Check.Equal(token, Soon(() => session.Append(text, token)).CancellationToken, "whose token");
            int length = session.Length;
            Check.That(length > 1 && length < 4000, "what was run stays");
            Soon(() => session.Score(text, InACall().Token));
            int[] tokens = Given.Story.Tokenizer.Encode(text);
            Soon(() => session.Append(tokens, InACall().Token));
            // Nothing is left of it.
            length = session.Length;
            session.Append("xx");
            session.Append(new int[0]);
            Check.That(session.Length > length, "the next call");
            Check.That(session.Score("xx", new CancellationTokenSource().Token).Length > 0, "a token that does not fire");
        }
    }

    [Test]
    static void FromWithinTheLoop()
    {
        WithSlow(generator =>
        {
            using (var source = new CancellationTokenSource())
            using (Session session = generator.NewSession())
            {
                int pieces = 0;
                var asks = new Sampling { MaxNewTokens = 2, LogProbabilities = 3, Gumbel = true, LogitsCallback = default(NativeSymbol) };
                using (TokenStream told = generator.Stream("a", asks))
                {
                    Token first;
                    Check.That(told.Alternatives().Length == 0, "nothing yet");
                    Check.That(told.Next(out first) && told.Alternatives().Length == 3, "alternatives");
                    Check.That(told.Alternatives()[0].LogProbability >= first.LogProbability, "the best first");
                }
                TokenStream stream = session.Stream("a", Given.Endless(), source.Token);
                GenerationCanceledException e = Soon(() =>
                {
                    foreach (Token token in stream)
                    {
                        if (!token.Done && ++pieces == 4) source.Cancel();
                    }
                });
                Check.Equal(4, pieces, "pieces");
                Check.Equal("aaaa", e.Result.Text, "partial result");
                Check.Equal("aaaa", stream.Result.Text, "the stream's result");
                // Leaving the loop is enough.
                foreach (Token token in session.Stream("", Given.Endless()))
                {
                    if (++pieces == 8) break;
                }
                Check.Equal(8, pieces, "pieces");
                Check.Equal("aa", session.Generate("", new Sampling(Given.Endless()) { MaxNewTokens = 2 }).Text, "afterwards");
            }
        });
    }

    [Test]
    static void AStreamFromAnotherThread()
    {
        WithSlow(generator =>
        {
            using (TokenStream stream = generator.Stream("a", Given.Endless()))
            {
                new Thread(() =>
                {
                    Thread.Sleep(60);
                    stream.Cancel();
                }).Start();
                GenerationCanceledException e = Soon(() => stream.Count());
                Check.Equal(CancellationToken.None, e.CancellationToken, "no token fired");
            }
        });
    }

    [Test]
    static void BeforeItBegins()
    {
        WithSlow(generator =>
        {
            var fired = new CancellationToken(true);
            Soon(() => generator.Generate("a", null, fired));
            Soon(() => generator.Stream("a", null, fired));
            Soon(() => generator.Generate(new[] { new Request("a") }, fired));
            Check.That(generator.GenerateAsync("a", null, fired).ContinueWith(task => task.IsCanceled).Result, "task");
        });
    }

    [Test]
    static void Tasks()
    {
        WithSlow(generator =>
        {
            Task<Result> task = generator.GenerateAsync("a", Given.Endless(), InACall().Token);
            task.ContinueWith(ended => { }).Wait();
            Check.That(task.IsCanceled, "the task is cancelled, not failed: " + task.Status);
            int pieces = 0;
            Result result = generator.StreamAsync("a", token => ++pieces, Sampling.Greedy(5)).Result;
            Check.Equal(6, pieces, "pieces, the last one included");
            Check.Equal("aaaaa", result.Text, "text");
            Check.Equal(5, generator.GenerateAsync(new[] { new Request("a", Sampling.Greedy(5)) }).Result[0].Tokens.Count, "batch");
        });
    }

    [Test]
    static void Batches()
    {
        WithSlow(generator =>
        {
            var requests = new List<Request> { new Request("a", Sampling.Greedy(2)), new Request("b", Given.Endless()) };
            GenerationCanceledException e = Soon(() => generator.Generate(requests, InACall().Token));
            Check.Equal(Status.Ok, e.Results[0].Status, "one that had ended");
            Check.Equal(Status.Cancelled, e.Results[1].Status, "one that had not");
            Soon(() => generator.Stream(requests, InACall().Token).Count());
            requests[1].Deadline = TimeSpan.FromMilliseconds(1000);
            Check.Equal(Status.Cancelled, generator.Generate(requests)[1].Status, "deadline");
            BatchToken last = generator.Stream(requests).Last();
            Check.That(last.Request == 1 && last.Error is GenerationCanceledException && last.Result.Tokens.Count > 0,
                       "deadline of a stream");
        });
    }

    [Test]
    static void DisposingOfASessionEndsItsCall()
    {
        WithSlow(generator =>
        {
            Session session = generator.NewSession();
            When(session, 10, session.Dispose);
            Check.That(Soon(() => session.Generate("a", Given.Endless())).Result.Tokens.Count > 0, "partial result");
            Check.Throws<ObjectDisposedException>(() => session.Generate("a"), "afterwards");
        });
    }

    [Test]
    static void DisposingOfAStreamEndsItsCall()
    {
        WithSlow(generator =>
        {
            TokenStream stream = generator.Stream("a", Given.Endless());
            new Thread(() =>
            {
                Thread.Sleep(60);
                stream.Dispose();
            }).Start();
            Token none;
            try
            {
                while (stream.Next(out none)) continue;
                throw new Failed("the stream came to its end");
            }
            catch (GenerationCanceledException)
            {
                // in the call
            }
            catch (ObjectDisposedException)
            {
                // between two calls
            }
            Check.Throws<ObjectDisposedException>(() => stream.Next(out none), "afterwards");
        });
    }
}
