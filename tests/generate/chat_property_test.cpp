// SPDX-License-Identifier: Apache-2.0
// Random programs over chat sessions: messages are sent and answered, pushed and pulled; answers
// are cut by callbacks, cancels, limits and closed streams, before their first token, too, and gone
// on with; models fail; messages are taken back, edited and put there again; templates change, some
// of which lay earlier turns out anew; what the session holds is cut, emptied, saved, loaded, run
// on and scored by others; two chat sessions have one conversation. Whatever happened, a turn must
// be what a fresh chat session makes of the same messages: its status, pieces, tokens, the messages
// and the tokens that the session holds then. An answer that goes on is compared with a fresh chat
// session that gave the parts one after the other, and with what its tokens say. GEN_TRIALS sets
// the number of programs.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <tuple>

#include "generate/chat_world.h"

namespace gen::generate {
namespace {

using Random = std::mt19937;
using Messages = std::vector<ChatMessage>;

int32_t draw(Random& random, int32_t from, int32_t to) {
  return from + static_cast<int32_t>(random() % static_cast<uint32_t>(to - from + 1));
}
bool one_of(Random& random, int32_t n) { return draw(random, 1, n) == 1; }
template <typename T, size_t N>
const T& any_of(Random& random, const T (&all)[N]) {
  return all[random() % N];
}

#define EACH_MESSAGE "{% for m in messages %}{{ m.role }}:"
#define LAST "</s>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
const char* const kTemplates[] = {
    EACH_MESSAGE "{{ m.content }}" LAST,
    // What was thought in earlier answers goes.
    EACH_MESSAGE
    "{% if m.reasoning_content is defined and loop.last %}{{ m.reasoning_content }}+"
    "{% endif %}{% if m.role == 'assistant' and not loop.last %}"
    "{{ m.content.split('e')[-1] }}{% else %}{{ m.content }}{% endif %}" LAST,
    EACH_MESSAGE "{{ m.content | trim }}" LAST,
    // Each turn changes all before it.
    "{% for m in messages %}{{ loop.revindex }}{{ m.role }}:{{ m.content }}" LAST,
    "{% for m in messages %}{{ loop.length }}{{ m.role }}:{{ m.content }}" LAST,
    // The system message is the first turn's; roles take turns.
    "{% set ns = namespace(s='', last='') %}" EACH_MESSAGE
    "{% if m.role == ns.last %}{{ raise_exception('twice') }}{% endif %}{% set ns.last = m.role %}"
    "{% if m.role == 'system' %}{% set ns.s = m.content %}{% else %}{{ ns.s }}{{ m.content }}"
    "{% set ns.s = '' %}{% endif %}" LAST,
    // The last messages alone.
    "{% for m in messages[-3:] %}{{ m.role }}:{{ m.content }}{{ v | default('') }}" LAST,
};

enum class How : int32_t {
  kWhole,
  kCallback,          // stops after event `at`
  kClose,             // of the stream, after event `at`; below 0: before the first
  kCancel,            // after event `at`
  kCancelInTheModel,  // in its pass `at`
  kFault,             // of its pass `at`
};

struct Step {
  std::optional<std::string> message;
  CallParams params;
  How how = How::kWhole;
  int32_t at = 0;
  bool pulled = false;
};

/// What a turn gave.
struct Took {
  Status status;
  bool begun = false;
  FinishReason reason = FinishReason::kNone;  // none where a stream was closed
  std::string said;                           // pieces, in one
  Tokens tokens;
  Messages messages;
  Tokens held;

  /// There is an answer, though perhaps an empty one.
  [[nodiscard]] bool answered() const {
    return begun && (!tokens.empty() || reason == FinishReason::kStopToken) &&
           reason != FinishReason::kError;
  }
  friend std::ostream& operator<<(std::ostream& out, const Took& took) {
    out << "status " << static_cast<int32_t>(took.status.code()) << " " << took.status.message()
        << "\n begun " << took.begun << " reason " << static_cast<int32_t>(took.reason) << " said '"
        << took.said << "' tokens " << testing::PrintToString(took.tokens) << "\n";
    for (const ChatMessage& message : took.messages) {
      out << "  " << message.role << ": '" << message.content << "'\n";
    }
    return out << " held " << testing::PrintToString(took.held);
  }
};

/// What a callback is told.
struct Listening {
  const Step& step;
  Session& session;
  Took& took;
  int32_t hear(const Event& event) {
    took.said += event.text;
    if (event.done) return 0;
    took.tokens.push_back(event.token);
    if (event.index != step.at) return 0;
    if (step.how == How::kCancel) session.cancel();
    return step.how == How::kCallback ? 7 : 0;
  }
};

Took take(const Place& place, ChatSession& talk, const Chat& chat, const Step& step) {
  Took took;
  Session& session = *talk.session();
  Listening listening{step, session, took};
  std::optional<GenResult> result;
  int32_t passes = 0;
  if (step.how == How::kFault || step.how == How::kCancelInTheModel) {
    place.model->before_forward = [&](const graph::Batch&) {
      if (passes++ != step.at) return Status();
      if (step.how == How::kFault) return error(Code::kDevice, "gone");
      session.cancel();
      return Status();
    };
  }
  if (step.how == How::kClose || step.pulled) {
    auto opened = talk.open(step.message, step.params);
    took.status = opened.status();
    took.begun = opened.ok();
    for (int32_t i = 0; took.begun; ++i) {
      ChatTurn& turn = *opened.value();
      if (step.how == How::kClose && i == step.at + 1) break;
      const Event* const event = turn.generation().next().value();
      EXPECT_TRUE(turn.note_end().ok());
      const int32_t answer = listening.hear(*event);
      if (answer != 0) {
        turn.generation().stop(answer);
        EXPECT_TRUE(turn.note_end().ok());
      }
      if (!turn.generation().ended()) continue;
      result = turn.generation().result();
      took.status = result->status;
      break;
    }
  } else {
    const auto hear = [](void* user, const Event& event) {
      return static_cast<Listening*>(user)->hear(event);
    };
    took.status = talk.send(step.message, step.params, hear, &listening, &result);
    took.begun = result.has_value();
  }
  place.model->before_forward = nullptr;
  if (result.has_value()) {
    took.reason = result->finish_reason;
    EXPECT_EQ(result->text, took.said);
    EXPECT_EQ(result->tokens, took.tokens);
  }
  took.messages = chat.conversation.messages;
  took.held = tokens_of(session);
  return took;
}

struct Counts {
  int64_t steps = 0;
  int64_t turns = 0;
  int64_t went_on = 0;
  int64_t cut = 0;
  int64_t dropped = 0;  // turns for whose conversation the context had no room
};

/// How the last answer of a chat session came about.
struct Chain {
  Conversation base;  // before the first step
  std::vector<Step> steps;
  Messages after;
  Tokens tokens;     // of the answer
  std::string said;  // as pieces
};

struct Talk {
  std::shared_ptr<ChatSession> session;
  std::optional<Chain> chain = std::nullopt;
  bool cancelled = false;  // between two calls
};

class Program {
 public:
  Program(Random random, Kind kind, Counts* counts)
      : random_(random),
        counts_(*counts),
        context_(kind == Kind::kTiny || kind == Kind::kDrift ? kFormsContext
                                                             : draw(random_, 60, 200)),
        keep_(draw(random_, 0, 6)),
        place_(kind, context_, draw(random_, 1, 20), keep_),
        twin_(kind, context_, draw(random_, 1, 20), keep_),
        chat_(std::make_shared<Chat>()) {
    set_template();
    for (int i = draw(random_, 1, 2); i-- > 0;) talks_.push_back({new_session(place_, chat_)});
    if (one_of(random_, 2)) add("system");
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i << ", template " << template_);
      ++counts_.steps;
      Talk& talk = talks_[random_() % talks_.size()];
      const int32_t what = draw(random_, 0, 9);
      if (what < 5) {
        turn(talk);
      } else if (what < 7) {
        edit();
      } else {
        meddle(talk);
      }
    }
  }

 private:
  static std::shared_ptr<ChatSession> new_session(const Place& place,
                                                  const std::shared_ptr<Chat>& chat) {
    return ChatSession::create(place.generator, chat).value();
  }
  Conversation& conversation() { return chat_->conversation; }
  Messages& messages() { return chat_->conversation.messages; }
  std::string any_text() {
    static const char* const texts[] = {
        "", "a", "ab", "abc", " a b ", "feed", "c\xC3\xA9", "</s>user:", "+-+-+-", "tell me of it"};
    std::string text = any_of(random_, texts);
    // Some as long as an answer, some too long.
    if (one_of(random_, 6)) text.append(static_cast<size_t>(draw(random_, 1, context_ / 3)), 'b');
    if (one_of(random_, 25)) text.append(static_cast<size_t>(context_), 'c');
    return text == "</s>user:" ? "user:" : text;
  }
  void set_template() {
    template_ = static_cast<size_t>(draw(random_, 0, std::ssize(kTemplates) - 1));
    ASSERT_TRUE(conversation().set_template(kTemplates[template_]).ok());
  }
  void add(const char* role) { messages().push_back({role, any_text()}); }

  CallParams any_params() {
    CallParams params =
        greedy(one_of(random_, 8) ? draw(random_, 1, context_ + 9) : draw(random_, 1, 14));
    params.stops.ignore_eos = one_of(random_, 4);
    if (one_of(random_, 2)) params.stops.strings = {"ee", "a", "fgh", "e\xC3\xA9"};
    if (one_of(random_, 3)) params.stops.strings.push_back("eeeee");
    if (one_of(random_, 40)) params.stops.tokens = {kFormsVocab};
    return params;
  }
  Step any_step() {
    Step step;
    if (!one_of(random_, 2)) step.message = any_text();
    if (one_of(random_, 60)) step.message = "\xff";
    step.params = any_params();
    step.pulled = one_of(random_, 2);
    const int32_t how = draw(random_, 0, 9);
    if (how >= 4) {
      step.how = how < 6 ? How::kCallback : how < 8 ? How::kClose : How::kCancel;
      step.at = draw(random_, step.how == How::kClose ? -1 : 0, 8);
    } else if (how == 3 && !place_.is_tiny()) {
      step.how = one_of(random_, 2) ? How::kFault : How::kCancelInTheModel;
      step.at = draw(random_, 0, 6);
      step.pulled = false;
    }
    return step;
  }

  /// What a fresh chat session makes of it.
  Took twin(const Conversation& base, const std::vector<Step>& before, const Step& step) const {
    const auto chat = std::make_shared<Chat>();
    chat->conversation = base;
    const auto talk = new_session(twin_, chat);
    for (const Step& one : before) static_cast<void>(take(twin_, *talk, *chat, one));
    return take(twin_, *talk, *chat, step);
  }

  void turn(Talk& talk) {
    ++counts_.turns;
    Step step = any_step();
    const Conversation before = conversation();
    Took took = take(place_, *talk.session, *chat_, step);
    const auto as_before = [&] { EXPECT_TRUE(took.messages == before.messages) << took; };
    check_cache(talk);
    const bool cancelled = took.begun && std::exchange(talk.cancelled, false);
    const bool at_once = step.how == How::kClose && step.at < 0;
    if (took.begun && (cancelled || at_once || took.status.code() == Code::kDevice)) {
      // Nothing came, or nothing of it is left.
      if (cancelled && !at_once) {
        EXPECT_EQ(took.status.code(), Code::kCancelled) << took;
        EXPECT_TRUE(took.tokens.empty());
      }
      // A stream that is closed before it was pulled has not met a cancel.
      if (at_once) talk.cancelled = cancelled;
      if (took.status.code() == Code::kDevice) {
        EXPECT_EQ(step.how, How::kFault);
      }
      as_before();
      return;
    }
    // A pass that is cancelled may have shifted the context before.
    const bool in_the_model = step.how == How::kCancelInTheModel;
    // Where it came to an end by itself, or as far as it came, a fresh one does by other means.
    if (step.how == How::kCancelInTheModel && took.status.code() == Code::kCancelled) {
      if (took.tokens.empty()) return as_before();
      step.how = How::kCancel;
      step.at = static_cast<int32_t>(took.tokens.size()) - 1;
    } else if (step.how == How::kFault || step.how == How::kCancelInTheModel) {
      step.how = How::kWhole;
    } else if (step.how == How::kClose) {
      step.how = How::kCallback;
    }
    const bool goes_on =
        !step.message.has_value() && talk.chain.has_value() && talk.chain->after == before.messages;
    const Took fresh =
        goes_on ? twin(talk.chain->base, talk.chain->steps, step) : twin(before, {}, step);
    const bool closed = took.begun && took.reason == FinishReason::kNone;
    const bool same =
        std::tie(took.begun, took.said, took.tokens) ==
            std::tie(fresh.begun, fresh.said, fresh.tokens) &&
        took.messages == fresh.messages &&
        (closed || (took.reason == fresh.reason && took.status.code() == fresh.status.code())) &&
        (in_the_model || !took.answered() || took.held == fresh.held);
    ASSERT_TRUE(same) << took << "\nfresh: " << fresh << "\nin " << static_cast<int32_t>(step.how)
                      << " at " << step.at << (goes_on ? ", going on" : "");
    if (!took.answered()) return as_before();
    counts_.went_on += goes_on ? 1 : 0;
    counts_.cut += closed || took.reason == FinishReason::kCallback ? 1 : 0;
    if (fits_not(before, step)) ++counts_.dropped;
    if (!goes_on) talk.chain = Chain{before, {}, {}, {}, {}};
    talk.chain->steps.push_back(step);
    talk.chain->after = took.messages;
    talk.chain->tokens = join(talk.chain->tokens, took.tokens);
    talk.chain->said += took.said;
    check_text(*talk.chain, took.reason);
  }
  /// The answer's message is its pieces, and they are what its tokens say.
  void check_text(const Chain& chain, FinishReason reason) const {
    EXPECT_EQ(chain.after.back().content, chain.said);
    std::string text;
    tokenizer::StreamDecoder decoder(*place_.generator->tokenizer());
    for (const int32_t token : chain.tokens) ASSERT_TRUE(decoder.feed(token, &text).ok());
    if (reason == FinishReason::kStopToken) decoder.flush(&text);
    EXPECT_EQ(chain.said, text.substr(0, chain.said.size()));
    // Before a stop token what was held back may turn out to be another call's stop string.
    const bool all =
        reason == FinishReason::kLength || reason == FinishReason::kContextFull ||
        (reason == FinishReason::kStopToken && chain.steps.back().params.stops.strings.empty());
    if (all) {
      EXPECT_EQ(chain.said, text);
    }
  }
  /// Whether the whole conversation is more than the context.
  bool fits_not(Conversation all, const Step& step) const {
    if (step.message.has_value()) all.messages.push_back({"user", *step.message});
    std::vector<int32_t> ids;
    return chat::encode_chat(*place_.generator->tokenizer(), all, true, &ids).ok() &&
           ids.size() >= static_cast<size_t>(context_);
  }
  void check_cache(const Talk& talk) const {
    const auto* const cache = dynamic_cast<const FakeCache*>(&talk.session->session()->cache());
    // One that cannot be cut is made anew when it is needed.
    if (cache == nullptr || place_.kind == Kind::kNoCut || place_.kind == Kind::kOneWay) return;
    const Tokens held = tokens_of(*talk.session->session());
    ASSERT_LE(cache->committed().size(), held.size());
    EXPECT_TRUE(std::equal(cache->committed().begin(), cache->committed().end(), held.begin()));
  }

  void edit() {
    const auto many = static_cast<int32_t>(messages().size());
    switch (draw(random_, 0, 9)) {
      case 0:
        return add("tool");
      case 1:
        return add("assistant");
      case 2:
        return add("user");
      case 3:
        return add("system");
      case 4:
        if (many > 0) {
          EXPECT_TRUE(conversation().set_reasoning(any_text()).ok());
        }
        return;
      case 5:
        return one_of(random_, 3) ? set_template()
                                  : static_cast<void>(conversation().set_variable("v", "12"));
      case 6: {  // put there again
        const Messages all = messages();
        ASSERT_TRUE(conversation().truncate(draw(random_, 0, many)).ok());
        messages() = all;
        return;
      }
      case 7: {  // one is another
        if (many == 0) return;
        ChatMessage& message = messages()[random_() % messages().size()];
        message.content = any_text();
        return;
      }
      default:  // the last ones go, or all
        ASSERT_TRUE(conversation()
                        .truncate(one_of(random_, 4) ? draw(random_, 0, many)
                                                     : -draw(random_, 0, std::min(many, 3)))
                        .ok());
    }
  }

  /// What others do to the session of a chat session.
  void meddle(Talk& talk) {
    Session& session = *talk.session->session();
    const int32_t length = session.length();
    int32_t n = 0;
    const bool may_cut = place_.kind != Kind::kOneWay;
    switch (draw(random_, 0, 9)) {
      case 0:
        n = draw(random_, 0, length);
        EXPECT_EQ(session.truncate(n).ok(), may_cut || n == 0 || n == length);
        break;
      case 1:
        ASSERT_TRUE(session.reset().ok());
        talk.cancelled = false;
        break;
      case 2: {  // as many tokens as there were, but others
        Tokens tokens(static_cast<size_t>(length));
        for (int32_t& token : tokens) token = draw(random_, 0, kFormsVocab - 1);
        ASSERT_TRUE(session.truncate(0).ok());
        append(session, tokens);
        break;
      }
      case 3:  // the same tokens
      case 4: {
        const Tokens tokens = tokens_of(session);
        ASSERT_TRUE(session.truncate(0).ok());
        append(session, tokens);
        break;
      }
      case 5: {
        Tokens tokens(static_cast<size_t>(draw(random_, 0, 30)));
        for (int32_t& token : tokens) token = draw(random_, 0, kFormsVocab - 1);
        append(session, tokens);
        break;
      }
      case 6: {
        std::optional<GenResult> result;
        const Status status = session.generate({}, any_params(), nullptr, nullptr, &result);
        if (!result.has_value()) break;
        EXPECT_EQ(status.code(), talk.cancelled ? Code::kCancelled : Code::kOk);
        talk.cancelled = false;
        break;
      }
      case 7: {
        std::vector<float> scores;
        const Tokens some{3, 4, 5};
        const Status status = session.score(ids(some), &scores, nullptr);
        if (length + 3 <= context_) {
          EXPECT_TRUE(status.ok()) << status.message();
        }
        break;
      }
      case 8:
        session.cancel();
        talk.cancelled = true;
        break;
      default:
        if (place_.is_tiny()) return save(talk);
        Conversation other = conversation();
        if (!other.messages.empty()) other.messages.front().content = "other";
        other.messages.push_back({"user", "abc"});
        std::vector<int32_t> all;
        if (!chat::encode_chat(*place_.generator->tokenizer(), other, true, &all).ok()) return;
        const Status status = session.append_chat(all);
        EXPECT_TRUE(status.ok() || status.code() == Code::kContextFull) << status.message();
    }
    check_cache(talk);
  }
  void append(Session& session, const Tokens& tokens) const {
    const Status status = session.append(ids(tokens));
    EXPECT_TRUE(status.ok() || status.code() == Code::kContextFull) << status.message();
  }
  void save(Talk& talk) {
    Session& session = *talk.session->session();
    const auto state = state_of(session);
    if (one_of(random_, 2)) {  // another chat session goes on
      talk.session = new_session(place_, chat_);
      talk.chain.reset();
      talk.cancelled = false;
    } else {
      ASSERT_TRUE(session.truncate(0).ok());
    }
    ASSERT_TRUE(talk.session->session()->load(state).ok());
  }

  Random random_;
  Counts& counts_;
  int32_t context_;
  int32_t keep_;
  Place place_;
  Place twin_;
  std::shared_ptr<Chat> chat_;
  std::vector<Talk> talks_;
  size_t template_ = 0;
};

int trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::max(1, std::atoi(wanted)) : 300;
}

TEST(ChatProperty, WhateverHappenedATurnIsWhatAFreshChatSessionMakesOfTheMessages) {
  Counts counts;
  for (int trial = 0; trial < trials(); ++trial) {
    const auto kind = static_cast<Kind>(trial % static_cast<int>(Kind::kCount));
    SCOPED_TRACE(testing::Message()
                 << "program " << trial << ", kind " << static_cast<int32_t>(kind));
    Program(Random(static_cast<uint32_t>(trial * 6151 + 7)), kind, &counts).run(60);
    if (HasFailure()) return;
  }
  if (trials() >= 30) {
    EXPECT_GT(counts.went_on, trials() / 2);
    EXPECT_GT(counts.cut, trials());
    EXPECT_GT(counts.dropped, trials() / 6);
  }
  std::printf(
      "%d programs, %lld steps, %lld turns: %lld went on, %lld were stopped, %lld had no "
      "room for all messages\n",
      trials(), static_cast<long long>(counts.steps), static_cast<long long>(counts.turns),
      static_cast<long long>(counts.went_on), static_cast<long long>(counts.cut),
      static_cast<long long>(counts.dropped));
}

}  // namespace
}  // namespace gen::generate
