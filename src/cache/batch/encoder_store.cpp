// SPDX-License-Identifier: Apache-2.0
// See encoder_store.h.
#include "cache/batch/encoder_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/to_size.h"
#include "base/checked.h"
#include "cache/batch/row_codec.h"
#include "tensor/half.h"

namespace gen::cache {
namespace {

Status check_rows(const char* what, const PutRows& rows, int32_t n, DType type) {
  if (rows.data == nullptr || rows.heads < 1 || rows.dim < 1 || n < 1) {
    return error(Code::kInvalidArgument, "%d rows of %s of %d heads of %d elements%s", n, what,
                 rows.heads, rows.dim, rows.data == nullptr ? " at NULL" : "");
  }
  size_t count = 0;
  if (!checked_mul(to_size(rows.heads), to_size(rows.dim), &count) || !checked_mul(count, to_size(n), &count)) {
    return error(Code::kOutOfMemory, "%d rows of %s of %d heads of %d elements overflow", n, what,
                 rows.heads, rows.dim);
  }
  const size_t unfit = first_unfit(type, rows.data, count);
  if (unfit == count) return {};
  return error(Code::kInvalidArgument, "element %zu of the %s is not finite", unfit, what);
}

}  // namespace

Status EncoderStore::in_pass() const {
  GEN_TRY(ready());
  return pass_ ? Status() : error(Code::kState, "no pass of the encoder cache was started");
}

Status EncoderStore::configure(const SequenceConfig& config) {
  if (config.padding > 1 && !begun() && !configured()) {
    return error(Code::kUnsupported, "a padding of %d: an encoder cache pads nothing",
                 config.padding);
  }
  return LoneStore::configure(config);
}

Status EncoderStore::prepare(const SequenceLimits& limits) {
  if (limits.max_sequences >= 1 && limits.capacity >= 1 && limits.max_batch >= 1) return {};
  return error(Code::kInvalidArgument,
               "%d sequences of %d entries, batches of %d: all must be 1 or more",
               limits.max_sequences, limits.capacity, limits.max_batch);
}

void EncoderStore::close() noexcept {
  LoneStore::close();
  links_.clear();
  copied_.clear();
  pass_.reset();
  planned_.reset();
}

/// Index of the first link at or after a position.
size_t EncoderStore::place_of(int32_t sequence, int32_t position) const noexcept {
  const auto found = std::lower_bound(
      links_.begin(), links_.end(), std::pair(sequence, position),
      [](const Link& l, const auto& key) { return std::pair(l.sequence, l.position) < key; });
  return static_cast<size_t>(found - links_.begin());
}

// --- A pass -------------------------------------------------------------------------------------

Status EncoderStore::plan_start(const SequenceBatch& batch) {
  GEN_TRY(ready());
  planned_.reset();
  GEN_TRY(check_batch(batch, limits().max_batch));
  Pass pass;
  pass.reserve = batch.reserve;
  pass.positions.assign(batch.positions.begin(), batch.positions.end());
  pass.sequences.assign(batch.sequences.begin(), batch.sequences.end());
  pass.except.assign(batch.positions.size(), 0);
  std::vector<int32_t> sequences;
  for (const Link& link : links_) sequences.push_back(link.sequence);
  for (const int32_t token : batch.multimodal) {
    pass.items.push_back({batch.sequences[to_size(token)], batch.positions[to_size(token)], nullptr});
    sequences.push_back(pass.items.back().sequence);
  }
  std::sort(sequences.begin(), sequences.end());
  const auto distinct = std::unique(sequences.begin(), sequences.end()) - sequences.begin();
  if (distinct > limits().max_sequences) {
    return error(Code::kCacheFull, "items of %zd sequences, %d may have some",
                 static_cast<ptrdiff_t>(distinct), limits().max_sequences);
  }
  planned_.emplace(std::move(pass));
  return {};
}

void EncoderStore::commit_start() noexcept { pass_ = std::exchange(planned_, std::nullopt); }

Result<std::unique_ptr<EncoderStore::Part>> EncoderStore::new_part(const PutRows& k,
                                                                   const PutRows& v,
                                                                   int32_t n) const {
  auto part = std::make_unique<Part>();
  part->rows = n;
  part->k_heads = k.heads;
  part->k_dim = k.dim;
  part->v_heads = v.heads;
  part->v_dim = v.dim;
  const size_t k_elements = to_size(k.heads) * to_size(k.dim);
  const size_t v_elements = to_size(v.heads) * to_size(v.dim);
  part->k_bytes = row_bytes(limits().type, k_elements);
  part->v_bytes = row_bytes(limits().type, v_elements);
  size_t k_bytes = 0;
  size_t v_bytes = 0;
  if (!checked_mul(part->k_bytes, to_size(n), &k_bytes) ||
      !checked_mul(part->v_bytes, to_size(n), &v_bytes)) {
    return error(Code::kOutOfMemory, "%d rows of %zu and %zu elements overflow", n, k_elements,
                 v_elements);
  }
  GEN_ASSIGN(part->k, Buffer::allocate(allocator(), k_bytes));
  GEN_ASSIGN(part->v, Buffer::allocate(allocator(), v_bytes));
  for (size_t i = 0; i < to_size(n); ++i) {
    encode_row(limits().type, k.data + i * k_elements, k_elements,
               part->k.data() + i * part->k_bytes);
    encode_row(limits().type, v.data + i * v_elements, v_elements,
               part->v.data() + i * part->v_bytes);
  }
  return part;
}

Status EncoderStore::check_same(const Part& part, const Part& other) {
  if (other.k_heads == part.k_heads && other.k_dim == part.k_dim && other.v_heads == part.v_heads &&
      other.v_dim == part.v_dim) {
    return {};
  }
  return error(Code::kInvalidArgument,
               "an item has keys of %d heads of %d elements and values of %d of %d, another %d of "
               "%d and %d of %d",
               part.k_heads, part.k_dim, part.v_heads, part.v_dim, other.k_heads, other.k_dim,
               other.v_heads, other.v_dim);
}

Status EncoderStore::check_part(const Part& part, int32_t sequence, const Item* but) const {
  for (size_t i = place_of(sequence, 0); i < links_.size() && links_[i].sequence == sequence; ++i) {
    const Part* other = links_[i].item->part(layer_index());
    if (other != nullptr && links_[i].item.get() != but) GEN_TRY(check_same(part, *other));
  }
  return {};
}

Status EncoderStore::put(const PutRows& k, const PutRows& v, int32_t n) {
  GEN_TRY(in_pass());
  GEN_TRY(check_rows("keys", k, n, limits().type));
  GEN_TRY(check_rows("values", v, n, limits().type));
  if (to_size(layer_index()) >= pass_->puts.size()) pass_->puts.resize(to_size(layer_index()) + 1);
  const size_t index = to_size(pass_->puts[to_size(layer_index())]);
  if (index >= pass_->items.size()) {
    return error(Code::kState, "the pass has %zu multimodal tokens, and layer %d all their items",
                 pass_->items.size(), layer_index());
  }
  Link& own = pass_->items[index];
  const size_t place = place_of(own.sequence, own.position);
  const bool taken = place < links_.size() && links_[place].sequence == own.sequence &&
                     links_[place].position == own.position;
  GEN_ASSIGN(auto part, new_part(k, v, n));
  GEN_TRY(check_part(*part, own.sequence, taken ? links_[place].item.get() : nullptr));
  const std::shared_ptr<Item> item = own.item != nullptr ? own.item : std::make_shared<Item>();
  if (to_size(layer_index()) >= item->layers.size()) item->layers.resize(to_size(layer_index()) + 1);
  if (own.item == nullptr && !pass_->reserve) {
    if (taken) {
      links_[place].item = item;
    } else {
      links_.insert(links_.begin() + static_cast<ptrdiff_t>(place),
                    Link{own.sequence, own.position, item});
    }
  }
  own.item = item;
  pass_->seen = {};
  item->layers[to_size(layer_index())] = std::move(part);
  ++pass_->puts[to_size(layer_index())];
  return {};
}

const EncoderStore::Seen& EncoderStore::find_seen() {
  if (pass_->seen.layer == layer_index()) return pass_->seen;
  Seen found;
  const auto has = [this](const Item* item) {
    return item != nullptr && item->part(layer_index()) != nullptr;
  };
  // Each item once, in the order of the links.
  std::vector<std::pair<const Item*, size_t>> places;
  const auto add = [&](const Item* item) {
    if (has(item)) places.emplace_back(item, places.size());
  };
  const size_t n = pass_->positions.size();
  if (pass_->reserve) {
    for (const Link& link : pass_->items) add(link.item.get());
  } else {
    std::vector<int32_t> sequences = pass_->sequences;
    std::sort(sequences.begin(), sequences.end());
    sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
    for (const int32_t sequence : sequences) {
      for (size_t i = place_of(sequence, 0); i < links_.size() && links_[i].sequence == sequence;
           ++i) {
        add(links_[i].item.get());
      }
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first; }),
               places.end());
  std::sort(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [item, place] : places) found.items.push_back(item);
  for (size_t i = 0; i < places.size(); ++i) places[i].second = i;
  std::sort(places.begin(), places.end());
  found.sees.assign(n * found.items.size(), pass_->reserve ? 1 : 0);
  for (size_t t = 0; t < n && !pass_->reserve; ++t) {
    const int32_t sequence = pass_->sequences[t];
    for (size_t i = place_of(sequence, 0); i < links_.size() && links_[i].sequence == sequence;
         ++i) {
      if (links_[i].position > pass_->positions[t] && pass_->except[t] == 0) break;
      if (!has(links_[i].item.get())) continue;
      const auto place = std::lower_bound(places.begin(), places.end(),
                                          std::pair<const Item*, size_t>(links_[i].item.get(), 0));
      found.sees[t * found.items.size() + place->second] = 1;
    }
  }
  found.layer = layer_index();
  pass_->seen = std::move(found);
  return pass_->seen;
}

Result<HistoryShape> EncoderStore::shape() {
  GEN_TRY(in_pass());
  HistoryShape shape;
  int64_t length = 0;
  const Seen& seen = find_seen();
  const std::vector<const Item*>& items = seen.items;
  if (items.empty()) return shape;
  for (const Item* item : items) {
    GEN_TRY(check_same(*items[0]->part(layer_index()), *item->part(layer_index())));
    length += item->part(layer_index())->rows;
  }
  const bool hidden = std::find(seen.sees.begin(), seen.sees.end(), 0) != seen.sees.end();
  if (length > INT32_MAX) return error(Code::kInvalidArgument, "items of too many rows");
  const Part& first = *items[0]->part(layer_index());
  const auto rows = static_cast<int32_t>(length);
  shape = {{first.k_dim, first.k_heads, rows}, {first.v_dim, first.v_heads, rows}, {0, 0}};
  if (config().permuted_v) {
    shape.v[0] = rows;
    shape.v[1] = first.v_dim;
    shape.v[2] = first.v_heads;
  }
  if (hidden) {
    shape.mask[0] = rows;
    shape.mask[1] = static_cast<int32_t>(pass_->positions.size());
  }
  return shape;
}

Status EncoderStore::get(float* k, float* v, void* mask) {
  GEN_ASSIGN(const HistoryShape shape, this->shape());
  const Seen& seen = find_seen();
  const std::vector<const Item*>& items = seen.items;
  if (items.empty()) return {};
  const auto length = to_size(shape.k[2]);
  const size_t k_elements = to_size(shape.k[0]) * to_size(shape.k[1]);
  const Part& any = *items[0]->part(layer_index());
  const size_t v_elements = to_size(any.v_dim) * to_size(any.v_heads);
  std::vector<float> row(config().permuted_v ? v_elements : 0);
  size_t first = 0;
  for (size_t which = 0; which < items.size(); ++which) {
    const Part& part = *items[which]->part(layer_index());
    for (size_t i = 0; i < to_size(part.rows); ++i) {
      if (k != nullptr) {
        decode_row(limits().type, part.k.data() + i * part.k_bytes, k_elements,
                   k + (first + i) * k_elements);
      }
      if (v == nullptr) continue;
      const std::byte* values = part.v.data() + i * part.v_bytes;
      if (!config().permuted_v) {
        decode_row(limits().type, values, v_elements, v + (first + i) * v_elements);
        continue;
      }
      decode_row(limits().type, values, v_elements, row.data());
      for (size_t e = 0; e < v_elements; ++e) v[e * length + first + i] = row[e];
    }
    for (size_t t = 0; mask != nullptr && t < to_size(shape.mask[1]); ++t) {
      const bool sees = seen.sees[t * items.size() + which] != 0;
      const float x = sees ? 0.0F : -std::numeric_limits<float>::infinity();
      const size_t begin = t * length + first;
      if (config().mask_type == DType::kF32) {
        std::fill_n(static_cast<float*>(mask) + begin, part.rows, x);
      } else {
        std::fill_n(static_cast<uint16_t*>(mask) + begin, part.rows, f32_to_f16(x));
      }
    }
    first += to_size(part.rows);
  }
  return {};
}

Status EncoderStore::set_causal(std::span<const int32_t> except) {
  GEN_TRY(in_pass());
  std::vector<uint8_t> flags(pass_->except.size(), 0);
  for (const int32_t token : except) {
    if (token < 0 || to_size(token) >= flags.size()) {
      return error(Code::kOutOfRange, "token %d outside a batch of %zu", token, flags.size());
    }
    flags[to_size(token)] = 1;
  }
  pass_->except = std::move(flags);
  pass_->seen = {};
  return {};
}

// --- Between passes -----------------------------------------------------------------------------

Status EncoderStore::plan_copy_prefix(int32_t src, int32_t dst, int32_t length) {
  GEN_TRY(ready());
  if (src < 0 || dst < 0 || length < 0) {
    return error(Code::kInvalidArgument, "a prefix of %d from sequence %d to %d", length, src, dst);
  }
  std::vector<Link> links;
  int32_t sequences = 0;
  for (const Link& link : links_) {
    if (link.sequence != dst || (src == dst && link.position < length)) links.push_back(link);
  }
  for (size_t i = place_of(src, 0); src != dst && i < place_of(src, length); ++i) {
    links.push_back({dst, links_[i].position, links_[i].item});
  }
  std::stable_sort(links.begin(), links.end(), [](const Link& a, const Link& b) {
    return std::pair(a.sequence, a.position) < std::pair(b.sequence, b.position);
  });
  for (size_t i = 0; i < links.size(); ++i) {
    sequences += i == 0 || links[i].sequence != links[i - 1].sequence ? 1 : 0;
  }
  if (sequences > limits().max_sequences) {
    return error(Code::kCacheFull, "items of %d sequences, %d may have some", sequences,
                 limits().max_sequences);
  }
  copied_ = std::move(links);
  return {};
}

void EncoderStore::commit_copy_prefix() noexcept {
  pass_.reset();
  links_ = std::move(copied_);
  copied_.clear();
}

Result<bool> EncoderStore::can_resume(int32_t /*sequence*/, int32_t position) const {
  GEN_TRY(ready());
  return position >= 0;
}

Status EncoderStore::plan_remove(int32_t sequence, int32_t begin, int32_t end) {
  GEN_TRY(ready());
  if (begin < 0 || end < begin) {
    return error(Code::kInvalidArgument, "positions [%d, %d) are no range", begin, end);
  }
  removal_ = {sequence, begin, end};
  return {};
}

void EncoderStore::commit_remove() noexcept {
  pass_.reset();
  const auto [sequence, begin, end] = removal_;
  std::erase_if(links_, [&, s = sequence, b = begin, e = end](const Link& link) {
    return link.sequence == s && link.position >= b && (link.position < e || e == INT32_MAX);
  });
  if (end == INT32_MAX) return;
  for (Link& link : links_) {
    if (link.sequence == sequence && link.position >= end) link.position += begin - end;
  }
}

Result<int32_t> EncoderStore::plan_compact(int32_t budget) {
  GEN_TRY(ready());
  if (budget < 0) return error(Code::kInvalidArgument, "a budget of %d moves", budget);
  return 0;
}

Result<bool> EncoderStore::encoder_cached(int32_t sequence) const {
  GEN_TRY(ready());
  const size_t place = place_of(sequence, 0);
  return place < links_.size() && links_[place].sequence == sequence;
}

MemoryUse EncoderStore::memory() const noexcept {
  MemoryUse use;
  use.metadata = sizeof(*this) + links_.capacity() * sizeof(Link);
  const auto count = [&](const Item& item) {
    use.metadata += sizeof(Item) + item.layers.capacity() * sizeof(item.layers[0]);
    for (const auto& part : item.layers) {
      if (part == nullptr) continue;
      use.metadata += sizeof(Part);
      use.resident += part->k.size() + part->v.size();
    }
  };
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto same = [&](const Link& link) { return link.item == links_[i].item; };
    const auto here = links_.begin() + static_cast<ptrdiff_t>(i);
    if (std::none_of(links_.begin(), here, same)) count(*links_[i].item);
  }
  use.payload = use.resident;
  // Items that are only reserved, or replaced by a later item of the pass, are held until the next
  // pass.
  for (size_t i = 0; pass_ && i < pass_->items.size(); ++i) {
    const std::shared_ptr<Item>& item = pass_->items[i].item;
    const auto same = [&](const Link& link) { return link.item == item; };
    if (item != nullptr && std::none_of(links_.begin(), links_.end(), same)) count(*item);
  }
  return use;
}

}  // namespace gen::cache
