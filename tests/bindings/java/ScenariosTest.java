// SPDX-License-Identifier: Apache-2.0
// Proves that Java gives what C gives, by the table that all bindings have in common.
import dev.libgenerate.Agent;
import dev.libgenerate.AgentOptions;
import dev.libgenerate.BatchStream;
import dev.libgenerate.Chat;
import dev.libgenerate.ChatSession;
import dev.libgenerate.GenerateException;
import dev.libgenerate.Generator;
import dev.libgenerate.GeneratorOptions;
import dev.libgenerate.Model;
import dev.libgenerate.Request;
import dev.libgenerate.Result;
import dev.libgenerate.Sampling;
import dev.libgenerate.Session;
import dev.libgenerate.Status;
import dev.libgenerate.Template;
import dev.libgenerate.Token;
import dev.libgenerate.TokenStream;
import dev.libgenerate.Tokenizer;
import dev.libgenerate.ToolCall;
import dev.libgenerate.Tools;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

final class ScenariosTest {
  private static Model model;
  private static Map<String, Object> table;

  private ScenariosTest() {}

  public static void main(String[] args) throws Exception {
    table = Json.map(Json.parse(Files.readString(Path.of(args[0]))));
    model = Model.load(Check.MODEL);
    for (Object entry : Json.list(table.get("texts"))) text(Json.map(entry));
    Check.test("every text in one batch, pulled and at once", ScenariosTest::batch);
    for (Object entry : Json.list(table.get("tokenizer"))) tokenizer(Json.map(entry));
    for (Object entry : Json.list(table.get("streams"))) stream(Json.map(entry));
    Check.test("a session step by step", ScenariosTest::session);
    for (Object entry : Json.list(table.get("statuses"))) status(Json.map(entry));
    Check.test("a conversation in the model's form", ScenariosTest::chat);
    Check.test("a conversation and its answers", ScenariosTest::chatSession);
    Check.test("a template", ScenariosTest::template);
    Check.test("guesses change no text", ScenariosTest::drafts);
    Check.test("several texts from a prompt", ScenariosTest::several);
    for (Object row : Json.list(Json.map(table.get("tools")).get("rows"))) tools(Json.map(row));
    Check.test("64 sessions at once give what each gives alone", ScenariosTest::sixtyFour);
    Check.finish();
  }

  private static Sampling sampling(Object settings) {
    Sampling sampling = Sampling.defaults();
    for (Map.Entry<String, Object> e : Json.map(settings).entrySet()) {
      sampling = sampling.set(e.getKey(), (String) e.getValue());
    }
    return sampling;
  }

  private static Generator generator(Object settings) {
    GeneratorOptions options = GeneratorOptions.defaults();
    for (Map.Entry<String, Object> e : Json.map(settings).entrySet()) {
      options = options.set(e.getKey(), (String) e.getValue());
    }
    return Generator.of(model, options);
  }

  private static void same(Map<String, Object> entry, Result result) {
    Check.equal(entry.get("text"), result.text(), "text");
    Check.equal(Json.ints(entry.get("tokens")), result.tokens(), "tokens");
    Check.equal(entry.get("finish_reason"), result.finishReason().name().toLowerCase(Locale.ROOT), "finish reason");
    Check.equal((long) Json.number(entry.get("prompt_tokens")), result.promptTokens(), "tokens of the prompt");
    Check.equal((long) Json.number(entry.get("completion_tokens")), result.completionTokens(), "tokens generated");
    Check.that(result.error().isEmpty(), "there is no error");
  }

  private static void text(Map<String, Object> entry) {
    String prompt = (String) entry.get("prompt");
    Check.test("text: " + entry.get("name"), () -> {
      Sampling sampling = sampling(entry.get("sampling"));
      try (Generator generator = generator(entry.get("options")); Session session = generator.newSession()) {
        same(entry, generator.generate(prompt, sampling));
        same(entry, session.generate(prompt, sampling));
        try (TokenStream stream = generator.stream(prompt, sampling)) {
          Check.equal(entry.get("text"), stream.stream().map(Token::text).collect(Collectors.joining()), "pieces");
          same(entry, stream.result());
          Check.equal(stream.result().finishReason(), stream.finishReason(), "the stream's finish reason");
        }
      }
    });
  }

  private static void batch() {
    List<Map<String, Object>> entries = new ArrayList<>();
    List<Request> requests = new ArrayList<>();
    for (Object each : Json.list(table.get("texts"))) {
      Map<String, Object> entry = Json.map(each);
      if (!Json.map(entry.get("options")).isEmpty()) continue;
      entries.add(entry);
      requests.add(Request.of((String) entry.get("prompt"), sampling(entry.get("sampling"))));
    }
    try (Generator generator = Generator.of(model)) {
      List<Result> results = generator.generate(requests);
      try (BatchStream stream = generator.stream(requests)) {
        List<StringBuilder> texts = new ArrayList<>();
        requests.forEach(r -> texts.add(new StringBuilder()));
        for (BatchStream.Piece piece : stream) texts.get(piece.request()).append(piece.token().text());
        for (int i = 0; i < entries.size(); ++i) {
          same(entries.get(i), results.get(i));
          same(entries.get(i), stream.results().get(i));
          Check.equal(entries.get(i).get("text"), texts.get(i).toString(), "pieces");
        }
      }
    }
  }

  private static void tokenizer(Map<String, Object> entry) {
    String text = (String) entry.get("text");
    boolean bos = (Boolean) entry.get("add_bos");
    Check.test("tokenizer: " + text.replace('\0', '?') + (bos ? ", with bos" : ""), () -> {
      Tokenizer tokenizer = model.tokenizer();
      int[] ids = tokenizer.encode(text, bos, false);
      Check.equal(Json.ints(entry.get("ids")), ids, "ids");
      Check.equal(entry.get("decoded"), tokenizer.decode(ids), "decoded");
    });
  }

  private static void stream(Map<String, Object> entry) {
    String name = (String) entry.get("model");
    Check.test("stream: " + (name.isEmpty() ? "the bundled model" : name), () -> {
      try (Generator generator = name.isEmpty() ? Generator.of(model) : Check.generator(name);
          TokenStream stream = generator.stream((String) entry.get("prompt"), sampling(entry.get("sampling")))) {
        int index = 0;
        for (Object each : Json.list(entry.get("pieces"))) {
          Map<String, Object> piece = Json.map(each);
          if ((Boolean) piece.get("done") && ((String) piece.get("text")).isEmpty()) break;
          Token token = stream.next();
          Check.equal(Json.number(piece.get("id")), token.id(), "id");
          Check.equal(piece.get("text"), token.text(), "piece " + index);
          Check.equal(index++, token.index(), "index");
        }
        Check.that(!stream.hasNext(), "the stream ends with the table");
      }
    });
  }

  private static void session() {
    Map<String, Object> scenario = Json.map(table.get("session"));
    Sampling sampling = sampling(scenario.get("sampling"));
    byte[] saved = null;
    try (Generator generator = Generator.of(model); Session session = generator.newSession()) {
      for (Object each : Json.list(scenario.get("steps"))) {
        Map<String, Object> step = Json.map(each);
        String what = (String) step.get("do");
        switch (what) {
          case "append":
            session.append((String) step.get("prompt"));
            break;
          case "generate":
            Check.equal(step.get("text"), session.generate((String) step.get("prompt"), sampling).text(), what);
            break;
          case "truncate":
            session.truncate(Json.number(step.get("n")));
            break;
          case "reset":
            saved = session.save();
            session.reset();
            break;
          default:
            session.load(saved);
        }
        Check.equal(Json.number(step.get("length")), session.length(), "length after " + what);
        Check.equal(Json.ints(step.get("held")), session.tokens(), "tokens after " + what);
      }
    }
  }

  private static void status(Map<String, Object> entry) {
    Check.test("status: " + entry.get("model") + ", " + entry.get("name"), () -> {
      try (Generator generator = Check.generator((String) entry.get("model"))) {
        GenerateException e;
        try {
          generator.generate("a", Check.greedy(5));
          throw new AssertionError("nothing was thrown");
        } catch (GenerateException thrown) {
          e = thrown;
        }
        same(entry, e);
        try (TokenStream stream = generator.stream("a", Check.greedy(5))) {
          stream.hasNext();
          throw new AssertionError("nothing was thrown");
        } catch (GenerateException thrown) {
          same(entry, thrown);
        }
        same(entry, generator.generate(List.of(Request.of("a"))).get(0).error().get());
      }
    });
  }

  private static void same(Map<String, Object> entry, GenerateException e) {
    Check.equal(Json.number(entry.get("code")), e.code(), "code");
    Check.equal(entry.get("name"), (e.code() == 0 ? "GEN_" : "GEN_ERROR_") + e.status().name(), "name");
    Check.equal(entry.get("message"), e.getMessage(), "message");
  }

  private static void chat() {
    Map<String, Object> scenario = Json.map(table.get("chat"));
    try (Chat chat = new Chat()) {
      for (Object each : Json.list(scenario.get("messages"))) {
        Map<String, Object> message = Json.map(each);
        chat.add((String) message.get("role"), (String) message.get("text"));
      }
      Check.equal(scenario.get("formatted"), model.format(chat, true), "formatted");
    }
  }

  private static void chatSession() throws Exception {
    Map<String, Object> scenario = Json.map(table.get("chat_session"));
    Sampling sampling = sampling(scenario.get("sampling"));
    try (Generator generator = Generator.of(model);
        Chat chat = new Chat();
        ChatSession session = generator.newChatSession(chat)) {
      for (Object each : Json.list(scenario.get("steps"))) {
        Map<String, Object> step = Json.map(each);
        String text = (String) step.get("text");
        String name = (String) step.get("name");
        String id = (String) step.get("id");
        switch ((String) step.get("do")) {
          case "template" -> chat.template(text);
          case "tool" -> chat.tool(text);
          case "variable" -> chat.variable(name, '"' + text + '"');
          case "time" -> chat.time(LocalDateTime.parse(text));
          case "message" -> chat.add((String) step.get("role"), text);
          case "name" -> chat.name(text);
          case "reasoning" -> chat.reasoning(text);
          case "tool_call" -> chat.toolCall(id, name, text);
          case "tool_result" -> chat.toolResult(id, name, text);
          case "truncate" ->
              Check.equal(text, chat.user("Forget this.").truncate(Json.number(step.get("length"))).describe(), "all");
          case "send" -> answered(step, session.send(text, sampling), session, chat);
          default -> {
            try (Session plain = generator.newSession()) {
              plain.appendChat(chat, true);
              Check.equal(model.encode(chat, true), plain.tokens(), "what a plain session holds");
              Check.equal(step.get("answer"), plain.generate("", sampling).text(), "its answer");
            }
            answered(step, session.answer(sampling), session, chat);
            chat.truncate(-1);
            Result result;
            try (TokenStream stream = session.stream(null, sampling)) {
              Check.fails(Status.BUSY, () -> chat.user(""));
              String pieces = stream.stream().flatMap(token -> token.pieces().stream()).map(Token.Piece::text)
                  .collect(Collectors.joining());
              Check.equal(step.get("answer"), pieces, "pieces");
              result = stream.result();
            }
            answered(step, result, session, chat);
          }
        }
      }
      Check.that(session.progress() == 1, "all has been run");
    }
  }

  private static void answered(Map<String, Object> step, Result result, ChatSession session, Chat chat) {
    Check.equal(step.get("answer"), result.text(), "the answer");
    Check.equal(Json.number(step.get("length")), session.length(), "length");
    Check.equal(Json.ints(step.get("tokens")), model.encode(chat, false), "the conversation");
  }

  private static void template() throws Exception {
    Map<String, Object> scenario = Json.map(table.get("template"));
    try (Template template = new Template((String) scenario.get("template"))) {
      String rendered = template.render((String) scenario.get("request"));
      Check.equal(scenario.get("rendered"), Json.parse(rendered), "rendered");
    }
    Check.fails(Status.FORMAT, () -> new Template("{% if %}"));
    try (Template own = model.tokenizer().template()) {
      String rendered = own.render((String) scenario.get("request"));
      Check.that(rendered.contains("<|im_start|>user"), rendered);
    }
  }

  private static void drafts() throws Exception {
    try (Model draft = Model.load(Check.MODEL.resolveSibling("draft.gguf"))) {
      for (Object each : Json.list(table.get("drafts"))) {
        Map<String, Object> entry = Json.map(each);
        GeneratorOptions options = GeneratorOptions.defaults();
        for (Map.Entry<String, Object> e : Json.map(entry.get("options")).entrySet()) {
          options = options.set(e.getKey(), (String) e.getValue());
        }
        int length = Json.number(entry.get("draft_length"));
        if (length > 0) options = options.speculativeDraft(draft, length);
        try (Generator generator = Generator.of(model, options)) {
          Result result = generator.generate((String) entry.get("prompt"), sampling(entry.get("sampling")));
          Check.equal(Json.ints(entry.get("tokens")), result.tokens(), "tokens");
          Check.equal((long) Json.number(entry.get("drafted")), result.draftedTokens(), "drafted");
          Check.equal((long) Json.number(entry.get("accepted")), result.acceptedTokens(), "accepted");
          int drafted = 0;
          int accepted = 0;
          for (Object pass : Json.list(Json.parse(result.drafts()))) {
            drafted += Json.ints(Json.map(pass).get("tokens")).length;
            accepted += Json.ints(Json.map(pass).get("accepted")).length;
          }
          Check.equal((long) drafted, result.draftedTokens(), "drafts");
          Check.equal((long) accepted, result.acceptedTokens(), "accepted drafts");
        }
      }
    }
  }

  private static void several() throws Exception {
    Map<String, Object> scenario = Json.map(table.get("several"));
    try (Generator generator = Generator.of(model)) {
      List<Result> results = generator.generate((String) scenario.get("prompt"), sampling(scenario.get("sampling")),
          Json.number(scenario.get("n")), Json.number(scenario.get("best_of")), null);
      Check.equal(scenario.get("texts"), results.stream().map(Result::text).toList(), "texts");
      Check.fails(Status.INVALID_ARGUMENT, () -> generator.generate("a", null, 3, 2, null));
    }
    Check.fails(Status.UNSUPPORTED, () -> model.tokenizer().encodeFillInMiddle("a", "b"));
  }

  private static String tool(ToolCall call, Agent agent) throws Exception {
    Map<String, Object> arguments = Json.map(Json.parse(call.arguments()));
    switch (call.name()) {
      case "add":
        return String.valueOf(Json.number(arguments.get("a")) + Json.number(arguments.get("b")));
      case "echo":
        return (String) arguments.get("text");
      case "stop":
        agent.cancel();
        while (!call.stopped()) Thread.sleep(1);
        return "told";
      default:
        throw new IllegalStateException("no");
    }
  }

  private static void tools(Map<String, Object> row) {
    Check.test("tools: " + row.get("name"), () -> {
      AgentOptions options = AgentOptions.defaults();
      for (Map.Entry<String, Object> e : Json.map(row.get("options")).entrySet()) {
        options = options.set(e.getKey(), (String) e.getValue());
      }
      Agent[] running = new Agent[1];
      try (Tools tools = new Tools(); Agent agent = Agent.of(tools, options)) {
        running[0] = agent;
        for (Map.Entry<String, Object> e : Json.map(Json.map(table.get("tools")).get("functions")).entrySet()) {
          tools.add(e.getKey(), "", (String) e.getValue(), call -> tool(call, running[0]));
        }
        for (Object each : Json.list(row.get("steps"))) {
          Map<String, Object> step = Json.map(each);
          int ends;
          try {
            ends = agent.step((String) step.get("output")) ? 1 : 0;
          } catch (GenerateException e) {
            ends = e.code();
          }
          Check.equal(Json.number(step.get("ends")), ends, "the end of " + step.get("output"));
        }
        Check.equal(row.get("record"), Json.parse(agent.describe()), "the record");
      }
    });
  }

  private static void sixtyFour() throws Exception {
    ExecutorService executor = Executors.newFixedThreadPool(64);
    try (Generator generator = Generator.of(model)) {
      List<Sampling> samplings = new ArrayList<>();
      for (int i = 0; i < 64; ++i) samplings.add(Sampling.defaults().temperature(0.8).seed(i).maxNewTokens(12));
      List<String> alone = new ArrayList<>();
      for (Sampling sampling : samplings) alone.add(generator.generate("Once upon a time", sampling).text());
      List<CompletableFuture<String>> together = new ArrayList<>();
      for (Sampling sampling : samplings) {
        together.add(CompletableFuture.supplyAsync(() -> {
          try (Session session = generator.newSession();
              TokenStream stream = session.stream("Once upon a time", sampling)) {
            return stream.stream().map(Token::text).collect(Collectors.joining());
          }
        }, executor));
      }
      for (int i = 0; i < 64; ++i) Check.equal(alone.get(i), together.get(i).get(), "text " + i);
    } finally {
      executor.shutdown();
    }
  }
}
