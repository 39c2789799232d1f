// SPDX-License-Identifier: Apache-2.0
// A conversation: a line in, an answer out, until the input ends.
//   mcs chat.cs -r:LibGenerate.dll && mono chat.exe story.gguf
using System;
using LibGenerate;

static class ChatExample
{
    static void Main(string[] args)
    {
        if (args.Length != 1)
        {
            Console.Error.WriteLine("usage: chat MODEL.gguf");
            Environment.Exit(2);
        }
        using (Model model = Model.Load(args[0]))
        using (var generator = new Generator(model))
        using (ChatSession session = generator.NewChatSession())
        {
            var sampling = new Sampling { Temperature = 0.8, TopP = 0.95, Seed = 1, MaxNewTokens = 100 };
            for (string line; (line = Console.ReadLine()) != null;)
            {
                foreach (Token token in session.Stream(line, sampling))
                {
                    Console.Write(token.Text);
                    Console.Out.Flush();
                }
                Console.WriteLine();
            }
        }
    }
}
