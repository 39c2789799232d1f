// SPDX-License-Identifier: Apache-2.0
// See adapter_registry.h.
#include "model/adapter_registry.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/checksum.h"
#include "base/utf8.h"

namespace gen::model {
namespace {

struct Chosen {
  const std::string* name;
  float scale;
  std::shared_ptr<const LoadedAdapter> adapter;
};

Status unknown(std::string_view name) {
  return error(Code::kInvalidArgument, "no adapter is named \"%.*s\"",
               static_cast<int>(std::min<size_t>(name.size(), 64)), name.data());
}

}  // namespace

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

Status AdapterRegistry::put(std::string_view name, float scale,
                            std::shared_ptr<const LoadedAdapter> adapter) {
  GEN_TRY(check(name, scale));
  Entry entry{std::string(name), scale, std::move(adapter)};
  // The replaced adapter may be the last of its kind; it is freed after the lock.
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return each.name == entry.name; });
  if (found != entries_.end()) {
    std::swap(*found, entry);
  } else {
    entries_.push_back(std::move(entry));
  }
  return {};
}

Status AdapterRegistry::remove(std::string_view name) {
  std::shared_ptr<const LoadedAdapter> removed;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const Entry* const found = find(name);
  if (found == nullptr) return unknown(name);
  const auto at = entries_.begin() + (found - entries_.data());
  removed = std::move(at->adapter);
  entries_.erase(at);
  return {};
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
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.adapter->bytes;
  return bytes;
}

Result<std::shared_ptr<const AdapterMix>> AdapterRegistry::mix(
    std::span<const AdapterChoice> choices) const {
  std::vector<Chosen> chosen;
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string& name = choices[i].name;
    for (size_t j = 0; j < i; ++j) {
      if (choices[j].name != name) continue;
      return error(Code::kInvalidArgument, "adapter \"%.64s\" is given twice", name.c_str());
    }
    const std::lock_guard lock(mutex_);
    const Entry* const entry = find(name);
    if (entry == nullptr) return unknown(name);
    const float scale = entry->scale * choices[i].scale;
    if (!std::isfinite(scale)) {
      return error(Code::kInvalidArgument, "adapter \"%.64s\": scales %g and %g multiply to %g",
                   name.c_str(), static_cast<double>(entry->scale),
                   static_cast<double>(choices[i].scale), static_cast<double>(scale));
    }
    if (scale == 0.0F) continue;
    chosen.push_back({&name, scale, entry->adapter});
  }
  if (chosen.empty()) return std::shared_ptr<const AdapterMix>();
  if (chosen.size() > static_cast<size_t>(engine::kMaxMixed)) {
    return error(Code::kInvalidArgument, "%zu adapters for one request, of at most %d",
                 chosen.size(), engine::kMaxMixed);
  }
  for (const Chosen& each : chosen) {
    if (chosen.size() == 1 || each.adapter->invocation_tokens.empty()) continue;
    return error(Code::kInvalidArgument,
                 "adapter \"%.64s\" is activated by its invocation tokens and cannot be mixed with "
                 "others",
                 each.name->c_str());
  }
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
    char text[32];
    std::snprintf(text, sizeof text, "/%016llx*%08x",
                  static_cast<unsigned long long>(adapter.content),
                  std::bit_cast<uint32_t>(each.scale));
    mix->name += text;
    mix->uses.push_back({adapter.matrices, each.scale});
    mix->invocation_tokens = adapter.invocation_tokens;
  }
  mix->identity = std::max<uint64_t>(sum.value(), 1);
  return std::shared_ptr<const AdapterMix>(mix);
}

}  // namespace gen::model
