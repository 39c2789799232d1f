// SPDX-License-Identifier: Apache-2.0
// Proves that loads and quantisations tell how far they are, on the caller's thread, that an exception of whom they tell
// and an interrupt stop them, and that nothing is left behind. How long the work takes is not known: what must happen in
// its middle is tried until it has.
import dev.libgenerate.GenerateException;
import dev.libgenerate.LibGenerate;
import dev.libgenerate.Model;
import dev.libgenerate.ModelOptions;
import dev.libgenerate.NativeSymbol;
import dev.libgenerate.Status;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;
import java.util.function.DoubleConsumer;
import java.util.stream.Stream;

final class ProgressTest {
  private static final int TRIES = 200;
  private static final ModelOptions READ = ModelOptions.defaults().mmap(false).checkTensors(true).threads(1);
  private static Path folder;
  private static Path out;
  private static Path large;

  private ProgressTest() {}

  /** What can be watched. */
  interface Work {
    void run(DoubleConsumer progress);
  }

  private static void load(DoubleConsumer progress) {
    Model.load(large, READ, progress).close();
  }

  private static void quantize(DoubleConsumer progress) {
    Model.quantize(Check.MODEL, out, "Q6_K", progress);
  }

  private static void importance(DoubleConsumer progress) {
    try (Model model = Model.load(Check.MODEL)) {
      model.importance(new int[] {1, 2, 3, 4, 5, 6, 7}, 4, "text", out, progress);
    }
  }

  public static void main(String[] args) throws Exception {
    folder = Files.createTempDirectory("generate");
    out = folder.resolve("out.gguf");
    large = folder.resolve("large.gguf");
    Model.quantize(Check.MODEL, large, "F32", null);
    Check.test("a load tells how far it is", () -> tells(ProgressTest::load));
    Check.test("a quantisation tells how far it is", () -> tells(ProgressTest::quantize));
    Check.test("an importance matrix tells how far it is", () -> tells(ProgressTest::importance));
    Check.test("so does a load from memory", ProgressTest::memory);
    Check.test("an exception comes out of a load", () -> throwing(ProgressTest::load, () -> true));
    Check.test("an exception stops a quantisation", () -> throwing(ProgressTest::quantize, ProgressTest::noFile));
    Check.test("an exception at the end", ProgressTest::throwingAtTheEnd);
    Check.test("an interrupt by whom it tells stops a load", () -> interrupted(ProgressTest::load, false));
    Check.test("an interrupt from another thread stops a load", () -> interrupted(ProgressTest::load, true));
    Check.test("an interrupt stops a quantisation", () -> interrupted(ProgressTest::quantize, true));
    Check.test("an interrupt before it begins", ProgressTest::interruptedBefore);
    Check.test("failures come out as ever", ProgressTest::failures);
    for (Path file : List.of(large, out)) Files.deleteIfExists(file);
    Files.delete(folder);  // which is empty: no half of a file is left
    Check.finish();
  }

  private static boolean noFile() {
    return Files.notExists(out);
  }

  /** Runs it until it says that it has seen what it is about. */
  private static void tried(String what, BooleanSupplier once) {
    for (int i = 0; i < TRIES; ++i) {
      if (once.getAsBoolean()) return;
    }
    throw new AssertionError(what + ": never in " + TRIES);
  }

  private static void rising(List<Double> told) {
    for (int i = 0; i < told.size(); ++i) {
      Check.that(told.get(i) > (i > 0 ? told.get(i - 1) : 0), "rising: " + told);
    }
    Check.that(!told.isEmpty() && told.get(told.size() - 1) == 1, "1 at the end: " + told);
  }

  private static void tells(Work work) {
    tried("told on the way", () -> {
      List<Double> told = new ArrayList<>();
      Thread self = Thread.currentThread();
      work.run(share -> {
        Check.equal(self, Thread.currentThread(), "whose thread");
        told.add(share);
      });
      rising(told);
      return told.size() > 1;
    });
  }

  private static void memory() throws Exception {
    List<Double> told = new ArrayList<>();
    try (Model model = Model.load(Files.readAllBytes(Check.MODEL), null, told::add)) {
      Check.equal(Model.load(Check.MODEL).vocabSize(), model.vocabSize(), "a model that works");
    }
    rising(told);
  }

  /** The exception itself comes out, checked ones included, and where it came on the way the work was stopped. */
  private static void throwing(Work work, BooleanSupplier stopped) throws Exception {
    int open = LibGenerate.openObjects();
    for (Throwable mine : List.of(new IllegalStateException("mine"), new IOException("mine"), new StackOverflowError())) {
      tried("stopped by " + mine, () -> {
        List<Double> told = new ArrayList<>();
        try {
          Files.deleteIfExists(out);
          work.run(share -> {
            told.add(share);
            ProgressTest.<RuntimeException>raise(mine);
          });
          throw new AssertionError("nothing was thrown");
        } catch (Throwable e) {
          if (e != mine) ProgressTest.<RuntimeException>raise(e);
        }
        Check.equal(1, told.size(), "told after it threw");
        return told.get(0) < 1 && stopped.getAsBoolean();
      });
    }
    Check.equal(open, LibGenerate.openObjects(), "open objects");
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> void raise(Throwable e) throws T {
    throw (T) e;
  }

  /** The work is done by then: the file is there, and a model is freed. */
  private static void throwingAtTheEnd() throws Exception {
    DoubleConsumer atTheEnd = share -> {
      if (share == 1) throw new IllegalStateException("mine");
    };
    int before = threads();
    int open = LibGenerate.openObjects();
    for (int i = 0; i < 20; ++i) {
      mine(() -> Model.load(Check.MODEL, ModelOptions.defaults().threads(5), atTheEnd));
    }
    Check.equal(open, LibGenerate.openObjects(), "open objects");
    Check.that(threads() < before + 40, "four threads of each model stay: " + before + ", then " + threads());
    Files.deleteIfExists(out);
    mine(() -> quantize(atTheEnd));
    Model.load(out).close();
  }

  private static void mine(Check.Body body) throws Exception {
    try {
      body.run();
    } catch (IllegalStateException e) {
      Check.equal("mine", e.getMessage(), "message");
      return;
    }
    throw new AssertionError("nothing was thrown");
  }

  private static int threads() throws IOException {
    try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
      return (int) tasks.count();
    }
  }

  /** @param other the interrupt comes from another thread, while the call waits for the work. */
  private static void interrupted(Work work, boolean other) {
    Thread self = Thread.currentThread();
    tried("cancelled", () -> {
      CountDownLatch begun = new CountDownLatch(1);
      Thread helper = new Thread(() -> {
        try {
          begun.await();
        } catch (InterruptedException e) {
          throw new IllegalStateException(e);
        }
        self.interrupt();
      });
      if (other) helper.start();
      List<Double> told = new ArrayList<>();
      boolean cancelled = false;
      try {
        work.run(share -> {
          told.add(share);
          if (other) {
            begun.countDown();
          } else {
            self.interrupt();
          }
        });
        rising(told);
      } catch (GenerateException e) {
        Check.equal(Status.CANCELLED, e.status(), "status");
        Check.that(!told.contains(1.0), "1 although it was cancelled");
        cancelled = true;
      }
      while (other && helper.isAlive()) Thread.onSpinWait();
      Check.that(Thread.interrupted(), "the thread is still interrupted");
      return cancelled;
    });
  }

  private static void interruptedBefore() throws Exception {
    List<Double> told = new ArrayList<>();
    Files.deleteIfExists(out);
    for (Work work : List.<Work>of(ProgressTest::load, ProgressTest::quantize)) {
      Thread.currentThread().interrupt();
      Check.fails(Status.CANCELLED, () -> work.run(told::add));
      Check.that(Thread.interrupted(), "the thread is still interrupted");
    }
    Check.that(told.isEmpty() && noFile(), "nothing was done");
  }

  private static void failures() throws Exception {
    List<Double> told = new ArrayList<>();
    Path missing = folder.resolve("missing.gguf");
    GenerateException e = Check.fails(Status.IO, () -> Model.load(missing, null, told::add));
    Check.that(Stream.of(e.getStackTrace()).anyMatch(f -> f.getMethodName().equals("failures")), "whose call it was");
    Check.fails(Status.IO, () -> Model.quantize(missing, out, "Q8_0", told::add));
    Check.fails(Status.INVALID_ARGUMENT, () -> Model.quantize(Check.MODEL, out, "Q7", told::add));
    ModelOptions watched = ModelOptions.defaults().progress(NativeSymbol.of(Path.of("libc.so.6"), "getpid"), 0);
    Check.fails(Status.INVALID_ARGUMENT, () -> Model.load(Check.MODEL, watched, told::add));
    Check.fails(Status.CANCELLED, () -> Model.load(Check.MODEL, watched));  // what that function returns is not 0
    Check.that(told.isEmpty(), "nothing was told");
  }
}
