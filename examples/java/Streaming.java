// SPDX-License-Identifier: Apache-2.0
// Streams a story, and stops others: by leaving the loop, by a Cancel, by an interrupt.
//   java -cp generate-0.1.0.jar examples/java/Streaming.java model.gguf
import dev.libgenerate.Cancel;
import dev.libgenerate.GenerateCancelledException;
import dev.libgenerate.Generator;
import dev.libgenerate.GeneratorOptions;
import dev.libgenerate.Model;
import dev.libgenerate.Sampling;
import dev.libgenerate.Token;
import dev.libgenerate.TokenStream;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

final class Streaming {
  public static void main(String[] args) {
    if (args.length != 1) {
      System.err.println("usage: Streaming MODEL.gguf");
      System.exit(2);
    }
    ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    Sampling endless = Sampling.defaults().temperature(0.8).seed(3).maxNewTokens(100_000).ignoreEos(true);
    GeneratorOptions options = GeneratorOptions.defaults().contextPolicy("shift", 4);
    try (Model model = Model.load(Path.of(args[0])); Generator generator = Generator.of(model, options)) {
      try (TokenStream stream = generator.stream("Once upon a time", Sampling.greedy().maxNewTokens(40))) {
        for (Token token : stream) System.out.print(token.text());
        System.out.println("\n[" + stream.finishReason() + "]");
      }

      try (TokenStream stream = generator.stream("The dog", endless)) {
        System.out.println(stream.stream().limit(12).map(Token::text).collect(Collectors.joining()) + " [enough]");
      }

      Cancel cancel = new Cancel();
      timer.schedule(cancel::fire, 300, TimeUnit.MILLISECONDS);
      try {
        generator.generate("The dog", endless, cancel);
        System.out.println("it ended first");
      } catch (GenerateCancelledException e) {
        System.out.println("cancelled, after some text: " + e.result().isPresent());
      }

      Thread self = Thread.currentThread();
      timer.schedule(self::interrupt, 50, TimeUnit.MILLISECONDS);
      try {
        generator.generate("The dog", endless);
        System.out.println("it ended first");
      } catch (GenerateCancelledException e) {
        System.out.println("interrupted: " + Thread.interrupted());
      }
    } finally {
      timer.shutdownNow();
    }
  }
}
