// SPDX-License-Identifier: Apache-2.0
// Proves the rest of the surface: what the library tells of itself, options and their refusals, models, metrics, tracing of
// generators, log-probabilities, estimates.
import com.sun.management.ThreadMXBean;
import dev.libgenerate.Cancel;
import dev.libgenerate.Chat;
import dev.libgenerate.Eagle;
import dev.libgenerate.Experimental;
import dev.libgenerate.FinishReason;
import dev.libgenerate.GenerateException;
import dev.libgenerate.Generator;
import dev.libgenerate.GeneratorOptions;
import dev.libgenerate.LibGenerate;
import dev.libgenerate.MemoryEstimate;
import dev.libgenerate.MetricsMemory;
import dev.libgenerate.Model;
import dev.libgenerate.ModelConfig;
import dev.libgenerate.ModelOptions;
import dev.libgenerate.NativeSymbol;
import dev.libgenerate.QuantizeOptions;
import dev.libgenerate.Result;
import dev.libgenerate.Sampling;
import dev.libgenerate.Session;
import dev.libgenerate.Status;
import dev.libgenerate.ThreadPool;
import dev.libgenerate.TieredOptions;
import dev.libgenerate.Token;
import dev.libgenerate.TokenStream;
import dev.libgenerate.Tokenizer;
import dev.libgenerate.Tracer;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

final class LibraryTest {
  private static Model model;

  private LibraryTest() {}

  public static void main(String[] args) throws Exception {
    model = Model.load(Check.MODEL);
    Check.test("the library tells of itself", LibraryTest::library);
    Check.test("sampling settings", LibraryTest::sampling);
    Check.test("options refuse at once", LibraryTest::options);
    Check.test("heads from files", LibraryTest::eagle);
    Check.test("models", LibraryTest::models);
    Check.test("custom models", LibraryTest::custom);
    Check.test("tokenizers", LibraryTest::tokenizers);
    Check.test("text that is none", LibraryTest::text);
    Check.test("results", LibraryTest::results);
    Check.test("sessions", LibraryTest::sessions);
    Check.test("streams polled by one thread", LibraryTest::poll);
    Check.test("a token leaves nothing but itself to the collector", LibraryTest::garbage);
    Check.test("metrics and tracers of generators", LibraryTest::metrics);
    Check.test("estimates and quantising", LibraryTest::files);
    Check.finish();
  }

  private static void library() throws Exception {
    Check.that(LibGenerate.version().matches("\\d+\\.\\d+\\.\\d+"), LibGenerate.version());
    Check.equal(0, LibGenerate.abiVersion(), "binary interface");
    Check.equal(LibGenerate.version(), Json.map(Json.parse(LibGenerate.buildInfo())).get("version"), "version");
    Check.that(LibGenerate.backends().contains("cpu"), "backends");
    LibGenerate.requireBackend("cpu");
    Check.fails(Status.INVALID_ARGUMENT, () -> LibGenerate.requireBackend("abacus"));
    Check.equal(1, LibGenerate.deviceCount("cpu"), "devices");
    Check.that(Json.parse(LibGenerate.describeDevice("cpu", 0)) != null, "a device");
    Check.that(Json.list(Json.parse(LibGenerate.kvKinds())).size() >= 5, "kinds of caches");
    Check.that(MetricsMemory.describe().contains("first_token_seconds"), "metrics");
    LibGenerate.setLogLevel(LibGenerate.LogLevel.OFF);
    LibGenerate.setLog(NativeSymbol.NONE, 0);
    int[][] rows = LibGenerate.padLeft(new int[][] {{1, 2}, {}, {3}}, 9);
    Check.equal(new int[][] {{1, 2}, {9, 9}, {9, 3}}, rows, "a rectangle");
    Check.that(Experimental.measurePeak(1, "fma_f32") > 1e8, "a peak");
    for (Status status : Status.values()) Check.equal(status, Status.of(status.code()), "a status and its number");
    Check.equal(Status.UNKNOWN, Status.of(-19), "a number that is none");
    Check.equal(Status.UNKNOWN, Status.of(5), "a number that is none");
  }

  private static void sampling() throws Exception {
    Sampling all = Sampling.defaults().temperature(0.5).topK(5).topP(0.9).minP(0.1).typicalP(0.8).repetitionPenalty(1.1)
        .compoundPenalty(true).frequencyPenalty(0.1).presencePenalty(0.2).penalizePrompt(true).penaltyWindow(7)
        .maxNewTokens(9).seed(-3).logprobs(2).logitBias(4, 1.5F).ignoreEos(true).stopToken(2).stopString("größer");
    List<Object> settings = Json.list(Json.parse(all.describe()));
    for (String expected : List.of("temperature=0.5", "top_k=5", "top_p=0.9", "min_p=0.1", "typical_p=0.8",
        "repetition_penalty=1.1", "penalty_window=7", "max_new_tokens=9", "logprobs=2")) {
      String[] pair = expected.split("=");
      Object value = settings.stream().filter(s -> Json.map(s).get("key").equals(pair[0])).findFirst()
          .map(s -> Json.map(s).get("value")).get();
      Check.equal(Double.parseDouble(pair[1]), Double.parseDouble(value.toString()), pair[0]);
    }
    Check.that(all.describe().contains("größer"), "a stop string");
    Check.that(all.describe().contains("18446744073709551613"), "all bits of the seed");
    Check.that(!Sampling.defaults().describe().contains("größer"), "the defaults are as they were");
    Check.fails(Status.INVALID_ARGUMENT, () -> Sampling.defaults().temperature(2e6));
    Check.fails(Status.INVALID_ARGUMENT, () -> Sampling.defaults().topP(Double.NaN));
    Check.fails(Status.INVALID_ARGUMENT, () -> Sampling.defaults().set("temperature", "warm"));
    Check.fails(Status.INVALID_ARGUMENT, () -> Sampling.defaults().set("temperature\0x", "1"));
  }

  private static void eagle() throws Exception {
    Path head = Check.MODEL.resolveSibling("eagle3.gguf");
    Path nowhere = Path.of("/no/such/head.gguf");
    try (Generator drafting = Generator.of(model, GeneratorOptions.defaults().eagle(head).set("draft_policy", "always"));
        Generator plain = Generator.of(model, GeneratorOptions.defaults().eagle(nowhere))) {
      Check.that(drafting.eagleEnabled() && !plain.eagleEnabled(), "enabled where there is a file");
      Check.equal(head.toString(), drafting.eaglePath(), "path");
      Check.equal(nowhere.toString(), plain.eaglePath(), "path without a file");
      Result guessed = drafting.generate("Once upon a time", Check.greedy(24));
      Check.equal(plain.generate("Once upon a time", Check.greedy(24)).text(), guessed.text(), "text");
      Check.that(guessed.acceptedTokens() > 0, "guesses of the head");
    }
    Check.fails(Status.UNSUPPORTED, () -> Generator.of(model, GeneratorOptions.defaults().eagle(Check.MODEL)));
    int hidden = model.hidden();
    float[] square = new float[hidden * hidden];
    Eagle.Tensors tensors = new Eagle.Tensors(new float[hidden], new float[hidden], square, square, null);
    try (Generator plain = Generator.of(model);
        Eagle ofFile = Eagle.of(model, head);
        Eagle ofTensors = Eagle.of(model, tensors, 3, GeneratorOptions.defaults().promptLookup(3, 4))) {
      String want = plain.generate("Once upon a time", Check.greedy(24)).text();
      for (Eagle eagle : List.of(ofFile, ofTensors)) {
        eagle.setAdaptive(false);
        Check.equal(want, eagle.generate("Once upon a time", Check.greedy(24)).text(), "text");
        Check.that(eagle.stats("drafted") > 0, "guesses of the head");
        Check.equal(want, eagle.generateAsync("Once upon a time", Check.greedy(24), Runnable::run).get().text(), "text");
      }
      Check.that(ofFile.stats("accepted") > 0, "right guesses");
    }
    Check.fails(Status.IO, () -> Eagle.of(model, nowhere));
    Check.fails(Status.UNSUPPORTED, () -> Eagle.of(model, null));
  }

  private static void options() throws Exception {
    GeneratorOptions options = GeneratorOptions.defaults().kvTypes("fp16", "q4").kvKeyForm("rotated").prefillChunk(7)
        .stateSnapshotEvery(64).stateSnapshotBudget(8).maxBatch(3).maxQueue(5).fairness(4).promptLookup(3, 0).contextPolicy("shift", 4).pagedKv(16, 16).prefixCache(8);
    for (String expected : List.of("fp16", "q4", "rotated", "shift", "16,16")) {
      Check.that(options.describe().contains(expected), expected + " in " + options.describe());
    }
    try (Generator generator = Generator.of(model, options)) {
      Check.equal(3, generator.generate("Once", Check.greedy(3)).tokens().length, "tokens");
      String prompt = "The dog ran. ".repeat(10);
      generator.generate(prompt, Check.greedy(3));
      Result again = generator.generate(prompt, Check.greedy(3));
      Generator.PrefixStats stats = generator.prefixStats();
      Check.equal(3L, stats.lookups(), "lookups");
      Check.equal(1L, stats.hits(), "hits");
      Check.equal(again.cachedPromptTokens(), stats.tokens(), "tokens of the cache");
      generator.clearPrefixCache();
      Check.equal(0L, generator.prefixStats().blocks(), "blocks");
    }
    try (Generator generator = Generator.of(model, GeneratorOptions.defaults().compressedKv(8))) {
      Check.fails(Status.STATE, generator::prefixStats);
      Check.equal(3, generator.generate("Once", Check.greedy(3)).tokens().length, "tokens");
    }
    try (Generator generator = Generator.of(model,
        GeneratorOptions.defaults().tieredKv(TieredOptions.defaults().hotMemory(64)))) {
      Check.equal(3, generator.generate("Once", Check.greedy(3)).tokens().length, "tokens");
    }
    Check.fails(Status.INVALID_ARGUMENT, () -> GeneratorOptions.defaults().kvDtype("fp7"));
    Check.fails(Status.INVALID_ARGUMENT, () -> Generator.of(model, GeneratorOptions.defaults().prefixCache(8)));
    Check.fails(Status.INVALID_ARGUMENT, () -> ModelOptions.defaults().backend("abacus"));
    Check.fails(Status.INVALID_ARGUMENT, () -> ModelOptions.defaults().threads(-1));
    Check.fails(Status.INVALID_ARGUMENT, () -> TieredOptions.defaults().blockSize(0));
    Check.fails(Status.INVALID_ARGUMENT, () -> ModelConfig.of(0, 1));
    Check.fails(Status.INVALID_ARGUMENT, () -> new ThreadPool(-1));
  }

  private static void models() throws Exception {
    GenerateException e = Check.fails(Status.IO, () -> Model.load(Path.of("/no/such/größe.gguf")));
    Check.that(e.getMessage().contains("größe.gguf"), e.getMessage());
    Check.fails(Status.FORMAT, () -> Model.load(new byte[100], null));
    byte[] file = Files.readAllBytes(Check.MODEL);
    try (ThreadPool pool = new ThreadPool(1, new int[] {0});
        Model copy = Model.load(file, ModelOptions.defaults().threadPool(pool).maxSequenceLength(128).checkTensors(true)
            .backend("cpu").device(0).set("repack", "0"))) {
      Check.equal(128, copy.maxSequenceLength(), "context");
      try (Generator generator = Generator.of(copy); Generator other = Generator.of(model)) {
        Check.equal(other.generate("Once", Check.greedy(9)).text(), generator.generate("Once", Check.greedy(9)).text(),
            "text of a model in memory");
        e = Check.fails(Status.INVALID_ARGUMENT,
            () -> other.generate("Once", Check.greedy(1).adapter("a").addAdapter("b", 0.5F)));
        Check.that(e.getMessage().contains("no adapter is named \"a\""), e.getMessage());
      }
    }
    Check.fails(Status.FORMAT, () -> model.loadAdapter(Check.MODEL.toString(), "a", 1));
    Check.fails(Status.INVALID_ARGUMENT, () -> model.unloadAdapter("a"));
    Check.fails(Status.INVALID_ARGUMENT, () -> model.setAdapterBudget(-1));
    model.setAdapterBudget(1);
    model.setAdapterBudget(0);
    Check.equal(0, model.adapters().size(), "adapters");
    Check.equal(4096, model.vocabSize(), "vocabulary");
    Check.equal(model.tokenizer().special(Tokenizer.Special.EOS), model.eos(), "eos");
    Check.equal(1, model.bos(), "bos");
    Check.equal(model.hidden(), model.numHeads() * model.headDim(), "sizes");
    Check.that(model.numKvHeads() > 0 && model.numLayers() > 0, "sizes");
    Check.equal(model.numLayers(), model.numCacheLayers(), "layers of a cache");
    Check.equal(model.metadata("general.architecture"), model.metadata().get("general.architecture"), "metadata");
    Check.equal(Status.INVALID_ARGUMENT, Check.fails(Status.INVALID_ARGUMENT, () -> model.metadata("no")).status(), "");
    Check.that(Json.map(Json.parse(model.describe())).containsKey("architecture"), model.describe());
    Check.that(model.describeConfig().contains("vocab_size"), model.describeConfig());
    Check.equal((long) file.length, model.memory("file"), "bytes of the file");
  }

  private static void custom() throws Exception {
    NativeSymbol forward = NativeSymbol.of(Check.TEST_MODELS, "test_model_nothing");
    ModelConfig config = ModelConfig.of(4096, 64).eos(7).bos(8).numLayers(1).numHeads(2).numKvHeads(1).headDim(4).hidden(8)
        .kvLayers(1).name("mine");
    try (Model mine = Model.custom(forward, config.kvLayers(0), null); Generator generator = Generator.of(mine);
        Session session = generator.newSession()) {
      Check.equal(List.of(7, 8, 1, 2, 1, 4, 8), List.of(mine.eos(), mine.bos(), mine.numLayers(), mine.numHeads(),
          mine.numKvHeads(), mine.headDim(), mine.hidden()), "sizes");
      Check.equal(null, mine.tokenizer(), "no tokenizer");
      Check.that(mine.describe().contains("mine"), mine.describe());
      session.appendTokens(3, 4);
      Check.equal(new int[] {102, 102}, session.generate("", Check.greedy(2)).tokens(), "tokens");
    }
    Check.fails(Status.IO, () -> NativeSymbol.of(Path.of("/no/such.so"), "x"));
    Check.fails(Status.INVALID_ARGUMENT, () -> NativeSymbol.of(Check.TEST_MODELS, "no_such_symbol"));
    Check.fails(Status.INVALID_ARGUMENT, () -> Model.custom(NativeSymbol.NONE, config, null));
  }

  private static void tokenizers() throws Exception {
    try (Tokenizer tokenizer = Tokenizer.load(Check.MODEL)) {
      Check.equal(4096, tokenizer.vocabSize(), "vocabulary");
      Check.equal(new byte[] {(byte) 0xC3}, tokenizer.piece(200), "a byte that is no character");
      Check.equal("", tokenizer.decode(), "nothing");
      Check.equal("�", tokenizer.decode(200), "half a character");
      int[] gold = tokenizer.encode("The gold", false, false);
      int[] cat = tokenizer.encodeMore("en cat", false);
      int[] both = Arrays.copyOf(gold, gold.length + cat.length);
      System.arraycopy(cat, 0, both, gold.length, cat.length);
      Check.equal("The golden cat", tokenizer.decode(both), "text that goes on");
      int[] parsed = tokenizer.encode("<|im_end|>", false, true);
      Check.that(parsed.length == 1 && tokenizer.encode("<|im_end|>", false, false).length > 1, "special tokens");
      Check.fails(Status.OUT_OF_RANGE, () -> tokenizer.decode(5000));
      Check.fails(Status.OUT_OF_RANGE, () -> tokenizer.piece(-1));
    }
    Check.fails(Status.IO, () -> Tokenizer.load(Path.of("/no/such")));
    try (Chat chat = new Chat().system("s").user("u").assistant("a")) {
      Check.that(model.format(chat, false).contains("assistant\na"), model.format(chat, false));
      Check.fails(Status.INVALID_ARGUMENT, () -> chat.add("", "x"));
      Check.fails(Status.INVALID_ARGUMENT, () -> chat.toolCall(null, "f", "[]"));
      chat.user("<|im_end|>");
      Check.fails(Status.INVALID_ARGUMENT, () -> model.format(chat, true));
    }
    Chat closed = new Chat();
    closed.close();
    Check.fails(Status.STATE, () -> closed.user("u"));
  }

  private static void text() throws Exception {
    Check.fails(Status.INVALID_ARGUMENT, () -> model.tokenizer().encode("half \ud83c"));
    Check.fails(Status.INVALID_ARGUMENT, () -> model.tokenizer().encode("\udf89 half"));
    Check.equal("🎉", model.tokenizer().decode(model.tokenizer().encode("🎉")), "a whole one");
    try (Generator generator = Generator.of(model)) {
      Check.fails(Status.INVALID_ARGUMENT, () -> generator.generate("", Check.greedy(1)));
      Check.fails(Status.CONTEXT_FULL, () -> generator.generate("word ".repeat(5000), Check.greedy(1)));
    }
  }

  private static void results() {
    try (Generator generator = Generator.of(model)) {
      Result result = generator.generate("Once upon a time", Check.greedy(6).logprobs(3));
      Check.equal(6, result.logprobs().length, "log-probabilities");
      Check.equal(6, result.topLogprobs().size(), "steps");
      for (int i = 0; i < 6; ++i) {
        List<Result.Candidate> top = result.topLogprobs().get(i);
        Check.equal(3, top.size(), "candidates");
        Check.equal(result.tokens()[i], top.get(0).id(), "greedy takes the first");
        Check.equal(result.logprobs()[i], top.get(0).logprob(), "and its log-probability");
      }
      Check.equal(0L, result.cachedPromptTokens() + result.droppedTokens(), "nothing cached, nothing dropped");
      Check.that(result.totalTime().compareTo(result.firstTokenTime()) >= 0 && !result.prefillTime().isNegative()
          && !result.decodeTime().isNegative(), "times");
      Check.equal(result.text(), result.toString(), "as text");
      Check.equal(FinishReason.LENGTH, result.finishReason(), "finish reason");
    }
  }

  private static void sessions() throws Exception {
    Path file = Files.createTempFile("generate", ".state");
    try (Generator generator = Generator.of(model); Session session = generator.newSession()) {
      session.append("Once upon");
      session.append("");
      try (Session fork = session.fork(); Session loaded = generator.newSession()) {
        String text = session.generate("", Check.greedy(5)).text();
        Check.equal(text, fork.generate("", Check.greedy(5)).text(), "the fork");
        session.save(file);
        loaded.load(file);
        Check.equal(session.tokens(), loaded.tokens(), "loaded");
        Check.fails(Status.STATE, () -> loaded.load(file));
      }
      Check.equal(1.0, session.progress(), "progress");
      Check.fails(Status.FORMAT, () -> generator.newSession().load(new byte[64]));
      Check.fails(Status.OUT_OF_RANGE, () -> session.appendTokens(99999));
    } finally {
      Files.delete(file);
    }
  }

  private static void poll() {
    try (Generator generator = Check.generator("test_model_script")) {
      List<TokenStream> streams = List.of(generator.stream("a", Check.greedy(22), new Cancel()),
          generator.stream("a", Check.greedy(44)), generator.stream("a", Check.greedy(10)));
      StringBuilder[] texts = {new StringBuilder(), new StringBuilder(), new StringBuilder()};
      for (int open = 3; open > 0;) {
        open = 0;
        for (int i = 0; i < 3; ++i) {
          Token token = streams.get(i).poll();
          if (token != null) texts[i].append(token.text());
          if (!streams.get(i).isEnded()) ++open;
        }
      }
      Check.equal("Grüße, 世界! 🎉 ", texts[0].toString(), "text");
      Check.equal("Grüße, 世界! 🎉 ".repeat(2), texts[1].toString(), "text of twice as many");
      Check.equal("Grüße, ", texts[2].toString(), "text without half a character");
      for (TokenStream stream : streams) {
        Check.equal(null, stream.poll(), "the end stays");
        stream.close();
      }
    }
  }

  private static void garbage() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long self = Thread.currentThread().getId();
    try (Generator generator = Check.generator("test_model_nothing");
        TokenStream stream = generator.stream("a", Check.greedy(3000))) {
      for (int i = 0; i < 500; ++i) stream.next();
      long before = threads.getThreadAllocatedBytes(self);
      for (int i = 0; i < 2000; ++i) stream.next();
      double each = (threads.getThreadAllocatedBytes(self) - before) / 2000.0;
      System.out.printf("       %.0f bytes a token%n", each);
      Check.that(each < 100, "a record of 32 bytes and a string of 48, not " + each);
    }
  }

  private static void metrics() {
    try (MetricsMemory memory = new MetricsMemory(); Tracer tracer = new Tracer()) {
      GeneratorOptions options = GeneratorOptions.defaults().metrics(memory).tracer(tracer).metrics(memory);
      try (Generator generator = Generator.of(model, options)) {
        generator.generate("Once", Check.greedy(4));
      }
      Check.equal(1.0, memory.value("requests"), "requests");
      Check.equal(4.0, memory.value("completion_tokens"), "tokens");
      Check.that(Json.map(Json.parse(memory.snapshot())).containsKey("histograms"), "a snapshot");
      Check.that(tracer.operationCount() > 10, "operations");
    }
  }

  private static void files() throws Exception {
    MemoryEstimate estimate = MemoryEstimate.of(Check.MODEL, null, GeneratorOptions.defaults().kvDtype("fp16"));
    MemoryEstimate full = MemoryEstimate.of(Check.MODEL, ModelOptions.defaults().mmap(true), null);
    Check.equal(full.cache(), 2 * estimate.cache(), "half of the cache");
    Check.that(estimate.peak() >= estimate.weights() + estimate.cache() && estimate.workspace() > 0, "a sum");
    Check.equal(Files.size(Check.MODEL), estimate.file(), "the file");
    Path out = Files.createTempFile("generate", ".gguf");
    try {
      Model.quantize(Check.MODEL, out, "Q4_0");
      try (Model smaller = Model.load(out)) {
        Check.that(smaller.memory("file") < model.memory("file"), "smaller");
      }
      Check.fails(Status.INVALID_ARGUMENT, () -> Model.quantize(Check.MODEL, out, "Q7"));
      long four = Files.size(out);
      QuantizeOptions some = QuantizeOptions.defaults().types("blk.0.*=F16");
      Check.that(some.describe().contains("blk.0.*=F16"), some.describe());
      Model.quantize(Check.MODEL, out, "Q4_0", some, null);
      Check.that(Files.size(out) > four, "more bits for one layer");
      Check.fails(Status.INVALID_ARGUMENT, () -> QuantizeOptions.defaults().types("blk.0.*"));
      Check.fails(Status.IO, () -> Model.quantize(Check.MODEL, out, "Q4_0",
          QuantizeOptions.defaults().importance(Path.of("/no/such/file")), null));
      GenerateException none = Check.fails(Status.FORMAT, () -> Model.mergeAdapter(Check.MODEL, Check.MODEL, 1, out, null));
      Check.that(none.getMessage().contains("general.type"), none.getMessage());
      Check.fails(Status.INVALID_ARGUMENT, () -> Model.mergeAdapter(Check.MODEL, Check.MODEL, 1, out, "Q7"));
      Check.fails(Status.INVALID_ARGUMENT, () -> Model.mergeAdapter(Check.MODEL, out, 1, out, "F16", share -> {}));
    } finally {
      Files.delete(out);
    }
  }
}
