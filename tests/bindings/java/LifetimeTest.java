// SPDX-License-Identifier: Apache-2.0
// Proves that handles end as Java expects: in any order, once, from several threads, in the middle of calls, by close or by
// the collector, without a crash and without a leak.
import dev.libgenerate.Block;
import dev.libgenerate.BlockPool;
import dev.libgenerate.Generator;
import dev.libgenerate.Handle;
import dev.libgenerate.KvCache;
import dev.libgenerate.LibGenerate;
import dev.libgenerate.MetricsMemory;
import dev.libgenerate.Model;
import dev.libgenerate.PagedKvCache;
import dev.libgenerate.Request;
import dev.libgenerate.Result;
import dev.libgenerate.Session;
import dev.libgenerate.SsmState;
import dev.libgenerate.Status;
import dev.libgenerate.Token;
import dev.libgenerate.TokenStream;
import dev.libgenerate.Tokenizer;
import dev.libgenerate.Tracer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;

final class LifetimeTest {
  private static final int WARM_UP = 5000;
  private static Model model;

  private LifetimeTest() {}

  public static void main(String[] args) throws Exception {
    model = Model.load(Check.MODEL);
    Check.test("use after close is an exception", LifetimeTest::afterClose);
    Check.test("parents may be closed first", LifetimeTest::order);
    Check.test("what is borrowed ends with its owner", LifetimeTest::borrowed);
    Check.test("two threads close at once", LifetimeTest::closeTwice);
    Check.test("closing while another thread calls", LifetimeTest::closeInside);
    Check.test("the collector runs while streams do", LifetimeTest::collected);
    Check.test("10,000 sessions and caches dropped", () -> flat(false));
    Check.test("10,000 sessions and caches closed", () -> flat(true));
    Check.test("nothing is held that is not open", LifetimeTest::held);
    Check.finish();
  }

  private static void afterClose() throws Exception {
    Generator generator = Generator.of(model);
    Session session = generator.newSession();
    TokenStream stream = generator.stream("a");
    KvCache cache = KvCache.fp32(1, 16);
    Tokenizer tokenizer = Tokenizer.load(Check.MODEL);
    BlockPool pool = BlockPool.of(1, 16, 8, 1, "fp32");
    Block block = pool.allocate();
    SsmState state = new SsmState(1, 2, 3);
    Tracer tracer = new Tracer();
    MetricsMemory metrics = new MetricsMemory();
    for (Handle handle : List.of(session, stream, generator, cache, tokenizer, block, pool, state, tracer, metrics)) {
      Check.that(!handle.isClosed(), "it is open");
      handle.close();
      handle.close();
      Check.that(handle.isClosed(), "it is closed");
    }
    Check.equal("the session is closed", Check.fails(Status.STATE, () -> session.generate("a")).getMessage(), "message");
    Check.fails(Status.STATE, () -> session.append("a"));
    Check.fails(Status.STATE, session::length);
    Check.fails(Status.STATE, session::fork);
    Check.fails(Status.STATE, session::cache);
    Check.fails(Status.STATE, stream::hasNext);
    Check.fails(Status.STATE, stream::result);
    Check.fails(Status.STATE, generator::newSession);
    Check.fails(Status.STATE, () -> generator.generate("a"));
    Check.fails(Status.STATE, () -> generator.stream("a"));
    Check.fails(Status.STATE, cache::length);
    Check.fails(Status.STATE, () -> model.forward(new int[] {1}, cache));
    Check.fails(Status.STATE, () -> tokenizer.encode("a"));
    Check.fails(Status.STATE, block::keys);
    Check.fails(Status.STATE, pool::allocate);
    Check.fails(Status.STATE, state::snapshot);
    Check.fails(Status.STATE, tracer::operationCount);
    Check.fails(Status.STATE, metrics::snapshot);
    session.cancel();
    stream.cancel();
  }

  private static void order() throws Exception {
    Model own = Model.load(Check.MODEL);
    Generator generator = Generator.of(own);
    own.close();
    Session session = generator.newSession();
    TokenStream stream = generator.stream("Once", Check.greedy(5));
    generator.close();
    Check.equal(5, session.generate("Once", Check.greedy(5)).tokens().length, "tokens");
    TokenStream other = session.stream("", Check.greedy(5));
    session.close();
    Check.fails(Status.CANCELLED, other::hasNext);
    other.close();
    Check.equal(5L, stream.stream().count(), "pieces");
    stream.close();

    BlockPool pool = BlockPool.of(1, 4, 8, 1, "fp32");
    PagedKvCache cache = PagedKvCache.of(pool, 1);
    cache.update(0, new float[8], new float[8], 1, 1, 8);
    List<Block> table = cache.blockTable();
    pool.close();
    Check.equal(1, cache.length(), "length");
    Check.fails(Status.STATE, table.get(0)::keys);
    table.get(0).close();
    cache.close();
  }

  private static void borrowed() throws Exception {
    Model own = Model.load(Check.MODEL);
    Tokenizer tokenizer = own.tokenizer();
    tokenizer.close();  // nothing
    Check.equal(1, tokenizer.encode("a", false, false).length, "tokens");
    own.close();
    Check.fails(Status.STATE, () -> tokenizer.encode("a"));
    try (Generator generator = Generator.of(model)) {
      Session session = generator.newSession();
      session.append("Once");
      KvCache cache = session.cache();
      Check.that(session.state() == null, "no state");
      Check.that(cache.length() > 0, "it holds something");
      try (KvCache copy = cache.copy()) {
        cache.close();
        session.close();
        Check.fails(Status.STATE, cache::length);
        Check.that(copy.length() > 0, "the copy stays");
      }
    }
  }

  private static void closeTwice() throws Exception {
    try (Generator generator = Check.generator("test_model_nothing")) {
      for (int i = 0; i < 500; ++i) {
        Session session = generator.newSession();
        TokenStream stream = session.stream("a", Check.greedy(50));
        stream.next();
        CountDownLatch start = new CountDownLatch(1);
        List<CompletableFuture<Void>> closers = new ArrayList<>();
        for (AutoCloseable each : List.<AutoCloseable>of(session, session, stream, stream)) {
          closers.add(CompletableFuture.runAsync(() -> {
            try {
              start.await();
              each.close();
            } catch (Exception e) {
              throw new IllegalStateException(e);
            }
          }, command -> new Thread(command).start()));
        }
        start.countDown();
        for (CompletableFuture<Void> closer : closers) closer.get();
      }
    }
  }

  /** Calls end normally, or say that it is closed or cancelled; and whatever order it is, nothing crashes. */
  private static void closeInside() throws Exception {
    for (int i = 0; i < 200; ++i) {
      Generator generator = Check.generator("test_model_nothing");
      Session session = generator.newSession();
      KvCache cache = KvCache.fp16(2, 64);
      TokenStream stream = generator.stream("a", Check.greedy(100000));
      List<CompletableFuture<Void>> calls = new ArrayList<>();
      for (Check.Body body : List.<Check.Body>of(() -> session.generate("a", Check.greedy(100000)),
          () -> stream.forEachRemaining(token -> {}), () -> generator.generate("a", Check.greedy(100)),
          () -> {
            for (;;) cache.reset();
          })) {
        calls.add(CompletableFuture.runAsync(() -> {
          try {
            body.run();
          } catch (dev.libgenerate.GenerateException e) {
            if (e.status() != Status.STATE && e.status() != Status.CANCELLED) throw e;
          } catch (Exception e) {
            throw new IllegalStateException(e);
          }
        }, command -> new Thread(command).start()));
      }
      Thread.sleep(0, ThreadLocalRandom.current().nextInt(1, 999_999));
      generator.close();
      cache.close();
      session.close();
      stream.close();
      for (CompletableFuture<Void> call : calls) call.get();
    }
  }

  private static void collected() throws Exception {
    Thread collector = new Thread(() -> {
      while (!Thread.currentThread().isInterrupted()) System.gc();
    });
    collector.start();
    Generator shared = Check.generator("test_model_script");
    for (int i = 0; i < 40; ++i) {
      // Nothing but the iterator is held: neither generator nor session.
      StringBuilder text = new StringBuilder();
      for (Token token : Check.generator("test_model_script").newSession().stream("a", Check.greedy(44))) {
        text.append(token.text());
      }
      Check.equal("Grüße, 世界! 🎉 Grüße, 世界! 🎉 ", text.toString(), "text");
      Result result = shared.newSession().generate("a", Check.greedy(22));
      Check.equal("Grüße, 世界! 🎉 ", result.text(), "text");
    }
    collector.interrupt();
    collector.join();
  }

  private static void held() throws Exception {
    collect(2);  // the model, and the tokenizer of Check
    int before = LibGenerate.openObjects();
    try (Generator generator = Check.generator("test_model_nothing");
        Session session = generator.newSession();
        TokenStream stream = generator.stream("a", Check.greedy(100))) {
      stream.next();
      session.generate("a", Check.greedy(3));
      session.append("b");
      generator.generate(List.of(Request.of("a", Check.greedy(3))));
      Check.equal(before + 3 + 1, LibGenerate.openObjects(), "objects: three, and what cancels the stream");
    }
    Check.equal(before, LibGenerate.openObjects(), "they are freed as they are closed");
  }

  private static void flat(boolean close) throws Exception {
    Generator generator = Generator.of(model);
    List<Long> curve = new ArrayList<>();
    int before = LibGenerate.openObjects();
    for (int i = -WARM_UP; i <= 10000; ++i) {
      Session session = generator.newSession();
      if (i % 20 == 0) session.append("Once upon");
      KvCache cache = i % 2 == 0 ? KvCache.fp32(2, 256) : KvCache.q4(2, 256);
      cache.update(0, new float[256], new float[256], 1, 2, 128);
      if (close) {
        session.close();
        cache.close();
      }
      session = null;
      cache = null;
      if (i % 100 == 0) collect(before);
      if (i % 1000 == 0) curve.add(resident());
    }
    System.out.println("       resident KiB by thousands: " + curve);
    // What malloc keeps moves up and down; a leak raises the least of it.
    long warm = Collections.min(curve.subList(WARM_UP / 1000, WARM_UP / 1000 + 5));
    long last = Collections.min(curve.subList(curve.size() - 5, curve.size()));
    // What malloc keeps differs by 3 % now and then; a kilobyte lost each time is 7 %.
    Check.that(Math.abs(last - warm) <= warm / 25, "flat within 4 %: " + warm + " and " + last + " KiB");
  }

  /** Runs the collector until no more native objects are held than before. */
  private static void collect(int before) throws Exception {
    long begin = System.nanoTime();
    while (LibGenerate.openObjects() > before && Check.since(begin) < 10_000) {
      System.gc();
      Thread.sleep(1);
    }
    Check.that(LibGenerate.openObjects() <= before, LibGenerate.openObjects() + " objects are held");
  }

  static long resident() throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("\\D", ""));
    }
    throw new IllegalStateException("no VmRSS");
  }
}
