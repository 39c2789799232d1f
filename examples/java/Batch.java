// SPDX-License-Identifier: Apache-2.0
// Continues many prompts together: in one call, and on an executor.
//   java -cp generate-0.1.0.jar examples/java/Batch.java model.gguf "The cat" "A girl"
import dev.libgenerate.Generator;
import dev.libgenerate.Model;
import dev.libgenerate.Request;
import dev.libgenerate.Result;
import dev.libgenerate.Sampling;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;

final class Batch {
  public static void main(String[] args) {
    if (args.length < 2) {
      System.err.println("usage: Batch MODEL.gguf PROMPT...");
      System.exit(2);
    }
    List<String> prompts = Arrays.asList(args).subList(1, args.length);
    Sampling sampling = Sampling.defaults().temperature(0.7).seed(7).maxNewTokens(20);
    try (Model model = Model.load(Path.of(args[0])); Generator generator = Generator.of(model)) {
      // One thread, common steps; a request that fails does not touch the others.
      List<Request> requests = new ArrayList<>();
      for (String prompt : prompts) requests.add(Request.of(prompt, sampling).deadline(Duration.ofMinutes(1)));
      List<Result> results = generator.generate(requests);
      for (int i = 0; i < results.size(); ++i) {
        Result result = results.get(i);
        String text = result.error().map(e -> "failed: " + e.getMessage()).orElse(result.text());
        System.out.println(prompts.get(i) + text.replace('\n', ' '));
      }

      // Calls from several threads share steps as well, and give the same.
      List<CompletableFuture<Result>> futures = new ArrayList<>();
      for (String prompt : prompts) futures.add(generator.generateAsync(prompt, sampling, ForkJoinPool.commonPool()));
      for (int i = 0; i < futures.size(); ++i) {
        boolean same = futures.get(i).join().text().equals(results.get(i).text());
        System.out.println(prompts.get(i) + ": " + (same ? "the same again" : "something else"));
      }
    }
  }
}
