// SPDX-License-Identifier: Apache-2.0
// Proves that every kind of cache is reached from Java and hands back what it was given, as exactly as its kind promises.
import dev.libgenerate.BatchKvCache;
import dev.libgenerate.Block;
import dev.libgenerate.BlockPool;
import dev.libgenerate.Experimental;
import dev.libgenerate.GenerateException;
import dev.libgenerate.Generator;
import dev.libgenerate.GeneratorOptions;
import dev.libgenerate.GpuAllocator;
import dev.libgenerate.GpuKvCache;
import dev.libgenerate.KvCache;
import dev.libgenerate.KvSpan;
import dev.libgenerate.Model;
import dev.libgenerate.ModelOptions;
import dev.libgenerate.NativeSymbol;
import dev.libgenerate.PagedKvCache;
import dev.libgenerate.PrefixCache;
import dev.libgenerate.RadixTree;
import dev.libgenerate.Session;
import dev.libgenerate.SsmState;
import dev.libgenerate.Status;
import dev.libgenerate.TieredKvCache;
import dev.libgenerate.TieredOptions;
import dev.libgenerate.Tracer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

final class CachesTest {
  private static final int DIM = 128;
  private static Path folder;

  private CachesTest() {}

  public static void main(String[] args) throws Exception {
    folder = Files.createTempDirectory("generate-caches");
    plain("fp32", KvCache.fp32(2, 64), 0);
    plain("fp16", KvCache.fp16(2, 64), 1.0 / 2048);
    plain("fp8", KvCache.fp8(2, 64), 1.0 / 16);
    plain("q4", KvCache.q4(2, 64), 1.0 / 14);
    plain("q3", KvCache.q3(2, 64), 0.4);
    plain("fp32", KvCache.tensor(null, 2, 64, "fp32"), 0);
    plain("fp16", KvCache.tensor(null, 2, 64, "fp16"), 1.0 / 2048);
    plain("tracing", KvCache.tracing(KvCache.fp32(2, 64), new Tracer()), 0);
    plain("paged", PagedKvCache.of(BlockPool.of(2, 4, 2 * DIM, 1, "fp32"), 2), 0);
    plain("tiered", TieredKvCache.of(TieredOptions.defaults().numLayers(2).maxSequenceLength(64)), 0);
    Check.test("compressed: means", CachesTest::compressed);
    Check.test("views and full buffers", CachesTest::views);
    Check.test("caches on a device", CachesTest::onDevice);
    Check.test("tracing: a record", CachesTest::tracing);
    Check.test("blocks: tables, injection, prefixes", CachesTest::blocks);
    Check.test("tiers: up, down and from a folder", CachesTest::tiers);
    Check.test("many sequences: masks, prefixes, windows", CachesTest::batch);
    Check.test("radix: insert, match, pin, evict", CachesTest::radix);
    Check.test("recurrent states", CachesTest::ssm);
    Check.test("forward passes over caches of a generator", CachesTest::forward);
    try (var files = Files.list(folder)) {
      for (Path file : (Iterable<Path>) files::iterator) Files.delete(file);
    }
    Files.delete(folder);
    Check.finish();
  }

  private static float[] random(int n, long seed) {
    Random random = new Random(seed);
    float[] out = new float[n];
    for (int i = 0; i < n; ++i) out[i] = random.nextFloat() * 2 - 1;
    return out;
  }

  /** Rows [2, 5, DIM] in two updates come back as [2, 5, DIM], each element off by at most `error` of the largest. */
  private static void plain(String kind, KvCache cache, double error) {
    Check.test("cache: " + kind + ", " + cache.getClass().getSimpleName(), () -> {
      float[] k = random(2 * 5 * DIM, 1);
      float[] v = random(2 * 5 * DIM, 2);
      for (int layer = 0; layer < 2; ++layer) {
        cache.update(layer, part(k, 0, 3), part(v, 0, 3), 2, 3, DIM);
        cache.update(layer, part(k, 3, 5), part(v, 3, 5), 2, 2, DIM);
      }
      Check.that(cache.kind() != null && cache.numLayers() == 2, "what it is");
      Check.equal(error > 0, cache.isLossy(), "lossy");
      Check.equal(5, cache.length(), "length");
      Check.equal(5, cache.length(1), "length of a layer");
      Check.equal(5, cache.entries(1), "entries");
      KvCache.Layer layer = cache.get(1);
      Check.equal(List.of(2, 5, DIM), List.of(layer.keys().batch(), layer.keys().seq(), layer.keys().dim()), "shape");
      near(k, layer.keys().data(), error);
      near(v, layer.values().data(), error);
      Check.equal(0, cache.get(7).keys().data().length, "a layer that is none");
      Check.that(cache.memory().payload() > 0, "it holds something");
      Check.fails(Status.INVALID_ARGUMENT, () -> cache.update(0, new float[5], new float[5], 2, 1, DIM));
      if (cache.can(KvCache.Capability.COPY)) {
        try (KvCache copy = cache.copy()) {
          Check.equal(layer.keys().data(), copy.get(1).keys().data(), "the copy");
        }
      }
      if (!kind.equals("tracing") && !kind.equals("tiered")) {
        Path file = folder.resolve("state");
        cache.save(file);
        byte[] saved = cache.save();
        Check.equal(Files.readAllBytes(file), saved, "the state in memory and in a file");
        cache.reset();
        cache.load(saved);
        Check.equal(layer.values().data(), cache.get(1).values().data(), "loaded");
        cache.reset();
        cache.load(file);
      }
      cache.truncate(2);
      Check.equal(2, cache.length(), "length when cut");
      cache.reset();
      Check.equal(0, cache.length(), "length when empty");
      cache.close();
    });
  }

  /** Positions [from, to) of [2, 5, DIM]. */
  private static float[] part(float[] all, int from, int to) {
    float[] out = new float[2 * (to - from) * DIM];
    for (int lane = 0; lane < 2; ++lane) {
      System.arraycopy(all, (lane * 5 + from) * DIM, out, lane * (to - from) * DIM, (to - from) * DIM);
    }
    return out;
  }

  private static void near(float[] expected, float[] got, double error) {
    Check.equal(expected.length, got.length, "elements");
    for (int i = 0; i < got.length; ++i) {
      Check.that(Math.abs(expected[i] - got[i]) <= error, "element " + i + ": " + expected[i] + ", " + got[i]);
    }
  }

  private static void compressed() {
    try (KvCache cache = KvCache.compressed(1, 1, 2, 4)) {
      cache.update(0, new float[] {1, 0, 2, 0, 3, 0, 6, 0, 9, 9}, new float[10], 1, 5, 2);
      Check.equal(2, cache.entries(0), "entries");
      Check.equal(new float[] {3, 0, 9, 9}, cache.get(0).keys().data(), "a mean and a rest");
      Check.equal(new KvCache.Entry(0, 4), cache.compressedEntry(0, 0), "the mean");
      Check.equal(new KvCache.Entry(4, 1), cache.compressedEntry(0, 1), "the rest");
    }
  }

  private static void onDevice() throws Exception {
    float[] row = {1, 2, 3, 4};
    try (GpuAllocator gpu = GpuAllocator.host(); GpuKvCache cache = GpuKvCache.of(gpu, 1, 4, 2, 2);
        KvCache tensor = KvCache.tensor(null, 1, 4, "fp32")) {
      cache.append(0, row, row, 0);
      GpuKvCache.Pointers at = cache.pointers(0);
      Check.that(at.k() != 0 && at.v() != 0 && at.length() == 1, "addresses: " + at);
      cache.appendOnDevice(0, at.k(), at.v());
      cache.appendOnStream(0, at.k(), at.v(), 0);
      Check.fails(Status.INVALID_ARGUMENT, () -> cache.appendOnStream(0, at.k(), at.v(), 1));
      cache.syncLength();
      Check.equal(3, cache.length(), "three positions");
      Check.that(cache.counter() != 0 && cache.pointerArrays().k() != 0, "more addresses");
      Check.equal(5L, gpu.counters().allocations(), "pieces");
      long before = gpu.counters().bytes();
      try (GpuKvCache halves = GpuKvCache.of(gpu, 1, 4, 2, 2, "fp16")) {
        Check.equal(2L * 4 * 4 * 2 + 12, gpu.counters().bytes() - before, "bytes");
        halves.append(0, new float[] {1, 2049, 65519, 65520}, row, 0);
        Check.equal(
            new float[] {1, 2048, 65504, Float.POSITIVE_INFINITY}, halves.get(0).keys().data(), "nearest");
      }
      Check.fails(Status.INVALID_ARGUMENT, () -> GpuKvCache.of(gpu, 1, 4, 2, 2, "q4_0"));
      Check.fails(Status.SEQUENCE, () -> cache.append(0, row, row, 1));
      Check.fails(Status.INVALID_ARGUMENT, () -> cache.append(0, new float[3], row, 3));
      tensor.setGpuAllocator(gpu);
      Check.that(tensor.counterOnDevice() != 0, "a counter");
    }
    try (GpuAllocator gpu = GpuAllocator.host(); BlockPool pool = BlockPool.of(1, 4, 4, 1, "fp32")) {
      pool.setGpuAllocator(gpu);
      try (PagedKvCache paged = PagedKvCache.of(pool, 1);
          TieredKvCache tiered = TieredKvCache.of(TieredOptions.defaults().numLayers(1).maxSequenceLength(4).hotLayersOnGpu(gpu))) {
        paged.update(0, row, row, 1, 1, 4);
        tiered.update(0, row, row, 1, 1, 4);
        Check.equal(2L, gpu.counters().allocations(), "a segment of blocks and a layer");
        tiered.demote(0);
        Check.equal(1L, gpu.counters().allocations(), "the layer is in the host's memory");
      }
    }
    try (GpuAllocator gpu = GpuAllocator.host();
        Model model = Model.load(Check.MODEL, ModelOptions.defaults().gpuAllocator(gpu))) {
      Check.that(model.vocabSize() > 0, "loaded");
      Check.equal(0L, gpu.counters().bytes(), "not on a device");
    }
    try (GpuAllocator cuda = GpuAllocator.cuda(0)) {
      Check.equal(0L, cuda.counters().bytes(), "nothing yet");
    } catch (GenerateException e) {
      Check.equal(Status.UNSUPPORTED, e.status(), e.getMessage());
    }
    try (GpuAllocator none = GpuAllocator.of(NativeSymbol.NONE)) {
      Check.fails(Status.INVALID_ARGUMENT, none::counters);
    }
  }

  private static void views() throws Exception {
    try (KvCache cache = KvCache.tensor(null, 1, 16, "fp16"); KvCache q4 = KvCache.q4(1, 16)) {
      cache.update(0, new float[8], new float[8], 1, 2, 4);
      KvSpan view = cache.view(0);
      KvSpan full = cache.fullBuffer(0);
      Check.that(view.half() && view.k() != 0 && view.seq() == 2 && view.kDim() == 4, "a view: " + view);
      Check.that(full.k() == view.k() && full.seq() == 16 && full.kSeqStride() == 8, "the buffer: " + full);
      Check.that(cache.can(KvCache.Capability.FULL_BUFFER) && !q4.can(KvCache.Capability.VIEW), "capabilities");
      Check.equal(0L, cache.lengthOnDevice() + cache.counterOnDevice(), "no device");
      q4.update(0, new float[8], new float[8], 1, 2, 4);
      Check.fails(Status.UNSUPPORTED, () -> q4.view(0));
      Check.fails(Status.STATE, cache::syncCounter);
      Check.equal(16, cache.maxSequenceLength(), "most positions");
      Check.fails(Status.INVALID_ARGUMENT, () -> KvCache.fp32(-1, 16));
      KvCache early = KvCache.fp32(1, 16);
      early.setAllocator(NativeSymbol.NONE);
      early.close();
    }
  }

  private static void tracing() throws Exception {
    try (Tracer tracer = new Tracer(); KvCache cache = KvCache.tracing(KvCache.fp32(1, 16), tracer)) {
      cache.update(0, new float[4], new float[4], 1, 1, 4);
      cache.get(0);
      Check.that(tracer.operationCount() >= 4, "operations");
      Check.that(tracer.operation(0).contains("KVCacheAppendK"), tracer.operation(0));
      KvCache below = cache.underlying();
      Check.equal("fp32", below.kind(), "what is traced");
      Check.that(below.describe().startsWith("{\"kind\":\"fp32\",\"dtype\":\"fp32\""), "as JSON");
      Check.equal("fp32", cache.dtype(), "type");
      Check.equal(1, below.length(), "positions");
      Check.that(below.underlying() == null, "nothing below it");
      Check.fails(Status.STATE, () -> below.truncate(0));
      below.close();
      Check.equal(1, cache.length(), "still there");
      tracer.writeJson(folder.resolve("trace.json"));
      tracer.writeDot(folder.resolve("trace.dot"));
      Check.that(Files.readString(folder.resolve("trace.dot")).contains("digraph"), "a graph");
      Check.that(Json.parse(Files.readString(folder.resolve("trace.json"))) != null, "JSON");
      Check.fails(Status.OUT_OF_RANGE, () -> tracer.operation(1000));
    }
  }

  private static void blocks() throws Exception {
    try (BlockPool pool = BlockPool.of(1, 4, 8, 1, "fp32");
        PagedKvCache first = PagedKvCache.of(pool, 1);
        PagedKvCache second = PagedKvCache.of(pool, 1)) {
      PrefixCache prefix = PrefixCache.of(pool, 16);
      Check.equal(4, pool.blockSize(), "block size");
      long all = pool.available();
      Check.equal(pool.capacity(), all, "blocks");
      float[] k = random(6 * 8, 3);
      float[] v = random(6 * 8, 4);
      first.update(0, k, v, 1, 6, 8);
      Check.equal(all - 2, pool.available(), "free blocks");
      Check.that(pool.fragmentation() > 0.2 && pool.residentBytes() > 0, "what they take");
      List<Block> table = first.blockTable();
      Check.equal(List.of(2, 4, 2), List.of(table.size(), table.get(0).used(), table.get(1).used()), "the table");
      float[] stored = new float[32];
      ByteBuffer.wrap(table.get(0).keys()).order(ByteOrder.nativeOrder()).asFloatBuffer().get(stored);
      Check.equal(Arrays.copyOf(k, 32), stored, "keys of the first block");
      int[] tokens = {1, 2, 3, 4, 5, 6};
      prefix.insert(9, tokens, table);
      Check.equal(2, prefix.size(), "blocks kept");
      table.forEach(Block::close);
      Check.equal(0, prefix.match(8, tokens).tokens(), "another domain");
      try (PrefixCache.Match match = prefix.match(9, new int[] {1, 2, 3, 4, 5, 7})) {
        Check.equal(5, match.tokens(), "tokens found");
        second.inject(match.blocks(), 5, 1, 8);
        Check.that(match.blocks().get(0).isClosed(), "the cache has taken them");
      }
      Check.equal(Arrays.copyOf(v, 40), second.get(0).values().data(), "what was injected");
      Block mine = pool.allocate();
      byte[] ones = new byte[mine.bytes()];
      Arrays.fill(ones, (byte) 1);
      mine.write(ones, ones);
      Check.equal(ones, mine.values(), "written");
      Block shared = mine.share();
      mine.close();
      Check.equal(ones, shared.keys(), "still there");
      Check.fails(Status.INVALID_ARGUMENT, () -> shared.write(new byte[1], new byte[1]));
      Check.fails(Status.STATE, () -> second.inject(List.of(shared), 4, 1, 8));
      Check.equal(ones, shared.keys(), "after a failure it is the caller's");
      shared.close();
      first.reset();
      second.reset();
      Check.equal(all - 2, pool.available(), "what the prefix cache keeps");
      prefix.close();
      Check.equal(all, pool.available(), "all are back");
      pool.residentBytes();
      Check.fails(Status.STATE, () -> pool.setAllocator(NativeSymbol.NONE));
    }
  }

  private static void tiers() throws Exception {
    Path cold = Files.createTempDirectory("generate-cold");
    TieredOptions options = TieredOptions.defaults().numLayers(1).maxSequenceLength(16).coldDirectory(cold).storeId("one")
        .warmForm("fp32").demoteThreshold(1).promoteThreshold(3).chunkSize(4);
    String sessions = TieredOptions.defaults().hotMemory(64).hotBlocks(1).blockSize(16).prefetchLayers(0).describe();
    Check.that(sessions.contains("64") && sessions.contains("16"), sessions);
    Check.that(options.describe().contains("\"one\""), options.describe());
    float[] rows = random(8, 5);
    try (TieredKvCache cache = TieredKvCache.of(options)) {
      cache.update(0, rows, rows, 1, 2, 4);
      cache.demote(0);
      Check.equal(TieredKvCache.Tier.WARM, cache.tier(0), "tier");
      cache.demote(0);
      Check.equal(TieredKvCache.Tier.COLD, cache.tier(0), "tier");
      cache.prefetch(0);
      for (int i = 0; i < 500 && cache.prefetched(0).keys().seq() == 0; ++i) Thread.sleep(2);
      Check.equal(rows, cache.get(0).keys().data(), "cold keys");
      Check.that(cache.accessCount(0) > 0 && !cache.isLossy(0) && !cache.isLossy(), "how it was used");
      cache.flush();
      Check.fails(Status.STATE, () -> cache.promote(0));
    }
    try (TieredKvCache cache = TieredKvCache.open(options)) {
      Check.equal(rows, cache.get(0).values().data(), "values from the folder");
      cache.promote(0);
      cache.manage();
    }
    try (var files = Files.walk(cold)) {
      for (Path file : (Iterable<Path>) files.sorted(java.util.Comparator.reverseOrder())::iterator) Files.delete(file);
    }
  }

  private static void batch() throws Exception {
    try (BatchKvCache cache = BatchKvCache.causal()) {
      cache.setConfig(1, false, "fp32");
      cache.setQuota(8);
      cache.init("fp32", 2, 8, 8);
      cache.startForward(new int[] {0, 1, 0}, new int[] {0, 0, 1});
      cache.setLayer(0);
      float[] k = random(2 * 3, 6);
      cache.put(k, 1, 2, k, 1, 2, 3);
      BatchKvCache.Masked seen = cache.get();
      Check.equal(k, seen.keys(), "keys");
      Check.equal(new int[] {2, 1, 3}, seen.keyShape(), "their shape");
      float[] mask = new float[9];
      ByteBuffer.wrap(seen.mask()).order(ByteOrder.nativeOrder()).asFloatBuffer().get(mask);
      float no = Float.NEGATIVE_INFINITY;
      Check.equal(new float[] {0, no, no, 0, 0, no, no, no, 0}, mask, "who sees whom");
      cache.setCausalExcept(0);
      Check.that(cache.canResume(0, 2), "it may go on");
      cache.copyPrefix(0, 1, 1);
      Check.fails(Status.UNSUPPORTED, () -> cache.remove(0, 0, 1));
      cache.remove(0, 1, BatchKvCache.TO_THE_END);
      cache.compact(4);
      Check.fails(Status.UNSUPPORTED, () -> cache.encoderCached(0));
      Check.that(cache.memory().resident() > 0 && !cache.isLossy() && cache.kind() != null, "what it is");
      Check.fails(Status.INVALID_ARGUMENT, () -> cache.startForward(new int[2], new int[3]));
      cache.release();
      Check.fails(Status.STATE, () -> cache.setLayer(0));
    }
    try (BatchKvCache both = BatchKvCache.wrapper(List.of(BatchKvCache.slidingWindow(4),
        BatchKvCache.slidingWindow(4, 8), BatchKvCache.chunked(4), BatchKvCache.encoder()))) {
      Check.equal(null, both.dtype(), "type before init");
      both.init("fp16", 1, 16, 4);
      both.startForward(new int[] {0}, new int[] {0}, false, new int[] {0});
      both.setLayerType(3);
      Check.equal("encoder", both.underlying().kind(), "the chosen one");
      Check.equal("fp16", both.underlying().dtype(), "its type");
      both.put(new float[4], 1, 2, new float[4], 1, 2, 2);
      Check.that(both.encoderCached(0), "the item is there");
      Check.equal(new int[] {2, 1, 2}, both.get().valueShape(), "shape of the items");
    }
    BatchKvCache half = BatchKvCache.causal();
    half.setConfig(4, true, "fp16");
    half.init(null, 1, 16, 4);
    half.startForward(new int[] {0, 1}, new int[] {0, 0});
    half.put(new float[4], 1, 2, new float[4], 1, 2, 2);
    BatchKvCache.Masked seen = half.get();
    Check.equal(4 * 2 * 2, seen.mask().length, "bytes of a mask of binary16");
    half.close();
  }

  private static void radix() throws Exception {
    try (RadixTree tree = new RadixTree(2, 4)) {
      int[] ids = tree.insert(1, 2, 3, 4, 5);
      Check.equal(3, ids.length, "blocks");
      RadixTree.Match match = tree.match(1, 2, 3, 4, 9);
      Check.equal(4, match.tokens(), "tokens found");
      Check.equal(Arrays.copyOf(ids, 2), match.ids(), "ids");
      Check.equal(0, tree.match(7).tokens(), "a miss");
      Check.equal(new RadixTree.Stats(1, 1, 0), tree.stats(), "counts");
      tree.pin(1, 2, 3, 4);
      Check.equal(ids[2], tree.evict(), "the leaf goes");
      Check.equal(-1, tree.evict(), "pinned ones stay");
      Check.fails(Status.BUSY, () -> tree.remove(1, 2));
      tree.unpin(1, 2, 3, 4);
      Check.fails(Status.STATE, () -> tree.unpin(1, 2, 3, 4));
      Check.equal(2L, tree.remove(1), "removed, those that begin so");
      Check.equal(0, tree.size(), "size");
      tree.setEvictCallback(NativeSymbol.NONE, 0);
    }
  }

  private static void ssm() throws Exception {
    try (SsmState state = new SsmState(2, 2, 3, 4); SsmState one = new SsmState(1, 3, 4)) {
      Check.equal(2, state.layers(), "layers");
      Check.equal(0, state.position(), "position");
      Check.equal("host", state.layerKind(1), "kind");
      Check.equal(1, state.layerIndex(1), "index");
      Check.equal(-1, state.layerIndex(2), "no such layer");
      float[] h = random(24, 8);
      state.setLayer(1, h, 2, 3, 4);
      long snapshot = state.snapshot();
      state.reset();
      Check.equal(new float[24], state.layer(1).data(), "zeros");
      state.restore(snapshot);
      Check.equal(h, state.layer(1).data(), "restored");
      Check.equal(2 * 24 * 4L, state.memoryBytes(), "bytes");
      Check.equal(1, one.layer(0).batch(), "a batch of one");
      Check.fails(Status.OUT_OF_RANGE, () -> state.restore(99));
      Check.fails(Status.INVALID_ARGUMENT, () -> state.setLayer(0, h, 1, 3, 4));
    }
  }

  /** Log-probabilities by the formula, in double precision, from the logits of a pass. */
  private static double logprob(float[] logits, int token) {
    double max = Double.NEGATIVE_INFINITY;
    for (float x : logits) max = Math.max(max, x);
    double sum = 0;
    for (float x : logits) sum += Math.exp(x - max);
    return logits[token] - max - Math.log(sum);
  }

  private static void forward() throws Exception {
    GeneratorOptions paged = GeneratorOptions.defaults().pagedKv(8, 16).kvDtype("fp16");
    try (Model model = Model.load(Check.MODEL);
        Generator generator = Generator.of(model);
        Generator pages = Generator.of(model, paged);
        Session session = generator.newSession();
        KvCache cache = generator.newCache(0);
        KvCache other = pages.newCache(64)) {
      int[] tokens = model.tokenizer().encode("Once upon a time");
      float[] logits = model.forward(tokens, cache);
      Check.equal(tokens.length, cache.length(), "length");
      Check.equal(4096, logits.length, "logits");
      session.append("Once upon a time");
      int next = session.generate("", Check.greedy(1)).tokens()[0];
      for (float x : logits) Check.that(x <= logits[next], "greedy takes the largest");
      session.truncate(tokens.length);
      int first = model.tokenizer().encodeMore(" dog", false)[0];
      near(new float[] {(float) logprob(logits, first)}, Arrays.copyOf(session.score(" dog"), 1), 1e-5);
      model.forward(tokens, other);
      try (Experimental.Profile profile = new Experimental.Profile()) {
        float[][] both = Experimental.forward(model, new int[] {next, next}, new int[] {0, 1}, new boolean[] {true, true},
            List.of(cache, other), profile);
        Check.equal(2, both.length, "rows");
        Check.that(profile.chromeTrace().startsWith("{\"displayTimeUnit\""), "a trace");
        Check.that(profile.count() > 0 && profile.get(0, "calls") >= 0 && profile.name(0) != null, "a profile");
        float[][] none = Experimental.forward(model, new int[] {next}, null, new boolean[] {false}, List.of(cache), null);
        Check.equal(0, none.length, "no row was wanted");
        other.truncate(0);
        float[][] states = Experimental.forwardHidden(model, new int[] {7, 9, 7}, other, 0, Experimental.HIDDEN_NORMED);
        int width = model.hidden();
        Check.equal(2, states.length, "layers");
        for (int i = 0; i < 2; ++i) {
          Check.equal(3 * width, states[i].length, "values");
          Check.equal(i == 0, Arrays.equals(states[i], 0, width, states[i], 2 * width, 3 * width), "the embedding of a token");
        }
        Check.fails(Status.OUT_OF_RANGE, () -> Experimental.forwardHidden(model, new int[] {7}, other, 99));
      }
      Check.fails(Status.INVALID_ARGUMENT,
          () -> Experimental.forward(model, new int[] {1, 2}, new int[1], null, List.of(cache), null));
      Check.fails(Status.INVALID_ARGUMENT, () -> model.forward(new int[0], cache));
    }
  }
}
