// SPDX-License-Identifier: Apache-2.0
// See radix_cache.h.
#include "cache/prefix/radix_cache.h"

#include <algorithm>
#include <vector>

namespace gen::cache {
namespace {

Status pinned_error() { return {Code::kBusy, "a block to remove is pinned"}; }

}  // namespace

uint64_t block_hash(std::span<const int32_t> tokens) noexcept {
  uint64_t hash = 14695981039346656037U;
  for (const int32_t token : tokens) {
    const auto bits = static_cast<uint64_t>(int64_t{token});
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (bits >> shift & 0xFF)) * 1099511628211U;
    }
  }
  return hash;
}

class RadixCache::Entry {
 public:
  explicit Entry(const RadixCache& cache) {
    if (!cache.callbacks_->inside()) lock_ = std::unique_lock(cache.mutex_);
  }
  [[nodiscard]] Status entered() const {
    if (lock_.owns_lock()) return {};
    return {Code::kBusy, "the index is in use by the call that this callback belongs to"};
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

Result<std::unique_ptr<RadixCache>> RadixCache::create(int32_t block_size, int32_t max_blocks,
                                                       Hash hash) {
  if (block_size < 1 || max_blocks < 1) {
    return error(Code::kInvalidArgument,
                 "an index of at most %d blocks of %d tokens: both must be at least 1", max_blocks,
                 block_size);
  }
  return std::unique_ptr<RadixCache>(new RadixCache(block_size, max_blocks, hash));
}

RadixCache::Walk RadixCache::walk(Tokens tokens) noexcept {
  Walk walk{&tree_.root()};
  for (const size_t pieces = tree_.pieces(tokens.size()); walk.blocks < pieces; ++walk.blocks) {
    const Tokens piece = tree_.piece(tokens, walk.blocks);
    Node* const next = tree_.find(*walk.last, hash_(piece), piece);
    if (next == nullptr) break;
    walk.last = next;
    walk.tokens += piece.size();
  }
  return walk;
}

Status RadixCache::check_room(Ids* ids, size_t count) {
  ids->count = count;
  if (ids->to == nullptr || count <= ids->capacity) return {};
  return error(Code::kOutOfRange, "%zu ids do not fit a buffer of %zu", count, ids->capacity);
}

void RadixCache::tell(const Node& last, size_t count, Ids* ids) noexcept {
  if (ids->to == nullptr) return;
  const Node* node = &last;
  for (size_t i = count; i-- > 0; node = BlockTree::parent(*node)) ids->to[i] = node->id;
}

Status RadixCache::insert(Tokens tokens, Ids* ids) {
  ids->count = 0;
  const Entry entry(*this);
  GEN_TRY(entry.entered());
  const Walk known = walk(tokens);
  const size_t added = std::min(tree_.pieces(tokens.size()) - known.blocks,  //
                                tree_.room_below(*known.last));
  GEN_TRY(check_room(ids, known.blocks + added));
  std::vector<BlockTree::Piece> pieces;
  pieces.reserve(added);
  for (size_t i = 0; i < added; ++i) {
    const Tokens piece = tree_.piece(tokens, known.blocks + i);
    pieces.push_back({hash_(piece), piece});
  }
  BlockTree::Chain chain = tree_.prepare(*known.last, pieces);

  // Nothing below can fail.
  tree_.hold(*known.last);
  Node* last = known.last;
  for (auto& node : chain) {
    if (tree_.size() == tree_.max_blocks()) {
      drop(*tree_.oldest());
      ++stats_.evictions;
    }
    last = &tree_.add(*last, std::move(node));
  }
  tree_.release(*last);
  size_.store(tree_.size(), std::memory_order_relaxed);
  tell(*last, ids->count, ids);
  return {};
}

Status RadixCache::look_up(Tokens tokens, bool pins, size_t* matched, Ids* ids) {
  *matched = 0;
  ids->count = 0;
  const Entry entry(*this);
  GEN_TRY(entry.entered());
  const Walk found = walk(tokens);
  GEN_TRY(check_room(ids, found.blocks));
  *matched = found.tokens;
  tell(*found.last, found.blocks, ids);
  if (pins) {
    ++found.last->pins;
    tree_.hold(*found.last);
  } else {
    tree_.touch(*found.last);
    ++(found.tokens > 0 ? stats_.hits : stats_.misses);
  }
  return {};
}

Status RadixCache::unpin(Tokens tokens) {
  const Entry entry(*this);
  GEN_TRY(entry.entered());
  if (tokens.empty()) return {};  // as pin() if nothing matches
  const Walk found = walk(tokens);
  if (found.tokens != tokens.size() || found.last->pins == 0) {
    return error(Code::kState, "%zu tokens to unpin are not pinned", tokens.size());
  }
  --found.last->pins;
  tree_.release(*found.last);
  return {};
}

Status RadixCache::evict(int32_t* id) {
  *id = -1;
  const Entry entry(*this);
  GEN_TRY(entry.entered());
  Node* const oldest = tree_.oldest();
  if (oldest == nullptr) return {};
  *id = oldest->id;
  drop(*oldest);
  ++stats_.evictions;
  return {};
}

Status RadixCache::remove(Tokens tokens, size_t* removed) {
  *removed = 0;
  const Entry entry(*this);
  GEN_TRY(entry.entered());
  const Tokens rest = tokens.last(tokens.size() % tree_.block_size());
  const Walk before = walk(tokens.first(tokens.size() - rest.size()));
  if (before.tokens != tokens.size() - rest.size()) return {};
  if (rest.empty() && before.last != &tree_.root()) {
    if (BlockTree::held(*before.last)) return pinned_error();
    *removed = drop_from(*before.last);
    return {};
  }
  const auto begins = [rest](const std::unique_ptr<Node>& child) {
    return child->tokens.size() >= rest.size() &&
           std::equal(rest.begin(), rest.end(), child->tokens.begin());
  };
  const auto children = BlockTree::children(*before.last);
  const auto pinned = [&](const auto& child) { return begins(child) && BlockTree::held(*child); };
  if (std::any_of(children.begin(), children.end(), pinned)) return pinned_error();
  for (size_t i = children.size(); i-- > 0;) {
    const auto& child = BlockTree::children(*before.last)[i];
    if (begins(child)) *removed += drop_from(*child);
  }
  return {};
}

size_t RadixCache::drop_from(Node& top) noexcept {
  Node* node = &top;
  for (size_t count = 1;; ++count) {
    while (!BlockTree::children(*node).empty()) node = BlockTree::children(*node).back().get();
    Node* const above = node != &top ? BlockTree::parent(*node) : nullptr;
    drop(*node);
    if (above == nullptr) return count;
    node = above;
  }
}

void RadixCache::drop(Node& node) noexcept {
  const int32_t id = node.id;
  tree_.remove(node);
  size_.store(tree_.size(), std::memory_order_relaxed);
  if (on_free_ == nullptr) return;
  const Callbacks::Inside inside(*callbacks_);
  try {
    on_free_(user_, id);
  } catch (...) {  // the block is removed nevertheless
  }
}

Status RadixCache::stats(Stats* out) const {
  const Entry entry(*this);
  GEN_TRY(entry.entered());
  *out = stats_;
  return {};
}

Status RadixCache::set_on_free(OnFree call, void* user) {
  const Entry entry(*this);
  GEN_TRY(entry.entered());
  on_free_ = call;
  user_ = user;
  return {};
}

}  // namespace gen::cache
