// SPDX-License-Identifier: Apache-2.0
// Heads over custom models: a function that runs a small model and gives its hidden states as
// features drafts, with each kind of head and with weights of the head's own, exactly what the
// model drafts with the same head; features that are not finite cost drafts and nothing else; and a
// head that lacks weights is refused, naming them.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "generate/head_world.h"
#include "model/custom_model.h"
#include "quant/format.h"
#include "support/eagle_file.h"

namespace gen::generate {
namespace {

using test::EagleKind;
using test::EagleSpec;

constexpr int32_t kMirrorHidden = 64;

/// Runs a model over a cache for each state. Features are the taps, one beside the other.
class Mirror final : public model::CustomForward {
 public:
  Mirror(const model::Model& model, std::vector<int32_t> layers, int32_t gap)
      : model_(model), layers_(std::move(layers)), gap_(gap) {}

  Status forward(const graph::Batch& batch, std::span<void* const> states, float* features,
                 model::CustomAttention* /*attention*/) const override {
    std::vector<graph::BatchSequence> sequences(batch.sequences.begin(), batch.sequences.end());
    for (size_t i = 0; i < sequences.size(); ++i) {
      cache::KvCache* const cache = held(states[i]);
      GEN_ASSIGN(sequences[i].plan, cache->plan(sequences[i].n_rows));
      sequences[i].cache = cache;
      sequences[i].state = nullptr;
    }
    const size_t rows = batch.tokens.size();
    std::vector<std::vector<float>> hidden(layers_.size());
    std::vector<graph::Tap> taps;
    for (size_t i = 0; i < layers_.size() && features != nullptr; ++i) {
      hidden[i].resize(rows * kMirrorHidden);
      taps.push_back({.layer = layers_[i], .out = hidden[i].data()});
    }
    graph::Batch own = batch;
    own.sequences = sequences;
    own.taps = taps;
    GEN_TRY(model_.forward(own));
    for (const graph::BatchSequence& sequence : sequences) sequence.cache->commit(sequence.plan);
    for (size_t row = 0; row < rows && features != nullptr; ++row) {
      for (const std::vector<float>& each : hidden) {
        features = std::copy_n(each.begin() + static_cast<std::ptrdiff_t>(row * kMirrorHidden),
                               kMirrorHidden, features);
      }
      if (gap_ > 0 && batch.positions[row] % gap_ == 0) {
        features[-1] = std::numeric_limits<float>::infinity();
      }
    }
    return {};
  }
  Result<void*> new_state() const override {
    GEN_ASSIGN(auto made, cache::make_cache("fp32", model_.layer_shapes(), kFormsContext,
                                            engine::system_memory()));
    return static_cast<void*>(new Cache(std::move(made)));
  }
  Result<void*> clone_state(const void* state) const override {
    GEN_ASSIGN(auto copy, held(state)->fork());
    return static_cast<void*>(new Cache(std::move(copy)));
  }
  Status truncate_state(void* state, int32_t n) const override {
    return n < held(state)->length() ? held(state)->truncate(n) : Status();
  }
  void free_state(void* state) const noexcept override { delete static_cast<Cache*>(state); }

 private:
  using Cache = std::unique_ptr<cache::KvCache>;
  static cache::KvCache* held(const void* state) { return static_cast<const Cache*>(state)->get(); }

  const model::Model& model_;
  const std::vector<int32_t> layers_;
  const int32_t gap_;  // positions that are multiples have no features; 0: all have
};

/// The values of a tensor in a file.
std::vector<float> values_of(const gguf::GgufFile& file, const char* name) {
  const gguf::TensorInfo& tensor = *file.find_tensor(name);
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  quant::find_format(tensor.type)->decode(tensor.data.data(), values.data(), tensor.elements());
  return values;
}

struct MirrorForm {
  EagleKind kind;
  std::vector<int32_t> layers;
  bool goes_back = true;  // states; otherwise they are copied
};

/// The model of a file, and the same as a custom one.
class CustomHeads : public testing::Test {
 protected:
  CustomHeads() : loaded_(test::TinyModel(tiny()).bytes()) {}

  static test::TinyModelSpec tiny() {
    test::TinyModelSpec spec;
    spec.context = kFormsContext;
    spec.vocab = kFormsVocab;
    return spec;
  }
  [[nodiscard]] std::shared_ptr<const model::Model> of_file() const {
    return {std::shared_ptr<void>(), &loaded_.model()};
  }
  [[nodiscard]] std::shared_ptr<const model::Model> custom(const MirrorForm& form,
                                                           int32_t gap = 0) const {
    return custom(loaded_.model(), form, gap);
  }
  [[nodiscard]] static std::shared_ptr<const model::Model> custom(const model::Model& of,
                                                                  const MirrorForm& form,
                                                                  int32_t gap = 0) {
    model::ModelTraits traits;
    traits.architecture = "mirror";
    traits.vocab_size = kFormsVocab;
    traits.max_seq_len = kFormsContext;
    traits.num_layers = std::numeric_limits<int32_t>::max();  // nobody counts them
    traits.hidden = kMirrorHidden * static_cast<int32_t>(form.layers.size());
    return model::CustomModel::create(
               std::make_shared<Mirror>(of, form.layers, gap), traits,
               {true, !form.goes_back, form.goes_back}, {},
               [] { return Result<std::shared_ptr<engine::Engine>>(test::cpu_engine()); })
        .value();
  }
  /// Such a head's file, with weights of its own.
  [[nodiscard]] static EagleSpec whole(EagleKind kind) {
    const std::vector<std::byte> bytes = test::TinyModel(tiny()).bytes();
    const auto file = gguf::GgufFile::parse(bytes).value();
    EagleSpec spec;
    spec.kind = kind;
    spec.prefix = "";
    if (kind != EagleKind::kMlp) spec.embedding = values_of(*file, "token_embd.weight");
    spec.output = values_of(*file, "output.weight");
    return spec;
  }
  Result<std::shared_ptr<const model::DraftHead>> head_of(const model::Model& model,
                                                          const EagleSpec& spec) {
    files_.push_back(test::EagleFile(spec).bytes());
    GEN_ASSIGN(auto file, gguf::GgufFile::parse(files_.back()));
    GEN_ASSIGN(const auto target, model.head_target());
    return model::load_draft_head(std::move(file), target, false, true);
  }
  std::shared_ptr<Drafter> drafter_of(const model::Model& model, const EagleSpec& spec) {
    auto head = head_of(model, spec);
    EXPECT_TRUE(head.ok()) << head.status().message();
    HeadDrafter::Options options;
    options.vocab = kFormsVocab;
    options.context = kFormsContext;
    options.memory = &engine::system_memory();
    return HeadDrafter::create(std::move(head).value(), options).value();
  }

  test::LoadedTiny loaded_;
  std::vector<std::vector<std::byte>> files_;  // the heads read them
};

const MirrorForm kMirrorForms[] = {
    {EagleKind::kMlp, {1}},
    {EagleKind::kEagle1, {graph::kNormedTap}},
    {EagleKind::kEagle3, {0, 1, 2}},
    {EagleKind::kMlp, {1}, false},
    {EagleKind::kEagle3, {0, 1, 2}, false},
};

CallParams call_at(double temperature, int32_t n) {
  CallParams params = greedy_call(n);
  params.sampling.temperature = temperature;
  params.sampling.seed = 5;
  return params;
}

TEST_F(CustomHeads, DraftWhatTheModelOfAFileDrafts) {
  for (const MirrorForm& form : kMirrorForms) {
    SCOPED_TRACE(static_cast<int>(form.kind));
    const EagleSpec spec = whole(form.kind);
    const auto model = custom(form);
    const auto plain = head_generator(model, {});
    const auto want = head_generator(of_file(), {.drafter = drafter_of(*of_file(), spec)});
    const auto got = head_generator(model, {.drafter = drafter_of(*model, spec)});
    for (const double temperature : {0.0, 0.8}) {
      for (const size_t prompt : {size_t{1}, size_t{7}, size_t{41}}) {
        const Tokens text = text_of(2, prompt);
        const CallParams params = call_at(temperature, 40);
        const auto session = got->new_session().value();
        const auto other = want->new_session().value();
        const GenResult alone = answer_of(*plain->new_session().value(), text, params);
        EXPECT_EQ(alone.tokens.size(), 40U);
        for (int turn = 0; turn < (form.goes_back ? 2 : 1); ++turn) {
          const GenResult of_model = answer_of(*other, text, params);
          const GenResult result = answer_of(*session, text, params);
          EXPECT_EQ(result.tokens, of_model.tokens);
          EXPECT_EQ(result.logprobs, of_model.logprobs);
          EXPECT_GT(result.usage.drafted, 40);
          if (turn == 0) {
            EXPECT_EQ(result.tokens, alone.tokens);
          }
          // A copied state runs accepted tokens again, without drafts, and cannot be cut.
          if (!form.goes_back) continue;
          EXPECT_EQ(result.usage.drafted, of_model.usage.drafted);
          EXPECT_EQ(result.usage.accepted, of_model.usage.accepted);
          EXPECT_TRUE(session->truncate(3).ok());
          EXPECT_TRUE(other->truncate(3).ok());
        }
      }
    }
  }
}

// The file has the layers, too, as the model's own has.
TEST_F(CustomHeads, TakeTheBlocksOfAFile) {
  test::TinyModelSpec spec = tiny();
  spec.architecture = "exaone4";
  spec.draft_layers = 1;
  const std::vector<std::byte> bytes = test::TinyModel(spec).bytes();
  const test::LoadedTiny loaded(bytes);
  const std::shared_ptr<const model::Model> whole(std::shared_ptr<void>(), &loaded.model());
  const auto model = custom(*whole, {EagleKind::kEagle1, {graph::kNormedTap}});
  HeadDrafter::Options options;
  options.vocab = kFormsVocab;
  options.context = kFormsContext;
  options.memory = &engine::system_memory();
  auto head = model::load_draft_head(gguf::GgufFile::parse(bytes).value(),
                                     model->head_target().value(), false, true);
  ASSERT_TRUE(head.ok()) << head.status().message();
  const auto want = head_generator(whole, {.drafter = head_drafter(*whole, 4)});
  const auto got = head_generator(
      model, {.drafter = HeadDrafter::create(std::move(head).value(), options).value()});
  for (const double temperature : {0.0, 0.8}) {
    const Tokens text = text_of(2, 9);
    const CallParams params = call_at(temperature, 60);
    const GenResult of_file = answer_of(*want->new_session().value(), text, params);
    const GenResult result = answer_of(*got->new_session().value(), text, params);
    EXPECT_EQ(result.tokens, of_file.tokens);
    EXPECT_GT(result.usage.drafted, 60);
    EXPECT_EQ(result.usage.drafted, of_file.usage.drafted);
    EXPECT_EQ(result.usage.accepted, of_file.usage.accepted);
  }
}

TEST_F(CustomHeads, RowsWithoutFeaturesHaveNoDrafts) {
  for (const MirrorForm& form : kMirrorForms) {
    SCOPED_TRACE(static_cast<int>(form.kind));
    const EagleSpec spec = whole(form.kind);
    for (const int32_t gap : {1, 2, 5, 37}) {
      const auto model = custom(form, gap);
      const auto plain = head_generator(model, {});
      const auto drafting = head_generator(model, {.drafter = drafter_of(*model, spec)});
      for (const size_t prompt : {size_t{7}, size_t{41}}) {
        const CallParams params = call_at(0.8, 60);
        const GenResult want = answer_of(*plain->new_session().value(), text_of(2, prompt), params);
        const GenResult got =
            answer_of(*drafting->new_session().value(), text_of(2, prompt), params);
        EXPECT_EQ(got.tokens, want.tokens);
        EXPECT_EQ(got.logprobs, want.logprobs);
        EXPECT_EQ(got.usage.drafted > 0, gap > 1) << gap;
      }
    }
  }
}

TEST_F(CustomHeads, LackNothing) {
  const auto expect = [&](const MirrorForm& form, const EagleSpec& spec, const std::string& says,
                          Code code = Code::kFormat) {
    const auto head = head_of(*custom(form), spec);
    EXPECT_EQ(head.status().code(), code) << says;
    EXPECT_NE(std::string(head.status().message()).find(says), std::string::npos)
        << head.status().message();
  };
  for (const MirrorForm& form : kMirrorForms) {
    EagleSpec spec = whole(form.kind);
    spec.output.clear();
    expect(form, spec, "output.weight is missing");
    if (form.kind == EagleKind::kMlp) continue;
    spec = whole(form.kind);
    spec.embedding.clear();
    expect(form, spec, "token_embd.weight is missing");
  }
  const MirrorForm two = {EagleKind::kEagle3, {0, 1}};
  expect(two, whole(EagleKind::kEagle3), "mixes 192 features, and the model has 128");
  expect(two, whole(EagleKind::kEagle1), "eagle.embedding_length is 64, and the model's is 128");
  expect(two, whole(EagleKind::kMlp), "norm.weight");
  const MirrorForm none = {EagleKind::kMlp, {}};
  expect(none, whole(EagleKind::kMlp), "hidden size is 0", Code::kUnsupported);
}

}  // namespace
}  // namespace gen::generate
