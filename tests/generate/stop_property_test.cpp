// SPDX-License-Identifier: Apache-2.0
// Proves, over random texts with broken characters, random tokenisations and random stop strings,
// that no character of a stop string gets out, none before it is lost, and each comes out as soon
// as it may: below the decode loop and through it, in its three forms. The oracle decodes and
// searches the whole text anew after each token. GEN_TRIALS sets the number of texts.
#include <gtest/gtest.h>

#include <cstdlib>

#include "generate/fake_world.h"
#include "generate/loop/generation.h"

namespace gen::generate {
namespace {

uint64_t trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? static_cast<uint64_t>(std::atoll(wanted)) : 1500;
}

// Bytes of the character that starts at `at`, by the arithmetic of UTF-8; 0 if there is none and
// -1 if all bytes up to the end are the beginning of one.
int character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const uint32_t lead = byte(at);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
  if (size == 0 || lead >= 0xF8) return 0;
  // The lowest and highest code point that the bytes so far leave possible.
  uint32_t low = lead & (0xFFU >> (size + 1));
  uint32_t high = low;
  size_t have = 1;
  for (size_t i = 1; i < size; ++i) {
    low <<= 6;
    high <<= 6;
    if (at + i < text.size()) {
      if ((byte(at + i) & 0xC0) != 0x80) return 0;
      low |= byte(at + i) & 0x3F;
      high |= byte(at + i) & 0x3F;
      ++have;
    } else {
      high |= 0x3F;
    }
  }
  const std::array<uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  low = std::max(low, least[size]);
  high = std::min(high, uint32_t{0x10FFFF});
  if (low >= 0xD800 && high <= 0xDFFF) return 0;
  if (low > high) return 0;
  return have == size ? static_cast<int>(size) : -1;
}

const std::string kBroken = "\xEF\xBF\xBD";

// All whole characters, U+FFFD for bytes that are none; `rest` receives an unfinished one.
std::string decode(std::string_view bytes, std::string* rest) {
  std::string text;
  rest->clear();
  for (size_t at = 0; at < bytes.size();) {
    const int size = character_at(bytes, at);
    if (size < 0) {
      *rest = bytes.substr(at);
      break;
    }
    text += size == 0 ? kBroken : std::string(bytes.substr(at, static_cast<size_t>(size)));
    at += static_cast<size_t>(std::max(size, 1));
  }
  return text;
}

size_t first_stop(const std::string& text, const Strings& stops) {
  size_t first = std::string::npos;
  for (const std::string& stop : stops) {
    if (!stop.empty()) first = std::min(first, text.find(stop));
  }
  return first;
}

// Bytes at the end that are the beginning of a stop string.
size_t undecided(const std::string& text, const Strings& stops) {
  size_t most = 0;
  for (const std::string& stop : stops) {
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n) {
      if (text.compare(text.size() - n, n, stop, 0, n) == 0) most = std::max(most, n);
    }
  }
  return most;
}

struct Expected {
  Strings after;  // all text that is out after each token
  std::string text;
  FinishReason reason = FinishReason::kNone;
};

// The text of tokens. One without text finishes what stands before it, as an end token does.
class Told {
 public:
  void add(const std::string& piece) {
    bytes_ += piece;
    if (piece.empty()) end();
  }
  void end() {
    std::string rest;
    done_ += decode(bytes_, &rest);
    for (size_t i = 0; i < rest.size(); ++i) done_ += kBroken;
    bytes_.clear();
  }
  std::string text() const {
    std::string rest;
    return done_ + decode(bytes_, &rest);
  }
  // Goes on after `tokens` that another call has told, all but an unfinished character.
  static Told after(const Strings& tokens) {
    Told before;
    for (const std::string& token : tokens) before.add(token);
    Told told;
    decode(before.bytes_, &told.bytes_);
    return told;
  }

 private:
  std::string done_;
  std::string bytes_;
};

// `limit` tokens at most; behind `pieces` the model says an end token.
Expected expected_of(const Strings& before, const Strings& pieces, const Strings& stops,
                     size_t limit) {
  Expected expected;
  Told told = Told::after(before);
  for (const std::string& piece : pieces) {
    if (expected.after.size() == limit) break;
    told.add(piece);
    const std::string text = told.text();
    if (const size_t first = first_stop(text, stops); first != std::string::npos) {
      expected.text = text.substr(0, first);
      expected.after.push_back(expected.text);
      expected.reason = FinishReason::kStopString;
      return expected;
    }
    expected.after.push_back(text.substr(0, text.size() - undecided(text, stops)));
  }
  expected.reason = FinishReason::kLength;
  if (expected.after.size() < limit) {
    expected.reason = FinishReason::kStopToken;
    told.end();
  }
  expected.text = told.text();
  expected.text = expected.text.substr(0, first_stop(expected.text, stops));
  return expected;
}

// One random case.
struct Case {
  Strings prompt;  // its tokens
  Strings pieces;  // the tokens that the model says
  Strings stops;
};

class Source {
 public:
  explicit Source(uint64_t round) : round_(round) {}
  size_t below(size_t n) {
    return static_cast<size_t>(uniform_double(round_, 6, counter_++) * static_cast<double>(n));
  }
  const std::string& any(const Strings& from) { return from[below(from.size())]; }
  std::string text(const Strings& alphabet, size_t size) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += any(alphabet);
    return text;
  }
  // Cuts bytes anywhere, here and there with a token of no text.
  Strings tokens(const std::string& bytes) {
    const size_t longest = 1 + below(7);
    Strings tokens;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = below(12) == 0 ? 0 : 1 + below(longest);
      tokens.push_back(bytes.substr(at, size));
      at += tokens.back().size();
    }
    return tokens;
  }

 private:
  uint64_t round_;
  uint64_t counter_ = 0;
};

Case random_case(Source& source) {
  static const Strings kLetters{"a", "b"};
  static const Strings kWhole{"a", "b", " ", "\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  Strings broken = kWhole;
  for (const char* bytes : {"\xFF", "\x80", "\xC3", "\xC1", "\xE2\x82", "\xE0\x80", "\xED\xA0\x80",
                            "\xF0\x9F", "\xF4\x90", "\xF0\x80"}) {
    broken.emplace_back(bytes);
  }
  const std::array<const Strings*, 3> alphabets{&kLetters, &kWhole, &broken};
  const Strings& alphabet = *alphabets[source.below(3)];
  Case one;
  one.prompt = source.tokens(source.text(alphabet, source.below(4)));
  const std::string bytes = source.text(alphabet, source.below(40));
  one.pieces = source.tokens(bytes);
  std::string rest;
  const std::string text = decode(bytes, &rest);
  std::vector<size_t> borders{0};
  while (borders.back() < text.size()) {
    borders.push_back(borders.back() + static_cast<size_t>(character_at(text, borders.back())));
  }
  for (size_t i = source.below(5); i-- > 0;) {
    const size_t kind = source.below(5);
    std::string stop;
    if (kind < 3) {  // out of the text, as it is, or with an end that is not there
      const size_t from = source.below(borders.size());
      const size_t to = std::min(borders.size() - 1, from + 1 + source.below(6));
      stop = text.substr(borders[from], borders[to] - borders[from]);
      if (kind == 1) stop += source.any(kWhole);
      if (kind == 2) stop = source.any(kWhole) + stop;
    } else if (kind == 3 && !one.stops.empty()) {
      stop = source.any(one.stops) + source.any(kWhole);
    } else {
      stop = source.text(kWhole, source.below(4));
    }
    one.stops.push_back(stop);
  }
  return one;
}

// A world whose vocabulary is what the case needs.
struct Scene {
  explicit Scene(const Case& one) : world(160, 8, vocabulary(one)) {
    prompt = world.ids(one.prompt);
    prompt.insert(prompt.begin(), FakeTokenizer::kBos);
    said = world.ids(one.pieces);
    world.script(static_cast<int32_t>(prompt.size()), said);
  }
  static Strings vocabulary(const Case& one) {
    Strings all = one.prompt;
    all.insert(all.end(), one.pieces.begin(), one.pieces.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  World world;
  Tokens prompt;
  Tokens said;
};

TEST(StopProperty, DecoderAndMatcherLetOutAllThatMayAndNoMore) {
  int stopped = 0;
  for (uint64_t round = 0; round < trials(); ++round) {
    Source source(round);
    const Case one = random_case(source);
    const Scene scene(one);
    const Expected expected = expected_of(one.prompt, one.pieces, one.stops, one.pieces.size());
    tokenizer::StreamDecoder decoder(*scene.world.tokenizer);
    ASSERT_TRUE(decoder.resume(scene.prompt).ok());
    StopMatcher matcher(one.stops);
    std::string out;
    bool hit = false;
    for (size_t i = 0; i < expected.after.size(); ++i) {
      std::string characters;
      ASSERT_TRUE(decoder.feed(scene.said[i], &characters).ok());
      hit = matcher.feed(characters, &out);
      ASSERT_EQ(out, expected.after[i]) << "round " << round << " token " << i;
      ASSERT_EQ(hit && i + 1 == expected.after.size(), hit);
    }
    ASSERT_EQ(hit, expected.reason == FinishReason::kStopString) << round;
    if (!hit) matcher.flush(&out);
    ASSERT_EQ(out, expected.text) << round;
    stopped += hit ? 1 : 0;
  }
  EXPECT_GT(stopped, static_cast<int>(trials() / 4));
}

struct Streamed {
  Strings after;  // text of all events so far, for each token
  std::string text;
  std::string last;  // text of the done event
};

int32_t listen(void* user, const Event& event) {
  auto* const streamed = static_cast<Streamed*>(user);
  EXPECT_TRUE(utf8_valid(event.text));
  streamed->text += event.text;
  if (event.done) streamed->last = event.text;
  if (!event.done) streamed->after.push_back(streamed->text);
  return 0;
}

TEST(StopProperty, EveryFormOfTheLoopSaysWhatTheOracleSays) {
  int stopped = 0;
  for (uint64_t round = 0; round < trials(); ++round) {
    Source source(round);
    const Case one = random_case(source);
    Scene scene(one);
    CallParams params = greedy(200);
    if (source.below(2) == 0)
      params.stops.max_new_tokens = static_cast<int32_t>(1 + source.below(12));
    params.stops.strings = one.stops;
    const Expected expected = expected_of(one.prompt, one.pieces, one.stops,
                                          static_cast<size_t>(params.stops.max_new_tokens));
    Streamed streamed;
    std::optional<GenResult> result;
    const auto session = scene.world.session();
    ASSERT_TRUE(session->generate(ids(scene.prompt), params, listen, &streamed, &result).ok());
    ASSERT_EQ(streamed.after, expected.after) << round;
    ASSERT_EQ(streamed.text, expected.text) << round;
    ASSERT_EQ(result->text, expected.text) << round;
    ASSERT_EQ(result->finish_reason, expected.reason) << round;
    if (expected.reason == FinishReason::kStopString) {
      ASSERT_EQ(streamed.last, "");  // all text was there before the end
    }
    ASSERT_EQ(result->tokens,
              Tokens(scene.said.begin(),
                     scene.said.begin() + static_cast<std::ptrdiff_t>(expected.after.size())));

    const auto whole = scene.world.session();
    ASSERT_TRUE(whole->generate(ids(scene.prompt), params, nullptr, nullptr, &result).ok());
    ASSERT_EQ(result->text, expected.text) << round;

    const auto pulled = scene.world.session();
    auto generation = std::move(pulled->open(ids(scene.prompt), params)).value();
    Streamed pieces;
    while (!generation->ended()) listen(&pieces, *generation->next().value());
    ASSERT_EQ(pieces.after, expected.after) << round;
    ASSERT_EQ(generation->result().text, expected.text) << round;
    stopped += expected.reason == FinishReason::kStopString ? 1 : 0;
  }
  EXPECT_GT(stopped, static_cast<int>(trials() / 5));
}

// However limits cut a text into calls, the calls together say what one call says.
TEST(StopProperty, CallsOfAnyLengthTogetherSayTheWholeText) {
  for (uint64_t round = 0; round < trials(); ++round) {
    Source source(round);
    const Case one = random_case(source);
    Scene scene(one);
    const Expected expected = expected_of(one.prompt, one.pieces, {}, 200);
    const auto session = scene.world.session();
    std::string text;
    std::optional<GenResult> result;
    Tokens prompt = scene.prompt;
    do {
      const CallParams params = greedy(static_cast<int32_t>(1 + source.below(6)));
      ASSERT_TRUE(session->generate(ids(prompt), params, nullptr, nullptr, &result).ok());
      text += result->text;
      prompt.clear();
    } while (result->finish_reason == FinishReason::kLength);
    ASSERT_EQ(text, expected.text) << round;
  }
}

}  // namespace
}  // namespace gen::generate
