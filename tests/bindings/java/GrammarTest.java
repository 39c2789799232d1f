// SPDX-License-Identifier: Apache-2.0
// Proves that grammars constrain texts from Java, that matchers tell what may come next, and how both fail and end. What is
// expected comes from java.util.regex and a list of all texts.
import dev.libgenerate.FinishReason;
import dev.libgenerate.GenerateException;
import dev.libgenerate.Generator;
import dev.libgenerate.Grammar;
import dev.libgenerate.GrammarMatcher;
import dev.libgenerate.GrammarOptions;
import dev.libgenerate.Model;
import dev.libgenerate.Result;
import dev.libgenerate.Sampling;
import dev.libgenerate.Schemas;
import dev.libgenerate.Status;
import dev.libgenerate.Tokenizer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

final class GrammarTest {
  private static final String SENTENCE = "(The|A) (cat|dog|old hen) (ran|sat)\\.";
  private static final List<byte[]> SENTENCES = new ArrayList<>();
  private static Model model;

  private GrammarTest() {}

  public static void main(String[] args) throws Exception {
    model = Model.load(Check.MODEL);
    for (String article : List.of("The", "A")) {
      for (String who : List.of("cat", "dog", "old hen")) {
        for (String does : List.of("ran", "sat")) SENTENCES.add(bytes(article + " " + who + " " + does + "."));
      }
    }
    Check.test("texts are members", GrammarTest::members);
    Check.test("threads share a grammar", GrammarTest::threads);
    Check.test("texts go on from a matcher", GrammarTest::from);
    Check.test("matchers", GrammarTest::matchers);
    Check.test("lists of strings", GrammarTest::strings);
    Check.test("schemas of classes", GrammarTest::schemas);
    Check.test("errors name the place", GrammarTest::errors);
    Check.test("use after close", GrammarTest::closed);
    Check.finish();
  }

  enum Colour { RED, GREEN }

  record Point(int x, byte y) {}

  record Shape(String name, Colour colour, List<Point> points, Optional<Shape> inner, Map<String, Double> sizes) {}

  /** A bean. */
  public static final class Lamp {
    private boolean on;
    private long watts;

    public void setOn(boolean on) {
      this.on = on;
    }

    public void setWatts(long watts) {
      this.watts = watts;
    }
  }

  private static boolean accepts(Grammar grammar, String text) {
    try (GrammarMatcher matcher = grammar.matcher(model.tokenizer())) {
      matcher.acceptBytes(bytes(text));
      return matcher.isComplete();
    } catch (GenerateException refused) {
      return false;
    }
  }

  /** What the schema of a class allows fills the class. */
  private static void schemas() {
    GrammarOptions any = GrammarOptions.defaults().set("json_style", "any");
    try (Grammar grammar = Grammar.jsonSchema(Schemas.of(Shape.class), any)) {
      for (String text : List.of("{\"name\":\"\",\"colour\":\"RED\",\"points\":[{\"x\":-2147483648,\"y\":127}],\"sizes\":{\"a\":1.5}}",
          "{\"sizes\":{},\"inner\":null,\"points\":[],\"colour\":\"GREEN\",\"name\":\"x\"}")) {
        Check.that(accepts(grammar, text), text);
      }
      for (String text : List.of("{}", "{\"name\":\"\",\"colour\":\"BLUE\",\"points\":[],\"sizes\":{}}",
          "{\"name\":\"\",\"colour\":\"RED\",\"points\":[{\"x\":1,\"y\":128}],\"sizes\":{}}",
          "{\"name\":\"\",\"colour\":\"RED\",\"points\":[{\"x\":1.0,\"y\":1}],\"sizes\":{}}")) {
        Check.that(!accepts(grammar, text), text);
      }
    }
    Check.that(Schemas.of(Lamp.class).contains("\"properties\":{\"on\":{\"type\":\"boolean\"},\"watts\":"), Schemas.of(Lamp.class));
    Check.that(Schemas.of(Lamp.class).contains("\"required\":[\"on\",\"watts\"]"), Schemas.of(Lamp.class));
    try {
      Schemas.of(Runnable.class);
      Check.that(false, "an interface has a schema");
    } catch (IllegalArgumentException expected) {
      Check.that(expected.getMessage().contains("Runnable"), expected.getMessage());
    }
    try (Grammar grammar = Grammar.jsonSchema(Schemas.of(Point.class)); Generator generator = Generator.of(model)) {
      for (int seed = 0; seed < 4; ++seed) {
        String text = generator.generate("Once", Sampling.defaults().grammar(grammar).seed(seed).temperature(2f)
            .maxNewTokens(80)).text();
        Map<String, Object> read = Json.map(Json.parse(text));
        Point point = new Point(Json.number(read.get("x")), (byte) Json.number(read.get("y")));
        Check.that(read.size() == 2 && point.y() == Json.number(read.get("y")), text);
      }
    }
    GrammarOptions with = GrammarOptions.defaults().schemaDocument("urn:point", Schemas.of(Point.class));
    try (Grammar grammar = Grammar.jsonSchema("{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"items\":{\"$ref\":\"urn:point\"}}", with)) {
      Check.that(accepts(grammar, "[{\"x\":1,\"y\":2}]") && !accepts(grammar, "[1]"), "a document");
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Whether a text and more behind it can become one of the sentences. */
  private static boolean begins(String text, byte... more) {
    byte[] start = Arrays.copyOf(bytes(text), bytes(text).length + more.length);
    System.arraycopy(more, 0, start, start.length - more.length, more.length);
    return SENTENCES.stream().anyMatch(s -> s.length >= start.length && Arrays.equals(s, 0, start.length, start, 0,
        start.length));
  }

  private static void members() throws Exception {
    try (Generator generator = Generator.of(model); Grammar grammar = Grammar.regex(SENTENCE)) {
      Check.equal("regex", Json.map(Json.parse(grammar.describe())).get("kind"), "kind");
      Sampling limited = Sampling.defaults().temperature(3).maxNewTokens(40).grammar(grammar);
      Set<String> seen = new HashSet<>();
      for (int seed = 0; seed < 12; ++seed) {
        Result result = generator.generate("Once upon a time", limited.seed(seed));
        Check.that(result.text().matches(SENTENCE), result.text());
        Check.that(result.grammarComplete().orElse(false), "a member");
        Check.that(result.finishReason() == FinishReason.GRAMMAR_COMPLETE
            || result.finishReason() == FinishReason.STOP_TOKEN, result.finishReason().toString());
        seen.add(result.text());
      }
      Check.that(seen.size() > 1, "one text whatever the seed");
      Result unbound = generator.generate("Once upon a time", Check.greedy(8));
      Check.that(unbound.grammarComplete().isEmpty(), "without a grammar");
      String free = unbound.text();
      Check.that(!free.matches(SENTENCE), "a text that needs no grammar");
      Check.equal(free, generator.generate("Once upon a time", Check.greedy(8).grammar(grammar).grammar(null)).text(),
          "any text");
      try (Grammar choice = Grammar.gbnf("root ::= answer \"!\"\nanswer ::= \"yes\" | \"no\"");
          Grammar tokens = Grammar.gbnf("root ::= <[300]> <[301]>"); Grammar lacking = Grammar.gbnf("root ::= <[99999]>")) {
        String text = generator.generate("Well?", Sampling.greedy().grammar(choice)).text();
        Check.that(text.equals("yes!") || text.equals("no!"), text);
        Check.equal(new int[] {300, 301}, generator.generate("a", Sampling.greedy().grammar(tokens)).tokens(), "tokens");
        Check.fails(Status.GRAMMAR, () -> generator.generate("a", Sampling.greedy().grammar(lacking)));
      }
    }
  }

  private static void threads() {
    try (Generator generator = Generator.of(model); Grammar grammar = Grammar.regex(SENTENCE)) {
      Sampling limited = Sampling.defaults().maxNewTokens(40).grammar(grammar);
      IntStream.range(0, 16).parallel().forEach(seed -> {
        String text = generator.generate("The", limited.seed(seed)).text();
        Check.that(text.matches(SENTENCE), text);
      });
    }
  }

  private static void from() {
    try (Generator generator = Generator.of(model); Grammar grammar = Grammar.regex(SENTENCE);
        GrammarMatcher matcher = grammar.matcher(model.tokenizer())) {
      matcher.acceptText("The old");
      Sampling limited = Sampling.greedy().maxNewTokens(20).grammarMatcher(matcher);
      for (int i = 0; i < 2; ++i) {  // the matcher stays where it is
        String text = generator.generate("The old", limited).text();
        Check.that(text.matches(" hen (ran|sat)\\."), text);
      }
    }
  }

  private static void check(GrammarMatcher matcher, String text) {
    Tokenizer tokenizer = model.tokenizer();
    BitSet mask = matcher.mask();
    for (int id = 0; id < tokenizer.vocabSize(); ++id) {
      byte[] piece = tokenizer.piece(id);
      Check.equal(piece.length > 0 && begins(text, piece), mask.get(id), "behind \"" + text + "\" token " + id);
    }
    BitSet valid = matcher.validBytes();
    for (int b = 0; b < 256; ++b) {
      Check.equal(begins(text, (byte) b), valid.get(b), "behind \"" + text + "\" byte " + b);
    }
  }

  private static void matchers() throws Exception {
    Tokenizer tokenizer = model.tokenizer();
    int end = tokenizer.special(Tokenizer.Special.EOS);
    try (Grammar grammar = Grammar.regex(SENTENCE); GrammarMatcher matcher = grammar.matcher(tokenizer)) {
      check(matcher, "");
      matcher.acceptBytes(bytes("The ca"));
      check(matcher, "The ca");
      try (GrammarMatcher fork = matcher.fork()) {
        matcher.acceptText("t");
        for (int id : tokenizer.encodeMore(" ran", false)) matcher.acceptToken(id);
        check(matcher, "The cat ran");
        check(fork, "The ca");
      }
      Check.fails(Status.GRAMMAR, () -> matcher.acceptText("?"));
      Check.fails(Status.GRAMMAR, () -> matcher.acceptToken(end));
      Check.that(!matcher.isComplete() && !matcher.isFinished(), "not yet");
      Check.equal(1L, matcher.minTokens(), "a full stop");
      matcher.acceptText(".");
      Check.that(matcher.isComplete() && matcher.isFinished() && matcher.mask().get(end), "the end");
      Check.equal(0L, matcher.minTokens(), "nothing more");
      matcher.acceptToken(end);
      matcher.rollback(2);
      check(matcher, "The cat ran");
      Check.fails(Status.OUT_OF_RANGE, () -> matcher.rollback(100));
      Check.fails(Status.INVALID_ARGUMENT, () -> matcher.rollback(-1));
      Check.fails(Status.OUT_OF_RANGE, () -> matcher.acceptToken(-1));
      Check.fails(Status.OUT_OF_RANGE, () -> matcher.acceptToken(1 << 20));
      matcher.reset();
      check(matcher, "");
    }
    try (Grammar tokens = Grammar.gbnf("root ::= <[300]> <[301]> [a-z]+"); GrammarMatcher m = tokens.matcher(tokenizer)) {
      Check.equal(new int[] {300, 301}, m.forced(), "tokens that must come");
      m.acceptToken(300);
      m.acceptToken(301);
      Check.equal(0, m.forced().length, "letters are many");
    }
  }

  private static void strings() throws Exception {
    try (Grammar grammar = Grammar.regex(SENTENCE)) {
      List<String> strings = List.of("cat", "", " cat", " dragon", " o", " \0", " old hen sat.", "ü");
      BitSet possible = grammar.tokenMask("The", strings);
      for (int i = 0; i < strings.size(); ++i) {
        Check.equal(!strings.get(i).isEmpty() && begins("The", bytes(strings.get(i))), possible.get(i), strings.get(i));
      }
      Check.that(grammar.tokenMask("", List.of()).isEmpty() && grammar.tokenMask("", List.of("")).isEmpty(), "nothing");
      BitSet many = grammar.tokenMask(bytes("A "), IntStream.range(0, 100)
          .mapToObj(i -> bytes(i % 2 == 1 ? "do" : "x")).toList());
      for (int i = 0; i < 100; ++i) Check.equal(i % 2 == 1, many.get(i), "string " + i);
      Check.fails(Status.GRAMMAR, () -> grammar.tokenMask("They", strings));
    }
  }

  private static void errors() throws Exception {
    GenerateException e = Check.fails(Status.GRAMMAR, () -> Grammar.gbnf("root ::= a\na ::= (\"b\""));
    Check.that(e.getMessage().contains("line 2, column"), e.getMessage());
    e = Check.fails(Status.GRAMMAR, () -> Grammar.lark("start: ("));
    Check.that(e.getMessage().contains("line 1, column 8"), e.getMessage());
    try (Grammar sums = Grammar.lark("start: N (\"+\" N)*\nN: /[0-9]+/\n%ignore \" \"");
        GrammarMatcher matcher = sums.matcher(model.tokenizer())) {
      matcher.acceptText("12 + 3");
      Check.fails(Status.GRAMMAR, () -> matcher.acceptText("x"));
    }
    e = Check.fails(Status.GRAMMAR, () -> Grammar.regex("ab("));
    Check.that(e.getMessage().contains("column 3"), e.getMessage());
    Check.fails(Status.INVALID_ARGUMENT, () -> Grammar.gbnf("half \ud83c"));
    Check.fails(Status.INVALID_ARGUMENT, () -> GrammarOptions.defaults().set("colour", "red"));
    Check.fails(Status.GRAMMAR, () -> Grammar.anyJson(GrammarOptions.defaults().set("max_edges", "3")));
    try (Grammar tags = Grammar.tags("{\"tags\":[{\"begin\":\"<\u00e9>\",\"regex\":\"[0-9]+\",\"end\":\".\"}]}");
        GrammarMatcher matcher = tags.matcher(model.tokenizer())) {
      matcher.acceptText("free <\u00e9>12");
      Check.fails(Status.GRAMMAR, () -> matcher.acceptText("x"));
      matcher.acceptText(". free");
    }
    GrammarOptions search = GrammarOptions.defaults().regexSearch(true);
    Check.that(search.describe().contains("\"value\":\"search\""), search.describe());
    try (Grammar whole = Grammar.regex("b", search.regexSearch(false)); Grammar part = Grammar.regex("b", search);
        Grammar json = Grammar.anyJson(); GrammarMatcher matcher = json.matcher(model.tokenizer())) {
      Check.that(!whole.tokenMask("", List.of("a")).get(0) && part.tokenMask("", List.of("a")).get(0), "search");
      matcher.acceptText("{\"a\": [1, 2");
      Check.fails(Status.GRAMMAR, () -> matcher.acceptText("}"));
      matcher.acceptText("]}");
      Check.that(matcher.isComplete() && matcher.isFinished(), "nothing follows");
    }
  }

  private static void closed() throws Exception {
    Grammar grammar = Grammar.regex(SENTENCE);
    GrammarMatcher matcher = grammar.matcher(model.tokenizer());
    Sampling with = Sampling.greedy().grammar(grammar);
    Sampling at = Sampling.greedy().grammarMatcher(matcher);
    matcher.acceptText("A ");
    grammar.close();
    grammar.close();
    matcher.acceptText("dog");
    GrammarMatcher fork = matcher.fork();
    matcher.close();
    matcher.close();
    fork.acceptText(" sat.");
    Check.that(fork.isFinished(), "the fork goes on");
    fork.close();
    Check.equal("the grammar is closed", Check.fails(Status.STATE, grammar::describe).getMessage(), "message");
    Check.fails(Status.STATE, () -> grammar.matcher(model.tokenizer()));
    Check.fails(Status.STATE, () -> grammar.tokenMask("", List.of()));
    Check.fails(Status.STATE, () -> matcher.acceptToken(1));
    Check.fails(Status.STATE, () -> matcher.acceptText(" "));
    Check.fails(Status.STATE, matcher::mask);
    Check.fails(Status.STATE, matcher::validBytes);
    Check.fails(Status.STATE, matcher::fork);
    Check.fails(Status.STATE, matcher::isComplete);
    Check.fails(Status.STATE, matcher::forced);
    Check.fails(Status.STATE, () -> matcher.rollback(0));
    Check.fails(Status.STATE, () -> Sampling.greedy().grammar(grammar));
    try (Generator generator = Generator.of(model)) {
      Check.fails(Status.STATE, () -> generator.generate("a", with));
      Check.fails(Status.STATE, () -> generator.generate("a", at));
    }
  }
}
