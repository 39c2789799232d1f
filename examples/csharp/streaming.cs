// SPDX-License-Identifier: Apache-2.0
// Text as it comes, until it ends, Ctrl-C is pressed or so many seconds have passed.
//   mcs streaming.cs -r:LibGenerate.dll && mono streaming.exe story.gguf "Once upon a time" 10
using System;
using System.Threading;
using LibGenerate;

static class StreamingExample
{
    static void Main(string[] args)
    {
        if (args.Length != 3)
        {
            Console.Error.WriteLine("usage: streaming MODEL.gguf PROMPT SECONDS");
            Environment.Exit(2);
        }
        TimeSpan patience = TimeSpan.FromSeconds(double.Parse(args[2]));
        using (Model model = Model.Load(args[0]))
        using (var generator = new Generator(model, new GeneratorOptions { ContextPolicy = "shift" }))
        using (var cancel = new CancellationTokenSource(patience))
        {
            Console.CancelKeyPress += (sender, e) =>
            {
                e.Cancel = true;
                cancel.Cancel();
            };
            var sampling = new Sampling { Temperature = 0, IgnoreEnd = true, MaxNewTokens = 1000000 };
            Console.Write(args[1]);
            try
            {
                foreach (Token token in generator.Stream(args[1], sampling, cancel.Token))
                {
                    Console.Write(token.Text);
                    Console.Out.Flush();
                }
            }
            catch (GenerationCanceledException e)
            {
                Console.WriteLine();
                Console.WriteLine("[cancelled after {0} tokens]", e.Result.Tokens.Count);
            }
        }
    }
}
