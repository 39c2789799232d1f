// SPDX-License-Identifier: Apache-2.0
// What a token costs: the pull stream over a model that does nothing, whose own cost is that of C.
//   mono Cost.exe <folder of the sources> <library of test models>
using System;
using System.Diagnostics;
using System.Linq;
using LibGenerate;

static class Cost
{
    const int Tokens = 20000;

    static void Main(string[] args)
    {
        Model story = Model.Load(args[0] + "/examples/demo_model/story.gguf");
        var config = new CustomModelConfig { VocabularySize = 4096, MaxSequenceLength = 1 << 20 };
        using (Model model = Model.Custom(new NativeSymbol(args[1], "test_model_nothing"), config, story.Tokenizer))
        using (var generator = new Generator(model))
        {
            var sampling = new Sampling { Temperature = 0, IgnoreEnd = true, MaxNewTokens = Tokens };
            var pulled = new double[7];
            var whole = new double[7];
            for (int round = 0; round < pulled.Length; ++round)
            {
                long characters = 0;
                using (Session session = generator.NewSession())
                {
                    var clock = Stopwatch.StartNew();
                    foreach (Token token in session.Stream("a", sampling)) characters += token.Text.Length;
                    pulled[round] = clock.Elapsed.TotalMilliseconds * 1e6 / Tokens;
                }
                using (Session session = generator.NewSession())
                {
                    // The same without a piece for each token.
                    var clock = Stopwatch.StartNew();
                    session.Generate("a", sampling);
                    whole[round] = clock.Elapsed.TotalMilliseconds * 1e6 / Tokens;
                }
                if (characters != Tokens) throw new Exception("characters: " + characters);
            }
            Array.Sort(pulled);
            Array.Sort(whole);
            Console.WriteLine("ns per token, median of 7: {0:F0} pulled (least {1:F0}), {2:F0} in one call (least {3:F0})",
                              pulled[3], pulled[0], whole[3], whole[0]);
        }
    }
}
