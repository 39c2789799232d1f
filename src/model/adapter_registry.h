// SPDX-License-Identifier: Apache-2.0
// The adapters that a model has loaded, by name, and the mixes that requests make of them. What a
// name stands for may change while requests run: each keeps the adapters that it began with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/adapter_table.h"
#include "model/loaded_adapter.h"

namespace gen::model {

/// The limit of a name in bytes.
inline constexpr size_t kMaxAdapterName = 255;

/// What a request asks for.
struct AdapterChoice {
  std::string name;
  float scale = 1.0F;
};

/// The adapters of a sequence's rows, with their scales. Immutable.
struct AdapterMix {
  std::vector<graph::AdapterUse> uses;  // at least one, none with scale 0
  /// A hash of contents and scales: what keys and values depend on. Equal mixes have equal ones,
  /// and none has 0, which stands for rows without adapters.
  uint64_t identity = 0;
  /// Of an activated adapter, which is alone in its mix: rows before the last occurrence of these
  /// tokens run without it, and all rows where they do not occur. Empty: it is for all rows.
  std::vector<int32_t> invocation_tokens;
};

/// Threads: any, at the same time.
class AdapterRegistry {
 public:
  /// kInvalidArgument for a name that is empty, longer than kMaxAdapterName or not UTF-8 and for a
  /// scale that is not finite.
  static Status check(std::string_view name, float scale);
  /// Puts an adapter in the place of one of the same name, or behind all others, and forgets names
  /// that the budget has no room for. `scale` multiplies that of requests. Errors of check();
  /// kInvalidArgument for an adapter larger than the budget.
  Status put(std::string_view name, float scale, std::shared_ptr<const LoadedAdapter> adapter);
  /// kInvalidArgument for an unknown name.
  Status remove(std::string_view name);
  /// The most that bytes() may be; 0, as at first, for no limit. Names are forgotten, the least
  /// recently used first, until it is kept. put() and mix() use a name; those of one mix are used
  /// at once, and of these the oldest goes first.
  void set_budget(size_t bytes);
  [[nodiscard]] size_t size() const;
  /// Name `i`, oldest first; empty for one that there is not.
  [[nodiscard]] std::string name(size_t i) const;
  /// Bytes of engine memory of those that have a name. An adapter with several names counts once.
  [[nodiscard]] size_t bytes() const;

  /// Null if nothing is chosen, or only with scale 0. The order of choices does not matter.
  /// kInvalidArgument for an unknown name, a name given twice, more than engine::kMaxMixed, and an
  /// activated adapter among others; then no name is used.
  [[nodiscard]] Result<std::shared_ptr<const AdapterMix>> mix(
      std::span<const AdapterChoice> choices) const;

 private:
  struct Entry {
    std::string name;
    float scale;
    std::shared_ptr<const LoadedAdapter> adapter;
    mutable uint64_t used = 0;  // the value of uses_ then
  };
  struct Chosen;

  // All with the mutex.
  /// Null if there is none.
  [[nodiscard]] const Entry* find(std::string_view name) const noexcept;
  /// What bytes() has of an entry alone: 0 if another name has the same adapter.
  [[nodiscard]] size_t bytes_of(const Entry& entry) const noexcept;
  /// Moves names that the budget has no room for to `forgotten`, which has capacity for all.
  void forget_over_budget(std::vector<Entry>* forgotten) noexcept;
  /// What choices with a scale other than 0 stand for, and their use. Errors of mix().
  Status choose(std::span<const AdapterChoice> choices, std::vector<Chosen>* chosen) const;

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  size_t bytes_ = 0;
  size_t budget_ = 0;
  mutable uint64_t uses_ = 0;
};

}  // namespace gen::model
