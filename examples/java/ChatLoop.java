// SPDX-License-Identifier: Apache-2.0
// Talks: each line of the input is a message, the answer comes as it is made. The session keeps what was said before, so
// only what is new runs.
//   java -cp generate-0.1.0.jar examples/java/ChatLoop.java model.gguf
import dev.libgenerate.Chat;
import dev.libgenerate.ChatSession;
import dev.libgenerate.Generator;
import dev.libgenerate.Model;
import dev.libgenerate.Sampling;
import dev.libgenerate.Token;
import dev.libgenerate.TokenStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

final class ChatLoop {
  public static void main(String[] args) throws IOException {
    if (args.length != 1) {
      System.err.println("usage: ChatLoop MODEL.gguf");
      System.exit(2);
    }
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Sampling sampling = Sampling.defaults().temperature(0.7).topP(0.95).seed(1).maxNewTokens(100);
    try (Model model = Model.load(Path.of(args[0]));
        Generator generator = Generator.of(model);
        Chat chat = new Chat().system("You tell stories.");
        ChatSession session = generator.newChatSession(chat)) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        try (TokenStream stream = session.stream(line, sampling)) {
          for (Token token : stream) out.print(token.text());
        }
        out.println();
      }
    }
  }
}
