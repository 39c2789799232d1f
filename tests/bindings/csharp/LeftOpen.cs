// SPDX-License-Identifier: Apache-2.0
// Ends with everything left open and calls running: exit code 0, no output.
//   mono LeftOpen.exe <folder of the sources> <library of test models> <how: return, exit or thread>
using System;
using System.Collections.Generic;
using System.Threading;
using LibGenerate;

static class LeftOpen
{
    static readonly List<object> kept = new List<object>();

    static int Main(string[] args)
    {
        Model story = Model.Load(args[0] + "/examples/demo_model/story.gguf");
        var config = new CustomModelConfig { VocabularySize = 4096, MaxSequenceLength = 1 << 20 };
        Model slow = Model.Custom(new NativeSymbol(args[1], "test_model_slow"), config, story.Tokenizer);
        var metrics = new MetricsCollector();
        var endless = new Sampling { Temperature = 0, IgnoreEnd = true, MaxNewTokens = 1000000 };
        foreach (Model model in new[] { story, slow })
        {
            var generator = new Generator(model, new GeneratorOptions { Metrics = metrics });
            Session session = generator.NewSession();
            TokenStream stream = session.Stream("Once", endless, new CancellationTokenSource().Token);
            Token token;
            stream.Next(out token);
            KvCache cache = KvCache.Q4(2, 64);
            cache.Update(0, new float[128], new float[128], 1, 1, 128);
            var pool = new KvPool(1, 2, 4, 1);
            kept.AddRange(new object[] { generator, session, stream, cache, pool, pool.Allocate(), new Tracer() });
            // Some are garbage, and some in use.
            generator.NewSession();
            generator.Stream("a", endless);
            for (int i = 0; i < 2; ++i)
            {
                new Thread(() => generator.Generate("a", endless)) { IsBackground = true }.Start();
                generator.GenerateAsync("a", endless);
            }
        }
        Thread.Sleep(50);
        GC.Collect();
        if (args[2] == "exit") Environment.Exit(0);
        if (args[2] == "thread")
        {
            new Thread(() =>
            {
                Thread.Sleep(20);
                Environment.Exit(0);
            }).Start();
            foreach (Token piece in ((Generator)kept[7]).Stream("a", endless)) continue;
        }
        return 0;
    }
}
