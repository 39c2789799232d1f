// SPDX-License-Identifier: Apache-2.0
// Grammars constrain texts, matchers tell what may come next, and both fail and end as they should. What is expected comes
// from .NET's Regex and a list of all texts.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using LibGenerate;

static class Grammars
{
    const string Sentence = @"(The|A) (cat|dog|old hen) (ran|sat)\.";
    static readonly Regex whole = new Regex("^(?:" + Sentence + @")\z");
    static readonly List<byte[]> all =
        (from article in new[] { "The", "A" }
         from who in new[] { "cat", "dog", "old hen" }
         from does in new[] { "ran", "sat" }
         select Bytes(article + " " + who + " " + does + ".")).ToList();

    static byte[] Bytes(string text)
    {
        return Encoding.UTF8.GetBytes(text);
    }

    // Whether a text and more behind it can become one of them.
    static bool Begins(string text, params byte[] more)
    {
        byte[] start = Bytes(text).Concat(more).ToArray();
        return all.Any(sentence => sentence.Take(start.Length).SequenceEqual(start));
    }

    [Test]
    static void TextsAreMembers()
    {
        using (var generator = new Generator(Given.Story))
        using (Grammar grammar = Grammar.Regex(Sentence))
        {
            Check.That(grammar.Describe().Contains("\"kind\":\"regex\""), grammar.Describe());
            var limited = new Sampling { Temperature = 3, MaxNewTokens = 40, Grammar = grammar };
            var seen = new HashSet<string>();
            for (ulong seed = 0; seed < 12; ++seed)
            {
                Result result = generator.Generate("Once upon a time", new Sampling(limited) { Seed = seed });
                Check.That(whole.IsMatch(result.Text), result.Text);
                Check.That(result.GrammarComplete == true, "a member");
                Check.That(result.FinishReason == FinishReason.GrammarComplete ||
                               result.FinishReason == FinishReason.StopToken, result.FinishReason.ToString());
                seen.Add(result.Text);
            }
            Check.That(seen.Count > 1, "one text whatever the seed");
            Result unbound = generator.Generate("Once upon a time", Sampling.Greedy(8));
            Check.That(!whole.IsMatch(unbound.Text) && unbound.GrammarComplete == null, "no grammar");

            var failures = new List<string>();
            var threads = Enumerable.Range(0, 8).Select(index => new Thread(() =>
            {
                string text = generator.Generate("The", new Sampling(limited) { Seed = (ulong)index }).Text;
                if (!whole.IsMatch(text)) lock (failures) failures.Add(text);
            })).ToList();
            threads.ForEach(thread => thread.Start());
            threads.ForEach(thread => thread.Join());
            Check.Equal(0, failures.Count, "threads share a grammar");
        }
    }

    static Result Greedy(Generator generator, string prompt, Grammar grammar)
    {
        return generator.Generate(prompt, new Sampling(Sampling.Greedy(40)) { Grammar = grammar });
    }

    [Test]
    static void Notations()
    {
        using (var generator = new Generator(Given.Story))
        using (Grammar choice = Grammar.Gbnf("root ::= answer \"!\"\nanswer ::= \"yes\" | \"no\""))
        using (Grammar tokens = Grammar.Gbnf("root ::= <[300]> <[301]>"))
        using (Grammar lacking = Grammar.Gbnf("root ::= <[99999]>"))
        using (Grammar json = Grammar.AnyJson())
        {
            string text = Greedy(generator, "Well?", choice).Text;
            Check.That(text == "yes!" || text == "no!", text);
            Check.Same(new[] { 300, 301 }, Greedy(generator, "a", tokens).Tokens, "tokens");
            Check.Fails(Status.Grammar, () => Greedy(generator, "a", lacking), "a token that the model lacks");
            using (var matcher = new GrammarMatcher(json, Given.Story.Tokenizer))
            {
                matcher.AcceptText("{\"a\": [1, 2");
                Check.Fails(Status.Grammar, () => matcher.AcceptText("}"), "an open array");
                matcher.AcceptText("]}");
                Check.That(matcher.IsComplete && matcher.IsFinished, "nothing follows");
            }
        }
    }

    [Test]
    static void TextsGoOnFromAMatcher()
    {
        using (var generator = new Generator(Given.Story))
        using (Grammar grammar = Grammar.Regex(Sentence))
        using (var matcher = new GrammarMatcher(grammar, Given.Story.Tokenizer))
        {
            matcher.AcceptText("The old");
            var limited = new Sampling(Sampling.Greedy(20)) { GrammarMatcher = matcher };
            for (int i = 0; i < 2; ++i)
            {
                string text = generator.Generate("The old", limited).Text;
                Check.That(text == " hen ran." || text == " hen sat.", text);
            }
        }
    }

    static void Expect(GrammarMatcher matcher, string text)
    {
        Tokenizer tokenizer = Given.Story.Tokenizer;
        BitArray mask = matcher.Mask();
        Check.Equal(tokenizer.VocabularySize, mask.Length, "tokens");
        for (int id = 0; id < mask.Length; ++id)
        {
            byte[] piece = tokenizer.Piece(id);
            Check.Equal(piece.Length > 0 && Begins(text, piece), mask[id], "behind '" + text + "' token " + id);
        }
        BitArray valid = matcher.ValidBytes();
        Check.Equal(256, valid.Length, "bytes");
        for (int b = 0; b < 256; ++b) Check.Equal(Begins(text, (byte)b), valid[b], "behind '" + text + "' byte " + b);
    }

    [Test]
    static void Matchers()
    {
        Tokenizer tokenizer = Given.Story.Tokenizer;
        int end = tokenizer.Special(SpecialToken.End);
        using (Grammar grammar = Grammar.Regex(Sentence))
        using (var matcher = new GrammarMatcher(grammar, tokenizer))
        {
            Expect(matcher, "");
            matcher.AcceptBytes(Bytes("The ca"));
            matcher.AcceptBytes(new byte[0]);
            Expect(matcher, "The ca");
            using (GrammarMatcher fork = matcher.Fork())
            {
                matcher.AcceptText("t");
                foreach (int id in tokenizer.Encode(" ran", EncodeFlags.Continue)) matcher.AcceptToken(id);
                Expect(matcher, "The cat ran");
                Expect(fork, "The ca");
            }
            Check.Fails(Status.Grammar, () => matcher.AcceptText("?"), "another text");
            Check.Fails(Status.Grammar, () => matcher.AcceptToken(end), "the end too early");
            Check.That(!matcher.IsComplete && !matcher.IsFinished, "not yet");
            Check.Equal(1L, matcher.MinTokens, "a full stop");
            matcher.AcceptText(".");
            Check.That(matcher.IsComplete && matcher.IsFinished && matcher.Mask()[end], "the end");
            Check.Equal(0L, matcher.MinTokens, "nothing more");
            matcher.AcceptToken(end);
            matcher.Rollback(2);
            Expect(matcher, "The cat ran");
            Check.Fails(Status.OutOfRange, () => matcher.Rollback(100), "more than there were");
            Check.Throws<ArgumentOutOfRangeException>(() => matcher.Rollback(-1), "less than none");
            Check.Fails(Status.OutOfRange, () => matcher.AcceptToken(-1), "no token");
            Check.Fails(Status.OutOfRange, () => matcher.AcceptToken(1 << 20), "no token");
            matcher.Reset();
            Expect(matcher, "");
        }
        using (Grammar tokens = Grammar.Gbnf("root ::= <[300]> <[301]> [a-z]+"))
        using (var matcher = new GrammarMatcher(tokens, tokenizer))
        {
            Check.Same(new[] { 300, 301 }, matcher.Forced(), "tokens that must come");
            foreach (int id in matcher.Forced()) matcher.AcceptToken(id);
            Check.Equal(0, matcher.Forced().Length, "letters are many");
        }
    }

    [Test]
    static void ListsOfStrings()
    {
        using (Grammar grammar = Grammar.Regex(Sentence))
        {
            var strings = new[] { "cat", "", " cat", " dragon", " o", " \0", " old hen sat.", "ü" };
            BitArray possible = grammar.TokenMask("The", strings);
            Check.Equal(strings.Length, possible.Length, "strings");
            for (int i = 0; i < strings.Length; ++i)
            {
                Check.Equal(strings[i] != "" && Begins("The", Bytes(strings[i])), possible[i], strings[i]);
            }
            Check.Equal(0, grammar.TokenMask("", new string[0]).Length, "none");
            Check.That(!grammar.TokenMask("", new[] { "" })[0], "an empty one");
            byte[][] many = Enumerable.Range(0, 100).Select(i => Bytes(i % 2 == 1 ? "do" : "x")).ToArray();
            possible = grammar.TokenMask(Bytes("A "), many);
            for (int i = 0; i < 100; ++i) Check.Equal(i % 2 == 1, possible[i], "string " + i);
            Check.Fails(Status.Grammar, () => grammar.TokenMask("They", strings), "no beginning of a member");
            Check.Throws<ArgumentException>(() => grammar.TokenMask("", new string[] { null }), "null");
        }
    }

    public enum Colour { Red, Green }

    public sealed class Point
    {
        public int X { get; set; }
        public byte Y { get; set; }
        public bool? Known { get; set; }
    }

    public sealed class Shape
    {
        public string Name { get; set; }
        public Colour Colour { get; set; }
        public List<Point> Points { get; set; }
        public Shape[] Inner { get; set; }
        public Dictionary<string, double> Sizes { get; set; }
        public string Size { get { return Name; } }
    }

    sealed class Wrong
    {
        public Action Act { get; set; }
    }

    static bool Accepts(Grammar grammar, string text)
    {
        using (var matcher = new GrammarMatcher(grammar, Given.Story.Tokenizer))
        {
            try
            {
                matcher.AcceptText(text);
            }
            catch (GenerateException)
            {
                return false;
            }
            return matcher.IsComplete;
        }
    }

    // What the schema of a class allows fills the class.
    [Test]
    static void SchemasOfClasses()
    {
        var any = new GrammarOptions().Set("json_style", "any");
        using (Grammar grammar = Grammar.JsonSchema(Schema.Of<Shape>(), any))
        {
            foreach (string text in new[] {
                "{'Name':'','Colour':'Red','Points':[{'X':-2147483648,'Y':255,'Known':null}],'Inner':[],'Sizes':{'a':1.5}}",
                "{'Sizes':{},'Inner':[{'Name':'','Colour':'Green','Points':[],'Inner':[],'Sizes':{}}],'Points':[],'Colour':'Green','Name':'x'}" })
            {
                Check.That(Accepts(grammar, text.Replace('\'', '"')), text);
            }
            foreach (string text in new[] { "{}", "{'Name':'','Colour':'Blue','Points':[],'Inner':[],'Sizes':{}}",
                "{'Name':'','Colour':'Red','Points':[{'X':1,'Y':256}],'Inner':[],'Sizes':{}}",
                "{'Name':'','Colour':'Red','Points':[{'X':1.0,'Y':1}],'Inner':[],'Sizes':{}}",
                "{'Name':'','Colour':'Red','Points':[],'Inner':[],'Sizes':{},'Size':''}" })
            {
                Check.That(!Accepts(grammar, text.Replace('\'', '"')), text);
            }
        }
        var e = Check.Throws<ArgumentException>(() => Schema.Of<Wrong>(), "a delegate");
        Check.That(e.Message.Contains("Wrong.Act"), e.Message);
        using (var generator = new Generator(Given.Story))
        using (Grammar grammar = Grammar.JsonSchema(Schema.Of<Point>()))
        {
            for (ulong seed = 0; seed < 4; ++seed)
            {
                var sampling = new Sampling
                {
                    Grammar = grammar, Seed = seed, Temperature = 2, MaxNewTokens = 80
                };
                string text = generator.Generate("Once", sampling).Text;
                Json read = Json.Parse(text);
                var point = new Point { X = read["X"].Integer, Y = checked((byte)read["Y"].Integer) };
                Check.Equal(read["Y"].Integer, (int)point.Y, text);
                Check.That(text.IndexOf("\"X\"") < text.IndexOf("\"Y\""), text);
            }
        }
        var with = new GrammarOptions().AddSchema("urn:point", Schema.Of<Point>());
        string list = "{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"items\":{\"$ref\":\"urn:point\"}}";
        using (Grammar grammar = Grammar.JsonSchema(list, with))
        {
            Check.That(Accepts(grammar, "[{\"X\":1,\"Y\":2}]") && !Accepts(grammar, "[1]"), "a document");
        }
    }

    [Test]
    static void ErrorsNameThePlace()
    {
        var e = Check.Throws<GenerateException>(() => Grammar.Gbnf("root ::= a\na ::= (\"b\""), "a parenthesis");
        Check.That(e.Status == Status.Grammar && e.Message.Contains("line 2, column"), e.Message);
        e = Check.Throws<GenerateException>(() => Grammar.Regex("ab("), "a parenthesis");
        Check.That(e.Status == Status.Grammar && e.Message.Contains("column 3"), e.Message);
        Check.Throws<ArgumentNullException>(() => Grammar.Gbnf(null), "null");
        Check.Throws<ArgumentNullException>(() => Grammar.Lark(null), "null");
        using (Grammar sums = Grammar.Lark("start: N (\"+\" N)*\nN: /[0-9]+/\n%ignore \" \""))
        using (var matcher = new GrammarMatcher(sums, Given.Story.Tokenizer))
        {
            matcher.AcceptText("12 + 3");
            Check.Throws<GenerateException>(() => matcher.AcceptText("x"), "a letter");
        }
        Check.Throws<ArgumentNullException>(() => new GrammarMatcher(null, null), "null");
        Check.Fails(Status.InvalidArgument, () => Grammar.AnyJson(new GrammarOptions().Set("colour", "red")), "no option");
        Check.Fails(Status.Grammar, () => Grammar.AnyJson(new GrammarOptions().Set("max_edges", "3")), "a limit");
        using (Grammar tags = Grammar.Tags("{\"tags\":[{\"begin\":\"<\u00e9>\",\"regex\":\"[0-9]+\",\"end\":\".\"}]}"))
        using (var matcher = new GrammarMatcher(tags, Given.Story.Tokenizer))
        {
            matcher.AcceptText("free <\u00e9>12");
            Check.Fails(Status.Grammar, () => matcher.AcceptText("x"), "a number");
            matcher.AcceptText(". free");
        }
        Check.Throws<ArgumentNullException>(() => Grammar.Tags(null), "null");
        var search = new GrammarOptions { RegexSearch = true };
        Check.That(search.Describe().Contains("\"value\":\"search\""), search.Describe());
        using (Grammar all = Grammar.Regex("b", new GrammarOptions { RegexSearch = false }))
        using (Grammar part = Grammar.Regex("b", search))
        {
            Check.That(!all.TokenMask("", new[] { "a" })[0] && part.TokenMask("", new[] { "a" })[0], "search");
        }
    }

    [Test]
    static void UseAfterClose()
    {
        Grammar grammar = Grammar.Regex(Sentence);
        var matcher = new GrammarMatcher(grammar, Given.Story.Tokenizer);
        matcher.AcceptText("A ");
        grammar.Dispose();
        grammar.Dispose();
        matcher.AcceptText("dog");
        GrammarMatcher fork = matcher.Fork();
        matcher.Dispose();
        matcher.Dispose();
        fork.AcceptText(" sat.");
        Check.That(fork.IsFinished && grammar.IsDisposed && matcher.IsDisposed, "the fork goes on");
        fork.Dispose();
        Check.Throws<ObjectDisposedException>(() => grammar.Describe(), "describe");
        Check.Throws<ObjectDisposedException>(() => new GrammarMatcher(grammar, Given.Story.Tokenizer), "matcher");
        Check.Throws<ObjectDisposedException>(() => grammar.TokenMask("", new string[0]), "strings");
        Check.Throws<ObjectDisposedException>(() => matcher.AcceptToken(1), "token");
        Check.Throws<ObjectDisposedException>(() => matcher.AcceptText(" "), "text");
        Check.Throws<ObjectDisposedException>(() => matcher.Mask(), "mask");
        Check.Throws<ObjectDisposedException>(() => matcher.ValidBytes(), "bytes");
        Check.Throws<ObjectDisposedException>(() => matcher.Rollback(0), "rollback");
        Check.Throws<ObjectDisposedException>(() => matcher.Fork(), "fork");
        Check.Throws<ObjectDisposedException>(() => matcher.Forced(), "forced");
        Check.Throws<ObjectDisposedException>(() => matcher.IsComplete.ToString(), "complete");
        using (var generator = new Generator(Given.Story))
        {
            Check.Throws<ObjectDisposedException>(() => Greedy(generator, "a", grammar), "generate");
            var from = new Sampling { GrammarMatcher = matcher };
            Check.Throws<ObjectDisposedException>(() => generator.Generate("a", from), "go on");
        }
    }
}
