// SPDX-License-Identifier: Apache-2.0
// Leaves everything open, and threads in the middle of calls, and ends. The test is that this is quick and silent.
import dev.libgenerate.Generator;
import dev.libgenerate.KvCache;
import dev.libgenerate.Model;
import dev.libgenerate.Session;
import dev.libgenerate.TokenStream;
import java.util.ArrayList;
import java.util.List;

final class ExitTest {
  private static final List<Object> OPEN = new ArrayList<>();

  private ExitTest() {}

  public static void main(String[] args) throws Exception {
    Model model = Model.load(Check.MODEL);
    Generator generator = Generator.of(model);
    Generator slow = Check.generator("test_model_slow");
    Session session = generator.newSession();
    session.append("Once upon a time");
    TokenStream stream = session.stream("", Check.greedy(100));
    stream.next();
    OPEN.addAll(List.of(model, generator, slow, session, stream, KvCache.q4(2, 64), session.cache()));
    for (int i = 0; i < 4; ++i) {
      Generator which = i < 2 ? slow : generator;
      Thread thread = new Thread(() -> {
        for (;;) which.generate("Once", Check.greedy(100));
      });
      thread.setDaemon(true);
      thread.start();
    }
    Thread.sleep(200);
    if (args.length > 0) System.exit(0);
  }
}
