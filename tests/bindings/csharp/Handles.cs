// SPDX-License-Identifier: Apache-2.0
// Closing: twice, at once, in any order, while another thread is in a call; many sessions at once; memory.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using LibGenerate;

static class Handles
{
    static void Parallel(int threads, Action<int> work)
    {
        var failures = new List<Exception>();
        var all = new List<Thread>();
        for (int i = 0; i < threads; ++i)
        {
            int index = i;
            var thread = new Thread(() =>
            {
                try
                {
                    work(index);
                }
                catch (Exception e)
                {
                    lock (failures) failures.Add(e);
                }
            });
            all.Add(thread);
            thread.Start();
        }
        foreach (Thread thread in all) thread.Join();
        if (failures.Count > 0) throw new Failed(failures[0].ToString());
    }

    [Test]
    static void UseAfterClose()
    {
        Model model = Model.Load(Given.StoryPath);
        var generator = new Generator(model);
        Session session = generator.NewSession();
        TokenStream stream = session.Stream("Once", Sampling.Greedy(3));
        KvCache cache = KvCache.Float32(1, 8);
        var tracer = new Tracer();
        var pool = new WorkerPool(1);
        foreach (NativeObject item in new NativeObject[] { stream, session, generator, model, cache, tracer, pool })
        {
            item.Dispose();
            item.Dispose();
            Check.That(item.IsDisposed, "disposed of");
        }
        Token token;
        Check.Throws<ObjectDisposedException>(() => stream.Next(out token), "stream");
        Check.Throws<ObjectDisposedException>(() => session.Generate("a"), "session");
        Check.Throws<ObjectDisposedException>(() => session.Length.ToString(), "session's length");
        Check.Throws<ObjectDisposedException>(() => session.Cache.Length.ToString(), "session's cache");
        Check.Throws<ObjectDisposedException>(() => session.Cancel(), "cancel");
        Check.Throws<ObjectDisposedException>(() => generator.NewSession(), "generator");
        Check.Throws<ObjectDisposedException>(() => new Generator(model), "model");
        Check.Throws<ObjectDisposedException>(() => model.Layers.ToString(), "model's sizes");
        Check.Throws<ObjectDisposedException>(() => model.Tokenizer.Encode("a"), "model's tokenizer");
        Check.Throws<ObjectDisposedException>(() => cache.Reset(), "cache");
        Check.Throws<ObjectDisposedException>(() => tracer.Count.ToString(), "tracer");
        Check.Throws<ObjectDisposedException>(() => Model.Load(Given.StoryPath, new ModelOptions { Pool = pool }), "pool");
    }

    [Test]
    static void AnyOrder()
    {
        Model model = Model.Load(Given.StoryPath);
        var generator = new Generator(model);
        Session session = generator.NewSession();
        model.Dispose();
        generator.Dispose();
        Check.Equal(5, session.Generate("Once", Sampling.Greedy(5)).Tokens.Count, "a session that is left over");
        TokenStream stream = session.Stream("", Sampling.Greedy(5));
        // Disposing of the session cancels the stream, which still has its end.
        session.Dispose();
        Check.Throws<GenerationCanceledException>(() => stream.Count(), "a stream that is left over");
    }

    [Test]
    static void TwoThreadsCloseAtOnce()
    {
        using (var generator = new Generator(Given.Story))
        {
            for (int round = 0; round < 200; ++round)
            {
                Session session = generator.NewSession();
                TokenStream stream = session.Stream("Once", Sampling.Greedy(3));
                using (var start = new Barrier(4))
                {
                    Parallel(4, index =>
                    {
                        start.SignalAndWait();
                        if (index % 2 == 0) session.Dispose();
                        else stream.Dispose();
                    });
                }
            }
        }
    }

    [Test]
    static void CloseWhileAnotherGenerates()
    {
        using (Model model = Given.Custom("test_model_nothing"))
        {
            for (int round = 0; round < 50; ++round)
            {
                var generator = new Generator(model);
                Session session = generator.NewSession();
                using (var start = new Barrier(3))
                {
                    Parallel(3, index =>
                    {
                        start.SignalAndWait();
                        if (index == 0)
                        {
                            Thread.Sleep(round % 5);
                            session.Dispose();
                            generator.Dispose();
                            return;
                        }
                        try
                        {
                            for (;;) session.Generate("a", Sampling.Greedy(100));
                        }
                        catch (ObjectDisposedException)
                        {
                        }
                        catch (GenerationCanceledException)
                        {
                        }
                        catch (GenerateException e) when (e.Status == Status.Busy)
                        {
                        }
                    });
                }
            }
        }
    }

    [Test]
    static void ClosedAtOnceForLaterCalls()
    {
        using (Model model = Given.Custom("test_model_slow"))
        {
            var counted = new MetricsCollector();
            var generator = new Generator(model, new GeneratorOptions { Metrics = counted });
            Result result = null;
            var thread = new Thread(() =>
            {
                result = generator.Generate("a", new Sampling(Given.Endless()) { MaxNewTokens = 400 });
            });
            thread.Start();
            while (counted.Value("steps") < 3) Thread.Sleep(1);
            generator.Dispose();
            // The call still holds the native generator.
            Check.Throws<ObjectDisposedException>(() => generator.NewSession(), "a later call");
            Check.That(result == null, "the call runs");
            thread.Join();
            Check.Equal(400, result.Tokens.Count, "a call that had begun");
        }
    }

    [Test]
    static void SixtyFourSessions()
    {
        using (var generator = new Generator(Given.Story))
        {
            Func<int, Sampling> sampling = i => new Sampling { Temperature = 0.9, Seed = (ulong)i, MaxNewTokens = 24 };
            Func<int, string> prompt = i => "Once upon a time there were " + i;
            var alone = new Result[64];
            for (int i = 0; i < 64; ++i) alone[i] = generator.Generate(prompt(i), sampling(i));
            Parallel(64, i =>
            {
                using (Session session = generator.NewSession())
                {
                    if (i % 2 == 0)
                    {
                        Check.Same(alone[i].Tokens, session.Generate(prompt(i), sampling(i)).Tokens, "session " + i);
                        return;
                    }
                    TokenStream stream = session.Stream(prompt(i), sampling(i));
                    Check.Equal(alone[i].Text, string.Concat(stream.Select(token => token.Text)), "stream " + i);
                }
            });
        }
    }

    [Test]
    static void ASecondCallIsBusy()
    {
        using (Model model = Given.Custom("test_model_slow"))
        using (var generator = new Generator(model))
        using (Session session = generator.NewSession())
        using (TokenStream stream = session.Stream("a", Given.Endless()))
        {
            Token token;
            stream.Next(out token);
            Check.Fails(Status.Busy, () => session.Append("a"), "a session with a stream");
            Check.That(session.Length > 0 && session.Progress == 1, "what is free of that");
        }
    }

    [Test]
    static void NoGarbageButTheText()
    {
        using (Model model = Given.Custom("test_model_nothing"))
        using (var generator = new Generator(model))
        using (TokenStream stream = generator.Stream("a", Given.Endless()))
        {
            Token token;
            for (int i = 0; i < 1000; ++i) stream.Next(out token);
            const int n = 20000;
            long before = GC.GetAllocatedBytesForCurrentThread();
            for (int i = 0; i < n; ++i) stream.Next(out token);
            double each = (double)(GC.GetAllocatedBytesForCurrentThread() - before) / n;
            // A text of one character takes 24 bytes, 32 where objects are so aligned.
            Check.That(each > 20 && each < 33, "bytes for each token: " + each);
        }
    }

    static long Resident()
    {
        foreach (string line in File.ReadLines("/proc/self/status"))
        {
            if (line.StartsWith("VmRSS:")) return long.Parse(line.Split(new[] { ' ', '\t' }, StringSplitOptions.RemoveEmptyEntries)[1]);
        }
        return 0;
    }

    static void Collect()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        GC.Collect();
    }

    // Made in a frame of its own: nothing of it stays on the stack.
    static void Make(Generator generator, int n, bool dispose)
    {
        for (int i = 0; i < n; ++i)
        {
            Session session = generator.NewSession();
            session.Append(new[] { 1, 912 });
            KvCache cache = KvCache.Q4(2, 64);
            cache.Update(0, new float[128], new float[128], 1, 1, 128);
            if (dispose)
            {
                cache.Dispose();
                session.Dispose();
            }
        }
    }

    [Test]
    static void TenThousandSessionsAndCaches()
    {
        using (Model model = Given.Custom("test_model_nothing"))
        using (var generator = new Generator(model))
        {
            foreach (bool dispose in new[] { true, false })
            {
                // The runtime may take memory of its own at some moment; a leak is there in each series.
                double growth = 1;
                for (int series = 0; series < 3 && growth > 0.02; ++series) growth = Growth(generator, dispose);
                Check.That(growth <= 0.02, "memory grew by " + growth.ToString("P1"));
            }
        }
    }

    // Of 15,000 sessions and caches, the first 5,000 of them the warm-up.
    static double Growth(Generator generator, bool dispose)
    {
        var curve = new List<long>();
        for (int round = 0; round < 15; ++round)
        {
            for (int part = 0; part < 10; ++part)
            {
                Make(generator, 100, dispose);
                Collect();
            }
            if (round >= 4) curve.Add(Resident());
        }
        Console.WriteLine("       resident KiB, {0}: {1}", dispose ? "disposed of" : "dropped", string.Join(" ", curve));
        return (double)curve.Last() / curve.First() - 1;
    }

    [Test]
    static void CollectingWhileStreaming()
    {
        using (Model model = Given.Custom("test_model_script"))
        using (var generator = new Generator(model))
        {
            bool stop = false;
            var collector = new Thread(() =>
            {
                while (!Volatile.Read(ref stop))
                {
                    Collect();
                    Thread.Sleep(1);
                }
            });
            collector.Start();
            try
            {
                Parallel(4, index =>
                {
                    for (int round = 0; round < 25; ++round)
                    {
                        // Dropped without Dispose, half of them in the middle.
                        TokenStream stream = generator.Stream("a", new Sampling(Given.Endless()) { MaxNewTokens = 60 });
                        Token token;
                        string text = "";
                        int limit = round % 2 == 0 ? 1000 : 30;
                        while (limit-- > 0 && stream.Next(out token)) text += token.Text;
                        Check.That(text.StartsWith("Grüße, 世界! 🎉 Grüße"), "text: " + text);
                    }
                });
            }
            finally
            {
                Volatile.Write(ref stop, true);
                collector.Join();
            }
        }
    }
}
