// SPDX-License-Identifier: Apache-2.0
// Proves that a chat session answers the messages that there are, and goes on with the answer that
// was cut, whatever was sent, taken back or done to its session in between: it is compared with a
// fresh one.
#include <gtest/gtest.h>

#include "generate/chat_world.h"

namespace gen::generate {
namespace {

constexpr const char* kPlain =
    "{% for m in messages %}{{ m.role }}:{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";
// Changes all turns with each message.
constexpr const char* kNumbered =
    "{% for m in messages %}{{ loop.revindex }}{{ m.role }}:{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

CallParams at_most(int32_t n) {
  CallParams params = greedy(n);
  params.stops.ignore_eos = true;
  return params;
}

/// A conversation and its session.
struct Talk {
  explicit Talk(Kind kind, const char* form, int32_t context = 200)
      : place(kind, context, 1, 0), chat(std::make_shared<Chat>()) {
    EXPECT_TRUE(chat->conversation.set_template(form).ok());
    session = ChatSession::create(place.generator, chat).value();
  }
  /// A fresh one with the same messages.
  explicit Talk(const Talk& of, Kind kind, int32_t context = 200)
      : place(kind, context, 1, 0), chat(std::make_shared<Chat>()) {
    chat->conversation = of.chat->conversation;
    session = ChatSession::create(place.generator, chat).value();
  }
  GenResult send(std::optional<std::string_view> message, const CallParams& params) {
    std::optional<GenResult> result;
    const Status status = session->send(message, params, nullptr, nullptr, &result);
    if (result.has_value()) return std::move(*result);
    GenResult none;
    none.status = status;
    return none;
  }
  [[nodiscard]] Tokens held() const { return tokens_of(*session->session()); }
  std::vector<ChatMessage>& messages() { return chat->conversation.messages; }

  Place place;
  std::shared_ptr<Chat> chat;
  std::shared_ptr<ChatSession> session;
};

void expect_answers_as_a_fresh_one(Talk* talk, Kind kind, int32_t context) {
  Talk fresh(*talk, kind, context);
  const GenResult expected = fresh.send("who are you", at_most(6));
  const GenResult said = talk->send("who are you", at_most(6));
  EXPECT_TRUE(said.status.ok()) << said.status.message();
  EXPECT_EQ(said.text, expected.text);
  EXPECT_EQ(talk->held(), fresh.held());
}

TEST(ChatSession, AnswersTheMessagesThatAreLeft) {
  for (const Kind kind : {Kind::kStop, Kind::kShift, Kind::kShiftAnew}) {
    for (int32_t left = 0; left <= 3; ++left) {
      Talk talk(kind, kPlain);
      talk.messages().push_back({"system", "be brief"});
      ASSERT_TRUE(talk.send("abc", at_most(5)).status.ok());
      ASSERT_TRUE(talk.chat->conversation.truncate(left).ok());
      expect_answers_as_a_fresh_one(&talk, kind, 200);
    }
  }
}

TEST(ChatSession, LaysTurnsThatItHadDroppedOutAgain) {
  for (const Kind kind : {Kind::kShift, Kind::kShiftAnew}) {
    for (const bool with_system : {false, true}) {
      for (int32_t left = 0; left <= 16; ++left) {
        Talk talk(kind, kPlain, 90);
        if (with_system) talk.messages().push_back({"system", "be brief"});
        for (int i = 0; i < 8; ++i) ASSERT_TRUE(talk.send("tell me", at_most(6)).status.ok());
        ASSERT_TRUE(talk.chat->conversation.truncate(left).ok());
        expect_answers_as_a_fresh_one(&talk, kind, 90);
      }
    }
  }
}

// The template lays every message out alike, so what all calls left out is what the whole
// conversation has more than the last prompt.
TEST(ChatSession, TellsHowManyTokensItLeftOut) {
  for (const Kind kind : {Kind::kShift, Kind::kShiftAnew}) {
    Talk talk(kind, kPlain, 90);
    int64_t dropped = 0;
    for (int i = 0; i < 12; ++i) {
      const GenResult result = talk.send("tell me", at_most(6));
      ASSERT_TRUE(result.status.ok()) << result.status.message();
      dropped += result.usage.dropped;
      chat::Conversation asked = talk.chat->conversation;
      asked.messages.pop_back();
      Tokens whole;
      ASSERT_TRUE(chat::encode_chat(*talk.place.generator->tokenizer(), asked, true, &whole).ok());
      const size_t prompt = talk.held().size() - result.tokens.size();
      EXPECT_EQ(dropped, static_cast<int64_t>(whole.size() - prompt)) << i;
    }
    EXPECT_GT(dropped, 90);
    // A session that did not hold them leaves out what all of these calls did.
    Talk fresh(talk, kind, 90);
    fresh.messages().pop_back();
    EXPECT_EQ(fresh.send(std::nullopt, at_most(6)).usage.dropped, dropped);
  }
}

// Which turns are dropped does not depend on when the session saw them.
TEST(ChatSession, DropsTheTurnsThatAFreshOneDrops) {
  for (int turns = 1; turns < 20; ++turns) {
    Talk talk(Kind::kShift, kPlain, 90);
    for (int i = 0; i < turns; ++i) ASSERT_TRUE(talk.send("tell me", at_most(6)).status.ok());
    expect_answers_as_a_fresh_one(&talk, Kind::kShift, 90);
  }
}

/// Has a first turn and a second that is cut; what goes on must be what goes on at once.
template <typename F>
void expect_goes_on_after(const char* form, Kind kind, F between) {
  Talk talk(kind, form);
  Talk fresh(kind, form);
  for (Talk* const one : {&talk, &fresh}) {
    ASSERT_TRUE(one->send("tell me", at_most(7)).status.ok());
    ASSERT_TRUE(one->send("and then", at_most(5)).status.ok());
    if (one == &talk) between(&talk);
    if (testing::Test::HasFatalFailure()) return;
    const GenResult rest = one->send(std::nullopt, at_most(9));
    ASSERT_TRUE(rest.status.ok()) << rest.status.message() << " of "
                                  << (one == &talk ? "the one" : "the fresh one");
    EXPECT_EQ(rest.tokens.size(), 9U);
  }
  EXPECT_TRUE(talk.messages() == fresh.messages())
      << talk.messages().back().content << " " << fresh.messages().back().content;
  EXPECT_EQ(talk.held(), fresh.held());
}

TEST(ChatSession, ACutAnswerGoesOnAfterATurnThatCameToNothing) {
  for (const char* const form : {kPlain, kNumbered}) {
    for (const Kind kind : {Kind::kStop, Kind::kShift, Kind::kNoCut, Kind::kOneWay}) {
      // With a chunk of one token as much of the prompt as there were passes stays.
      bool came = false;
      for (int32_t passes = 0; !came && passes < 90; ++passes) {
        SCOPED_TRACE(passes);
        expect_goes_on_after(form, kind, [&](Talk* talk) {
          int32_t pass = 0;
          talk->place.model->before_forward = [&](const graph::Batch&) {
            if (pass++ == passes) talk->session->session()->cancel();
            return Status();
          };
          const auto all = talk->messages();
          const GenResult none = talk->send("what", at_most(1));
          talk->place.model->before_forward = nullptr;
          came = !none.tokens.empty();
          if (came) {  // after all
            talk->messages() = all;
            EXPECT_EQ(talk->send(std::nullopt, at_most(1)).status.code(), Code::kState);
            ASSERT_TRUE(talk->chat->conversation.truncate(3).ok());
            ASSERT_TRUE(talk->send(std::nullopt, at_most(5)).status.ok());
          } else {
            EXPECT_EQ(none.status.code(), Code::kCancelled);
          }
          ASSERT_TRUE(talk->messages() == all);
        });
      }
      EXPECT_TRUE(came);
      expect_goes_on_after(form, kind, [](Talk* talk) {
        ASSERT_TRUE(talk->session->open("what", at_most(3)).ok());  // closed at once
      });
      expect_goes_on_after(form, kind, [](Talk* talk) {
        ASSERT_TRUE(talk->session->open(std::nullopt, at_most(3)).ok());
      });
      expect_goes_on_after(form, kind, [](Talk* talk) {
        talk->session->session()->cancel();
        EXPECT_EQ(talk->send(std::nullopt, at_most(3)).status.code(), Code::kCancelled);
      });
      expect_goes_on_after(form, kind, [](Talk* talk) {  // as many tokens, but others
        Tokens others = talk->held();
        for (int32_t& token : others) token = 43 - token % 7;
        ASSERT_TRUE(talk->session->session()->reset().ok());
        ASSERT_TRUE(talk->session->session()->append({.tokens = others}).ok());
      });
    }
  }
}

TEST(ChatSession, AnAnswerThatWasChangedDoesNotGoOn) {
  const auto edits = {
      +[](Talk* talk) { talk->messages().back().content += "a"; },
      +[](Talk* talk) { talk->messages().back().reasoning = "a"; },
      +[](Talk* talk) { talk->messages().front().content = "tell us"; },
      +[](Talk* talk) {
        talk->messages().insert(talk->messages().begin(), {"system", "a"});
      },
  };
  for (const auto edit : edits) {
    Talk talk(Kind::kStop, kPlain);
    ASSERT_TRUE(talk.send("tell me", at_most(7)).status.ok());
    edit(&talk);
    EXPECT_EQ(talk.send(std::nullopt, at_most(3)).status.code(), Code::kState);
  }
}

// Whoever stops it then, and however: the text is at its end.
TEST(ChatSession, AnAnswerWhoseStopStringIsThereIsWhole) {
  Talk known(Kind::kStop, kPlain);
  CallParams params = at_most(30);
  params.stops.strings = {known.send("tell me", at_most(9)).text.substr(4, 2)};
  const auto stop = [](void* user, const Event& event) -> int32_t {
    return event.index + 1 == *static_cast<int32_t*>(user) ? 1 : 0;
  };
  Talk whole(Kind::kStop, kPlain);
  const GenResult result = whole.send("tell me", params);
  ASSERT_EQ(result.finish_reason, FinishReason::kStopString);
  auto all = static_cast<int32_t>(result.tokens.size());
  for (int how = 0; how < 3; ++how) {
    Talk talk(Kind::kStop, kPlain);
    if (how == 0) {  // closed before the done event
      auto turn = talk.session->open("tell me", params).value();
      for (int32_t i = 0; i < all; ++i) ASSERT_FALSE(turn->generation().next().value()->done);
    } else if (how == 1) {
      std::optional<GenResult> stopped;
      EXPECT_EQ(talk.session->send("tell me", params, stop, &all, &stopped).code(),
                Code::kCancelled);
    } else {
      auto turn = talk.session->open("tell me", params).value();
      for (int32_t i = 0; i < all; ++i) ASSERT_FALSE(turn->generation().next().value()->done);
      talk.session->session()->cancel();
      ASSERT_TRUE(turn->generation().next().value()->done);
    }
    EXPECT_TRUE(talk.messages() == whole.messages()) << how;
    EXPECT_EQ(talk.send(std::nullopt, params).status.code(), Code::kState) << how;
    EXPECT_EQ(talk.send("and", at_most(3)).text,
              Talk(whole, Kind::kStop).send("and", at_most(3)).text);
  }
}

// Texts of a session may be cut into more tokens than the conversation is.
TEST(ChatSession, ALongerCutOfTheTextsStaysOnlyWhereThereIsRoom) {
  for (const int32_t context : {18, 20, 23, 24, 25, 40}) {
    World world(context);
    const Tokens wanted(15, world.ids({"ab"})[0]);
    Tokens longer;
    for (int i = 0; i < 9; ++i) longer = join(longer, world.ids({"a", "b"}));
    const auto session = world.session();
    ASSERT_TRUE(session->append(ids(longer)).ok());
    ASSERT_TRUE(session->append_chat(wanted).ok()) << context;
    EXPECT_EQ(held(*session).size(), context > 24 ? 24U : 15U) << context;
    expect_consistent(world, *session);
  }
}

}  // namespace
}  // namespace gen::generate
