// SPDX-License-Identifier: Apache-2.0
// The table of expected results, tests/bindings/scenarios.json: what C gives, C# gives.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;
using LibGenerate;

static class Scenarios
{
    static readonly Json table = Json.Parse(File.ReadAllText(Path.Combine(Given.Source, "tests/bindings/scenarios.json")));

    static Sampling SamplingOf(Json json)
    {
        var sampling = new Sampling();
        foreach (KeyValuePair<string, Json> member in json.Members) sampling.Set(member.Key, member.Value.Text);
        return sampling;
    }

    // The same through properties, where there is one.
    static Sampling ByProperties(Json json)
    {
        var sampling = new Sampling();
        foreach (KeyValuePair<string, Json> member in json.Members)
        {
            string value = member.Value.Text;
            switch (member.Key)
            {
                case "temperature": sampling.Temperature = double.Parse(value); break;
                case "top_k": sampling.TopK = int.Parse(value); break;
                case "top_p": sampling.TopP = double.Parse(value); break;
                case "min_p": sampling.MinP = double.Parse(value); break;
                case "seed": sampling.Seed = ulong.Parse(value); break;
                case "max_new_tokens": sampling.MaxNewTokens = int.Parse(value); break;
                case "repetition_penalty": sampling.RepetitionPenalty = double.Parse(value); break;
                case "frequency_penalty": sampling.FrequencyPenalty = double.Parse(value); break;
                case "presence_penalty": sampling.PresencePenalty = double.Parse(value); break;
                case "ignore_eos": sampling.IgnoreEnd = value == "1"; break;
                case "stop_string": sampling.StopStrings.Add(value); break;
                default: throw new Failed("no property for " + member.Key);
            }
        }
        return new Sampling(sampling);
    }

    static string Words(FinishReason reason)
    {
        return string.Concat(reason.ToString().Select((c, i) => (i > 0 && char.IsUpper(c) ? "_" : "") + char.ToLower(c)));
    }

    [Test]
    static void Texts()
    {
        foreach (Json text in table["texts"].Items)
        {
            string name = text["name"].Text;
            var options = new GeneratorOptions();
            foreach (KeyValuePair<string, Json> member in text["options"].Members) options.Set(member.Key, member.Value.Text);
            using (var generator = new Generator(Given.Story, options))
            {
                Result result = generator.Generate(text["prompt"].Text, SamplingOf(text["sampling"]));
                Check.Same(text["tokens"].Integers, result.Tokens, name);
                Check.Equal(text["text"].Text, result.Text, name);
                Check.Equal(text["finish_reason"].Text, Words(result.FinishReason), name);
                Check.Equal(text["prompt_tokens"].Integer, result.PromptTokens, name);
                Check.Equal(text["completion_tokens"].Integer, result.CompletionTokens, name);
                Check.Equal(Status.Ok, result.Status, name);
                // Streamed, and with settings by properties.
                using (TokenStream stream = generator.Stream(text["prompt"].Text, ByProperties(text["sampling"])))
                {
                    Check.Equal(text["text"].Text, string.Concat(stream.Select(token => token.Text)), name + ", streamed");
                    Check.Same(text["tokens"].Integers, stream.Result.Tokens, name + ", streamed");
                }
            }
        }
    }

    [Test]
    static void BatchesEqualSingleCalls()
    {
        Json[] plain = table["texts"].Items.Where(text => text["options"].Members.Count == 0).ToArray();
        using (var generator = new Generator(Given.Story))
        {
            Func<IEnumerable<Request>> requests = () =>
                plain.Select(text => new Request(text["prompt"].Text, SamplingOf(text["sampling"])));
            IReadOnlyList<Result> results = generator.Generate(requests());
            for (int i = 0; i < plain.Length; ++i)
            {
                Check.Same(plain[i]["tokens"].Integers, results[i].Tokens, "batch");
            }
            var texts = new StringBuilder[plain.Length];
            var ended = new Result[plain.Length];
            for (int i = 0; i < texts.Length; ++i) texts[i] = new StringBuilder();
            foreach (BatchToken piece in generator.Stream(requests()))
            {
                texts[piece.Request].Append(piece.Token.Text);
                if (piece.Result != null) ended[piece.Request] = piece.Result;
            }
            for (int i = 0; i < plain.Length; ++i)
            {
                Check.Equal(plain[i]["text"].Text, texts[i].ToString(), "batch, streamed");
                Check.Same(plain[i]["tokens"].Integers, ended[i].Tokens, "batch, streamed");
            }
        }
    }

    [Test]
    static void ABatchTellsWhoFailed()
    {
        using (var generator = new Generator(Given.Story))
        {
            var requests = new[]
            {
                new Request("Once", Sampling.Greedy(3)), new Request(new[] { 999999 }, Sampling.Greedy(3)),
                new Request(new[] { 1, 912 }, Sampling.Greedy(3)) { Priority = 2 },
                new Request("Once", new Sampling { StopTokens = { 4097 } })
            };
            IReadOnlyList<Result> results = generator.Generate(requests);
            Check.Same(new[] { Status.Ok, Status.OutOfRange, Status.Ok, Status.OutOfRange },
                        results.Select(result => result.Status).ToArray(), "statuses");
            Check.That(results[1].ErrorMessage.Contains("999999"), "message: " + results[1].ErrorMessage);
            var errors = new Exception[requests.Length];
            var texts = new string[requests.Length];
            foreach (BatchToken piece in generator.Stream(requests))
            {
                if (piece.Error != null) errors[piece.Request] = piece.Error;
                else texts[piece.Request] += piece.Token.Text;
            }
            Check.Equal(results[0].Text, texts[0], "streamed text");
            Check.Equal(results[2].Text, texts[2], "streamed from tokens");
            Check.Equal(Status.OutOfRange, ((GenerateException)errors[1]).Status, "streamed error");
            Check.Equal(Status.OutOfRange, ((GenerateException)errors[3]).Status, "streamed error");
        }
    }

    [Test]
    static void Tokens()
    {
        foreach (Json entry in table["tokenizer"].Items)
        {
            EncodeFlags flags = entry["add_bos"].Truth ? EncodeFlags.AddBegin : EncodeFlags.None;
            int[] ids = Given.Story.Tokenizer.Encode(entry["text"].Text, flags);
            Check.Same(entry["ids"].Integers, ids, "ids of '" + entry["text"].Text + "'");
            Check.Equal(entry["decoded"].Text, Given.Story.Tokenizer.Decode(ids), "decoded");
        }
        Check.Same(new byte[] { 0xC3 }, Given.Story.Tokenizer.Piece(200), "a piece of one byte");
        Check.Equal(4096, Given.Story.Tokenizer.VocabularySize, "vocabulary");
        Check.Equal(1, Given.Story.Tokenizer.Special(SpecialToken.Begin), "begin");
        Check.Throws<ArgumentException>(() => Given.Story.Tokenizer.Encode("half \uD83D"), "half a character");
        using (var own = new Tokenizer(Given.StoryPath)) Check.Same(new[] { 912 }, own.Encode("Once"), "loaded alone");
        using (var own = new Tokenizer(Given.StoryPath, new ModelOptions { Threads = 1 }))
        {
            Check.Same(new[] { 912 }, own.Encode("Once"), "loaded with options");
        }
        var named = new ModelOptions().Set("pre_tokenizer", "qwen2");
        Check.Throws<GenerateException>(() => new Tokenizer(Given.StoryPath, named), "no pre-tokenizers");
    }

    [Test]
    static void Streams()
    {
        foreach (Json entry in table["streams"].Items)
        {
            string symbol = entry["model"].Text;
            using (Model custom = symbol == "" ? null : Given.Custom(symbol))
            using (var generator = new Generator(custom ?? Given.Story))
            using (Session session = generator.NewSession())
            using (TokenStream stream = session.Stream(entry["prompt"].Text, SamplingOf(entry["sampling"])))
            {
                int at = 0;
                foreach (Token token in stream)
                {
                    Json piece = entry["pieces"].Items[at++];
                    Check.Equal(piece["id"].Integer, token.Id, "id of piece " + (at - 1));
                    Check.Equal(piece["text"].Text, token.Text, "text of piece " + (at - 1));
                    Check.Equal(piece["done"].Truth, token.Done, "done of piece " + (at - 1));
                    if (!token.Done) Check.Equal(at - 1, token.Index, "index");
                }
                Check.Equal(entry["pieces"].Items.Count, at, "pieces of " + symbol);
                Check.Equal(FinishReason.Length, stream.Result.FinishReason, "finish reason");
                Check.Equal(string.Concat(entry["pieces"].Items.Select(piece => piece["text"].Text)), stream.Result.Text, "text");
            }
        }
    }

    [Test]
    static void ASessionStepByStep()
    {
        Json entry = table["session"];
        Sampling sampling = SamplingOf(entry["sampling"]);
        string file = Path.GetTempFileName();
        byte[] saved = null;
        using (var generator = new Generator(Given.Story))
        using (Session session = generator.NewSession())
        {
            foreach (Json step in entry["steps"].Items)
            {
                string action = step["do"].Text;
                switch (action)
                {
                    case "append":
                        session.Append(step["prompt"].Text);
                        break;
                    case "generate":
                        Check.Equal(step["text"].Text, session.Generate(step["prompt"].Text, sampling).Text, action);
                        break;
                    case "truncate":
                        session.Truncate(step["n"].Integer);
                        break;
                    case "reset":
                        saved = session.Save();
                        session.Save(file);
                        session.Reset();
                        break;
                    case "load what was saved before the reset":
                        session.Load(saved);
                        using (Session other = generator.NewSession())
                        {
                            other.Load(file);
                            Check.Same(session.Tokens, other.Tokens, "loaded from a file");
                        }
                        break;
                    default:
                        throw new Failed("unknown step " + action);
                }
                Check.Equal(step["length"].Integer, session.Length, action + ", length");
                Check.Same(step["held"].Integers, session.Tokens, action + ", held");
            }
            using (Session fork = session.Fork())
            {
                Check.Equal(fork.Generate("", sampling).Text, session.Generate("", sampling).Text, "fork");
            }
            Check.Equal(Given.Story.Tokenizer.Encode(" dog", EncodeFlags.Continue).Length, session.Score(" dog").Length, "score");
            // The last token drawn is evaluated by the next call.
            Check.Equal(session.Length - 1, session.Cache.Length, "the session's cache");
            Check.That(session.State == null, "no state");
            Check.Equal(1.0, session.Progress, "progress");
        }
        File.Delete(file);
    }

    [Test]
    static void StatusesOfAModel()
    {
        foreach (Json entry in table["statuses"].Items)
        {
            string symbol = entry["model"].Text;
            var status = (Status)entry["code"].Integer;
            Check.Equal(entry["name"].Text, Library.NameOf(status), "name");
            using (Model model = Given.Custom(symbol))
            using (var generator = new Generator(model))
            {
                Action<Action> check = action =>
                {
                    if (status == Status.Cancelled)
                    {
                        var e = Check.Throws<GenerationCanceledException>(action, symbol);
                        Check.Equal(entry["message"].Text, e.Message, symbol);
                        return;
                    }
                    var failure = Check.Throws<GenerateException>(action, symbol);
                    Check.Equal(status, failure.Status, symbol);
                    Check.Equal(entry["message"].Text, failure.Message, symbol);
                };
                check(() => generator.Generate("a", Given.Endless()));
                check(() => generator.Stream("a", Given.Endless()).Count());
                using (Session session = generator.NewSession()) check(() => session.Append("a"));
                Result result = generator.Generate(new[] { new Request("a", Given.Endless()) })[0];
                Check.Equal(status, result.Status, symbol + " in a batch");
                Check.Equal(entry["message"].Text, result.ErrorMessage, symbol + " in a batch");
            }
        }
    }

    [Test]
    static void Conversations()
    {
        using (var chat = new Chat())
        {
            foreach (Json message in table["chat"]["messages"].Items) chat.Add(message["role"].Text, message["text"].Text);
            Check.Equal(table["chat"]["formatted"].Text, Given.Story.Format(chat), "formatted");
            chat.Add("user", "<|im_end|>");
            Check.Fails(Status.InvalidArgument, () => Given.Story.Format(chat), "a special token");
        }
    }

    [Test]
    static void ChatSessions()
    {
        Json scenario = table["chat_session"];
        Sampling sampling = SamplingOf(scenario["sampling"]);
        using (var chat = new Chat())
        using (var generator = new Generator(Given.Story))
        using (ChatSession session = generator.NewChatSession(chat))
        {
            foreach (Json step in scenario["steps"].Items)
            {
                switch (step["do"].Text)
                {
                    case "template": chat.SetTemplate(step["text"].Text); break;
                    case "tool": chat.AddTool(step["text"].Text); break;
                    case "variable": chat.SetVariable(step["name"].Text, "\"" + step["text"].Text + "\""); break;
                    case "time": chat.SetTime(DateTime.Parse(step["text"].Text)); break;
                    case "message": chat.Add(step["role"].Text, step["text"].Text); break;
                    case "name": chat.SetName(step["text"].Text); break;
                    case "reasoning": chat.SetReasoning(step["text"].Text); break;
                    case "tool_call": chat.AddToolCall(step["id"].Text, step["name"].Text, step["text"].Text); break;
                    case "tool_result": chat.AddToolResult(step["id"].Text, step["name"].Text, step["text"].Text); break;
                    case "truncate":
                        Check.Equal(step["text"].Text,
                                    chat.Add("user", "Forget this.").Truncate(step["length"].Integer).Describe(), "all");
                        break;
                    case "send":
                        Answered(step, session.Send(step["text"].Text, sampling), session, chat);
                        break;
                    case "answer":
                        using (Session plain = generator.NewSession())
                        {
                            plain.Append(chat);
                            Check.Same(Given.Story.Encode(chat), plain.Tokens, "what a plain session holds");
                            Check.Equal(step["answer"].Text, plain.Generate("", sampling).Text, "its answer");
                        }
                        Answered(step, session.Answer(sampling), session, chat);
                        chat.Truncate(-1);
                        using (TokenStream stream = session.Stream(null, sampling))
                        {
                            Check.Fails(Status.Busy, () => chat.Add("user", ""), "a stream has it");
                            var pieces = new StringBuilder();
                            foreach (Token token in stream) foreach (Piece piece in token.Pieces) pieces.Append(piece.Text);
                            Check.Equal(step["answer"].Text, pieces.ToString(), "pieces");
                            Answered(step, stream.Result, session, null);
                        }
                        Answered(step, null, session, chat);
                        break;
                    default: throw new Exception("what is " + step["do"].Text + "?");
                }
            }
            Check.Equal(1.0, session.Progress, "progress");
        }
    }

    static void Answered(Json step, Result result, ChatSession session, Chat chat)
    {
        if (result != null) Check.Equal(step["answer"].Text, result.Text, "the answer");
        Check.Equal(step["length"].Integer, session.Length, "length");
        if (chat != null) Check.Same(step["tokens"].Integers, Given.Story.Encode(chat, false), "the conversation");
    }

    static string Tool(ToolCall call, CancellationTokenSource source)
    {
        Json arguments = Json.Parse(call.Arguments);
        switch (call.Name)
        {
            case "add": return (arguments["a"].Integer + arguments["b"].Integer).ToString();
            case "echo": return arguments["text"].Text;
            case "stop":
                source.Cancel();
                while (!call.Stopped) Thread.Sleep(1);
                return "told";
            default: throw new InvalidOperationException("no");
        }
    }

    static int EndOf(Agent agent, string output, CancellationToken token)
    {
        try
        {
            return agent.Step(output, token) ? 1 : 0;
        }
        catch (GenerationCanceledException)
        {
            return (int)Status.Cancelled;
        }
    }

    [Test]
    static void ToolsOfAnAgent()
    {
        foreach (Json row in table["tools"]["rows"].Items)
        {
            string name = row["name"].Text;
            var options = new AgentOptions();
            foreach (KeyValuePair<string, Json> member in row["options"].Members) options.Set(member.Key, member.Value.Text);
            using (var source = new CancellationTokenSource())
            using (var tools = new Tools())
            using (var agent = new Agent(null, tools, options))
            {
                foreach (KeyValuePair<string, Json> function in table["tools"]["functions"].Members)
                {
                    tools.Add(function.Key, null, function.Value.Text, call => Tool(call, source));
                }
                foreach (Json step in row["steps"].Items)
                {
                    Check.Equal(step["ends"].Integer, EndOf(agent, step["output"].Text, source.Token), name);
                }
                string record = agent.Describe();
                Check.That(row["record"].Same(Json.Parse(record)), name + ": the record is " + record);
            }
        }
    }

    [Test]
    static void Templates()
    {
        Json scenario = table["template"];
        using (var template = new ChatTemplate(scenario["template"].Text))
        {
            Json rendered = Json.Parse(template.Render(scenario["request"].Text));
            Check.Equal(scenario["rendered"]["text"].Text, rendered["text"].Text, "rendered");
        }
        Check.Fails(Status.Format, () => new ChatTemplate("{% if %}"), "no template");
        using (ChatTemplate own = Given.Story.Tokenizer.Template())
        {
            Check.That(own.Render(scenario["request"].Text).Contains("<|im_start|>user"), "the model's own");
        }
    }

    [Test]
    static void DraftsChangeNoText()
    {
        using (var draft = Model.Load(Path.Combine(Given.Source, "examples/demo_model/draft.gguf")))
        {
            foreach (Json text in table["drafts"].Items)
            {
                string name = text["name"].Text;
                var options = new GeneratorOptions();
                foreach (KeyValuePair<string, Json> member in text["options"].Members) options.Set(member.Key, member.Value.Text);
                if (text["draft_length"].Integer > 0)
                {
                    options.SpeculativeDraft = draft;
                    options.SpeculativeDraftLength = text["draft_length"].Integer;
                }
                using (var generator = new Generator(Given.Story, options))
                {
                    Result result = generator.Generate(text["prompt"].Text, SamplingOf(text["sampling"]));
                    Check.Same(text["tokens"].Integers, result.Tokens, name);
                    Check.Equal((long)text["drafted"].Integer, result.DraftedTokens, name);
                    Check.Equal((long)text["accepted"].Integer, result.AcceptedTokens, name);
                    int drafted = 0, accepted = 0;
                    foreach (Json pass in Json.Parse(result.Drafts).Items)
                    {
                        drafted += pass["tokens"].Items.Count;
                        accepted += pass["accepted"].Items.Count;
                    }
                    Check.Equal(text["drafted"].Integer, drafted, name);
                    Check.Equal(text["accepted"].Integer, accepted, name);
                }
            }
        }
    }

    [Test]
    static void HeadsFromFiles()
    {
        string head = Path.Combine(Given.Source, "examples/demo_model/eagle3.gguf");
        using (var drafting = new Generator(Given.Story, new GeneratorOptions { Eagle = head }.Set("draft_policy", "always")))
        using (var plain = new Generator(Given.Story, new GeneratorOptions { Eagle = "/no/such/head.gguf" }))
        {
            Check.That(drafting.EagleEnabled && !plain.EagleEnabled, "enabled where there is a file");
            Check.Equal(head, drafting.EaglePath, "path");
            Check.Equal("/no/such/head.gguf", plain.EaglePath, "path without a file");
            Result guessed = drafting.Generate("Once upon a time", Sampling.Greedy(24));
            Check.Equal(plain.Generate("Once upon a time", Sampling.Greedy(24)).Text, guessed.Text, "text");
            Check.That(guessed.AcceptedTokens > 0, "guesses of the head");
        }
        string story = Path.Combine(Given.Source, "examples/demo_model/story.gguf");
        Check.Fails(Status.Unsupported, () => new Generator(Given.Story, new GeneratorOptions { Eagle = story }), "no head");
    }

    [Test]
    static void HeadsWithVerbsOfTheirOwn()
    {
        string head = Path.Combine(Given.Source, "examples/demo_model/eagle3.gguf");
        int hidden = Given.Story.HiddenSize;
        var tensors = new EagleTensors
        {
            NormWeight = new float[hidden], NormBias = new float[hidden],
            Fc1Weight = new float[hidden * hidden], Fc2Weight = new float[hidden * hidden]
        };
        using (var plain = new Generator(Given.Story))
        using (var ofFile = new Eagle(Given.Story, head))
        using (var ofTensors = new Eagle(Given.Story, tensors, 3, new GeneratorOptions { PromptLookup = 3 }))
        {
            string want = plain.Generate("Once upon a time", Sampling.Greedy(24)).Text;
            foreach (Eagle eagle in new[] { ofFile, ofTensors })
            {
                eagle.SetAdaptive(false);
                Check.Equal(want, eagle.Generate("Once upon a time", Sampling.Greedy(24)).Text, "text");
                Check.Equal(want, eagle.GenerateAsync("Once upon a time", Sampling.Greedy(24)).Result.Text, "text");
                Check.That(eagle.Stats("drafted") > 0, "guesses of the head");
            }
            Check.That(ofFile.Stats("accepted") > 0, "right guesses");
        }
        Check.Fails(Status.Io, () => new Eagle(Given.Story, "/no/such/head.gguf"), "no file");
        Check.Fails(Status.Unsupported, () => new Eagle(Given.Story), "no head in the model's file");
    }

    [Test]
    static void SeveralTexts()
    {
        Json scenario = table["several"];
        using (var generator = new Generator(Given.Story))
        {
            var results = generator.Generate(scenario["prompt"].Text, scenario["n"].Integer, scenario["best_of"].Integer,
                                             SamplingOf(scenario["sampling"]));
            Check.Equal(string.Join("|", scenario["texts"].Items.Select(text => text.Text)),
                        string.Join("|", results.Select(result => result.Text)), "texts");
            Check.Fails(Status.InvalidArgument, () => generator.Generate("a", 3, 2), "more than there are");
        }
        Check.Fails(Status.Unsupported, () => Given.Story.Tokenizer.EncodeFillInMiddle("a", "b"), "no marks");
    }

    [Test]
    static void LogProbabilities()
    {
        using (var generator = new Generator(Given.Story))
        {
            var sampling = Sampling.Greedy(5);
            sampling.LogProbabilities = 3;
            Result result = generator.Generate("Once upon a time", sampling);
            Check.Equal(5, result.LogProbabilities.Count, "log-probabilities");
            for (int i = 0; i < 5; ++i)
            {
                IReadOnlyList<Candidate> top = result.TopLogProbabilities[i];
                Check.Equal(3, top.Count, "candidates");
                // Greedy takes the most probable, and probabilities are below 1 and fall.
                Check.Equal(result.Tokens[i], top[0].Id, "most probable");
                Check.Equal(result.LogProbabilities[i], top[0].LogProbability, "its log-probability");
                Check.That(top[0].LogProbability <= 0 && top[2].LogProbability <= top[1].LogProbability, "order");
                Check.That(top.Sum(candidate => Math.Exp(candidate.LogProbability)) <= 1.0001, "sum");
            }
            using (TokenStream stream = generator.Stream("Once upon a time", sampling))
            {
                Token token;
                for (int i = 0; stream.Next(out token) && !token.Done; ++i)
                {
                    Check.Equal(result.LogProbabilities[i], token.LogProbability, "streamed");
                }
            }
        }
    }
}
