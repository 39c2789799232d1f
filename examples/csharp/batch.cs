// SPDX-License-Identifier: Apache-2.0
// Many prompts at once: pieces as they come, then the whole texts. They share the model's forward passes.
//   mcs batch.cs -r:LibGenerate.dll -r:System.Core.dll && mono batch.exe story.gguf "Once upon a time" "The dog"
using System;
using System.Collections.Generic;
using System.Linq;
using LibGenerate;

static class BatchExample
{
    static void Main(string[] args)
    {
        if (args.Length < 2)
        {
            Console.Error.WriteLine("usage: batch MODEL.gguf PROMPT...");
            Environment.Exit(2);
        }
        string[] prompts = args.Skip(1).ToArray();
        List<Request> requests = prompts.Select(prompt => new Request(prompt, Sampling.Greedy(40))).ToList();
        using (Model model = Model.Load(args[0]))
        using (var generator = new Generator(model))
        {
            // One thread drives all streams.
            var pieces = new int[prompts.Length];
            foreach (BatchToken piece in generator.Stream(requests))
            {
                ++pieces[piece.Request];
                if (piece.Error != null) Console.WriteLine("{0} failed: {1}", piece.Request, piece.Error.Message);
            }
            Console.WriteLine("pieces: {0}", string.Join(" ", pieces));

            // The same in one call, where only the results matter.
            IReadOnlyList<Result> results = generator.Generate(requests);
            for (int i = 0; i < prompts.Length; ++i)
            {
                Console.WriteLine("{0}: {1}{2} [{3}]", i, prompts[i], results[i].Text, results[i].FinishReason);
            }
        }
    }
}
