// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"libgenerate.dev/generate"
)

func isJSON(t *testing.T, what string) func(text string, err error) {
	return func(text string, err error) {
		t.Helper()
		var value any
		if err == nil {
			err = json.Unmarshal([]byte(text), &value)
		}
		if err != nil || len(text) < 3 {
			t.Errorf("%s: %v: %s", what, err, text)
		}
	}
}

func TestLibrary(t *testing.T) {
	equal(t, "version", generate.Version(), "0.1.0")
	equal(t, "ABI", generate.ABIVersion(), 0)
	isJSON(t, "build")(generate.BuildInfo())
	isJSON(t, "kinds")(generate.DescribeKVKinds())
	isJSON(t, "metrics")(generate.DescribeMetrics())
	isJSON(t, "device")(generate.DescribeDevice("cpu", 0))
	if len(generate.Backends()) == 0 || generate.Backends()[0] != "cpu" || generate.BackendAvailable("cpu") != nil ||
		generate.DeviceCount("cpu") != 1 {
		t.Error(generate.Backends())
	}
	if err := generate.BackendAvailable("none"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	generate.SetLogFunction(0, 0)
	generate.SetLogLevel(generate.LogOff)
	if _, err := generate.NativeSymbol("no such library", "a"); !errors.Is(err, generate.ErrIO) {
		t.Error(err)
	}
	if _, err := generate.NativeSymbol(os.Getenv("GENERATE_TEST_MODELS"), "no_such_symbol"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	rows, width, err := generate.PadLeft([][]int32{{1, 2, 3}, {4}, {}}, 9)
	ok(t, err)
	equal(t, "width", width, 3)
	equals(t, "rows", rows, []int32{1, 2, 3, 9, 9, 4, 9, 9, 9})
}

func TestModels(t *testing.T) {
	threads := must(generate.NewThreadPool(2, 0))
	defer threads.Close()
	options := []generate.ModelOption{generate.WithBackend("cpu"), generate.WithDevice(0), generate.WithThreadPool(threads),
		generate.WithMmap(false), generate.WithMaxSeqLen(128), generate.WithCheckTensors(true), generate.WithAllocator(0),
		generate.WithLoadProgress(0, 0), generate.WithModelSetting("repack", "1"), nil}
	isJSON(t, "options")(generate.DescribeModelOptions(options...))
	m := must(generate.LoadModel(storyPath(), options...))
	defer m.Close()
	c := m.Config()
	equal(t, "context", c.MaxSeqLen, 128)
	c.MaxSeqLen = story.Config().MaxSeqLen
	equal(t, "config", c, story.Config())
	equal(t, "eos", int32(c.EOS), story.Tokenizer().Special(generate.EOS))
	isJSON(t, "model")(m.Describe())
	isJSON(t, "config")(m.DescribeConfig())
	architecture, err := m.Metadata("general.architecture")
	ok(t, err)
	equal(t, "architecture", architecture, "llama")
	if keys := m.MetadataKeys(); !strings.Contains(strings.Join(keys, " "), "general.architecture") {
		t.Error(keys)
	}
	if _, err := m.Metadata("none"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if err := m.LoadAdapter(storyPath(), "a", 1); err == nil || !strings.Contains(err.Error(), "general.type") {
		t.Error(err)
	}
	if err := m.UnloadAdapter("a"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if err := m.SetAdapterBudget(-1); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	for _, most := range []int{1, 0} {
		if err := m.SetAdapterBudget(most); err != nil {
			t.Error(err)
		}
	}
	equal(t, "adapters", len(must(m.Adapters())), 0)

	file := must(os.ReadFile(storyPath()))
	fromBytes := must(generate.LoadModelBytes(file, generate.WithThreads(1)))
	defer fromBytes.Close()
	cache, again := must(generate.NewCache(c.KVLayers, 32)), must(generate.NewCache(c.KVLayers, 32))
	defer cache.Close()
	defer again.Close()
	want := table.Texts[0]
	tokens := must(story.Tokenizer().Encode(want.Prompt, generate.AddBOS))
	logits := must(fromBytes.Forward(tokens, cache))
	best := int32(0)
	for i, x := range logits {
		if x > logits[best] {
			best = int32(i)
		}
	}
	equal(t, "the most probable token", best, want.Tokens[0])

	// A pass over two sequences gives what each gives alone.
	profile := must(generate.NewProfile())
	defer profile.Close()
	other := must(generate.NewCache(c.NumLayers, 32))
	defer other.Close()
	both, err := fromBytes.ForwardProfiled(generate.ForwardBatch{Tokens: append(tokens[:len(tokens):len(tokens)], 1),
		Sequences: []int32{0, 0, 0, 0, 0, 1}, WantsLogits: []bool{false, false, false, false, true, false},
		Caches: []*generate.Cache{again, other}}, profile)
	ok(t, err)
	equals(t, "together", both, logits)
	equal(t, "the other one", other.SeqLen(), 1)
	all, err := fromBytes.ForwardBatch(generate.ForwardBatch{Tokens: []int32{5, 6}, Caches: []*generate.Cache{other}})
	ok(t, err)
	equal(t, "logits of all rows", len(all), 2*4096)
	if profile.Count() == 0 || profile.Name(0) == "" || must(profile.Value(0, "calls")) != 1 {
		t.Error(profile.Count(), profile.Name(0))
	}
	if trace := must(profile.ChromeTrace()); !json.Valid([]byte(trace)) {
		t.Error(trace)
	}
	// Hidden states: the embedding of a token is the same wherever it stands, what is made of it is not.
	hidden := must(generate.NewCache(c.KVLayers, 32))
	defer hidden.Close()
	states, err := fromBytes.ForwardHidden([]int32{7, 9, 7}, hidden, 0, int32(c.NumLayers), generate.HiddenNormed)
	ok(t, err)
	equal(t, "layers", len(states), 3)
	equal(t, "positions", hidden.SeqLen(), 3)
	for i := range states {
		equal(t, "values", len(states[i]), 3*c.Hidden)
		equal(t, "the same", reflect.DeepEqual(states[i][:c.Hidden], states[i][2*c.Hidden:]), i == 0)
	}
	if _, err := fromBytes.ForwardHidden([]int32{7}, hidden, 99); !errors.Is(err, generate.ErrOutOfRange) {
		t.Error(err)
	}
	if _, err := fromBytes.ForwardBatch(generate.ForwardBatch{Tokens: []int32{5}, WantsLogits: []bool{}}); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err := story.Forward([]int32{1}, nil); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}

	for path, code := range map[string]error{storyPath() + "\x00": generate.ErrInvalidArgument, "": generate.ErrIO, "/no/such/file": generate.ErrIO, source("README.md"): generate.ErrFormat} {
		_, err := generate.LoadModel(path)
		if !errors.Is(err, code) || !strings.HasPrefix(err.Error(), "generate: ") {
			t.Error(err)
		}
	}
	if _, err := generate.LoadModel(storyPath(), generate.WithThreads(-1)); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	// A function in C as progress callback: what it returns is not 0, which cancels.
	if _, err := generate.LoadModel(storyPath(), generate.WithLoadProgress(must(generate.NativeSymbol("libc.so.6", "getpid")), 0)); !errors.Is(err, generate.ErrCancelled) {
		t.Error(err)
	}
	if _, err := generate.LoadModelBytes(nil); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestCustomModels(t *testing.T) {
	symbol := must(generate.NativeSymbol(os.Getenv("GENERATE_TEST_MODELS"), "test_model_nothing"))
	config := generate.NewModelConfig(4096, 64)
	config.EOS, config.NumLayers, config.Name = 2, 3, "a"
	m := must(generate.NewCustomModel(symbol, config, nil, generate.ConfigSetting{Key: "name", Value: "test"}))
	defer m.Close()
	config.Name = ""
	equal(t, "config", m.Config(), config)
	if m.Tokenizer() != nil {
		t.Error("there is no tokenizer")
	}
	if description := must(m.Describe()); !strings.Contains(description, `"test"`) {
		t.Error(description)
	}
	// Without a tokenizer prompts are tokens.
	g := must(m.NewGenerator())
	defer g.Close()
	results := must(g.Batch(ctx, []generate.Request{{Tokens: []int32{1, 2}, Priority: 3,
		Sampling: []generate.SamplingOption{greedy, generate.WithMaxTokens(2)}}}))
	ok(t, results[0].Err)
	equals(t, "tokens", results[0].Tokens, []int32{'a' + 5, 'a' + 5})
	b := must(g.BatchStream(ctx, []generate.Request{{Tokens: []int32{1, 2}, Sampling: []generate.SamplingOption{greedy, generate.WithMaxTokens(2)}},
		{Prompt: "needs a tokenizer"}}))
	for b.Next() {
	}
	equals(t, "tokens", b.Results()[0].Tokens, results[0].Tokens)
	if b.Results()[1].Err == nil {
		t.Error("text without a tokenizer")
	}
	if _, err := generate.NewCustomModel(0, config, nil); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err := generate.NewCustomModel(symbol, generate.NewModelConfig(0, 1), nil); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestSampling(t *testing.T) {
	options := []generate.SamplingOption{generate.WithTemperature(0.5), generate.WithTopK(1), generate.WithTypicalP(0.25),
		generate.WithTopP(0.125), generate.WithMinP(0.75), generate.WithRepetitionPenalty(1.5), generate.WithCompoundPenalty(true),
		generate.WithFrequencyPenalty(2.5), generate.WithPresencePenalty(3.5), generate.WithPenalizePrompt(true),
		generate.WithPenaltyWindow(17), generate.WithMaxTokens(19), generate.WithSeed(math.MaxUint64), generate.WithLogprobs(2),
		generate.WithIgnoreEOS(true)}
	var described []struct{ Key, Default, Value any }
	ok(t, json.Unmarshal([]byte(must(generate.DescribeSampling(options...))), &described))
	changed := 0
	for _, d := range described {
		if d.Default != d.Value {
			changed++
		}
	}
	equal(t, "settings that were set", changed, len(options))

	g := generator(t)
	plain := must(g.Generate(ctx, "Once upon a time", greedy, generate.WithMaxTokens(8)))
	r := must(g.Generate(ctx, "Once upon a time", greedy, generate.WithMaxTokens(8), generate.WithLogprobs(3)))
	equals(t, "tokens", r.Tokens, plain.Tokens)
	equal(t, "logprobs", len(r.Logprobs), 8)
	equal(t, "top", len(r.TopLogprobs), 8)
	for i, top := range r.TopLogprobs {
		equal(t, "the most probable", top[0], generate.TopLogprob{Token: r.Tokens[i], Logprob: r.Logprobs[i]})
		equal(t, "sorted", top[0].Logprob >= top[1].Logprob && top[1].Logprob >= top[2].Logprob, true)
	}
	if plain.Logprobs != nil || plain.TopLogprobs != nil || plain.Timings.Total <= 0 || plain.Timings.FirstToken > plain.Timings.Total {
		t.Errorf("%+v", plain)
	}
	// Scoring gives the logarithm of a softmax over what a forward pass gives.
	s := session(t, g)
	ok(t, s.Append(ctx, "Once upon a time"))
	scored := must(s.Score(ctx, " dog")) // with the space that a text of its own gains
	cache := must(g.NewCache(0))
	defer cache.Close()
	logits := must(story.Forward(must(story.Tokenizer().Encode("Once upon a time", generate.AddBOS)), cache))
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x))
	}
	token := must(story.Tokenizer().Encode("dog", 0))[0]
	if want := float64(logits[token]) - math.Log(sum); math.Abs(float64(scored[0])-want) > 1e-4 {
		t.Errorf("scored %v, want %v", scored[0], want)
	}
	equal(t, "scoring leaves the session", s.Length(), 5)
	banned := must(g.Generate(ctx, "Once upon a time", greedy, generate.WithMaxTokens(1),
		generate.WithLogitBias(r.Tokens[0], float32(math.Inf(-1)))))
	equal(t, "without the most probable", banned.Tokens[0], r.TopLogprobs[0][1].Token)
	stopped := must(g.Generate(ctx, "Once upon a time", greedy, generate.WithStopTokens(r.Tokens[3]), generate.WithStop("never", "and never")))
	equals(t, "stopped", stopped.Tokens, r.Tokens[:3])
	equal(t, "reason", stopped.FinishReason, generate.FinishStopToken)
	for _, wrong := range []generate.SamplingOption{generate.WithTemperature(-1), generate.WithTopK(math.MaxInt64 - 1), generate.WithTopK(-1 << 40),
		generate.WithSetting("none", "1"), generate.WithStop("\xff"), generate.WithSampling(nil, generate.WithTopP(2))} {
		if r, err := g.Generate(ctx, "a", wrong, generate.WithMaxTokens(1)); err != nil && !errors.Is(err, generate.ErrInvalidArgument) || err == nil && r.Text == "" {
			t.Error(r, err)
		}
	}
	if _, err := g.Generate(ctx, "\xff", greedy); !errors.Is(err, generate.ErrTokenizer) {
		t.Error(err)
	}
	if _, err := g.Generate(ctx, strings.Repeat("dog ", 5000), greedy); !errors.Is(err, generate.ErrContextFull) {
		t.Error(err)
	}
}

func TestEagle(t *testing.T) {
	path := source("examples/demo_model/eagle3.gguf")
	drafting, plain := generator(t, generate.WithEagle(path), generate.WithGeneratorSetting("draft_policy", "always")), generator(t, generate.WithEagle("/no/such/head"))
	equal(t, "enabled", must(drafting.EagleEnabled()), true)
	equal(t, "path", must(drafting.EaglePath()), path)
	equal(t, "enabled without a file", must(plain.EagleEnabled()), false)
	equal(t, "path without a file", must(plain.EaglePath()), "/no/such/head")
	prompt := "Once upon a time"
	want := must(plain.Generate(ctx, prompt, greedy, generate.WithMaxTokens(24)))
	got := must(drafting.Generate(ctx, prompt, greedy, generate.WithMaxTokens(24)))
	equal(t, "text", got.Text, want.Text)
	if got.Usage.Accepted == 0 || want.Usage.Drafted != 0 {
		t.Errorf("%+v, %+v", got.Usage, want.Usage)
	}
	hidden := story.Config().Hidden
	zeros := make([]float32, hidden*hidden)
	tensors := generate.EagleTensors{NormWeight: zeros[:hidden], NormBias: zeros[:hidden], FC1Weight: zeros, FC2Weight: zeros}
	for i, eagle := range []*generate.Eagle{must(story.NewEagle(path, 3)), must(story.NewEagleTensors(tensors, 0, generate.WithPromptLookup(3, 4)))} {
		if err := eagle.SetAdaptive(false); err != nil {
			t.Error(err)
		}
		equal(t, "text", must(eagle.Generate(ctx, prompt, greedy, generate.WithMaxTokens(24))).Text, want.Text)
		if stats := must(eagle.Stats()); stats.Drafted == 0 || (i == 0 && stats.Accepted == 0) {
			t.Errorf("%d: %+v", i, stats)
		}
		eagle.Close()
	}
	tensors.FC1Weight = zeros[1:]
	if _, err := story.NewEagleTensors(tensors, 4); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error("too few numbers:", err)
	}
	if _, err := story.NewEagle("/no/such/head", 4); !errors.Is(err, generate.ErrIO) {
		t.Error("no file:", err)
	}
	if _, err := story.NewEagle("", 4); !errors.Is(err, generate.ErrUnsupported) {
		t.Error("a model's file without a head:", err)
	}
	if _, err := story.NewGenerator(generate.WithEagle(storyPath())); !errors.Is(err, generate.ErrUnsupported) {
		t.Error("a model without a head:", err)
	}
	if _, err := story.NewGenerator(generate.WithEagle("a\x00b")); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error("a NUL in a path:", err)
	}
}

func TestGenerators(t *testing.T) {
	metrics := must(generate.NewMetrics())
	defer metrics.Close()
	tracer := must(generate.NewTracer())
	defer tracer.Close()
	options := []generate.GeneratorOption{generate.WithKVTypes("fp16", "fp16"), generate.WithKVKeyForm("rotated"),
		generate.WithPagedKV(64, 16), generate.WithPrefixCache(64), generate.WithContextPolicy("shift", 4),
		generate.WithStateSnapshotEvery(64), generate.WithStateSnapshotBudget(8),
		generate.WithPrefillChunk(32), generate.WithMaxBatch(4), generate.WithMaxQueue(100), generate.WithFairness(5),
		generate.WithPromptLookup(3, 6),
		generate.WithMetrics(metrics)}
	isJSON(t, "options")(generate.DescribeGeneratorOptions(options...))
	g := generator(t, options...)
	prompt := strings.Repeat("The dog ran. ", 10)
	first := must(g.Generate(ctx, prompt, greedy, generate.WithMaxTokens(8)))
	second := must(g.Generate(ctx, prompt, greedy, generate.WithMaxTokens(8)))
	equal(t, "text", second.Text, first.Text)
	if second.Usage.PromptCached < 16 || first.Usage.PromptCached != 0 {
		t.Errorf("%+v, %+v", first.Usage, second.Usage)
	}
	equal(t, "requests", metrics.Value("requests"), 2)
	stats := must(g.PrefixStats())
	equal(t, "hits", stats.Hits, 1)
	equal(t, "lookups", stats.Lookups, 2)
	equal(t, "tokens", stats.Tokens, int64(second.Usage.PromptCached))
	equal(t, "evictions", stats.Evictions, 0)
	ok(t, g.ClearPrefixCache())
	if left := must(g.PrefixStats()); stats.Blocks == 0 || left.Blocks != 0 {
		t.Errorf("%+v, %+v", stats, left)
	}
	if _, err := generator(t).PrefixStats(); !errors.Is(err, generate.ErrState) {
		t.Error("statistics of nothing:", err)
	}
	isJSON(t, "metrics")(metrics.JSON())
	snapshot := must(metrics.Snapshot())
	equal(t, "cached", snapshot.Counters["prompt_cached_tokens"], float64(second.Usage.PromptCached))
	if h := snapshot.Histograms["step_seconds"]; h.Count == 0 || h.Buckets[len(h.Buckets)-1].Bound != nil || snapshot.Gauges["cache_blocks_free"] == 0 {
		t.Errorf("%+v", snapshot)
	}

	for _, option := range [][]generate.GeneratorOption{{generate.WithTieredKV(generate.WithColdDir(t.TempDir()), generate.WithHotMemory(64))},
		{generate.WithKVType("q4"), generate.WithTieredKV()}, {generate.WithCompressedKV(8)}, {generate.WithTracer(tracer)},
		{generate.WithMetricsSink(0), generate.WithGeneratorSetting("kv_dtype", "fp8")}} {
		if r := must(generator(t, option...).Generate(ctx, prompt, greedy, generate.WithMaxTokens(4))); len(r.Tokens) != 4 {
			t.Error(r)
		}
	}
	if op, err := tracer.Op(0); err != nil || !strings.Contains(op, "name") {
		t.Error(op, err)
	}
	if _, err := story.NewGenerator(generate.WithPrefixCache(4)); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error("blocks of no pool:", err)
	}
	isJSON(t, "tiers")(generate.DescribeTierOptions(generate.WithTierAllocator(0)))
	if _, err := generator(t, generate.WithMaxBatch(1)).Batch(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestEstimatesAndQuantizing(t *testing.T) {
	e, err := generate.EstimateMemory(storyPath(), []generate.ModelOption{generate.WithThreads(1)}, []generate.GeneratorOption{generate.WithKVType("q4")})
	ok(t, err)
	m := must(generate.LoadModel(storyPath(), generate.WithThreads(1)))
	defer m.Close()
	equal(t, "weights", e.Weights, must(m.Memory("weights")))
	equal(t, "file", e.File, must(m.Memory("file")))
	if e.Cache == 0 || e.Peak < e.Weights || e.Workspace == 0 {
		t.Errorf("%+v", e)
	}
	out := t.TempDir() + "/q8.gguf"
	ok(t, generate.Quantize(storyPath(), out, "Q8_0"))
	small := must(generate.LoadModel(out))
	defer small.Close()
	if description := must(small.Describe()); !strings.Contains(description, "Q8_0") {
		t.Error(description)
	}
	sums := t.TempDir() + "/importance.gguf"
	ok(t, m.ImportanceContext(context.Background(), []int32{1, 2, 3, 4, 5}, 4, "text", sums, nil))
	if _, err := generate.LoadModel(sums); err == nil {
		t.Error("an importance matrix is no model")
	}
	if data := must(os.ReadFile(sums)); !bytes.Contains(data, []byte("blk.0.attn_q.weight.in_sum2")) {
		t.Error(len(data))
	}
	if err := m.Importance([]int32{1}, 1<<20, "", sums); !errors.Is(err, generate.ErrOutOfRange) {
		t.Error(err)
	}
	if err := generate.Quantize(storyPath(), out, "Q9"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	mixed := t.TempDir() + "/mixed.gguf"
	types := generate.WithTensorTypes("blk.0.*=F16")
	ok(t, generate.QuantizeWith(context.Background(), storyPath(), mixed, "Q8_0", nil, types))
	if must(os.Stat(mixed)).Size() <= must(os.Stat(out)).Size() {
		t.Error("one layer has more bits")
	}
	if description := must(generate.DescribeQuantizeOptions(types)); !strings.Contains(description, "blk.0.*=F16") {
		t.Error(description)
	}
	none := generate.WithImportance("/no/such/file")
	if err := generate.QuantizeWith(context.Background(), storyPath(), out, "Q8_0", nil, none); !errors.Is(err, generate.ErrIO) {
		t.Error(err)
	}
	for _, scale := range []float32{0, 1} {
		adapter := t.TempDir() + "/adapter.gguf"
		writeAdapter(t, adapter, "blk.0.attn_q.weight", m.Config())
		merged := t.TempDir() + "/merged.gguf"
		ok(t, generate.MergeAdapterContext(context.Background(), storyPath(), adapter, scale, merged, "", nil))
		equal(t, "merged", bytes.Equal(must(os.ReadFile(merged)), must(os.ReadFile(storyPath()))), scale == 0)
	}
	if err := generate.MergeAdapter(storyPath(), storyPath(), 1, out, "F16"); err == nil || !strings.Contains(err.Error(), "general.type") {
		t.Error(err)
	}
	for _, kind := range []string{"Q9", "F16\x00"} {
		if err := generate.MergeAdapter(storyPath(), storyPath(), 1, out, kind); !errors.Is(err, generate.ErrInvalidArgument) {
			t.Error(kind, err)
		}
	}
	if err := generate.QuantizeProgress("/no/such/file", out, "F32", 0, 0); !errors.Is(err, generate.ErrIO) {
		t.Error(err)
	}
	if _, err := generate.NewTieredCache(generate.WithColdDir("a\x00b")); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(err)
	}
	if value, err := generate.MeasurePeaks(1, "none"); !errors.Is(err, generate.ErrInvalidArgument) {
		t.Error(value, err)
	}
}

func TestExamples(t *testing.T) {
	run := func(input, name string, arguments ...string) string {
		command := exec.Command(filepath.Join(os.Getenv("GENERATE_EXAMPLES"), name), append([]string{storyPath()}, arguments...)...)
		command.Stdin = strings.NewReader(input)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return string(out)
	}
	if out := run("", "stream"); !strings.HasPrefix(out, table.Texts[0].Text+"\n") || !strings.Contains(out, "stopped: ") ||
		!strings.Contains(out, " tokens by then") {
		t.Error(out)
	}
	if out := run("", "batch", "The dog", "A girl"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "\nA girl") || len(out) < 100 {
		t.Error(out)
	}
	if out := run("Tell me a story.\nAnother one.\n", "chat"); strings.Count(out, "> ") != 3 || len(out) < 100 {
		t.Error(out)
	}
	for _, path := range must(filepath.Glob(source("examples/go/*/main.go"))) {
		name := filepath.Base(filepath.Dir(path))
		if out, err := exec.Command(filepath.Join(os.Getenv("GENERATE_EXAMPLES"), name)).CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "usage: "+name+" MODEL.gguf") {
			t.Errorf("%s without arguments: %v: %s", name, err, out)
		}
		if lines := strings.Count(string(must(os.ReadFile(path))), "\n"); lines > 60 {
			t.Errorf("%s has %d lines", path, lines)
		}
	}
}

// writeAdapter writes an adapter of rank 1 and ones for a square matrix.
func writeAdapter(t *testing.T, path, tensor string, config generate.ModelConfig) {
	width := uint64(config.Hidden)
	var file bytes.Buffer
	number := func(n any) { ok(t, binary.Write(&file, binary.LittleEndian, n)) }
	text := func(s string) {
		number(uint64(len(s)))
		file.WriteString(s)
	}
	file.WriteString("GGUF")
	number([]uint32{3, 2, 0, 3, 0})
	for _, entry := range [][2]string{{"general.type", "adapter"}, {"general.architecture", "llama"}, {"adapter.type", "lora"}} {
		text(entry[0])
		number(uint32(8))
		text(entry[1])
	}
	pad := func() {
		for file.Len()%32 != 0 {
			file.WriteByte(0)
		}
	}
	for i, shape := range [][]uint64{{width, 1}, {1, width}} {
		text(tensor + []string{".lora_a", ".lora_b"}[i])
		number(uint32(2))
		number(shape)
		number(uint32(0))
		number(uint64(i) * width * 4)
	}
	pad()
	for i := uint64(0); i < 2*width; i++ {
		number(float32(1))
	}
	ok(t, os.WriteFile(path, file.Bytes(), 0o600))
}
