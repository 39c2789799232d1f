// SPDX-License-Identifier: Apache-2.0
// What the tests of the Java binding share: checks that name the place, a runner, and the things they are about.
import dev.libgenerate.GenerateException;
import dev.libgenerate.Generator;
import dev.libgenerate.Model;
import dev.libgenerate.ModelConfig;
import dev.libgenerate.NativeSymbol;
import dev.libgenerate.Sampling;
import dev.libgenerate.Status;
import dev.libgenerate.Tokenizer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;

final class Check {
  /** A test; what it throws is its failure. */
  interface Body {
    void run() throws Exception;
  }

  static final Path MODEL = Path.of(System.getProperty("story"));
  static final Path TEST_MODELS = Path.of(System.getProperty("models"));

  /** Loaded when it is first asked for. */
  private static final class Vocabulary {
    static final Tokenizer TOKENIZER = Tokenizer.load(MODEL);
  }

  private static int failures;

  private Check() {}

  static void test(String name, Body body) {
    long begin = System.nanoTime();
    String outcome = "ok";
    try {
      body.run();
    } catch (Throwable e) {
      ++failures;
      outcome = "FAILED";
      e.printStackTrace(System.out);
    }
    System.out.printf("%-6s %s (%d ms)%n", outcome, name, (System.nanoTime() - begin) / 1_000_000);
  }

  /** Ends the program with the verdict. */
  static void finish() {
    System.out.println(failures == 0 ? "all passed" : failures + " failed");
    System.exit(failures == 0 ? 0 : 1);
  }

  static void that(boolean condition, String what) {
    if (!condition) throw new AssertionError(what);
  }

  static void equal(Object expected, Object got, String what) {
    if (!Objects.deepEquals(expected, got)) {
      throw new AssertionError(what + ": expected " + text(expected) + ", got " + text(got));
    }
  }

  private static String text(Object value) {
    return value instanceof int[] ? Arrays.toString((int[]) value) : String.valueOf(value);
  }

  /** Runs what must fail with this status, and gives the exception. */
  static GenerateException fails(Status status, Body body) throws Exception {
    try {
      body.run();
    } catch (GenerateException e) {
      equal(status, e.status(), "status of \"" + e.getMessage() + "\"");
      return e;
    }
    throw new AssertionError("nothing was thrown instead of " + status);
  }

  /** A model of test_models.c with the bundled vocabulary. */
  static Model custom(String name, Tokenizer tokenizer) {
    return Model.custom(NativeSymbol.of(TEST_MODELS, name), ModelConfig.of(4096, 1 << 20), tokenizer);
  }

  /** A generator over such a model, whose own handle is given up. */
  static Generator generator(String name) {
    try (Model model = custom(name, Vocabulary.TOKENIZER)) {
      return Generator.of(model);
    }
  }

  static Sampling greedy(int tokens) {
    return Sampling.greedy().maxNewTokens(tokens).ignoreEos(true);
  }

  /** Milliseconds since `begin`, of System.nanoTime. */
  static long since(long begin) {
    return (System.nanoTime() - begin) / 1_000_000;
  }
}
