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
        using (var generator = new Generator(model, new GeneratorOptions { ContextPolicy = "shift" }))
        using (Session session = generator.NewSession())
        {
            var sampling = new Sampling { Temperature = 0.8, TopP = 0.95, Seed = 1, MaxNewTokens = 100 };
            var chat = new Chat();
            string held = "";  // the form of what the session holds
            for (string line; (line = Console.ReadLine()) != null;)
            {
                string all = model.Format(chat.Add("user", line));
                EncodeFlags begin = held == "" ? EncodeFlags.AddBegin : EncodeFlags.None;
                session.Append(model.Tokenizer.Encode(all.Substring(held.Length), begin | EncodeFlags.ParseSpecial));
                string answer = "";
                FinishReason reason = FinishReason.None;
                foreach (Token token in session.Stream("", sampling))
                {
                    Console.Write(token.Text);
                    Console.Out.Flush();
                    answer += token.Text;
                    if (token.Done) reason = token.FinishReason;
                }
                // The form brings the end of a turn itself, whether the model or the limit ended this one.
                if (reason == FinishReason.StopToken) session.Truncate(session.Length - 1);
                Console.WriteLine();
                held = all + answer;
                chat.Add("assistant", answer);
            }
        }
    }
}
