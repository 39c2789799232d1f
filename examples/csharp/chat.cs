// SPDX-License-Identifier: Apache-2.0
// A conversation: a line in, an answer out, until the input ends.
//   mcs chat.cs -r:LibGenerate.dll && mono chat.exe story.gguf
using System;
using LibGenerate;

static class ChatExample
{
    static void Main(string[] args)
    {
        using (Model model = Model.Load(args[0]))
        using (var generator = new Generator(model, new GeneratorOptions { ContextPolicy = "shift" }))
        using (Session session = generator.NewSession())
        {
            var sampling = new Sampling { Temperature = 0.8, TopP = 0.95, Seed = 1, MaxNewTokens = 100 };
            for (string line; (line = Console.ReadLine()) != null;)
            {
                // Of each turn only what is new; the session holds what came before.
                string turn = model.Format(new Chat().Add("user", line));
                session.Append(model.Tokenizer.Encode(turn, EncodeFlags.ParseSpecial));
                foreach (Token token in session.Stream("", sampling))
                {
                    Console.Write(token.Text);
                    Console.Out.Flush();
                }
                Console.WriteLine();
            }
        }
    }
}
