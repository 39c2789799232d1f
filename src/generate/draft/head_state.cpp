// SPDX-License-Identifier: Apache-2.0
// See head_state.h.
#include "generate/draft/head_state.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gen::generate {
namespace {

std::ptrdiff_t offset_of(size_t row, size_t width) {
  return static_cast<std::ptrdiff_t>(row * width);
}

// As truncate(). What a cache needs for a cut may be missing, and no draft is worth a failure.
bool cut_to(cache::KvCache& cache, size_t n) noexcept {
  try {
    return cache.truncate(static_cast<int32_t>(n)).ok();
  } catch (...) {
    return false;
  }
}

bool all_finite(std::span<const float> values) noexcept {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & kExponent);
  }
  return largest < kExponent;
}

}  // namespace

std::unique_ptr<DraftState> HeadState::fork() const {
  auto copy = std::make_unique<HeadState>(width, filled.size(), fingerprint);
  for (size_t i = 0; i < filled.size(); ++i) {
    if (filled[i].cache != nullptr) {
      auto forked = filled[i].cache->fork();
      if (!forked.ok()) return std::make_unique<HeadState>(width, filled.size(), fingerprint);
      copy->filled[i].cache = std::move(forked).value();
    }
    copy->filled[i].rows = filled[i].rows;
  }
  copy->base = base;
  copy->tokens = tokens;
  copy->waiting = waiting;
  copy->open = open;
  copy->unsure = unsure;
  return copy;
}

void HeadState::settle(std::span<const int32_t> path) noexcept {
  if (open == 0) return;
  const size_t first = tokens.size() - open;
  const size_t first_waiting = rows_waiting() - open;
  size_t kept = 0;
  for (const int32_t row : path) {
    if (row < 0 || static_cast<size_t>(row) >= open) break;
    tokens[first + kept] = tokens[first + static_cast<size_t>(row)];
    std::copy_n(waiting.begin() + offset_of(first_waiting + static_cast<size_t>(row), width), width,
                waiting.begin() + offset_of(first_waiting + kept, width));
    ++kept;
  }
  tokens.resize(first + kept);
  waiting.resize((first_waiting + kept) * width);
  open = 0;
}

std::vector<const cache::KvCache*> HeadState::own_caches() const {
  std::vector<const cache::KvCache*> caches;
  for (const Filled& of : filled) {
    if (of.cache != nullptr) caches.push_back(of.cache.get());
  }
  return caches;
}

void HeadState::settle_open() noexcept {
  constexpr int32_t kFirst = 0;
  settle({&kFirst, 1});
}

void HeadState::begin_at(int32_t position) noexcept {
  for (Filled& each : filled) {
    if (each.cache != nullptr && !cut_to(*each.cache, 0)) each.cache = nullptr;
    each.rows = 0;
  }
  base = position;
  tokens.clear();
  waiting.clear();
  open = 0;
  unsure = false;
}

bool HeadState::cut_cache(size_t head) noexcept {
  const Filled& of = filled[head];
  return of.cache == nullptr || cut_to(*of.cache, of.rows);
}

void HeadState::cut(size_t n) noexcept {
  const size_t dropped = tokens.size() - std::min(n, tokens.size());
  tokens.resize(tokens.size() - dropped);
  waiting.resize((rows_waiting() - std::min(dropped, rows_waiting())) * width);
  unsure = true;
  for (size_t i = 0; i < filled.size(); ++i) {
    filled[i].rows = std::min(filled[i].rows, tokens.size());
    if (cut_cache(i)) continue;
    return begin_at(base + static_cast<int32_t>(n));
  }
}

void HeadState::drop_unusable() noexcept {
  for (size_t row = rows_waiting(); row > 0; --row) {
    if (all_finite(std::span(waiting).subspan((row - 1) * width, width))) continue;
    const size_t seen = tokens.size() - rows_waiting() + row;
    tokens.erase(tokens.begin(), tokens.begin() + offset_of(seen, 1));
    waiting.erase(waiting.begin(), waiting.begin() + offset_of(row, width));
    base += static_cast<int32_t>(seen);
    for (Filled& each : filled) {
      if (each.cache != nullptr && !cut_to(*each.cache, 0)) each.cache = nullptr;
      each.rows = 0;
    }
    return;
  }
}

void HeadState::fill(size_t head, size_t rows) noexcept {
  filled[head].rows += rows;
  size_t least = filled[0].rows;
  for (const Filled& each : filled) least = std::min(least, each.rows);
  const size_t first = tokens.size() - rows_waiting();
  waiting.erase(waiting.begin(), waiting.begin() + offset_of(least - first, width));
}

bool HeadState::is_of(std::span<const int32_t> text) const noexcept {
  const auto first = static_cast<size_t>(base);
  return first + tokens.size() <= text.size() &&
         std::equal(tokens.begin(), tokens.end(), text.begin() + offset_of(first, 1));
}

// A tree that nobody settled is not of the text, and nothing is saved. Nor is what a cut has left
// where it took the features of the last row: no row of a head can follow.
Status HeadState::save(std::span<const int32_t> text, cache::StateWriter& to) const {
  if (fingerprint == 0 || tokens.empty() || !is_of(text)) return {};
  for (size_t i = 0; i < filled.size(); ++i) {
    if (rows_for(i) == 0) return {};
  }
  const auto has_entries = [](const Filled& of) { return of.cache != nullptr && of.rows > 0; };
  const auto contents = [&](cache::StateWriter& out) {
    GEN_TRY(out.number(fingerprint));
    GEN_TRY(out.numbers({base, static_cast<int32_t>(tokens.size()),
                         static_cast<int32_t>(rows_waiting()), static_cast<int32_t>(width),
                         static_cast<int32_t>(filled.size()), 0}));
    for (const Filled& of : filled) {
      GEN_TRY(out.numbers({static_cast<int32_t>(of.rows), static_cast<int32_t>(has_entries(of))}));
    }
    return out.write(std::as_bytes(std::span(waiting)));
  };
  const size_t bytes = sizeof(fingerprint) + (6 + 2 * filled.size()) * sizeof(int32_t) +
                       waiting.size() * sizeof(float);
  GEN_TRY(to.section(SavedHead::kSection, bytes, contents));
  for (const Filled& of : filled) {
    if (has_entries(of)) GEN_TRY(of.cache->save(to));
  }
  return {};
}

Result<SavedHead> SavedHead::read(cache::StateReader& from, int32_t evaluated) {
  constexpr int32_t kMostHeads = 64;
  GEN_ASSIGN(cache::StateSection section, from.section(kSection));
  SavedHead saved;
  int32_t n_waiting = 0;
  int32_t n_heads = 0;
  int32_t zero = 0;
  GEN_TRY(section.number(&saved.fingerprint));
  GEN_TRY(section.numbers({&saved.base, &saved.rows, &n_waiting, &saved.width, &n_heads, &zero}));
  const bool counted = saved.base >= 0 && saved.rows >= 1 && n_waiting >= 1 &&
                       n_waiting <= saved.rows && saved.rows <= evaluated - saved.base;
  if (!counted || saved.width < 1 || n_heads < 1 || n_heads > kMostHeads || zero != 0) {
    return error(Code::kFormat,
                 "%d heads with %d rows from position %d on, %d of them of %d features, for %d "
                 "tokens",
                 n_heads, saved.rows, saved.base, n_waiting, saved.width, evaluated);
  }
  std::vector<int32_t> with_entries(static_cast<size_t>(n_heads));
  saved.heads.resize(with_entries.size());
  for (size_t i = 0; i < with_entries.size(); ++i) {
    int32_t& rows = saved.heads[i].rows;
    GEN_TRY(section.numbers({&rows, &with_entries[i]}));
    if (rows >= saved.rows - n_waiting && rows < saved.rows && with_entries[i] >= 0 &&
        with_entries[i] <= 1) {
      continue;
    }
    return error(Code::kFormat, "head %zu has %d of %d rows, of which %d wait", i, rows, saved.rows,
                 n_waiting);
  }
  const size_t waiting =
      static_cast<size_t>(n_waiting) * static_cast<size_t>(saved.width) * sizeof(float);
  GEN_TRY(section.expect(waiting));
  GEN_ASSIGN(saved.waiting, section.bytes(waiting));
  for (size_t i = 0; i < with_entries.size(); ++i) {
    if (with_entries[i] == 0) continue;
    GEN_ASSIGN(saved.heads[i].entries, cache::read_entries(from));
    if (saved.heads[i].entries->entries == saved.heads[i].rows) continue;
    return error(Code::kFormat, "head %zu has a cache of %d entries for %d rows", i,
                 saved.heads[i].entries->entries, saved.heads[i].rows);
  }
  return saved;
}

}  // namespace gen::generate
