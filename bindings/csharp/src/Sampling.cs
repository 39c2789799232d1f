// SPDX-License-Identifier: Apache-2.0
// How tokens are chosen.
using System;
using System.Collections.Generic;

namespace LibGenerate
{
    /// <summary>
    /// How the next token is chosen. A plain object: each call reads it when it begins. What is left null is as the library
    /// has it: temperature 1, nothing cut, no penalty, seed 0, 256 tokens.
    /// </summary>
    public sealed class Sampling : Settings
    {
        /// <summary>Defaults.</summary>
        public Sampling()
        {
        }

        /// <summary>A copy.</summary>
        public Sampling(Sampling other)
            : base(other)
        {
            Temperature = other.Temperature;
            TopK = other.TopK;
            TypicalP = other.TypicalP;
            TopP = other.TopP;
            MinP = other.MinP;
            RepetitionPenalty = other.RepetitionPenalty;
            CompoundPenalty = other.CompoundPenalty;
            FrequencyPenalty = other.FrequencyPenalty;
            PresencePenalty = other.PresencePenalty;
            PenalizePrompt = other.PenalizePrompt;
            PenaltyWindow = other.PenaltyWindow;
            MaxNewTokens = other.MaxNewTokens;
            MinNewTokens = other.MinNewTokens;
            Dry = other.Dry;
            DryBreakers = new List<string>(other.DryBreakers);
            Xtc = other.Xtc;
            TopNSigma = other.TopNSigma;
            Mirostat = other.Mirostat;
            Gumbel = other.Gumbel;
            LogitsCallback = other.LogitsCallback;
            LogitsUser = other.LogitsUser;
            Seed = other.Seed;
            LogProbabilities = other.LogProbabilities;
            IgnoreEnd = other.IgnoreEnd;
            Grammar = other.Grammar;
            GrammarMatcher = other.GrammarMatcher;
            FitGrammar = other.FitGrammar;
            StopTokens = new List<int>(other.StopTokens);
            StopStrings = new List<string>(other.StopStrings);
            Adapter = other.Adapter;
            MixedAdapters = new List<KeyValuePair<string, float>>(other.MixedAdapters);
            LogitBias = new Dictionary<int, float>(other.LogitBias);
        }

        /// <summary>The most probable token each time, for at most that many tokens.</summary>
        public static Sampling Greedy(int maxNewTokens)
        {
            return new Sampling { Temperature = 0, MaxNewTokens = maxNewTokens };
        }

        /// <summary>Divides logits; 0 takes the most probable token.</summary>
        public double? Temperature { get; set; }
        /// <summary>Keeps the k largest logits.</summary>
        public int? TopK { get; set; }
        /// <summary>Locally typical sampling.</summary>
        public double? TypicalP { get; set; }
        /// <summary>Keeps the fewest most probable tokens that reach p.</summary>
        public double? TopP { get; set; }
        /// <summary>Keeps tokens at least p times as probable as the most probable one.</summary>
        public double? MinP { get; set; }
        /// <summary>Divides logits of tokens generated before.</summary>
        public double? RepetitionPenalty { get; set; }
        /// <summary>The repetition penalty acts once for each occurrence.</summary>
        public bool? CompoundPenalty { get; set; }
        /// <summary>Subtracted for each occurrence.</summary>
        public double? FrequencyPenalty { get; set; }
        /// <summary>Subtracted once.</summary>
        public double? PresencePenalty { get; set; }
        /// <summary>All tokens of the session count for penalties.</summary>
        public bool? PenalizePrompt { get; set; }
        /// <summary>Tokens that count for penalties.</summary>
        public int? PenaltyWindow { get; set; }
        /// <summary>Tokens before which nothing that stops a text is drawn, if there is anything else.</summary>
        public int? MinNewTokens { get; set; }
        /// <summary>Multiplier, base, allowed length and window (0: all tokens) of DRY; a multiplier of 0 is off.</summary>
        public Tuple<double, double, int, int> Dry { get; set; }
        /// <summary>Texts that end a sequence for DRY.</summary>
        public List<string> DryBreakers { get; } = new List<string>();
        /// <summary>Probability and threshold: all tokens above it but the least probable one are left out.</summary>
        public Tuple<double, double> Xtc { get; set; }
        /// <summary>Keeps tokens whose logits are within so many standard deviations of the largest.</summary>
        public double? TopNSigma { get; set; }
        /// <summary>Tau and eta of mirostat 2; a tau of 0 is off.</summary>
        public Tuple<double, double> Mirostat { get; set; }

        /// <summary>
        /// Draws by Gumbel-max: with noise of each token, so that calls of one seed whose logits differ a little draw the same
        /// tokens mostly.
        /// </summary>
        public bool? Gumbel { get; set; }

        /// <summary>
        /// A gen_logits_callback in C that edits the logits of each step before all else; it must live as long as the calls.
        /// </summary>
        public NativeSymbol LogitsCallback { get; set; }

        /// <summary>What LogitsCallback is given as its first argument.</summary>
        public IntPtr LogitsUser { get; set; }
        /// <summary>Tokens after which generating ends.</summary>
        public int? MaxNewTokens { get; set; }
        /// <summary>Equal logits and an equal seed give equal text.</summary>
        public ulong? Seed { get; set; }
        /// <summary>Records log-probabilities: 0 for chosen tokens, above that of so many most probable ones too.</summary>
        public int? LogProbabilities { get; set; }
        /// <summary>The model's end tokens no longer end a generation.</summary>
        public bool? IgnoreEnd { get; set; }
        /// <summary>
        /// The text is a member of it: the model can end it only where it is one. Any other end, above all MaxNewTokens,
        /// can leave a text that is none yet. It must not be disposed of when a call begins, but may be then.
        /// </summary>
        public Grammar Grammar { get; set; }
        /// <summary>
        /// Instead of a grammar: the text goes on where this one stands when a call begins, which leaves it there. It must
        /// be over the model's tokenizer.
        /// </summary>
        public GrammarMatcher GrammarMatcher { get; set; }
        /// <summary>With one of them: only tokens with which the text can still end within MaxNewTokens; the default.</summary>
        public bool? FitGrammar { get; set; }
        /// <summary>Tokens that end a generation.</summary>
        public List<int> StopTokens { get; } = new List<int>();
        /// <summary>Texts that end a generation.</summary>
        public List<string> StopStrings { get; } = new List<string>();

        /// <summary>The name of the model's adapter that calls use, with scale 1; null for none.</summary>
        public string Adapter { get; set; }

        /// <summary>Names and scales of adapters that are added to it.</summary>
        public List<KeyValuePair<string, float>> MixedAdapters { get; } = new List<KeyValuePair<string, float>>();
        /// <summary>Added to logits before everything else; negative infinity forbids a token.</summary>
        public Dictionary<int, float> LogitBias { get; } = new Dictionary<int, float>();

        /// <summary>Sets one by name, as Describe has them.</summary>
        public Sampling Set(string key, string value)
        {
            Add(key, value);
            return this;
        }

        /// <summary>All settings as JSON.</summary>
        public string Describe()
        {
            using (Handle native = ToNative(null))
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.gen_sampling_describe(native, buf, capacity, out n));
            }
        }

        /// <summary>The native form of `sampling`, or of defaults for null.</summary>
        internal static Handle Make(Sampling sampling, Handle cancel)
        {
            return (sampling ?? new Sampling()).ToNative(cancel);
        }

        Handle ToNative(Handle cancel)
        {
            Loader.Ensure();
            IntPtr sampling;
            Native.gen_sampling_new(out sampling);
            return Apply(HandleKind.Sampling, sampling, native =>
            {
                if (Temperature != null) Native.gen_sampling_set_temperature(native, Temperature.Value);
                if (TopK != null) Native.gen_sampling_set_top_k(native, TopK.Value);
                if (TypicalP != null) Native.gen_sampling_set_typical_p(native, TypicalP.Value);
                if (TopP != null) Native.gen_sampling_set_top_p(native, TopP.Value);
                if (MinP != null) Native.gen_sampling_set_min_p(native, MinP.Value);
                if (RepetitionPenalty != null) Native.gen_sampling_set_repetition_penalty(native, RepetitionPenalty.Value);
                if (CompoundPenalty != null) Native.gen_sampling_set_compound_penalty(native, CompoundPenalty.Value ? 1 : 0);
                if (FrequencyPenalty != null) Native.gen_sampling_set_frequency_penalty(native, FrequencyPenalty.Value);
                if (PresencePenalty != null) Native.gen_sampling_set_presence_penalty(native, PresencePenalty.Value);
                if (PenalizePrompt != null) Native.gen_sampling_set_penalize_prompt(native, PenalizePrompt.Value ? 1 : 0);
                if (PenaltyWindow != null) Native.gen_sampling_set_penalty_window(native, PenaltyWindow.Value);
                if (MaxNewTokens != null) Native.gen_sampling_set_max_new_tokens(native, MaxNewTokens.Value);
                if (MinNewTokens != null) Native.gen_sampling_set_min_new_tokens(native, MinNewTokens.Value);
                if (Dry != null) Native.gen_sampling_set_dry(native, Dry.Item1, Dry.Item2, Dry.Item3, Dry.Item4);
                foreach (string text in DryBreakers)
                {
                    byte[] bytes = Utf8.Bytes(text);
                    Native.gen_sampling_add_dry_breaker(native, bytes, Utf8.Length(bytes));
                }
                if (Xtc != null) Native.gen_sampling_set_xtc(native, Xtc.Item1, Xtc.Item2);
                if (TopNSigma != null) Native.gen_sampling_set_top_n_sigma(native, TopNSigma.Value);
                if (Gumbel != null) Native.gen_sampling_set_gumbel(native, Gumbel.Value ? 1 : 0);
                if (LogitsCallback.Address != IntPtr.Zero)
                {
                    Native.gen_sampling_set_logits_callback(native, LogitsCallback.Address, LogitsUser);
                }
                if (Mirostat != null) Native.gen_sampling_set_mirostat(native, Mirostat.Item1, Mirostat.Item2);
                if (Seed != null) Native.gen_sampling_set_seed(native, Seed.Value);
                if (LogProbabilities != null) Native.gen_sampling_set_logprobs(native, LogProbabilities.Value);
                if (IgnoreEnd != null) Native.gen_sampling_set_ignore_eos(native, IgnoreEnd.Value ? 1 : 0);
                if (Grammar != null) Native.gen_sampling_set_grammar(native, Grammar.Handle);
                if (GrammarMatcher != null) Native.gen_sampling_set_grammar_matcher(native, GrammarMatcher.Handle);
                if (FitGrammar != null) Native.gen_sampling_set_fit_grammar(native, FitGrammar.Value ? 1 : 0);
                foreach (int token in StopTokens) Native.gen_sampling_add_stop_token(native, token);
                foreach (string text in StopStrings)
                {
                    byte[] bytes = Utf8.Bytes(text);
                    Native.gen_sampling_add_stop_string(native, bytes, Utf8.Length(bytes));
                }
                if (Adapter != null) Native.gen_sampling_set_adapter(native, Utf8.Terminated(Adapter, "Adapter"));
                foreach (KeyValuePair<string, float> one in MixedAdapters)
                {
                    Native.gen_sampling_add_adapter(native, Utf8.Terminated(one.Key, "MixedAdapters"), one.Value);
                }
                foreach (KeyValuePair<int, float> bias in LogitBias)
                {
                    Native.gen_sampling_set_logit_bias(native, bias.Key, bias.Value);
                }
                ApplyNamed(native, Native.gen_sampling_set);
                if (cancel != null) Native.gen_sampling_set_cancel(native, cancel);
            });
        }
    }
}
