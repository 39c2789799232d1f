// SPDX-License-Identifier: Apache-2.0
// See adapter_registry.h.
#include "model/adapter_registry.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/checksum.h"
#include "base/utf8.h"

namespace gen::model {
namespace {

Status unknown(std::string_view name) {
  return error(Code::kInvalidArgument, "no adapter is named \"%.*s\"",
               static_cast<int>(std::min<size_t>(name.size(), 64)), name.data());
}

Status check_mix(std::span<const AdapterChoice> choices) {
  for (size_t i = 0; i < choices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (choices[j].name != choices[i].name) continue;
      return error(Code::kInvalidArgument, "adapter \"%.64s\" is given twice",
                   choices[i].name.c_str());
    }
  }
  return {};
}

}  // namespace

struct AdapterRegistry::Chosen {
  const std::string* name;
  float scale;
  std::shared_ptr<const LoadedAdapter> adapter;
};

const AdapterRegistry::Entry* AdapterRegistry::find(std::string_view name) const noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found != entries_.end() ? &*found : nullptr;
}

Status AdapterRegistry::check(std::string_view name, float scale) {
  if (name.empty() || name.size() > kMaxAdapterName) {
    return error(Code::kInvalidArgument, "an adapter's name of %zu bytes, outside [1, %zu]",
                 name.size(), kMaxAdapterName);
  }
  if (!utf8_valid(name)) {
    return error(Code::kInvalidArgument, "an adapter's name is not UTF-8");
  }
  if (!std::isfinite(scale)) {
    return error(Code::kInvalidArgument, "adapter scale %g is not finite",
                 static_cast<double>(scale));
  }
  return {};
}

size_t AdapterRegistry::bytes_of(const Entry& entry) const noexcept {
  const bool elsewhere = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return &each != &entry && each.adapter == entry.adapter;
  });
  return elsewhere ? 0 : entry.adapter->bytes;
}

void AdapterRegistry::forget_over_budget(std::vector<Entry>* forgotten) noexcept {
  while (budget_ != 0 && bytes_ > budget_) {
    const auto least =
        std::min_element(entries_.begin(), entries_.end(),
                         [](const Entry& a, const Entry& b) { return a.used < b.used; });
    bytes_ -= bytes_of(*least);
    forgotten->push_back(std::move(*least));
    entries_.erase(least);
  }
}

Status AdapterRegistry::put(std::string_view name, float scale,
                            std::shared_ptr<const LoadedAdapter> adapter) {
  GEN_TRY(check(name, scale));
  const size_t bytes = adapter->bytes;
  // What a name stood for may be the last of its kind; it is freed after the lock.
  Entry entry{std::string(name), scale, std::move(adapter)};
  std::vector<Entry> forgotten;
  const std::lock_guard lock(mutex_);
  if (budget_ != 0 && bytes > budget_) {
    return error(Code::kInvalidArgument,
                 "adapter \"%.64s\" takes %zu bytes of the adapters' budget of %zu",
                 entry.name.c_str(), bytes, budget_);
  }
  forgotten.reserve(entries_.size() + 1);
  auto at = std::find_if(entries_.begin(), entries_.end(),
                         [&](const Entry& each) { return each.name == entry.name; });
  if (at != entries_.end()) {
    bytes_ -= bytes_of(*at);
    std::swap(*at, entry);
  } else {
    entries_.push_back(std::move(entry));
    at = entries_.end() - 1;
  }
  at->used = ++uses_;
  bytes_ += bytes_of(*at);
  forget_over_budget(&forgotten);
  return {};
}

Status AdapterRegistry::remove(std::string_view name) {
  std::shared_ptr<const LoadedAdapter> removed;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const Entry* const found = find(name);
  if (found == nullptr) return unknown(name);
  bytes_ -= bytes_of(*found);
  const auto at = entries_.begin() + (found - entries_.data());
  removed = std::move(at->adapter);
  entries_.erase(at);
  return {};
}

void AdapterRegistry::set_budget(size_t bytes) {
  std::vector<Entry> forgotten;  // freed after the lock
  const std::lock_guard lock(mutex_);
  forgotten.reserve(entries_.size());
  budget_ = bytes;
  forget_over_budget(&forgotten);
}

size_t AdapterRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::string AdapterRegistry::name(size_t i) const {
  const std::lock_guard lock(mutex_);
  return i < entries_.size() ? entries_[i].name : std::string();
}

size_t AdapterRegistry::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

Status AdapterRegistry::choose(std::span<const AdapterChoice> choices,
                               std::vector<Chosen>* chosen) const {
  std::vector<const Entry*> named;
  named.reserve(choices.size());
  chosen->reserve(choices.size());
  const std::lock_guard lock(mutex_);
  for (const AdapterChoice& choice : choices) {
    const Entry* const entry = find(choice.name);
    if (entry == nullptr) return unknown(choice.name);
    named.push_back(entry);
    const float scale = entry->scale * choice.scale;
    if (!std::isfinite(scale)) {
      return error(Code::kInvalidArgument, "adapter \"%.64s\": scales %g and %g multiply to %g",
                   choice.name.c_str(), static_cast<double>(entry->scale),
                   static_cast<double>(choice.scale), static_cast<double>(scale));
    }
    if (scale != 0.0F) chosen->push_back({&choice.name, scale, entry->adapter});
  }
  if (chosen->size() > static_cast<size_t>(engine::kMaxMixed)) {
    return error(Code::kInvalidArgument, "%zu adapters for one request, of at most %d",
                 chosen->size(), engine::kMaxMixed);
  }
  for (const Chosen& each : *chosen) {
    if (chosen->size() == 1 || each.adapter->invocation_tokens.empty()) continue;
    return error(Code::kInvalidArgument,
                 "adapter \"%.64s\" is activated by its invocation tokens and cannot be mixed with "
                 "others",
                 each.name->c_str());
  }
  if (!named.empty()) ++uses_;
  for (const Entry* const entry : named) entry->used = uses_;
  return {};
}

Result<std::shared_ptr<const AdapterMix>> AdapterRegistry::mix(
    std::span<const AdapterChoice> choices) const {
  GEN_TRY(check_mix(choices));
  std::vector<Chosen> chosen;  // what it alone still holds is freed after the lock
  GEN_TRY(choose(choices, &chosen));
  if (chosen.empty()) return std::shared_ptr<const AdapterMix>();
  std::sort(chosen.begin(), chosen.end(), [](const Chosen& a, const Chosen& b) {
    return a.adapter->content != b.adapter->content ? a.adapter->content < b.adapter->content
                                                    : a.scale < b.scale;
  });
  Checksum sum;
  const auto mix = std::make_shared<AdapterMix>();
  for (const Chosen& each : chosen) {
    const LoadedAdapter& adapter = *each.adapter;
    sum.add_number(adapter.content);
    sum.add_number(std::bit_cast<uint32_t>(each.scale));
    mix->uses.push_back({adapter.matrices, each.scale});
    mix->invocation_tokens = adapter.invocation_tokens;
  }
  mix->identity = std::max<uint64_t>(sum.value(), 1);
  return std::shared_ptr<const AdapterMix>(mix);
}

}  // namespace gen::model
