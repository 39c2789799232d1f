// SPDX-License-Identifier: Apache-2.0
// Adapters of a model of cache_forms.h for tests that run random programs: names whose meaning is
// drawn, and drawn anew while calls run, and what a call may choose of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "generate/cache_forms.h"
#include "generate/said.h"
#include "model/adapter_registry.h"
#include "model/plan_model.h"
#include "support/adapter_values.h"

namespace gen::generate {

using AdapterChoices = std::vector<model::AdapterChoice>;

/// "a" and "b" are for all rows; "on" is activated by its invocation tokens, alone. Each may be
/// gone. They are the same for all models of the tests: a fresh session may use another one.
class DrawnAdapters {
 public:
  explicit DrawnAdapters(const std::set<const model::Model*>& models) {
    for (const model::Model* model : models) {
      const auto& plan = dynamic_cast<const model::PlanModel&>(*model).plan();
      Names& names = models_.emplace_back(Names{model->adapters(), {}});
      for (uint64_t i = 1; i <= kFull + std::size(kInvocations); ++i) {
        model::LoadedAdapter made;
        made.matrices = test::drawn_adapter(plan, static_cast<int32_t>(1 + i), i);
        made.content = i;
        if (i > kFull) made.invocation_tokens = kInvocations[i - kFull - 1];
        names.loaded.push_back(std::make_shared<const model::LoadedAdapter>(std::move(made)));
      }
    }
  }
  ~DrawnAdapters() {
    for (const char* name : kNames) remove(name);
  }
  DrawnAdapters(const DrawnAdapters&) = delete;
  DrawnAdapters& operator=(const DrawnAdapters&) = delete;

  /// Gives every name a meaning that depends on nothing before.
  void restart(std::mt19937& random) {
    for (const char* name : kNames) put(name, random);
  }
  /// Gives a name another meaning, or none.
  void change(std::mt19937& random) {
    const char* const name = kNames[random() % std::size(kNames)];
    if (random() % 6 == 0) return remove(name);
    put(name, random);
  }
  /// A choice; perhaps of a name that there is not.
  static AdapterChoices any(std::mt19937& random) {
    static const std::vector<AdapterChoices> mixes = {
        {},          {{"a", 1}},           {{"b", 1}}, {{"b", -0.5F}}, {{"b", 0.3F}, {"a", 1}},
        {{"on", 1}}, {{"a", 0}, {"on", 1}}};
    return mixes[random() % mixes.size()];
  }
  [[nodiscard]] bool known(const AdapterChoices& choices) const {
    return models_.front().registry->mix(choices).ok();
  }
  AdapterChoices any_known(std::mt19937& random) const {
    AdapterChoices choices = any(random);
    return known(choices) ? choices : AdapterChoices();
  }
  /// The mix that rows of a call on this text have, from `*from` on; null: none has one.
  [[nodiscard]] std::shared_ptr<const model::AdapterMix> mix_of(const AdapterChoices& choices,
                                                                const Tokens& text,
                                                                size_t* from = nullptr) const {
    const auto mix = models_.front().registry->mix(choices).value();
    if (mix == nullptr || mix->invocation_tokens.empty()) return mix;
    const Tokens& invocation = mix->invocation_tokens;
    const auto found =
        std::find_end(text.begin(), text.end(), invocation.begin(), invocation.end());
    if (from != nullptr) *from = static_cast<size_t>(found - text.begin());
    return found != text.end() ? mix : nullptr;
  }
  /// Tokens that activate one of those that "on" may stand for.
  static Tokens invocation(std::mt19937& random) {
    return kInvocations[random() % std::size(kInvocations)];
  }

 private:
  static constexpr const char* kNames[] = {"a", "b", "on"};
  static constexpr uint64_t kFull = 3;  // so many are for all rows
  // One is long, one also occurs in texts by itself.
  inline static const Tokens kInvocations[] = {{7, 8, 7}, {19}};

  struct Names {
    model::AdapterRegistry* registry;
    std::vector<std::shared_ptr<const model::LoadedAdapter>> loaded;
  };
  void put(const char* name, std::mt19937& random) {
    const bool full = name != kNames[2];
    const size_t which = full ? random() % kFull : kFull + random() % std::size(kInvocations);
    const float scale = random() % 4 == 0 ? 0.8F : 0.5F;
    for (const Names& names : models_) {
      EXPECT_TRUE(names.registry->put(name, scale, names.loaded[which]).ok());
    }
  }
  void remove(const char* name) {
    for (const Names& names : models_) static_cast<void>(names.registry->remove(name));
  }

  std::vector<Names> models_;
};

}  // namespace gen::generate
