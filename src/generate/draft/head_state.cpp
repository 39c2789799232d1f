// SPDX-License-Identifier: Apache-2.0
// See head_state.h.
#include "generate/draft/head_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gen::generate {
namespace {

std::ptrdiff_t offset_of(size_t row, size_t width) {
  return static_cast<std::ptrdiff_t>(row * width);
}

}  // namespace

std::unique_ptr<DraftState> HeadState::fork() const {
  auto copy = std::make_unique<HeadState>(width, fingerprint);
  if (cache != nullptr) {
    auto forked = cache->fork();
    if (!forked.ok()) return copy;
    copy->cache = std::move(forked).value();
  }
  copy->base = base;
  copy->tokens = tokens;
  copy->waiting = waiting;
  copy->filled = filled;
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

void HeadState::settle_open() noexcept {
  constexpr int32_t kFirst = 0;
  settle({&kFirst, 1});
}

void HeadState::begin_at(int32_t position) noexcept {
  if (cache == nullptr || !cache->truncate(0).ok()) cache = nullptr;
  base = position;
  tokens.clear();
  waiting.clear();
  filled = 0;
  open = 0;
  unsure = false;
}

void HeadState::cut(size_t n) noexcept {
  const size_t dropped = tokens.size() - std::min(n, tokens.size());
  tokens.resize(tokens.size() - dropped);
  waiting.resize((rows_waiting() - std::min(dropped, rows_waiting())) * width);
  filled = std::min(filled, tokens.size());
  unsure = true;
  if (cache != nullptr && !cache->truncate(static_cast<int32_t>(filled)).ok()) {
    begin_at(base + static_cast<int32_t>(n));
  }
}

void HeadState::fill(size_t rows) noexcept {
  waiting.erase(waiting.begin(), waiting.begin() + offset_of(rows, width));
  filled += rows;
}

bool HeadState::is_of(std::span<const int32_t> text) const noexcept {
  const auto first = static_cast<size_t>(base);
  return first + tokens.size() <= text.size() &&
         std::equal(tokens.begin(), tokens.end(), text.begin() + offset_of(first, 1));
}

// A tree that nobody settled is not of the text, and nothing is saved.
Status HeadState::save(std::span<const int32_t> text, cache::StateWriter& to) const {
  if (fingerprint == 0 || tokens.empty() || !is_of(text)) return {};
  const bool entries = cache != nullptr && filled > 0;
  const auto contents = [&](cache::StateWriter& out) {
    GEN_TRY(out.number(fingerprint));
    GEN_TRY(out.numbers({base, static_cast<int32_t>(tokens.size()), static_cast<int32_t>(filled),
                         static_cast<int32_t>(width), static_cast<int32_t>(entries), 0}));
    return out.write(std::as_bytes(std::span(waiting)));
  };
  const size_t bytes = sizeof(fingerprint) + 6 * sizeof(int32_t) + waiting.size() * sizeof(float);
  GEN_TRY(to.section(SavedHead::kSection, bytes, contents));
  return entries ? cache->save(to) : Status();
}

Result<SavedHead> SavedHead::read(cache::StateReader& from, int32_t evaluated) {
  GEN_ASSIGN(cache::StateSection section, from.section(kSection));
  SavedHead saved;
  int32_t with_entries = 0;
  int32_t zero = 0;
  GEN_TRY(section.number(&saved.fingerprint));
  GEN_TRY(section.numbers(
      {&saved.base, &saved.rows, &saved.filled, &saved.width, &with_entries, &zero}));
  const bool counted = saved.base >= 0 && saved.rows >= 1 && saved.filled >= 0 &&
                       saved.filled < saved.rows && saved.rows <= evaluated - saved.base;
  if (!counted || saved.width < 1 || with_entries < 0 || with_entries > 1 || zero != 0) {
    return error(Code::kFormat,
                 "a head with %d rows from position %d on, %d of them in its cache, of %d features "
                 "for %d tokens",
                 saved.rows, saved.base, saved.filled, saved.width, evaluated);
  }
  const size_t waiting = static_cast<size_t>(saved.rows - saved.filled) *
                         static_cast<size_t>(saved.width) * sizeof(float);
  GEN_TRY(section.expect(waiting));
  GEN_ASSIGN(saved.waiting, section.bytes(waiting));
  if (with_entries == 0) return saved;
  GEN_ASSIGN(saved.entries, cache::read_entries(from));
  if (saved.entries->entries != saved.filled) {
    return error(Code::kFormat, "a head's cache of %d entries for %d rows", saved.entries->entries,
                 saved.filled);
  }
  return saved;
}

}  // namespace gen::generate
