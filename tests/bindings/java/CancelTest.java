// SPDX-License-Identifier: Apache-2.0
// Proves that whatever stops a call stops it soon: interrupts, Cancel, futures, closing, the loop itself; that what there
// was by then is not lost; and that nothing of it reaches the next call.
import dev.libgenerate.BatchStream;
import dev.libgenerate.Cancel;
import dev.libgenerate.FinishReason;
import dev.libgenerate.GenerateCancelledException;
import dev.libgenerate.GenerateException;
import dev.libgenerate.Generator;
import dev.libgenerate.GeneratorOptions;
import dev.libgenerate.MetricsMemory;
import dev.libgenerate.Model;
import dev.libgenerate.ModelOptions;
import dev.libgenerate.NativeSymbol;
import dev.libgenerate.Request;
import dev.libgenerate.Result;
import dev.libgenerate.Sampling;
import dev.libgenerate.Session;
import dev.libgenerate.Status;
import dev.libgenerate.Token;
import dev.libgenerate.TokenStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

final class CancelTest {
  private static final int SOON_MS = 60_000;
  private static final MetricsMemory STEPS = new MetricsMemory();  // of `slow`
  private static Generator slow;  // 5 ms a token, also of prompts
  private static Generator quick;

  private CancelTest() {}

  public static void main(String[] args) throws Exception {
    try (Model model = Check.custom("test_model_slow", Model.load(Check.MODEL).tokenizer())) {
      slow = Generator.of(model, GeneratorOptions.defaults().prefillChunk(1).metrics(STEPS));
    }
    quick = Check.generator("test_model_nothing");
    slow.generate("a", Check.greedy(2));  // so that all classes are there
    Check.test("an interrupt stops generating", () -> interrupted(() -> slow.generate("a", Check.greedy(4000)), 1));
    Check.test("an interrupt stops a session", () -> {
      try (Session session = slow.newSession()) {
        interrupted(() -> session.generate("a", Check.greedy(4000)), 1);
        Check.equal(3, session.generate("", Check.greedy(3)).tokens().length, "tokens of the next call");
      }
    });
    Check.test("an interrupt stops a long prompt", () -> {
      try (Session session = slow.newSession()) {
        interrupted(() -> session.generate("x".repeat(3000), Check.greedy(3)), 0);
      }
    });
    Check.test("an interrupt stops a stream in its prompt", () -> {
      try (TokenStream stream = slow.stream("x".repeat(3000), Check.greedy(3))) {
        interrupted(stream::hasNext, 0);
        Check.that(!stream.hasNext(), "it is at its end");
      }
    });
    Check.test("an interrupt stops a batch", () -> {
      Request request = Request.of("a", Check.greedy(4000));
      Check.equal(2, interrupted(() -> slow.generate(List.of(request, request)), 1).results().size(), "results");
    });
    Check.test("an interrupt stops a stream of a batch", CancelTest::batchStream);
    Check.test("an interrupt stops append and score", CancelTest::evaluations);
    Check.test("an interrupt stops a load and a quantisation", CancelTest::loads);
    Check.test("an interrupt as a call ends does not reach the next", CancelTest::atTheEnd);
    Check.test("a Cancel stops calls from another thread", CancelTest::cancel);
    Check.test("a loop ends by leaving it, or by cancelling", CancelTest::loops);
    Check.test("futures stop what they stand for", CancelTest::futures);
    Check.test("a session cancels what runs on it", CancelTest::sessionCancel);
    Check.test("closing stops sessions and streams", CancelTest::closing);
    Check.test("a deadline ends a request", CancelTest::deadline);
    Check.finish();
  }

  /** Does it on another thread when `slow` has made a dozen steps more. */
  private static Thread inACall(Runnable what) {
    double end = STEPS.value("steps") + 12;
    Thread other = new Thread(() -> {
      while (STEPS.value("steps") < end) pause(1);
      what.run();
    });
    other.setDaemon(true);  // a test that fails ends
    other.start();
    return other;
  }

  /** Interrupts this thread in the middle of a call that would take seconds. */
  private static GenerateException interrupted(Check.Body body, int tokens) throws Exception {
    Thread other = inACall(Thread.currentThread()::interrupt);
    long begin = System.nanoTime();
    GenerateException e = Check.fails(Status.CANCELLED, body);
    Check.that(Check.since(begin) < SOON_MS, "it took " + Check.since(begin) + " ms");
    Check.that(e instanceof GenerateCancelledException, "an exception of its own");
    Check.that(Thread.interrupted(), "the thread is still interrupted");
    other.join(SOON_MS);  // which an interrupted thread could not wait for
    if (tokens > 0) {
      Check.that(e.result().get().tokens().length >= tokens, "there is a partial result");
      Check.equal(FinishReason.CANCELLED, e.result().get().finishReason(), "finish reason");
    }
    return e;
  }

  static void pause(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void batchStream() {
    Thread self = Thread.currentThread();
    Request request = Request.of("a", Check.greedy(4000));
    int pieces = 0;
    try (BatchStream stream = slow.stream(List.of(request, request, request))) {
      for (BatchStream.Piece piece : stream) {
        Check.equal("a", piece.token().text(), "text");
        if (++pieces == 6) self.interrupt();
      }
      Check.that(Thread.interrupted(), "the thread is still interrupted");
      for (Result result : stream.results()) {
        Check.equal(Status.CANCELLED, result.error().get().status(), "status of each");
        Check.that(!result.text().isEmpty(), "each has what there was");
      }
    }
  }

  private static void evaluations() throws Exception {
    try (Session session = slow.newSession()) {
      interrupted(() -> session.append("x".repeat(3000)), 0);
      int length = session.length();
      Check.that(length > 1 && length < 3000, "a part of it stays: " + length);
      interrupted(() -> session.score("y".repeat(3000)), 0);
      Check.equal(length, session.length(), "length after scoring");
      Check.equal("aaa", session.generate("", Check.greedy(3)).text(), "the next call");
      Thread.currentThread().interrupt();
      Check.fails(Status.CANCELLED, () -> session.append("a"));
      Check.that(Thread.interrupted(), "the thread is still interrupted");
    }
  }

  private static void loads() throws Exception {
    Path out = Files.createTempFile("generate", ".gguf");
    try {
      Thread.currentThread().interrupt();
      Check.fails(Status.CANCELLED, () -> Model.load(Check.MODEL, ModelOptions.defaults().mmap(false)));
      Check.fails(Status.CANCELLED, () -> Model.quantize(Check.MODEL, out, "Q8_0"));
      Check.that(Thread.interrupted(), "the thread is still interrupted");
      Model.load(Check.MODEL, ModelOptions.defaults().mmap(false)).close();
    } finally {
      Files.delete(out);
    }
  }

  private static void atTheEnd() throws Exception {
    Thread self = Thread.currentThread();
    ExecutorService executor = Executors.newSingleThreadExecutor();
    int cancelled = 0;
    try (Session session = quick.newSession()) {
      for (int i = 0; i < 2000; ++i) {
        int spin = i;
        session.append("b");
        CompletableFuture<Void> other = CompletableFuture.runAsync(() -> {
          for (int j = 0; j < spin; ++j) Thread.onSpinWait();
          self.interrupt();
        }, executor);
        try {
          session.append("abc");
        } catch (GenerateCancelledException e) {
          ++cancelled;
        }
        other.handle((v, e) -> null).join();
        Thread.interrupted();
        Check.equal(2, session.generate("", Check.greedy(2)).tokens().length, "tokens after append " + i);
        if (i % 100 == 99) session.reset();
      }
    } finally {
      executor.shutdown();
    }
    System.out.println("       " + cancelled + " of 2000 were cancelled");
  }

  private static void cancel() throws Exception {
    Cancel cancel = new Cancel();
    Thread other = inACall(cancel::fire);
    long begin = System.nanoTime();
    GenerateException e = Check.fails(Status.CANCELLED, () -> slow.generate("a", Check.greedy(4000), cancel));
    Check.that(Check.since(begin) < SOON_MS, "it took " + Check.since(begin) + " ms");
    Check.equal("a".repeat(e.result().get().tokens().length), e.result().get().text(), "text by then");
    Check.that(cancel.isFired(), "it is fired");
    Check.fails(Status.CANCELLED, () -> quick.generate("a", Check.greedy(5), cancel));
    Check.equal(5, quick.generate("a", Check.greedy(5), new Cancel()).tokens().length, "tokens of another call");
    try (Session session = quick.newSession()) {
      Check.fails(Status.CANCELLED, () -> session.generate("a", Check.greedy(5), cancel));
      Check.fails(Status.CANCELLED, () -> session.append("abc", cancel));
      Check.fails(Status.CANCELLED, () -> session.appendTokens(new int[] {70, 71, 72}, cancel));
      Check.fails(Status.CANCELLED, () -> session.score("abc", cancel));
      session.append("a");
      Check.equal(5, session.generate("a", Check.greedy(5)).tokens().length, "tokens of the next call");
    }
    other.join();
  }

  private static void loops() throws Exception {
    try (Session session = quick.newSession()) {
      int pieces = 0;
      Sampling asks = Check.greedy(3).logprobs(2).gumbel(true).logitsCallback(NativeSymbol.NONE, 0);
      try (Session other = quick.newSession(); TokenStream stream = other.stream("a", asks)) {
        Check.equal(0, stream.alternatives().size(), "nothing yet");
        Token first = stream.next();
        Check.equal(2, stream.alternatives().size(), "alternatives");
        Check.equal(first.id(), stream.alternatives().get(0).id(), "the best first");
      }
      try (TokenStream stream = session.stream("a", Check.greedy(500))) {
        for (Token token : stream) {
          Check.equal("a", token.text(), "text");
          if (++pieces == 10) break;
        }
        Check.fails(Status.BUSY, () -> session.generate("a"));
      }
      int held = session.length();
      Check.that(held >= 11 && held < 15, "the session keeps what was generated: " + held);
      try (TokenStream stream = session.stream("", Check.greedy(500))) {
        GenerateException e = Check.fails(Status.CANCELLED, () -> {
          for (Token token : stream) {
            if (token.index() == 9) stream.cancel();
          }
        });
        Check.equal(10, e.result().get().tokens().length, "tokens by then");
        Check.equal(FinishReason.CANCELLED, stream.finishReason(), "finish reason");
        Check.that(!stream.hasNext(), "it is at its end");
        Check.equal(10, stream.result().tokens().length, "tokens of the result");
      }
      Check.equal(4L, session.stream("", Check.greedy(500)).stream().limit(4).count(), "pieces of a limited stream");
    }
  }

  private static void futures() throws Exception {
    ExecutorService executor = Executors.newSingleThreadExecutor();
    try (Session session = slow.newSession()) {
      CompletableFuture<Result> future = session.generateAsync("a", Check.greedy(4000), executor);
      while (session.length() < 5) pause(1);
      future.cancel(true);
      try {
        future.get();
        throw new AssertionError("nothing was thrown");
      } catch (CancellationException e) {
        Check.that(future.isCancelled(), "it is cancelled");
      }
      long begin = System.nanoTime();
      Check.equal(2, session.generateAsync("", Check.greedy(2), executor).get().tokens().length, "tokens of the next");
      Check.that(Check.since(begin) < SOON_MS, "it waited " + Check.since(begin) + " ms");
      CompletableFuture<List<Result>> batch =
          slow.generateAsync(List.of(Request.of("a", Check.greedy(4000))), executor).orTimeout(50, TimeUnit.MILLISECONDS);
      try {
        batch.get();
        throw new AssertionError("nothing was thrown");
      } catch (ExecutionException e) {
        Check.that(e.getCause() instanceof TimeoutException, "a timeout");
      }
      CompletableFuture<Result> queued = slow.generateAsync("a", Check.greedy(4000), executor);
      queued.cancel(false);
      Check.equal("aa", slow.generateAsync("a", Check.greedy(2), executor).get(SOON_MS, TimeUnit.MILLISECONDS).text(),
          "text behind one that was cancelled");
    } finally {
      executor.shutdown();
    }
  }

  private static void sessionCancel() throws Exception {
    try (Session session = slow.newSession()) {
      session.cancel();  // nothing runs: nothing happens
      Check.equal("a", session.generate("a", Check.greedy(1)).text(), "text");
      Thread other = inACall(session::cancel);
      Check.fails(Status.CANCELLED, () -> session.append("x".repeat(3000)));
      other.join();
      Check.equal("a", session.generate("", Check.greedy(1)).text(), "text of the next");
    }
  }

  private static void closing() throws Exception {
    Session session = slow.newSession();
    CompletableFuture<Void> call = CompletableFuture.runAsync(() -> session.generate("a", Check.greedy(4000)));
    while (session.length() < 5) pause(1);
    long begin = System.nanoTime();
    session.close();
    failsWith(Status.CANCELLED, call);
    Check.that(Check.since(begin) < SOON_MS, "it took " + Check.since(begin) + " ms");
    Check.fails(Status.STATE, () -> session.generate("a"));

    TokenStream stream = slow.stream("x".repeat(3000), Check.greedy(3));
    double end = STEPS.value("steps") + 12;
    call = CompletableFuture.runAsync(stream::hasNext);
    while (STEPS.value("steps") < end) pause(1);
    begin = System.nanoTime();
    stream.close();
    failsWith(Status.CANCELLED, call);
    Check.that(Check.since(begin) < SOON_MS, "it took " + Check.since(begin) + " ms");

    Session owner = slow.newSession();
    try (TokenStream child = owner.stream("a", Check.greedy(4000))) {
      child.next();
      owner.close();
      Check.fails(Status.CANCELLED, child::hasNext);
    }
  }

  private static void failsWith(Status status, CompletableFuture<?> call) throws Exception {
    try {
      call.get(SOON_MS, TimeUnit.MILLISECONDS);
      throw new AssertionError("nothing was thrown");
    } catch (ExecutionException e) {
      Check.equal(status, ((GenerateException) e.getCause()).status(), "status");
    }
  }

  private static void deadline() {
    Request late = Request.of("a", Check.greedy(4000)).deadline(Duration.ofMillis(60)).priority(1);
    Request fine = Request.ofTokens(70, 71).sampling(Check.greedy(4));
    List<Result> results = slow.generate(List.of(late, fine));
    Check.equal(Status.CANCELLED, results.get(0).error().get().status(), "status");
    Check.equal("aaaa", results.get(1).text(), "text of the other");
    try (BatchStream stream = slow.stream(List.of(late, fine))) {
      stream.forEachRemaining(piece -> Check.equal("a", piece.token().text(), "text"));
      Check.equal(Status.CANCELLED, stream.results().get(0).error().get().status(), "status, streaming");
      Check.equal("aaaa", stream.results().get(1).text(), "text of the other, streaming");
    }
  }
}
