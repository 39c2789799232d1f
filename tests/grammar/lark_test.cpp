// SPDX-License-Identifier: Apache-2.0
// Lark files mean what the descriptions of Lark and of llguidance's dialect say, without a lexer;
// failures name line and column. Random files, and & ~ [lazy], against slow_grammar.h.
#include "grammar/notation/lark.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/member_cases.h"
#include "grammar/slow_grammar.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

using test::SlowGrammar;

Matcher matcher(const std::string& source) {
  const auto grammar = Grammar::from_lark(source);
  EXPECT_TRUE(grammar.ok()) << source << "\n" << grammar.status().message();
  if (!grammar.ok()) return matcher("start: \"\"");
  return Matcher::create(grammar.value()->over(test::vocabulary(test::all_bytes(), 8)).value())
      .value();
}

std::string failure(std::string_view source) {
  return test::failure_of(Grammar::from_lark(source), source);
}

void check(const std::vector<test::MemberCase>& cases) {
  for (const test::MemberCase& one : cases) test::expect_members(one, matcher(one.source));
}

TEST(Lark, RulesAndTerminals) {
  check({
      {"start: \"tea\" | \"milk\" \"y\"", {"tea", "milky"}, {"", "milk", "teay"}},
      {"start: \"on\"\n     | \"off\"\n\n     | dim\ndim: \"half\"",
       {"on", "off", "half"},
       {"onoff"}},
      {"start: beat ~ 2..3 | beat~5\nbeat: \".\"", {"..", "...", "....."}, {".", "....", "......"}},
      {"start: \"0\"{2}\"1\"{,2}\"2\"{1,}", {"002", "001122"}, {"02", "001", "0011122"}},
      {"start: [\"-\"] \"$\"? \"0\"* \"9\"+", {"9", "-$0099"}, {"", "--9", "0"}},
      {"start: (\"x\" | [\"y\" | \"z\"] \";\")+ -> both", {"x", ";", "y;xz;"}, {"", "y"}},
      {"start: \"l\" -> left\n | \"r\" -> RIGHT", {"l", "r"}, {"lr"}},
      {"start: a\n?a: b\n!b: c\n_c: \"so\"\nc: _c \"?\"", {"so?"}, {"so"}},
      {"start.2: A\nA.-1: \"a\"", {"a"}, {"b"}},
      {"// first\nstart: A # last\nA: /u/ // \"v\"\n#\n", {"u"}, {"v"}},
      {"start: (\n \"p\" |\n \"q\"\n \"r\")\r\n", {"p", "qr"}, {"q"}},
      {"start: my-rule MY-TERM->x\nmy-rule: \"m\"\nMY-TERM: \"n\"", {"mn"}, {"m"}},
      {"start: \"a\".. \"c\" \"\\u00e8\"..\"\\xeA\"", {"a\xC3\xA9"}, {"d\xC3\xA9", "a\xC3\xAB"}},
      {"start: \"\\\"\\\\\\/\\n\\t\\u20ac\\uD83E\\uDD99\\U0001F999\"",
       {"\"\\/\n\t\xE2\x82\xAC\xF0\x9F\xA6\x99\xF0\x9F\xA6\x99"},
       {""}},
      {"start: \"aK\xC3\xA9\"i", {"ak\xC3\x89", "A\xE2\x84\xAA\xC3\xA9"}, {"a\xC3\xA9"}},
      {"start: \"\" | \"a\"", {"", "a"}, {"aa"}},
      {"start: | \"a\"", {"", "a"}, {"aa"}},
      {"start: YEAR\nYEAR: \"-\"? CENTURY TWO\nTWO: ONE ONE\nONE: /[0-9]/\nCENTURY: \"18\" | "
       "\"19\"",
       {"1879", "-1900"},
       {"-", "2000"}},
      // recursion of every kind
      {"start: start \",\" W | W\nW: /[a-z]/", {"a", "a,b,c"}, {"", "a,"}},
      {"start: or\nor: or \"|\" and | and\nand: and \"&\" not | not\nnot: \"!\" not | \"(\" or "
       "\")\" | \"p\"",
       {"p|!p&p", "!(!p)"},
       {"p|", "()"}},
      {"start: a\na: b \"x\" | \"a\"\nb: a \"y\" | \"b\"", {"bxyx"}, {"bxy"}},
      {"start: \"<\" start \">\" start |", {"", "<<>><>"}, {"<"}},
  });
}

TEST(Lark, NoLexerDividesTheText) {
  check({
      // A lexer that takes as much as it can would leave nothing for what follows.
      {"start: /o*/ \"o\"", {"o", "ooo"}, {""}},
      {"start: \"un\" STEM\nSTEM: /[a-z]+/", {"unx", "unun"}, {"un"}},
      {"start: \"|id|\" /x+/ | CELL /y+/\nCELL: /\\|[a-z]*\\|/",
       {"|id|xx", "|id|y", "|a|y"},
       {"|a|x"}},
      {"start: STEM STEM\nSTEM: /[a-z]+/", {"ab"}, {"a"}},
  });
}

TEST(Lark, Ignored) {
  check({
      {"start: \"let\" PAIR\nPAIR: \"x\" \"y\"\n%ignore \" \"",
       {"letxy", "let  xy", "letxy "},
       {" letxy", "letx y"}},
      {"start: \"1\" \"2\"\n%ignore \" \"\n%ignore /;[^\\n]*\\n/", {"1 ; one\n 2"}, {"1 ; one 2"}},
      {"%llguidance {\"allow_initial_skip\": true}\nstart: \"z\"\n%ignore \"_\"", {"_z_"}, {"y"}},
      {"%llguidance {\"ignore_once\": true, \"no_forcing\": false}\nstart: \"1\" \"2\"\n%ignore "
       "/_{1,2}/",
       {"12", "1_2", "1__2"},
       {"1___2"}},
      {"%import common.WS\nstart: word+\nword: \"ho\"\n%ignore WS", {"ho \n ho", "hoho"}, {" ho"}},
      {"start: %lark { start: \"k\" \"l\"\n%ignore \"-\" } \"m\"\n%ignore \" \"",
       {"k-l-m", "kl m "},
       {"k lm", "klm-"}},
  });
}

TEST(Lark, RegularExpressions) {
  check({
      {"start: /no|x[2-4]{2}(y|z)*/", {"no", "x23", "x44yz"}, {"n", "x2"}},
      {"start: /.../", {"abc", "\xC3\xA9\xE2\x82\xAC\r"}, {"ab", "a\nb", "abcd"}},
      {"start: /1.2/s", {"1\n2"}, {"12"}},
      {"start: /(?s:.)(?-s:.)/s", {"\na"}, {"a\n"}},
      {"start: /[m-p]Q/i", {"Mq", "nQ"}, {"qq"}},
      {"start: /(?i:u)v(?i)w|x/", {"Uvw", "uvW", "X"}, {"uVw"}},
      {"start: /(a(?i)b)c/", {"aBc"}, {"abC", "Abc"}},
      {"start: /[^K-M]/i", {"a", "n"}, {"k", "M", "\xE2\x84\xAA"}},
      {"start: /\\P{Lu}/i", {"1"}, {"A", "a"}},
      {"start: /u v # w\n [ x ]/x", {"uvx"}, {"u v x"}},
      {"start: /t {2}/x", {"tt"}, {"t"}},
      {"start: /[^x-z\\n]/", {"a", "\xC3\xA9"}, {"x", "\n"}},
      {"start: /[]^-]+/", {"]^-"}, {"a"}},
      {"start: /[+-]?[-.]/", {"+-", "."}, {"++"}},
      {"start: /\\d\\D\\w\\W\\s\\S/",
       {"1a_! x",
        "\xD9\xA3"
        "a\xC3\xA9!\xE2\x80\x83x"},
       {"aa_! x"}},
      {"start: /\\p{Lu}\\PL\\p{^Greek}\\p{sc=Greek}\\p{Greek}/",
       {"A1a\xCE\xB1\xCE\xB2"},
       {"a1a\xCE\xB1\xCE\xB1"}},
      {"start: /\\x41\\x{e9}\\u20ac\\U0001F999\\/\\.\\-/",
       {"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x99/.-"},
       {"A"}},
      {"start: /(?P<a>x)(?<b>y)(?:z){2}/", {"xyzz"}, {"xyz"}},
      {"start: /a{2,}b{,1}/", {"aa", "aaab"}, {"a", "aabb"}},
      {"start: /'(\\\\['\\\\]|\\\\x[0-9a-f]{2}|[^'\\\\])*'/",
       {"''", "'\\'\\x0a'"},
       {"'\\n'", "'\\'"}},
      {"start: /[\\w\\-]/i", {"a", "\xC3\x89", "-"}, {"+"}},
  });
}

TEST(Lark, Imports) {
  check({
      {"%import common.INT\n%import common.SIGNED_NUMBER -> NUM\nstart: INT \",\" NUM",
       {"12,-1.5e3", "0,.5", "1,2"},
       {",1", "1,-"}},
      {"%import common (CNAME, ESCAPED_STRING)\nstart: CNAME | ESCAPED_STRING",
       {"a_1", "\"a\\\"b\""},
       {"1a", "\"a\"b\"", "\"a\nb\""}},
      {"%import common.C_COMMENT\nstart: C_COMMENT", {"/* a * b **/"}, {"/* a */ */", "/*/"}},
      {"%import common.FLOAT\nstart: FLOAT", {"1.", ".5", "1e9", "1.5E-3"}, {"1", ".", "e9"}},
      {"%import common.NEWLINE\nstart: NEWLINE", {"\n", "\r\n\n"}, {"\r", ""}},
  });
}

TEST(Lark, BothAndNot) {
  check({
      {"start: CODE\nCODE: EVEN & BINARY\nEVEN: /(..)*/\nBINARY: /[01]+/",
       {"01", "1100"},
       {"", "1", "ab"}},
      {"start: T\nT: /x+/ | /[yz]+/ & /[zw]+/", {"xx", "zz"}, {"y", "w"}},
      {"start: T\nT: (/[xy]+/ | /[z]+/) & /[yzw]+/", {"y", "zz"}, {"x", "yz"}},
      {"start: T\nT: /[1-5]/ & /[3-7]/ & /[5-9]/", {"5"}, {"4", "6"}},
      {"start: T | \"none\"\nT: /x/ /y/ & /y/", {"none"}, {"y", "xy"}},
      {"start: T\nT: /[0-9]+/ & ~/0.+/", {"0", "10"}, {"01", "x"}},
      {"start: T\nT: /[a-z \\n]*/ & ~/(?s:.*) \\n(?s:.*)/", {"a\nb\n"}, {"a \nb"}},
      {"start: ~\"k\" \"l\"", {"l", "kl\xC3\xA9l", "kkl"}, {"kl", "k"}},
      {"start: A\nA: ~\"a\"+", {"", "b", "ab"}, {}},
      {"start: A \"!\"\nA: ~(/a+/ | \"b\") & /[ab]{,2}/", {"!", "ab!", "bb!"}, {"a!", "aa!", "b!"}},
  });
  // What is not matched is text: no byte that begins no character.
  EXPECT_FALSE(matcher("start: ~\"a\"").accept_bytes("\xFF").value());
}

TEST(Lark, Attributes) {
  check({
      {"start: line \"!\"\nline[lazy]: /.*;;/", {"a;b;;!"}, {"a;;b;;!"}},
      {"start: x \"!\"\nx[lazy]: /.*/", {"!"}, {"a!"}},
      {"start: x \"!\"\nx[lazy, capture]: /[0-9]+/", {"1!"}, {"12!"}},
      {"start: x \"!\"\nx[capture=\"y\", suffix=\"\\n\\n\"]: /(?s:.)*/",
       {"a\nb\n\n!"},
       {"a!", "a\n\n\n\n!"}},
      {"start: x \"]]\"\nx[stop=\"]]\"]: /.*/", {"a[0]b]]", "]]"}, {"a]]]]"}},
      {"start: x \"b\"\nx[stop=\"]]\"]: /.*/", {"ab", "bb", "[b"}, {"]b", "a]]b"}},
      {"start: x \"b\"\nx[stop=STOP, stop_capture=\"s\"]: /[a-z]*/\nSTOP: /[xy]z?/",
       {"ab", "b"},
       {"axb"}},
      {"start: x \"b\"\nx[stop=\"\"]: /a*/", {"b", "aab"}, {"a"}},
      {"start: (cite | sum)* \".\"\nTEXT: /[^.]*/\nc[suffix=\"[\"]: TEXT\ncite: c /[0-9]/ \"]\"\n"
       "s[suffix=\"{\"]: TEXT\nsum: s %json {\"type\": \"integer\"} \"}\"",
       {".", "as [1] and {-12}.", "][5]."},
       {"[x].", "{1.", "[1]].", "{[{5}."}},
      {"start: x \"c\"\nx[lazy]: \"a\" | \"ab\" | \"ba\"\n%ignore \" \"", {"a c", "bac"}, {"abc"}},
  });
}

TEST(Lark, InsertedParts) {
  check({
      {"start: \"(\" %json {\"type\": \"integer\", \"minimum\": -3} \")\"",
       {"(7)", "(-3)"},
       {"(-4)"}},
      {"start: %json {\n \"properties\": {\"k#\": {\"const\": \"}\\\"\"}},\n \"type\": \"object\"}",
       {"{\"k#\":\"}\\\"\"}"},
       {"{\"k#\":1}"}},
      {"start: \"<\" %regex {\"substring_words\": \"rain, then snow\"} \">\"",
       {"<rain>", "<, then>", "<>", "< snow>", "<rain, then snow>"},
       {"<rai>", "<rainsnow>"}},
      {"start: PART\nPART: %regex {\"substring_chars\": \"xy\xC3\xA9xy\"}",
       {"", "y\xC3\xA9x", "xy", "xy\xC3\xA9xy"},
       {"yx", "xyx"}},
      {"start: %regex {\"substring_chunks\": [\"one \", \"two\", \"\", \" six\"]}",
       {"", "one ", "two", " six", "one two", "two six", "one two six"},
       {"on", "etwo", "one  six"}},
      {"start: /[01]+/ unit\nunit: %lark {\n start: \"cm\" | x\n x: \"in\"\n}\nx: \"no\"",
       {"1cm", "10in"},
       {"1", "1no"}},
  });
}

TEST(Lark, Tokens) {
  // <0> to <7> are tokens 256 to 263, and 264 ends texts.
  Matcher one =
      matcher("start: <[256]> \"a\" <1> <[^256-258,260]> <[258,260-262]> <[*]>\n%ignore \" \"");
  EXPECT_FALSE(one.accept_token('a').value());
  EXPECT_FALSE(one.accept_token(257).value());
  EXPECT_TRUE(one.accept_token(256).value());
  EXPECT_TRUE(one.accept_token(' ').value());
  EXPECT_TRUE(one.accept_token('a').value());
  EXPECT_TRUE(one.accept_token(257).value());
  std::vector<uint64_t> mask(one.grammar().vocabulary().words());
  const auto expect_mask = [&](auto&& wanted) {
    ASSERT_TRUE(one.mask(mask).ok());
    for (int32_t token = 0; token < 265; ++token) {
      EXPECT_EQ(test::has(mask, token), wanted(token)) << token;
      Matcher other = one.fork();
      EXPECT_EQ(other.accept_token(token).value(), wanted(token)) << token;
    }
  };
  expect_mask([](int32_t t) { return t != 256 && t != 257 && t != 258 && t != 260 && t != 264; });
  EXPECT_TRUE(one.accept_token('z').value());
  expect_mask([](int32_t t) { return t == 258 || (t >= 260 && t <= 262) || t == ' '; });
  EXPECT_TRUE(one.accept_token(261).value());
  expect_mask([](int32_t t) { return t != 264; });
  EXPECT_TRUE(one.accept_token(263).value());
  EXPECT_TRUE(one.is_complete());

  const auto vocabulary = test::vocabulary({"a"}, 1);
  for (const char* source : {"start: <x>", "start: <[3]>", "start: <[^0-3]>"}) {
    EXPECT_EQ(Grammar::from_lark(source).value()->over(vocabulary).status().code(), Code::kGrammar);
  }
}

TEST(Lark, FailuresNameThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"start: \"a\"\nx: y", "line 2, column 4: no rule \"y\""},
      {"start: Y", "line 1, column 8: no terminal \"Y\""},
      {"x: \"a\"\n", "line 2, column 1: no rule \"start\""},
      {"start = \"a\"", "line 1, column 7: expected a colon behind \"start\", there is \"=\""},
      {"start: \"\xC3\xA9\" )", "line 1, column 12: ) without ("},
      {"start: (\n\"a\"", "line 1, column 8: ( without )"},
      {"start: [\"a\")", "line 1, column 12: ) without ("},
      {"start: \"a\n\"", "line 1, column 8: text without its end quote"},
      {"start: /a", "line 1, column 8: a regular expression without its end /"},
      {"start: /a\nb(/", "line 2, column 2: ( without )"},
      {"start: /[c-a]/", "line 1, column 10: range ends before it begins"},
      {"start: /a*?/",
       "line 1, column 11: lazy quantifiers are not supported; a rule can be [lazy] as a whole"},
      {"start: /a(?=b)/", "line 1, column 10: lookaround is not supported"},
      {"start: /a\\b/",
       "line 1, column 10: \\b is not supported: a terminal is matched as a whole"},
      {"start: /^a/", "line 1, column 9: ^ is not supported: a terminal is matched as a whole"},
      {"start: /(a)\\1/", "line 1, column 12: backreferences and octal codes are not supported"},
      {"start: /\\p{Foo}/", "line 1, column 9: no Unicode property \"Foo\""},
      {"start: /\\y/", "line 1, column 9: unknown escape \\y"},
      {"start: /{2}/", "line 1, column 9: nothing to repeat"},
      {"start: /a**/", "line 1, column 11: nothing to repeat"},
      {"start: /a{b/", "line 1, column 10: no repetition; the character is \\{"},
      {"start: /(?i/", "line 1, column 12: unknown flag of a group"},
      {"start: /[a-z&&[^e]]/",
       "line 1, column 13: && in a class is not supported; the character is \\&"},
      {"start: /[a--b]/",
       "line 1, column 11: -- in a class is not supported; the character is \\-"},
      {"start: /[[:alpha:]]/",
       "line 1, column 10: classes in a class are not supported; the character is \\["},
      {"start: /[\\d-z]/", "line 1, column 10: a set is no end of a range"},
      {"start: /(?-u)a/", "line 1, column 12: bytes, (?-u), are not supported"},
      {"start: /a/l", "line 1, column 11: the flag \"l\" is not supported"},
      {"start: *",
       "line 1, column 8: expected a rule, a terminal, a text, a regular expression or a token, "
       "there is \"*\""},
      {"start: \"a\"{3,2}", "line 1, column 11: most repetitions below the fewest"},
      {"start: \"a\"{-1,}", "line 1, column 12: no number of repetitions"},
      {"start: \"a\"~9999999999", "line 1, column 12: number above 1073741824"},
      {"start: \"\\q\"", "line 1, column 9: unknown escape \\q"},
      {"start: \"\\uD800\"", "line 1, column 9: no Unicode character"},
      {"start: \xFF", "line 1, column 8: not UTF-8"},
      {"start: <a", "line 1, column 8: token without its >"},
      {"start: <[3-1]>", "line 1, column 10: range ends before it begins"},
      {"start: <[*,1]>", "line 1, column 11: expected ]>"},
      {"start: $", "line 1, column 8: unexpected \"$\""},
      {"start: \"ab\"..\"c\"", "line 1, column 8: the end of a range is one character"},
      {"start: \"c\"..\"a\"", "line 1, column 8: range ends before it begins"},
      {"start: A\nA: \"a\" | B\nB: \"b\" A",
       "line 3, column 8: the terminal \"A\" contains itself"},
      {"start: A\nA: b\nb: \"b\"",
       "line 2, column 4: the rule \"b\" cannot stand in a terminal or a rule with attributes"},
      {"start: A\nA: <[1]>", "line 2, column 4: a token cannot stand in a terminal"},
      {"start: A\nA: %json {}", "line 2, column 4: %json cannot stand in a terminal"},
      {"start: A & A\nA: \"a\"",
       "line 1, column 10: & can only stand in a terminal, in upper case"},
      {"start: a\na: \"x\"\na: \"y\"", "line 3, column 1: \"a\" is defined twice"},
      {"start: aB",
       "line 1, column 8: \"aB\" is neither a rule, in lower case, nor a terminal, in upper case"},
      {"start: @other", "line 1, column 8: references to other grammars are not supported"},
      {"start: a{b}",
       "line 1, column 9: templates are not supported, and a repetition is {m}, {m,}, {,n} or "
       "{m,n}"},
      {"start{x}: x", "line 1, column 6: templates are not supported"},
      {"start: a::1", "line 1, column 9: rules with a parameter are not supported"},
      {"%declare A\nstart: A", "line 1, column 1: %declare is not supported"},
      {"%import python.NAME", "line 1, column 9: only the terminals of common can be imported"},
      {"%import common.FOO", "line 1, column 16: common has no terminal \"FOO\""},
      {"%foo", "line 1, column 1: no statement \"%foo\""},
      {"start[max_tokens=3]: /a/", "line 1, column 7: the attribute max_tokens is not supported"},
      {"start[temperature=0.7]: /a/",
       "line 1, column 7: the attribute temperature is not supported"},
      {"start[foo]: /a/",
       "line 1, column 7: no attribute \"foo\"; there are lazy, suffix, stop, capture, "
       "stop_capture"},
      {"start[stop=\"a\", suffix=\"b\"]: /a/", "line 1, column 17: one of stop and suffix, once"},
      {"A[lazy]: \"a\"", "line 1, column 2: a terminal has no attributes, only a rule has"},
      {"start: %json {\"type\": }",
       "line 1, column 8: in this %json, line 1, column 11: expected a value"},
      {"start: %json {\"type\": \"x\"", "line 1, column 14: JSON without its end"},
      {"start: %regex {\"foo\": 1}",
       "line 1, column 8: %regex has one of substring_words, substring_chars and "
       "substring_chunks, not \"foo\""},
      {"start: %regex {\"substring_words\": 1}",
       "line 1, column 8: %regex: substring_words is a string"},
      {"start: %regex {\"substring_chunks\": [1]}",
       "line 1, column 8: %regex: substring_chunks is a list of strings"},
      {"start: %regex {}",
       "line 1, column 8: %regex has one of substring_words, substring_chars and "
       "substring_chunks"},
      {"%llguidance {\"foo\": true}",
       "line 1, column 1: no option \"foo\"; there are allow_initial_skip, ignore_once, "
       "no_forcing"},
      {"%llguidance {\"allow_invalid_utf8\": true}",
       "line 1, column 1: the option allow_invalid_utf8 is not supported"},
      {"start: \"a\" \"b\" -> \"c\"",
       "line 1, column 19: expected the name of an alternative, there is the text \"c\""},
      {"start: %lark { start: \"a\"", "line 1, column 8: %lark without its }"},
      {"start: a }\na: \"a\"", "line 1, column 10: expected the end of the line, there is \"}\""},
      {"start: A\nA: ~/a{60000}/",
       "line 2, column 4: this ~ takes an automaton of more than 50000 states"},
      {"", "line 1, column 1: no rule \"start\""},
      {"\"a\"",
       "line 1, column 1: expected a rule, a terminal or a statement, there is the text \"a\""},
  };
  for (const auto& [source, message] : cases) EXPECT_EQ(failure(source), message) << source;
}

// Texts over what random grammars are made of.
std::string random_text(std::mt19937& random, size_t longest) {
  static const char* const kCharacters[] = {"a", "!", ",", "\xC3\xA9"};
  std::string text;
  for (size_t i = random() % (longest + 1); i > 0; --i) text += kCharacters[random() % 4];
  return text;
}

test::Symbols symbols(std::string_view text) {
  test::Symbols made;
  for (const char c : text) made.push_back(static_cast<unsigned char>(c));
  return made;
}

TEST(Lark, RandomFiles) {
  std::mt19937 random(7);
  size_t members = 0;
  for (int round = 0; round < 250; ++round) {
    SlowGrammar slow = test::RandomGrammar(random, 256, 8).make();
    const auto salt = static_cast<uint32_t>(random());
    const auto terminal = [&](int id) {
      return slow.regular(id) && (static_cast<uint32_t>(id) * 2654435761U ^ salt) % 3 == 0;
    };
    std::string source = slow.lark(terminal);
    SlowGrammar meant = slow;
    if (round % 2 == 0) {
      const int comma = slow.add({SlowGrammar::Kind::kText, {}, {"!,"}, 0, 0, 0});
      const int other = slow.add({SlowGrammar::Kind::kText, {}, {"\xC3\xA9"}, 0, 0, 0});
      const int both = slow.add({SlowGrammar::Kind::kChoice, {comma, other}, {}, 0, 0, 0});
      source += "%ignore \"!,\"\n%ignore /\xC3\xA9/\n";
      meant = slow.ignoring(both, terminal);
    }
    SCOPED_TRACE(source);
    const auto grammar = Grammar::from_lark(source);
    ASSERT_EQ(grammar.ok(), meant.ask({}).prefix) << grammar.status().message();
    if (!grammar.ok()) continue;
    Matcher now =
        Matcher::create(grammar.value()->over(test::vocabulary(test::all_bytes(), 8)).value())
            .value();
    for (int t = 0; t < 12; ++t) {
      // Often a beginning of a member, byte by byte.
      now.reset();
      test::Symbols text;
      for (size_t i = random() % 10; i > 0; --i) {
        std::vector<int> ways;
        const ByteSet bytes = now.valid_bytes();
        for (int b = 0; b < 256; ++b) {
          if (bytes.has(static_cast<uint8_t>(b))) ways.push_back(b);
        }
        int next = random() % 5 == 0 || ways.empty() ? "a!,\xC3\xA9"[random() % 5] & 255
                                                     : ways[random() % ways.size()];
        if (random() % 6 == 0) next = test::kTokenSymbol + 256 + static_cast<int>(random() % 8);
        text.push_back(next);
        const int32_t token = next >= test::kTokenSymbol ? next - test::kTokenSymbol : next;
        const SlowGrammar::Answer answer = meant.ask(text);
        const bool taken = now.accept_token(token).value();
        ASSERT_EQ(taken, answer.prefix) << text.size();
        if (!taken) break;
        ASSERT_EQ(now.is_complete(), answer.member);
        members += answer.member ? 1U : 0U;
      }
    }
  }
  EXPECT_GT(members, 500U);
}

// How many characters it has with its repetitions written out.
size_t written_out(const SlowGrammar& slow, int id) {
  const SlowGrammar::Node& node = slow.nodes[static_cast<size_t>(id)];
  size_t sum = 1;
  for (const int part : node.parts) sum += written_out(slow, part);
  if (node.kind != SlowGrammar::Kind::kRepeat) return sum;
  return sum * (1 + (node.max == test::kNoLimit ? node.min : node.max));
}

TEST(Lark, RandomTerminals) {
  std::mt19937 random(11);
  size_t members = 0;
  for (int round = 0; round < 260;) {
    SlowGrammar one = test::RandomGrammar(random, 0, 0).make();
    SlowGrammar two = test::RandomGrammar(random, 0, 0).make();
    one.rules.resize(1);
    two.rules.resize(1);
    if (!one.regular(one.rules[0]) || !two.regular(two.rules[0])) continue;
    if (written_out(one, one.rules[0]) * written_out(two, two.rules[0]) > 20'000) continue;
    ++round;
    const std::string a = "A: " + one.lark_terminal() + "\nB: " + two.lark_terminal() + "\n";
    // Each begins with a mark, so that none is a file without texts.
    Matcher both = matcher(a + "start: \"?\" | \"=\" C\nC: A & B");
    Matcher other = matcher(a + "start: \"?\" | \"=\" C\nC: ~A & /[a!,\xC3\xA9]*/");
    Matcher lazy = matcher(a + "start: \"?\" | \"=\" c\nc[lazy]: A");
    Matcher suffix = matcher(a + "start: \"?\" | \"=\" c\nc[suffix=B]: A");
    Matcher stop = matcher(a + "start: \"?\" | \"=\" c \"=\"\nc[stop=B]: A");
    const auto in = [&](const SlowGrammar& slow, std::string_view text) {
      return slow.ask(symbols(text)).member;
    };
    const auto in_both = [&](std::string_view text) {  // A and behind it B
      for (size_t k = 0; k <= text.size(); ++k) {
        if (in(one, text.substr(0, k)) && in(two, text.substr(k))) return true;
      }
      return false;
    };
    for (int t = 0; t < 12; ++t) {
      const std::string text = random_text(random, 5);
      SCOPED_TRACE(a + text);
      bool shorter = false;
      bool shorter_both = false;
      for (size_t k = 0; k < text.size(); ++k) {
        shorter |= in(one, text.substr(0, k));
        shorter_both |= in_both(text.substr(0, k));
      }
      EXPECT_EQ(test::is_member(both, "=" + text), in(one, text) && in(two, text));
      EXPECT_EQ(test::is_member(other, "=" + text), !in(one, text));
      EXPECT_EQ(test::is_member(lazy, "=" + text), in(one, text) && !shorter);
      EXPECT_EQ(test::is_member(suffix, "=" + text), in_both(text) && !shorter_both);
      members += in(one, text) ? 1U : 0U;
      // Of a stop it is known if some text of at most five characters follows.
      if (in(one, text) && in_both(text) && !shorter_both && in(two, "")) {
        EXPECT_TRUE(test::is_member(stop, "=" + text + "="));
      }
      if (shorter_both || !in(one, text)) {
        EXPECT_FALSE(test::is_member(stop, "=" + text + "="));
      }
    }
  }
  EXPECT_GT(members, 200U);
}

TEST(Lark, WhatIsLargeIsBounded) {
  // A million repetitions, and many \p{…} in any case.
  check({{"start: A\nA: /a{1000000}/ | \"b\"", {"b"}, {"a"}}});
  std::string many = "start: ";
  for (int i = 0; i < 3000; ++i) many += "/\\w\\p{L}[\\W]/i ";
  EXPECT_TRUE(Grammar::from_lark(many).ok());
  // What would double with each terminal is refused, or small.
  std::string doubled = "start: A0\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "A" + std::to_string(i + 1);
    doubled += "A" + std::to_string(i) + ": " + next + " " + next + "\n";
  }
  EXPECT_TRUE(Grammar::from_lark(doubled + "A60: \"a\"").ok());
  EXPECT_NE(failure(doubled + "A60: \"a\"\nstart2: ~A0")
                .find("this ~ takes an automaton of more than 50000 states"),
            std::string::npos);
  EXPECT_NE(
      failure("start: ~/(a|b)*a(a|b){40}/").find("line 1, column 8: this ~ takes an automaton"),
      std::string::npos);
  // So is what two make together: a count to 11 and one to 13 are one to 143; and what is not a
  // text of 96 states takes as many, one behind it, and those of a character's other bytes.
  GrammarLimits limits;
  limits.automata.states = 100;
  for (const char* source : {"start: A\nA: /(a{11})*/ & /(a{13})*/", "start: A\nA: ~/a{95}/"}) {
    const auto refused = Grammar::from_lark(source, limits);
    EXPECT_NE(test::failure_of(refused, source).find("an automaton of more than 100 states"),
              std::string::npos);
    limits.automata.states = 150;
    EXPECT_TRUE(Grammar::from_lark(source, limits).ok()) << source;
    limits.automata.states = 100;
  }
  // All automata of a file share the work.
  std::string many_automata = "start: ";
  for (int i = 0; i < 20000; ++i) many_automata += "~\"a\" ";
  EXPECT_NE(failure(many_automata).find("this ~ takes an automaton of more work than the limit"),
            std::string::npos);
  std::string words;
  for (int i = 0; i < 20000; ++i) words += static_cast<char>('a' + (i * i / 7 + i) % 26);
  Matcher one = matcher("start: %regex {\"substring_chars\": \"" + words + "\"}");
  EXPECT_TRUE(one.accept_bytes(std::string_view(words).substr(5000, 9000)).value());
}

}  // namespace
}  // namespace gen::grammar
