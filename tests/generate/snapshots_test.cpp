// SPDX-License-Identifier: Apache-2.0
// What sessions of a model with recurrent layers evaluate again: nothing but what lies behind the
// nearest snapshot, counted in rows of the model against where messages begin and end by the form
// of the chat. Whatever is cut, forked, saved or limited, they say what a fresh session says.
#include <gtest/gtest.h>

#include <algorithm>

#include "generate/chat_talk.h"
#include "generate/chat_world.h"
#include "generate/knowing_drafter.h"
#include "generate/watched_model.h"
#include "support/counting_allocator.h"
#include "support/drift_model.h"

namespace gen::generate {
namespace {

constexpr int32_t kNear = 16;  // a pass does not end for fewer tokens

constexpr const char* kTurns =
    "{% for m in messages %}{{ m.role }}:{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";
// An answer before the last one is another.
constexpr const char* kForgets =
    "{% for m in messages %}{{ m.role }}:"
    "{% if m.role == 'assistant' and not loop.last %}-{% else %}{{ m.content }}{% endif %}"
    "</s>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

class Snapshots : public ::testing::Test {
 protected:
  static test::TinyModelSpec spec() {
    test::TinyModelSpec made = test::drift_spec();
    made.context = 1024;
    made.vocab = kFormsVocab;
    return made;
  }
  /// Without a tokenizer its control tokens are like all others.
  std::shared_ptr<const Generator> generator(GeneratorOptions options = {}, bool texts = false) {
    model = std::make_shared<WatchedModel>(tiny.model());
    const auto tokenizer = texts ? std::make_shared<FakeTokenizer>(pieces()) : nullptr;
    return Generator::create(model, tokenizer, std::move(options)).value();
  }
  static GeneratorOptions every(int32_t tokens, int32_t chunk = 0) {
    GeneratorOptions options;
    options.snapshot_every = tokens;
    options.prefill_chunk = chunk;
    options.snapshot_budget = 1 << 24;
    return options;
  }
  Said fresh(const Tokens& text, int32_t n) {
    GeneratorOptions options;
    options.snapshot_budget = 0;
    const auto kept = model;
    const Said said = say(*generator(options)->new_session().value(), text, n);
    model = kept;
    return said;
  }

  /// Rows of the model for a turn that gives one token, all of them of its prompt.
  int64_t rows_of(ChatTalk& talk, std::optional<std::string_view> message) {
    const int64_t before = model->rows;
    talk.send(message, 1);
    return model->rows - before;
  }

  const test::LoadedTiny tiny{test::TinyModel(spec()), test::with_drift()};
  std::shared_ptr<WatchedModel> model;
};

constexpr int64_t kSystem = 7 + 100 + 1;  // system:xxx…</s>
constexpr int64_t kOpening = 10;          // assistant:

TEST_F(Snapshots, ALaterTurnEvaluatesOnlyItself) {
  for (const int32_t chunk : {0, 7}) {
    ChatTalk talk(generator(every(0, chunk), true), kTurns);
    for (int turn = 0; turn < 4; ++turn) {
      talk.send(std::string(turn == 0 ? 200 : 20, 'b'), 12);
      const int64_t held = talk.session->session()->length();
      EXPECT_EQ(talk.session->session()->cache().length(), held - 1);  // the last one is drawn
      const int64_t rows = rows_of(talk, "again");
      // The drawn token, its end, user:again</s>assistant:
      EXPECT_EQ(rows, 1 + 1 + 5 + 5 + 1 + kOpening) << turn;
    }
  }
}

TEST_F(Snapshots, AnotherAnswerBeginsBehindTheLastMessage) {
  for (const int32_t chunk : {0, 7}) {
    for (const size_t length : {3U, 30U, 300U}) {
      ChatTalk talk(generator(every(0, chunk), true), kTurns);
      for (int turn = 0; turn < 3; ++turn) {
        const std::string said = talk.send(std::string(length >> turn, 'b'), 12).text;
        for (int again = 0; again < 2; ++again) {
          ASSERT_TRUE(talk.chat->conversation.truncate(-1).ok());
          // Behind a short message the snapshot may lie before the last token instead.
          EXPECT_LE(rows_of(talk, std::nullopt), kOpening) << length << " " << turn;
        }
        ASSERT_TRUE(talk.chat->conversation.truncate(-1).ok());
        EXPECT_EQ(talk.send(std::nullopt, 12).text, said);
      }
    }
  }
}

TEST_F(Snapshots, AnEditedMessageBeginsAtItsBorder) {
  for (const int32_t chunk : {0, 7}) {
    for (const size_t length : {3U, 30U, 300U}) {
      ChatTalk talk(generator(every(0, chunk), true), kTurns);
      talk.send(std::string(length, 'b'), 12);
      for (int again = 0; again < 3; ++again) {
        ASSERT_TRUE(talk.chat->conversation.truncate(-2).ok());
        EXPECT_EQ(rows_of(talk, std::string(10, static_cast<char>('a' + again % 2))),
                  10 + 1 + kOpening);
      }
      // A later one: at the border, or where the turn began, a few tokens before.
      const int64_t before = talk.session->session()->length();
      talk.send(std::string(length, 'c'), 12);
      for (int again = 0; again < 3; ++again) {
        ASSERT_TRUE(talk.chat->conversation.truncate(-2).ok());
        const int64_t rows = rows_of(talk, std::string(10, static_cast<char>('a' + again % 2)));
        EXPECT_GE(rows, 10 + 1 + kOpening);
        EXPECT_LE(rows, 10 + 1 + kOpening + kNear) << before;
      }
      // The first one again, whose later turns are forgotten.
      ASSERT_TRUE(talk.chat->conversation.truncate(1).ok());
      EXPECT_EQ(rows_of(talk, "ab"), 2 + 1 + kOpening);
    }
  }
}

// Where a template lays out earlier answers anew, all that comes behind the message before it runs.
TEST_F(Snapshots, AnAnswerThatIsLaidOutAnew) {
  for (const int32_t chunk : {0, 7}) {
    ChatTalk talk(generator(every(0, chunk), true), kForgets);
    int64_t message = kSystem;  // the end of the last message of the user
    for (int turn = 0; turn < 5; ++turn) {
      const int64_t before = model->rows;
      talk.send(std::string(40, static_cast<char>('a' + turn)), 5);
      const int64_t rows = model->rows - before - 4;  // without those of the answer
      const int64_t prompt = talk.length() - kOpening - 1 -
                             std::ssize(talk.chat->conversation.messages.back().content);
      EXPECT_EQ(rows, prompt - (turn > 0 ? message : 0)) << turn;
      message = prompt - kOpening;
    }
  }
}

// With a tool's results behind it, the message of the user is a border still.
TEST_F(Snapshots, AToolsResultBehindTheMessage) {
  ChatTalk talk(generator(every(0), true), kForgets);
  talk.send(std::string(40, 'a'), 5);
  const int64_t message = kSystem + 5 + 40 + 1;
  talk.chat->conversation.messages.push_back({"tool", std::string(60, 'r')});
  talk.send(std::nullopt, 5);
  ASSERT_TRUE(talk.chat->conversation.truncate(-1).ok());
  EXPECT_EQ(rows_of(talk, std::nullopt), kOpening);
  // Another result.
  ASSERT_TRUE(talk.chat->conversation.truncate(-1).ok());
  talk.chat->conversation.messages.back().content = "other";
  EXPECT_EQ(rows_of(talk, std::nullopt), 5 + 1 + kOpening);
  ASSERT_TRUE(talk.chat->conversation.truncate(2).ok());
  EXPECT_EQ(rows_of(talk, std::nullopt), kOpening) << message;
}

// Conversations that a program renders itself, each turn in a session of its own or not: messages
// begin and end with control tokens.
TEST_F(Snapshots, BordersOfTokens) {
  constexpr int32_t kEnd = FakeTokenizer::kEos;
  const auto plain = [](uint32_t seed, size_t n) {
    Tokens tokens = text_of(seed, n);
    for (int32_t& token : tokens) token = 2 + token % 40;
    return tokens;
  };
  for (const int32_t chunk : {0, 7}) {
    const auto session = generator(every(0, chunk), true)->new_session().value();
    Tokens prompt = join(plain(1, 90), {kEnd, 5, kEnd});  // the last message begins at 90
    prompt = join(prompt, plain(2, 50));                  // and ends at 143
    prompt = join(prompt, {kEnd, 7, 8, kEnd, 9, 10});
    say(*session, prompt, 12);
    const Tokens all = session->tokens().value();
    for (const auto& [cut, nearest] :
         {std::pair{90, 90}, std::pair{95, 90}, std::pair{142, 90}, std::pair{143, 143},
          std::pair{148, 143}, std::pair{155, 143}, std::pair{89, 0}}) {
      const auto fork = session->fork().value();
      ASSERT_TRUE(fork->truncate(cut).ok());
      const int64_t before = model->rows;
      EXPECT_EQ(say(*fork, {9}, 1), fresh(join(first(all, static_cast<size_t>(cut)), {9}), 1));
      EXPECT_EQ(model->rows - before, cut - nearest + 1) << cut;
    }
  }
}

// Plain sessions: where prompts begin, before their last tokens, and every so many tokens.
TEST_F(Snapshots, ACutGoesBackToTheNearest) {
  const Tokens prompt = text_of(1, 90);
  const Tokens more = text_of(2, 40);
  for (const int32_t n : {0, 1, 16, 33}) {
    for (const int32_t chunk : {0, 5, 16}) {
      const auto session = generator(every(n, chunk))->new_session().value();
      say(*session, prompt, 30);
      const int32_t second = session->length();
      say(*session, more, 20);
      const Tokens all = session->tokens().value();
      std::vector<int32_t> places = {89, second - 1, second + 39, session->length() - 1};
      for (int32_t at = n; n > 0 && at < session->length(); at += n) places.push_back(at);
      for (int32_t cut = session->length() - 1; cut > 0; cut -= n == 1 ? 1 : 3) {
        SCOPED_TRACE(testing::Message() << n << " " << chunk << " " << cut);
        const auto fork = session->fork().value();
        ASSERT_TRUE(fork->truncate(cut).ok());
        int32_t nearest = 0;
        for (const int32_t place : places) {
          if (place <= cut) nearest = std::max(nearest, place);
        }
        const int64_t before = model->rows;
        const Said said = say(*fork, {9}, 1);
        EXPECT_EQ(model->rows - before, cut - nearest + 1);
        if (cut % 4 == 0) {
          EXPECT_EQ(said, fresh(join(first(all, static_cast<size_t>(cut)), {9}), 1));
        }
      }
    }
  }
}

// The last row of a prompt, before which there is a snapshot, is no pass of its own, nor are the
// rows behind a border near the end.
TEST_F(Snapshots, APromptIsAsManyPassesAsItHasChunks) {
  constexpr int32_t kEnd = FakeTokenizer::kEos;
  for (const int32_t chunk : {64, 512}) {
    for (const int32_t n : {2, 17, 50, 64, 65, 100, 300}) {
      SCOPED_TRACE(testing::Message() << chunk << " " << n);
      GeneratorOptions options = every(0, chunk);
      // Memory for one snapshot with sixteen rows: no more of them are kept.
      options.snapshot_budget =
          static_cast<int64_t>(tiny.model().new_sequence_state().value()->snapshots()->bytes());
      const auto session = generator(options, true)->new_session().value();
      say(*session, text_of(1, 40), 5);
      int32_t passes = 0;
      model->before_forward = [&passes] { ++passes; };
      Tokens turn = text_of(2, static_cast<size_t>(n));
      for (int32_t& token : turn) token = 2 + token % 40;  // no message ends
      const bool far = n == 100;  // a border too far from the end for its rows to be kept
      if (n > 30) turn[turn.size() - (far ? 30 : 10)] = kEnd;
      const int64_t before = model->rows;
      const Said said = say(*session, turn, 1);
      // One token of the last answer is pending.
      EXPECT_EQ(passes, (n + 1 + chunk - 1) / chunk + (far ? 1 : 0));
      EXPECT_EQ(model->rows - before, n + 1);
      model->before_forward = nullptr;
      ASSERT_TRUE(session->truncate(session->length() - 1).ok());
      const int64_t again = model->rows;
      EXPECT_EQ(say(*session, {}, 1), said);
      EXPECT_LE(model->rows - again, kNear);
    }
  }
}

// What fails or is only scored is undone at no cost.
TEST_F(Snapshots, UndoneAtNoCost) {
  const auto session = generator(every(0))->new_session().value();
  say(*session, text_of(1, 90), 30);
  const Tokens tail = text_of(3, 25);
  std::vector<float> scores;
  ASSERT_TRUE(session->score({.text = {}, .tokens = tail}, &scores, nullptr).ok());
  model->after_forward = [] { return error(Code::kDevice, "no such luck"); };
  EXPECT_FALSE(say(*session, tail, 3).status.ok());
  model->after_forward = nullptr;
  const int64_t before = model->rows;
  const Tokens all = session->tokens().value();
  EXPECT_EQ(all.size(), 120U);
  EXPECT_EQ(say(*session, tail, 1), fresh(join(all, tail), 1));
  EXPECT_EQ(model->rows - before, 1 + 25);
}

// Snapshots are of the session's file, of forks, and of what these go back to.
TEST_F(Snapshots, AreSavedAndForked) {
  const Tokens prompt = text_of(1, 70);
  const auto made = generator(every(16, 9));
  const auto session = made->new_session().value();
  say(*session, prompt, 25);
  say(*session, text_of(2, 12), 9);
  const Tokens all = session->tokens().value();
  const std::vector<std::byte> state = state_of(*session);
  const auto rows = [&](Session& of, int32_t cut) {
    EXPECT_TRUE(of.truncate(cut).ok());
    const int64_t before = model->rows;
    EXPECT_EQ(say(of, {3, 1}, 4), fresh(join(first(all, static_cast<size_t>(cut)), {3, 1}), 4));
    return model->rows - before;
  };
  for (int32_t cut = 1; cut < session->length(); cut += 2) {
    SCOPED_TRACE(cut);
    const auto fork = session->fork().value();
    const auto loaded = made->new_session().value();
    ASSERT_TRUE(loaded->load(state).ok());
    EXPECT_EQ(state_of(*loaded), state);
    const int64_t want = rows(*fork, cut);
    EXPECT_EQ(rows(*loaded, cut), want);
    EXPECT_LE(want, 16 + 2 + 3);
  }
  // Without the option they are not read, and the state is.
  GeneratorOptions none;
  none.snapshot_budget = 0;
  const auto plain = generator(none)->new_session().value();
  ASSERT_TRUE(plain->load(state).ok());
  EXPECT_EQ(say(*plain, {5}, 3), fresh(join(all, {5}), 3));
}

// The file of a state alone, as libraries before snapshots wrote it; and damaged ones.
TEST_F(Snapshots, FilesWithoutAndDamagedOnes) {
  GeneratorOptions none;
  none.snapshot_budget = 0;
  const auto without = generator(none)->new_session().value();
  say(*without, text_of(1, 30), 5);
  const auto made = generator(every(4));
  const auto session = made->new_session().value();
  ASSERT_TRUE(session->load(state_of(*without)).ok());
  const Tokens all = session->tokens().value();
  EXPECT_EQ(say(*session, {5}, 3), fresh(join(all, {5}), 3));

  const auto whole = made->new_session().value();
  say(*whole, text_of(1, 30), 9);
  const std::vector<std::byte> state = state_of(*whole);
  const std::string_view text(reinterpret_cast<const char*>(state.data()), state.size());
  const size_t at = text.find("SNAP");
  ASSERT_NE(at, std::string_view::npos);
  for (size_t field = 0; field < 16; ++field) {
    for (const int32_t value : {-1, 0, 1, 2, 39, 1 << 30}) {
      std::vector<std::byte> damaged = state;
      std::memcpy(damaged.data() + at + 16 + 4 * field, &value, 4);
      const uint64_t sum = checksum(std::span(damaged).first(damaged.size() - 8));
      std::memcpy(damaged.data() + damaged.size() - 8, &sum, 8);
      const auto other = made->new_session().value();
      const Status status = other->load(damaged);
      if (status.ok()) continue;  // it says the same, or of other places
      EXPECT_EQ(status.code(), Code::kFormat);
      EXPECT_EQ(other->length(), 0);
      EXPECT_EQ(say(*other, {5}, 3), fresh({5}, 3));
    }
  }
}

// Within a budget the newest stay, and the older ones thin out.
TEST_F(Snapshots, KeepToTheirBudget) {
  const Tokens prompt = text_of(1, 400);
  for (const int32_t n : {0, 1, 2, 3, 6}) {
    GeneratorOptions options = every(8, 16);
    const auto made = generator(options);
    const size_t bytes = tiny.model().new_sequence_state().value()->snapshots()->bytes();
    options.snapshot_budget = static_cast<int64_t>(bytes) * n;
    const auto session = generator(options)->new_session().value();
    const Said said = say(*session, prompt, 60);
    EXPECT_EQ(said, fresh(prompt, 60));
    ASSERT_TRUE(session->truncate(400).ok());
    const int64_t before = model->rows;
    EXPECT_EQ(say(*session, {}, 60), said);
    // The end of the prompt is among them.
    EXPECT_EQ(model->rows - before, n == 0 ? 400 + 59 : 60) << n;
  }
}

// Drafts move on over several places at once.
TEST_F(Snapshots, DraftsShowInNothing) {
  const Tokens prompt = text_of(4, 30);
  const Said want = fresh(prompt, 60);
  for (const double p : {0.5, 1.0}) {
    const auto drafter = std::make_shared<KnowingDrafter>(KnowingDrafter::Options{p, 6, 3, 50});
    drafter->learn(join(prompt, want.tokens));
    GeneratorOptions options = every(5);
    options.drafter = drafter;
    const auto session = generator(options)->new_session().value();
    EXPECT_EQ(say(*session, prompt, 60), want);
    const Tokens all = session->tokens().value();
    for (int32_t cut = 88; cut > 25; cut -= 3) {
      const auto fork = session->fork().value();
      ASSERT_TRUE(fork->truncate(cut).ok());
      const int64_t before = model->rows;
      EXPECT_EQ(say(*fork, {9}, 1), fresh(join(first(all, static_cast<size_t>(cut)), {9}), 1));
      EXPECT_LE(model->rows - before, 5 + 1) << cut;
    }
  }
}

// Convolutions and delta nets, whose layers' states have other shapes.
TEST(SnapshotsOfFamilies, ACutGoesBackToTheNearest) {
  for (const char* const family : {"qwen35", "lfm2"}) {
    test::TinyModelSpec spec;
    spec.architecture = family;
    spec.layers = 4;
    spec.context = 256;
    spec.vocab = kFormsVocab;
    const test::LoadedTiny tiny{test::TinyModel(spec)};
    const auto model = std::make_shared<WatchedModel>(tiny.model());
    const auto generator = [&](int32_t every, int64_t budget) {
      GeneratorOptions options;
      options.snapshot_every = every;
      options.snapshot_budget = budget;
      options.prefill_chunk = 9;
      return Generator::create(model, nullptr, options).value();
    };
    const auto plain = generator(0, 0);
    const auto made = generator(16, 1 << 24);
    const auto session = made->new_session().value();
    ASSERT_TRUE(session->keeps_snapshots()) << family;
    say(*session, text_of(1, 50), 30);
    const Tokens all = session->tokens().value();
    const std::vector<std::byte> state = state_of(*session);
    for (int32_t cut = 1; cut < 80; cut += 3) {
      SCOPED_TRACE(testing::Message() << family << " " << cut);
      const Tokens text = join(first(all, static_cast<size_t>(cut)), {9, 8});
      const Said want = say(*plain->new_session().value(), text, 3);
      const auto loaded = made->new_session().value();
      ASSERT_TRUE(loaded->load(state).ok());
      for (const auto& one : {session->fork().value(), loaded}) {
        ASSERT_TRUE(one->truncate(cut).ok());
        const int64_t before = model->rows;
        EXPECT_EQ(say(*one, {9, 8}, 3), want);
        const int32_t nearest = std::max(cut / 16 * 16, cut >= 49 ? 49 : 0);
        EXPECT_EQ(model->rows - before, cut == 79 ? 4 : cut - nearest + 4);
      }
    }
  }
}

}  // namespace
}  // namespace gen::generate
