// SPDX-License-Identifier: Apache-2.0
// MergeTable and WordMerger, see bpe_merges.h. A short word is scanned for its best pair each time,
// which beats the heap up to a few dozen bytes; long ones (an attacker's, or base64) use the heap.
#include "tokenizer/bpe_merges.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace gen::tokenizer {
namespace {

constexpr uint64_t kEmpty = UINT64_MAX;  // no pair of ids that are not negative
constexpr size_t kShortWord = 32;

uint64_t pair_of(int32_t left, int32_t right) noexcept {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(size_t count) {
  const size_t size = std::bit_ceil(std::max<size_t>(2 * count, 2));
  slots_.assign(size, {kEmpty, {kNoRank, -1}});
  shift_ = 64 - static_cast<uint32_t>(std::countr_zero(size));
}

size_t MergeTable::slot_of(uint64_t pair) const noexcept {
  uint64_t mixed = pair * 0x9E3779B97F4A7C15ULL;
  mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ULL;
  return static_cast<size_t>(mixed >> shift_);
}

void MergeTable::add(int32_t left, int32_t right, Merge merge) noexcept {
  const uint64_t pair = pair_of(left, right);
  size_t slot = slot_of(pair);
  while (slots_[slot].pair != kEmpty) {
    if (slots_[slot].pair == pair) return;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  slots_[slot] = {pair, merge};
}

Merge MergeTable::find(int32_t left, int32_t right) const noexcept {
  const uint64_t pair = pair_of(left, right);
  size_t slot = slot_of(pair);
  while (slots_[slot].pair != pair) {
    if (slots_[slot].pair == kEmpty) return {kNoRank, -1};
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slots_[slot].merge;
}

TokenIds ids_of(std::span<const std::string> tokens) {
  TokenIds ids;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) ids.emplace(tokens[i], static_cast<int32_t>(i));
  return ids;
}

Status read_merges(std::span<const std::string> merges, const TokenIds& ids, MergeTable* table) {
  const auto find = [&](std::string_view text) {
    const auto found = ids.find(text);
    return found == ids.end() ? -1 : found->second;
  };
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    // The first of the two is never empty, so a space at the very start belongs to it.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return error(Code::kFormat, "merge %zu is not two tokens", rank);
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    joined.assign(left).append(right);
    const int32_t left_id = find(left);
    const int32_t right_id = find(right);
    const int32_t joined_id = find(joined);
    if (left_id < 0 || right_id < 0 || joined_id < 0) {
      return error(Code::kFormat, "merge %zu: its %s is not in the vocabulary", rank,
                   left_id < 0    ? "left token"
                   : right_id < 0 ? "right token"
                                  : "result");
    }
    table->add(left_id, right_id, {static_cast<uint32_t>(rank), joined_id});
  }
  return {};
}

void WordMerger::finish(std::vector<int32_t>* out) {
  if (symbols_.size() <= kShortWord) {
    finish_short(out);
    return;
  }
  const auto count = static_cast<uint32_t>(symbols_.size());
  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    symbols_[i].previous = i == 0 ? kEnd : i - 1;
    symbols_[i].next = i + 1 == count ? kEnd : i + 1;
  }
  for (uint32_t i = 0; i + 1 < count; ++i) update(i);
  while (!heap_.empty()) {
    const uint64_t top = heap_.front();
    pop_heap();
    const auto index = static_cast<uint32_t>(top);
    Symbol& symbol = symbols_[index];
    if (symbol.merge.rank != static_cast<uint32_t>(top >> 32)) continue;
    // A rank belongs to one pair, so an old entry with the right rank is valid again.
    Symbol& gone = symbols_[symbol.next];
    symbol.token = symbol.merge.token;
    symbol.next = gone.next;
    gone.merge.rank = MergeTable::kNoRank;
    if (symbol.next != kEnd) symbols_[symbol.next].previous = index;
    update(index);
    if (symbol.previous != kEnd) update(symbol.previous);
  }
  for (uint32_t i = 0; i != kEnd; i = symbols_[i].next) out->push_back(symbols_[i].token);
}

void WordMerger::update(uint32_t index) {
  Symbol& symbol = symbols_[index];
  symbol.merge = symbol.next == kEnd ? Merge{MergeTable::kNoRank, -1}
                                     : table_->find(symbol.token, symbols_[symbol.next].token);
  if (symbol.merge.rank == MergeTable::kNoRank) return;
  heap_.push_back((uint64_t{symbol.merge.rank} << 32) | index);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void WordMerger::pop_heap() noexcept {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
}

void WordMerger::finish_short(std::vector<int32_t>* out) {
  size_t count = symbols_.size();
  for (size_t i = 0; i + 1 < count; ++i) {
    symbols_[i].merge = table_->find(symbols_[i].token, symbols_[i + 1].token);
  }
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (symbols_[i].merge.rank < symbols_[best].merge.rank) best = i;
    }
    if (symbols_[best].merge.rank == MergeTable::kNoRank) break;
    symbols_[best].token = symbols_[best].merge.token;
    std::move(symbols_.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              symbols_.begin() + static_cast<std::ptrdiff_t>(count),
              symbols_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --count;
    symbols_[best].merge = {MergeTable::kNoRank, -1};
    if (best + 1 < count) {
      symbols_[best].merge = table_->find(symbols_[best].token, symbols_[best + 1].token);
    }
    if (best > 0) {
      symbols_[best - 1].merge = table_->find(symbols_[best - 1].token, symbols_[best].token);
    }
  }
  for (size_t i = 0; i < count; ++i) out->push_back(symbols_[i].token);
}

}  // namespace gen::tokenizer
