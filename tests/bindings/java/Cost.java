// SPDX-License-Identifier: Apache-2.0
// tests/bindings/cost.c in Java: Cost [tokens], with the properties `story` and `models`.
import dev.libgenerate.Generator;
import dev.libgenerate.Sampling;
import dev.libgenerate.Session;
import dev.libgenerate.Token;
import dev.libgenerate.TokenStream;

final class Cost {
  private static final int RUNS = 5;

  private Cost() {}

  public static void main(String[] args) {
    int tokens = args.length > 0 ? Integer.parseInt(args[0]) : 20000;
    Sampling sampling = Sampling.greedy().maxNewTokens(tokens);
    double best = Double.MAX_VALUE;
    try (Generator generator = Check.generator("test_model_nothing")) {
      for (int run = 0; run < RUNS; ++run) {
        try (Session session = generator.newSession(); TokenStream stream = session.stream("a", sampling)) {
          stream.next();
          long begin = System.nanoTime();
          int n = 0;
          long characters = 0;
          for (Token token : stream) {
            ++n;
            characters += token.text().length();
          }
          best = Math.min(best, (double) (System.nanoTime() - begin) / n);
          Check.equal((long) n, characters, "characters");
        }
      }
    }
    System.out.printf("Java: %.0f ns a token%n", best);
  }
}
