// SPDX-License-Identifier: Apache-2.0
// What heads know of a text is there again after sessions were saved, appended to and shifted: the
// drafts that follow are those of a session to which nothing happened. The model's next token
// follows from the last one; the head has random weights and attends, so that its drafts tell what
// rows it has seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/checksum.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/head_state.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/head_world.h"

namespace gen::generate {
namespace {

/// Passes everything on to a head, and keeps what it proposed.
class Recorded final : public Drafter {
 public:
  explicit Recorded(std::shared_ptr<HeadDrafter> head) : head_(std::move(head)) {}
  [[nodiscard]] int32_t max_rows() const noexcept override { return head_->max_rows(); }
  std::unique_ptr<DraftState> begin() override { return head_->begin(); }
  Result<std::unique_ptr<DraftState>> restore(std::span<const int32_t> text,
                                              const SavedHead& saved) override {
    return head_->restore(text, saved);
  }
  void propose(std::span<DraftJob* const> jobs) override {
    head_->propose(jobs);
    if (cancels != nullptr && --left == 0) cancels->fire();
    for (const DraftJob* const job : jobs) {
      const auto tokens = job->tree.tokens();
      drafts.insert(drafts.end(), tokens.begin(), tokens.end());
    }
  }
  [[nodiscard]] std::span<const int32_t> taps() const noexcept override { return head_->taps(); }
  void observe(std::span<const ObservedRows> rows) override {
    head_->observe(rows);
    for (const ObservedRows& each : rows) {
      most_waiting = std::max(most_waiting, static_cast<HeadState*>(each.state)->rows_waiting());
    }
  }

  Tokens drafts;
  size_t most_waiting = 0;
  std::shared_ptr<CancelFlag> cancels;  // raised behind so many proposals
  int32_t left = 0;

 private:
  const std::shared_ptr<HeadDrafter> head_;
};

/// Sessions of a generator whose drafts are recorded.
struct World {
  explicit World(const char* family, int32_t blocks = 1, HeadGenerator of = {})
      : model(head_model({family, Head::kBlock, 256, blocks})),
        recorded(std::make_shared<Recorded>(head_drafter(*model, 3))) {
    of.drafter = recorded;
    generator = head_generator(model, std::move(of));
  }
  [[nodiscard]] std::shared_ptr<Session> session() const {
    return generator->new_session().value();
  }
  /// What is drafted while a session goes on.
  Tokens drafts_of(Session& session, const Tokens& prompt) {
    recorded->drafts.clear();
    EXPECT_EQ(answer_of(session, prompt, greedy_call(24)).tokens.size(), 24U);
    return std::exchange(recorded->drafts, {});
  }
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<Recorded> recorded;
  std::shared_ptr<const Generator> generator;
};

TEST(HeadStates, SavedSessionsDraftAsBefore) {
  constexpr std::pair<const char*, int32_t> kHeads[] = {
      {"exaone4", 1}, {"exaone4", 3}, {"qwen35", 1}};
  for (const auto& [family, blocks] : kHeads) {
    for (const size_t length : {size_t{1}, size_t{9}, size_t{40}, size_t{90}}) {
      SCOPED_TRACE(testing::Message() << family << blocks << ", a prompt of " << length);
      World world(family, blocks);
      const auto session = world.session();
      (void)answer_of(*session, text_of(1, length), greedy_call(22));
      const auto loaded = world.session();
      ASSERT_TRUE(loaded->load(state_of(*session)).ok());
      const auto again = world.session();
      ASSERT_TRUE(again->load(state_of(*loaded)).ok());
      // One that other drafts made has nothing of this head.
      const auto plain = head_generator(world.model, {})->new_session().value();
      (void)answer_of(*plain, text_of(1, length), greedy_call(22));
      const auto anew = world.session();
      ASSERT_TRUE(anew->load(state_of(*plain)).ok());
      const Tokens want = world.drafts_of(*session, text_of(2, 3));
      ASSERT_GT(want.size(), 40U);
      EXPECT_EQ(world.drafts_of(*loaded, text_of(2, 3)), want);
      EXPECT_EQ(world.drafts_of(*again, text_of(2, 3)), want);
      EXPECT_NE(world.drafts_of(*anew, text_of(2, 3)), want);
    }
  }
}

// Rows do not gather while somebody else drafts at every step: 32 wait, and those of two steps.
TEST(HeadStates, RowsAreTakenInWhileLookupsDraft) {
  World world("exaone4");
  HeadGenerator of;
  of.policy.kind = DraftPolicy::Kind::kAlways;
  of.drafter = std::make_shared<DrafterList>(std::make_shared<NgramLookup>(1, 3), world.recorded);
  const auto generator = head_generator(world.model, std::move(of));
  const auto session = generator->new_session().value();
  Tokens again;
  for (int32_t i = 0; i < 120; ++i) again.push_back(2 + i % 3);
  const GenResult said = answer_of(*session, again, greedy_call(120));
  EXPECT_GT(said.usage.drafted, 150);
  EXPECT_LE(world.recorded->most_waiting, 32U + 2 * 4);
}

// A cancelled call may take back the last row that the head has seen.
TEST(HeadStates, CancelledSessionsCanBeLoaded) {
  for (const auto& [family, blocks] : {std::pair{"exaone4", 1}, {"exaone4", 3}, {"qwen35", 1}}) {
    World world(family, blocks);
    for (int32_t proposals = 1; proposals <= 6; ++proposals) {
      SCOPED_TRACE(testing::Message() << family << blocks << ", cancelled at " << proposals);
      const auto session = world.session();
      CallParams params = greedy_call(30);
      world.recorded->cancels = std::make_shared<CancelFlag>();
      world.recorded->left = proposals;
      params.cancel = world.recorded->cancels;
      std::optional<GenResult> result;
      const Tokens prompt = text_of(1, 20);
      EXPECT_EQ(session->generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result)
                    .code(),
                Code::kCancelled);
      world.recorded->cancels.reset();
      const auto loaded = world.session();
      const Status status = loaded->load(state_of(*session));
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(answer_of(*loaded, text_of(2, 3), greedy_call(9)).tokens,
                answer_of(*session, text_of(2, 3), greedy_call(9)).tokens);
    }
  }
}

TEST(HeadStates, AppendedTextsAreSeen) {
  for (const char* family : {"exaone4", "qwen35"}) {
    World world(family);
    const Tokens text = text_of(3, 50);
    const auto whole = world.session();
    const Tokens want = world.drafts_of(*whole, text);
    const auto appended = world.session();
    ASSERT_TRUE(appended->append({.text = {}, .tokens = text}).ok());
    const auto loaded = world.session();
    ASSERT_TRUE(loaded->load(state_of(*appended)).ok());
    const auto fork = appended->fork().value();
    EXPECT_EQ(world.drafts_of(*appended, {}), want);
    EXPECT_EQ(world.drafts_of(*loaded, {}), want);
    EXPECT_EQ(world.drafts_of(*fork, {}), want);
  }
}

TEST(HeadStates, BesideALookupTheyAreSaved) {
  const auto model = head_model({"exaone4", Head::kBlock, 256});
  const auto recorded = std::make_shared<Recorded>(head_drafter(*model, 3));
  HeadGenerator of;
  of.drafter = std::make_shared<DrafterList>(std::make_shared<NgramLookup>(3, 4), recorded);
  const auto generator = head_generator(model, std::move(of));
  const auto session = generator->new_session().value();
  (void)answer_of(*session, text_of(1, 30), greedy_call(9));
  const auto loaded = generator->new_session().value();
  ASSERT_TRUE(loaded->load(state_of(*session)).ok());
  recorded->drafts.clear();
  (void)answer_of(*session, text_of(2, 4), greedy_call(20));
  const Tokens want = std::exchange(recorded->drafts, {});
  ASSERT_FALSE(want.empty());
  (void)answer_of(*loaded, text_of(2, 4), greedy_call(20));
  EXPECT_EQ(recorded->drafts, want);
}

// Rows before a cut may be of another text, as after a shift: then the head begins behind them.
TEST(HeadStates, RowsOfAnotherTextAreForgotten) {
  const auto model = head_model({"exaone4", Head::kFeatures, 256});
  const auto drafter = head_drafter(*model, 1);
  const Tokens first = text_of(1, 30);
  for (const bool same : {true, false}) {
    const auto state = drafter->begin();
    std::vector<float> hidden(40 * 64);
    const float* const features = hidden.data();
    ObservedRows rows = {.state = state.get(), .tokens = first, .features = {&features, 1}};
    drafter->observe({&rows, 1});
    Tokens text = same ? Tokens(first.begin(), first.begin() + 20) : text_of(2, 20);
    const Tokens more = text_of(3, 5);
    rows.tokens = more;
    rows.first_position = 20;
    drafter->observe({&rows, 1});
    text.insert(text.end(), more.begin(), more.end());
    text.push_back(7);
    DraftJob job;
    job.state = state.get();
    job.tokens = text;
    job.most = 1;
    job.tree.begin(7);
    DraftJob* const jobs[] = {&job};
    drafter->propose(jobs);
    EXPECT_EQ(job.tree.rows(), same ? 2 : 1);
    EXPECT_EQ(job.failures, 0);
  }
}

TEST(HeadStates, OfOtherHeadsAndFormsAreIgnored) {
  World world("exaone4");
  const auto session = world.session();
  (void)answer_of(*session, text_of(1, 30), greedy_call(9));
  const std::vector<std::byte> state = state_of(*session);
  const Tokens want = answer_of(*session, {}, greedy_call(20)).tokens;
  const auto plain = head_generator(world.model, {})->new_session().value();
  ASSERT_TRUE(plain->load(state).ok());
  EXPECT_EQ(answer_of(*plain, {}, greedy_call(20)).tokens, want);

  HeadDrafter::Options options;
  options.vocab = kFormsVocab;
  options.context = 256;
  options.memory = &engine::system_memory();
  options.kv_dtype = "fp16";
  HeadGenerator of;
  of.drafter = HeadDrafter::create(world.model->draft_head().value(), options).value();
  const auto other = head_generator(world.model, std::move(of))->new_session().value();
  ASSERT_TRUE(other->load(state).ok());
  EXPECT_EQ(answer_of(*other, {}, greedy_call(20)).tokens, want);
}

TEST(HeadStates, DamagedOnesAreRefused) {
  World world("exaone4");
  const auto session = world.session();
  (void)answer_of(*session, text_of(1, 30), greedy_call(9));
  const std::vector<std::byte> state = state_of(*session);
  const Tokens want = answer_of(*session, {}, greedy_call(20)).tokens;
  const std::string_view text(reinterpret_cast<const char*>(state.data()), state.size());
  const size_t at = text.find(SavedHead::kSection);
  ASSERT_NE(at, std::string_view::npos);
  int32_t refused = 0;
  for (size_t field = 0; field < 12; ++field) {
    for (const int32_t value : {-1, 0, 1, 2, 39, 1 << 30}) {
      std::vector<std::byte> damaged = state;
      std::memcpy(damaged.data() + at + 8 + 4 * field, &value, 4);
      const uint64_t sum = checksum(std::span(damaged).first(damaged.size() - 8));
      std::memcpy(damaged.data() + damaged.size() - 8, &sum, 8);
      const auto other = world.session();
      const Status status = other->load(damaged);
      if (status.ok()) {  // of another head, or as it was
        EXPECT_EQ(answer_of(*other, {}, greedy_call(20)).tokens, want) << field << ": " << value;
        continue;
      }
      ++refused;
      EXPECT_EQ(status.code(), Code::kFormat) << status.message();
      EXPECT_EQ(other->length(), 0);
    }
  }
  EXPECT_GT(refused, 30);
}

}  // namespace
}  // namespace gen::generate
