// SPDX-License-Identifier: Apache-2.0
// See tiered_store.h.
#include "cache/tensor/tiered_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/to_size.h"

namespace gen::cache {
namespace {

int32_t or_default(int32_t value, int32_t otherwise) { return value > 0 ? value : otherwise; }

TierOptions with_defaults(TierOptions options) {
  options.chunk_size = or_default(options.chunk_size, TierOptions::kDefaultChunk);
  options.demote_threshold = or_default(options.demote_threshold, TierOptions::kDefaultDemote);
  options.promote_threshold = or_default(options.promote_threshold, TierOptions::kDefaultPromote);
  if (options.files == nullptr) options.files = &system_files();
  return options;
}

size_t elements(const TensorShape& shape) noexcept {
  return to_size(shape.batch) * to_size(shape.seq) * to_size(shape.dim);
}

Status too_large(const TensorShape& shape) {
  return error(Code::kOutOfMemory, "batch %d, dim %d and %d positions overflow a size", shape.batch,
               shape.dim, shape.seq);
}

}  // namespace

TieredStore::TieredStore(const TierOptions& options, const WarmForm& form, Allocator& allocator)
    : LayeredStore(options.num_layers, options.max_seq_len),
      options_(with_defaults(options)),
      form_(form),
      traits_{.kind = kKind, .lossy = form.lossy, .one_row_one_result = !form.lossy},
      allocator_(allocator),
      layers_(new Layer[to_size(options.num_layers)]),
      prefetcher_(options.num_layers) {}

Result<std::unique_ptr<TieredStore>> TieredStore::make(const TierOptions& options, bool existing,
                                                       Allocator& allocator) {
  GEN_TRY(check(options.num_layers, options.max_seq_len));
  if (options.num_layers < 1) {
    return Status(Code::kInvalidArgument, "a tiered cache of 0 layers: at least 1 is needed");
  }
  GEN_ASSIGN(const WarmForm* form, find_warm_form(options.warm));
  std::unique_ptr<TieredStore> made(new TieredStore(options, *form, allocator));
  const ColdFolder::Options folder = {made->options_.files, options.cold_dir, options.store_id};
  if (existing) {
    GEN_ASSIGN(made->cold_, ColdFolder::open(folder, options.num_layers));
  } else {
    GEN_ASSIGN(made->cold_, ColdFolder::create(folder, options.num_layers));
  }
  for (int32_t layer = 0; layer < options.num_layers; ++layer) {
    const ColdLayer found = made->cold_->layer(layer);
    if (found.form == nullptr) continue;
    if (found.shape.seq > options.max_seq_len) {
      return error(Code::kFormat, "'%.600s': layer %d has %d positions, more than %d",
                   made->folder().c_str(), layer, found.shape.seq, options.max_seq_len);
    }
    made->at(layer).tier = Tier::kCold;
    made->at(layer).lossy = found.form->lossy;
    if (found.form->lossy) made->traits_.lossy = true;
    made->advance(layer, {found.shape.batch, found.kept, found.shape.dim});
  }
  const auto fetch = [](void* store, int32_t layer) {
    static_cast<TieredStore*>(store)->fetch(layer);
  };
  GEN_TRY(made->prefetcher_.start(fetch, made.get()));
  return made;
}

Result<std::unique_ptr<TieredStore>> TieredStore::create(const TierOptions& options,
                                                         Allocator& allocator) {
  return make(options, false, allocator);
}

Result<std::unique_ptr<TieredStore>> TieredStore::open(const TierOptions& options,
                                                       Allocator& allocator) {
  return make(options, true, allocator);
}

TieredStore::~TieredStore() {
  if (cold_ == nullptr) return;
  try {
    static_cast<void>(close());  // the destructor of the folder tries again
  } catch (...) {                // no memory for the manifest; everything else is done
  }
}

Status TieredStore::check_open() const {
  return closed_ ? Status(Code::kState, "the tiered cache is closed") : Status();
}

Status TieredStore::check_layer(int32_t layer) const {
  if (has(layer)) return {};
  return error(Code::kOutOfRange, "layer %d outside a cache of %d layers", layer, num_layers());
}

TieredStore::AllLocked::AllLocked(const TieredStore& store) : store_(store) {
  for (int32_t layer = 0; layer < store_.num_layers(); ++layer) store_.at(layer).mutex.lock();
}

TieredStore::AllLocked::~AllLocked() {
  for (int32_t layer = 0; layer < store_.num_layers(); ++layer) store_.at(layer).mutex.unlock();
}

// --- one layer, with its mutex held

Status TieredStore::reserve_hot(const TensorShape& shape, HotLayer* hot) const {
  size_t half = sizeof(float);
  size_t bytes = 0;
  if (!checked_mul(half, to_size(shape.batch), &half) ||
      !checked_mul(half, to_size(max_seq_len()), &half) ||
      !checked_mul(half, to_size(shape.dim), &half) ||
      !checked_align_up(half, kBufferAlign, &half) || !checked_mul(half, size_t{2}, &bytes)) {
    return too_large({shape.batch, max_seq_len(), shape.dim});
  }
  return hot->reserve(bytes, allocator_, options_.device.get());
}

Status TieredStore::write_hot(const HotLayer& hot, const TensorShape& shape, int32_t start,
                              const void* k, const void* v) const {
  const size_t dim = to_size(shape.dim);
  const size_t count = to_size(shape.seq) * dim;
  size_t first = 0;
  for (const void* half : {k, v}) {
    for (size_t b = 0; b < to_size(shape.batch); ++b) {
      GEN_TRY(hot.write(first + (b * to_size(max_seq_len()) + to_size(start)) * dim,
                        static_cast<const std::byte*>(half) + b * count * sizeof(float), count));
    }
    first = hot.size() / sizeof(float) / 2;
  }
  return {};
}

Status TieredStore::encode(int32_t index, Buffer* coded, ColdLayer* what) const {
  const Layer& layer = at(index);
  what->form = &form_;
  what->chunk = options_.chunk_size;
  what->shape = held(index);
  what->kept = what->shape.seq;
  size_t lane = 0;
  size_t bytes = 0;
  if (!form_.lane_bytes(what->shape, what->chunk, &lane) ||
      !form_.layer_bytes(what->shape, what->chunk, &bytes)) {
    return too_large(what->shape);
  }
  const size_t count = to_size(what->shape.seq) * to_size(what->shape.dim);
  size_t stride = to_size(max_seq_len()) * to_size(what->shape.dim);
  const float* keys = layer.hot.host();
  const float* values = nullptr;
  Buffer dense;  // for a layer on a device
  if (keys != nullptr) {
    values = keys + layer.hot.size() / sizeof(float) / 2;
  } else {
    const size_t all = to_size(what->shape.batch) * count;
    GEN_ASSIGN(dense, Buffer::allocate(allocator_, 2 * all * sizeof(float)));
    GEN_TRY(copy_out(index, dense.as<float>(), dense.as<float>() + all));
    keys = dense.as<float>();
    values = keys + all;
    stride = count;
  }
  if (form_.finite_only) {
    for (size_t b = 0; b < to_size(what->shape.batch); ++b) {
      GEN_TRY(check_finite(index, keys + b * stride, values + b * stride, count));
    }
  }
  GEN_ASSIGN(*coded, Buffer::allocate(allocator_, bytes));
  std::memset(coded->data(), 0, bytes);  // unwritten bytes may go to a file as well
  std::byte* to = coded->data();
  for (const float* half : {keys, values}) {
    for (size_t b = 0; b < to_size(what->shape.batch); ++b, to += lane) {
      form_.encode(what->shape, what->chunk, half + b * stride, to);
    }
  }
  return {};
}

Status TieredStore::decode(int32_t index, float* k, float* v, size_t stride, bool exact) const {
  const Layer& layer = at(index);
  const bool cold = layer.tier == Tier::kCold;
  const ColdLayer coded = cold ? cold_->layer(index) : layer.coded;
  const TensorShape shape = coded.shape;
  size_t lane = 0;
  size_t bytes = 0;
  const bool fits = coded.form->lane_bytes(shape, coded.chunk, &lane) &&
                    coded.form->layer_bytes(shape, coded.chunk, &bytes);
  GEN_ASSERT(fits);  // the layer has been encoded before
  static_cast<void>(fits);
  Buffer file;
  if (cold) {
    GEN_ASSIGN(file, Buffer::allocate(allocator_, bytes));
    GEN_TRY(cold_->read(index, {file.data(), bytes}));
  }
  const size_t kept = to_size(held(index).seq) * to_size(shape.dim);
  Buffer whole;
  const bool partly = exact && held(index).seq < shape.seq;
  if (partly) {
    GEN_ASSIGN(whole, Buffer::allocate(allocator_,
                                       to_size(shape.seq) * to_size(shape.dim) * sizeof(float)));
  }
  const std::byte* from = cold ? file.data() : layer.warm.data();
  for (float* half : {k, v}) {
    for (size_t b = 0; b < to_size(shape.batch); ++b, from += lane) {
      if (half == nullptr) continue;
      float* to = half + b * stride;
      coded.form->decode(shape, coded.chunk, from, partly ? whole.as<float>() : to);
      if (partly) std::copy_n(whole.as<float>(), kept, to);
    }
  }
  return {};
}

Status TieredStore::copy_out(int32_t index, float* k, float* v) const {
  const Layer& layer = at(index);
  const TensorShape all = held(index);
  const size_t count = to_size(all.seq) * to_size(all.dim);
  if (layer.tier != Tier::kHot) return decode(index, k, v, count, true);
  const size_t stride = to_size(max_seq_len()) * to_size(all.dim);
  size_t from = 0;
  for (float* half : {k, v}) {
    for (size_t b = 0; half != nullptr && b < to_size(all.batch); ++b) {
      GEN_TRY(layer.hot.read(from + b * stride, half + b * count, count));
    }
    from = layer.hot.size() / sizeof(float) / 2;
  }
  return {};
}

Status TieredStore::step_down(int32_t index) {
  Layer& layer = at(index);
  const bool empty = held(index).seq == 0;
  if (layer.tier == Tier::kHot) {
    Buffer coded;
    ColdLayer what;
    if (!empty) GEN_TRY(encode(index, &coded, &what));
    layer.warm = std::move(coded);
    layer.coded = what;
    layer.hot.reset();
    if (!empty && form_.lossy) {
      layer.lossy = true;
      forget_copy(layer);
      note_change(index);
    }
    layer.tier = Tier::kWarm;
  } else if (layer.tier == Tier::kWarm) {
    if (!empty) {
      layer.coded.kept = held(index).seq;
      GEN_TRY(cold_->put(index, layer.coded, {layer.warm.data(), layer.warm.size()}));
    }
    layer.warm.reset();
    layer.tier = Tier::kCold;
  }
  return {};
}

Status TieredStore::step_up(int32_t index) {
  Layer& layer = at(index);
  if (layer.tier == Tier::kWarm) return to_hot(index);
  if (layer.tier == Tier::kHot) return {};
  if (held(index).seq > 0) {
    const ColdLayer coded = cold_->layer(index);
    GEN_ASSIGN(Buffer warm, Buffer::allocate(allocator_, static_cast<size_t>(coded.bytes)));
    GEN_TRY(cold_->read(index, {warm.data(), warm.size()}));
    GEN_TRY(cold_->drop(index));
    layer.warm = std::move(warm);
    layer.coded = coded;
  }
  layer.tier = Tier::kWarm;
  return {};
}

Status TieredStore::to_hot(int32_t index) {
  Layer& layer = at(index);
  if (layer.tier == Tier::kHot) return {};
  const TensorShape all = held(index);
  if (all.seq > 0) {
    HotLayer hot;
    GEN_TRY(reserve_hot(all, &hot));
    if (float* const keys = hot.host(); keys != nullptr) {
      float* const values = keys + hot.size() / sizeof(float) / 2;
      GEN_TRY(decode(index, keys, values, to_size(max_seq_len()) * to_size(all.dim), false));
    } else {
      const size_t count = elements(all);
      GEN_ASSIGN(const Buffer dense, Buffer::allocate(allocator_, 2 * count * sizeof(float)));
      auto* const k = dense.as<float>();
      GEN_TRY(copy_out(index, k, k + count));
      GEN_TRY(write_hot(hot, all, 0, k, k + count));
    }
    if (layer.tier == Tier::kCold) GEN_TRY(cold_->drop(index));
    layer.hot = std::move(hot);
  }
  layer.warm.reset();
  layer.tier = Tier::kHot;
  return {};
}

void TieredStore::forget_copy(Layer& layer) const noexcept {
  layer.copy.reset();
  layer.fetched = false;
}

// --- the store

Status TieredStore::update(int32_t index, const float* k, const float* v,
                           const TensorShape& shape) {
  GEN_TRY(check_layer(index));
  Layer& layer = at(index);
  const std::lock_guard lock(layer.mutex);
  GEN_TRY(check_open());
  GEN_TRY(check_update(index, shape));
  if (shape.seq == 0) return {};
  const TensorShape before = held(index);
  if (before.seq > 0) {
    GEN_TRY(to_hot(index));
  } else {
    GEN_TRY(reserve_hot(shape, &layer.hot));
  }
  GEN_TRY(write_hot(layer.hot, shape, before.seq, k, v));
  if (before.seq == 0) {
    layer.tier = Tier::kHot;
    layer.lossy = false;
  }
  ++layer.uses;
  forget_copy(layer);
  const std::lock_guard lengths(lengths_mutex_);
  advance(index, shape);
  return {};
}

TensorShape TieredStore::shape(int32_t layer) const noexcept {
  if (!has(layer)) return {};
  const std::lock_guard lock(at(layer).mutex);
  return LayeredStore::shape(layer);
}

Status TieredStore::get(int32_t index, float* k, float* v) const {
  GEN_TRY(check_open());
  if (!has(index) || (k == nullptr && v == nullptr)) return {};
  Layer& layer = at(index);
  const std::lock_guard lock(layer.mutex);
  GEN_TRY(check_open());
  if (held(index).seq > 0) {
    if (layer.fetched) {
      const size_t count = elements(layer.copy_shape);
      if (k != nullptr) std::copy_n(layer.copy.as<float>(), count, k);
      if (v != nullptr) std::copy_n(layer.copy.as<float>() + count, count, v);
      forget_copy(layer);
    } else {
      GEN_TRY(copy_out(index, k, v));
    }
  }
  ++layer.uses;
  return {};
}

Status TieredStore::truncate(int32_t n) {
  const AllLocked locks(*this);
  GEN_TRY(check_open());
  const int32_t keep = std::max(n, 0);
  std::vector<int32_t> kept(to_size(num_layers()));
  for (int32_t i = 0; i < num_layers(); ++i) kept[to_size(i)] = std::min(layer_seq_len(i), keep);
  GEN_TRY(cold_->keep(kept));
  for (int32_t i = 0; i < num_layers(); ++i) {
    if (layer_seq_len(i) <= keep) continue;
    forget_copy(at(i));
    if (keep > 0) continue;
    at(i).warm.reset();
    at(i).lossy = false;
  }
  const std::lock_guard lengths(lengths_mutex_);
  cut(keep);
  return {};
}

Status TieredStore::reset() {
  prefetcher_.clear();
  const AllLocked locks(*this);
  GEN_TRY(check_open());
  GEN_TRY(cold_->keep(std::vector<int32_t>(to_size(num_layers()), 0)));
  for (int32_t i = 0; i < num_layers(); ++i) {
    Layer& layer = at(i);
    forget_copy(layer);
    layer.warm.reset();
    layer.tier = Tier::kHot;
    layer.uses = 0;
    layer.lossy = false;
  }
  const std::lock_guard lengths(lengths_mutex_);
  cut(0);
  return {};
}

MemoryUse TieredStore::memory() const noexcept {
  MemoryUse use;
  use.metadata = sizeof(*this) + bookkeeping_bytes() + to_size(num_layers()) * sizeof(Layer) +
                 prefetcher_.queue_bytes() + cold_->metadata_bytes();
  for (int32_t i = 0; i < num_layers(); ++i) {
    const Layer& layer = at(i);
    const std::lock_guard lock(layer.mutex);
    use.resident += layer.hot.size() + layer.warm.size() + layer.copy.size();
    if (layer.tier == Tier::kHot) use.payload += 2 * sizeof(float) * elements(held(i));
    if (layer.tier == Tier::kWarm) use.payload += layer.warm.size();
  }
  return use;
}

Result<std::unique_ptr<TieredStore>> TieredStore::copied() const {
  TierOptions options = options_;
  options.store_id.clear();
  GEN_ASSIGN(auto copy, create(options, allocator_));
  const AllLocked locks(*this);
  GEN_TRY(check_open());
  for (int32_t i = 0; i < num_layers(); ++i) {
    const Layer& from = at(i);
    Layer& to = copy->at(i);
    to.uses = from.uses.load();
    const TensorShape all = held(i);
    if (all.seq > 0 && from.tier == Tier::kHot) {
      GEN_TRY(reserve_hot(all, &to.hot));
      const size_t n = to_size(all.seq) * to_size(all.dim);
      Buffer lane;  // for a layer on a device
      if (from.hot.host() == nullptr) {
        GEN_ASSIGN(lane, Buffer::allocate(allocator_, n * sizeof(float)));
      }
      for (const size_t half : {size_t{0}, size_t{1}}) {
        for (size_t b = 0; b < to_size(all.batch); ++b) {
          const size_t first = b * to_size(max_seq_len()) * to_size(all.dim);
          const size_t source = half * (from.hot.size() / sizeof(float) / 2) + first;
          const size_t target = half * (to.hot.size() / sizeof(float) / 2) + first;
          const float* rows = from.hot.host() != nullptr ? from.hot.host() + source : nullptr;
          if (rows == nullptr) {
            GEN_TRY(from.hot.read(source, lane.as<float>(), n));
            rows = lane.as<float>();
          }
          GEN_TRY(to.hot.write(target, rows, n));
        }
      }
    } else if (all.seq > 0) {
      ColdLayer coded = from.tier == Tier::kCold ? cold_->layer(i) : from.coded;
      coded.kept = all.seq;
      GEN_ASSIGN(Buffer bytes, Buffer::allocate(allocator_, from.tier == Tier::kCold
                                                                ? static_cast<size_t>(coded.bytes)
                                                                : from.warm.size()));
      if (from.tier == Tier::kCold) {
        GEN_TRY(cold_->read(i, {bytes.data(), bytes.size()}));
        GEN_TRY(copy->cold_->put(i, coded, {bytes.data(), bytes.size()}));
      } else {
        std::memcpy(bytes.data(), from.warm.data(), bytes.size());
        to.warm = std::move(bytes);
        to.coded = coded;
      }
    }
    to.lossy = from.lossy.load();
    to.tier = from.tier.load();
  }
  copy->traits_ = traits_;
  copy->copy_lengths(*this);
  return copy;
}

Result<std::unique_ptr<TensorProvider>> TieredStore::clone() const {
  GEN_ASSIGN(std::unique_ptr<TensorProvider> made, copied());
  return made;
}

Status TieredStore::save(StateWriter& to) const {
  GEN_TRY(check_open());  // an empty store has no layer that would check
  return LayeredStore::save(to);
}

Status TieredStore::restore(StateReader& from) {
  GEN_TRY(check_open());
  return LayeredStore::restore(from);
}

bool TieredStore::saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = 2 * sizeof(float);
  return checked_mul(*bytes, to_size(shape.batch), bytes) &&
         checked_mul(*bytes, to_size(shape.seq), bytes) &&
         checked_mul(*bytes, to_size(shape.dim), bytes);
}

Status TieredStore::save_layer(int32_t index, StateWriter& to) const {
  const std::lock_guard lock(at(index).mutex);
  GEN_TRY(check_open());
  const size_t count = elements(held(index));
  GEN_ASSIGN(const Buffer dense, Buffer::allocate(allocator_, 2 * count * sizeof(float)));
  GEN_TRY(copy_out(index, dense.as<float>(), dense.as<float>() + count));
  return to.write({dense.data(), 2 * count * sizeof(float)});
}

Status TieredStore::restore_layer(int32_t index, const TensorShape& shape,
                                  std::span<const std::byte> bytes) {
  Layer& layer = at(index);
  const std::lock_guard lock(layer.mutex);
  GEN_TRY(check_open());
  GEN_TRY(reserve_hot(shape, &layer.hot));
  GEN_TRY(write_hot(layer.hot, shape, 0, bytes.data(), bytes.data() + bytes.size() / 2));
  layer.tier = Tier::kHot;
  layer.lossy = false;
  forget_copy(layer);
  return {};
}

Tier TieredStore::tier(int32_t layer) const noexcept {
  return has(layer) ? at(layer).tier.load() : Tier::kHot;
}

int64_t TieredStore::access_count(int32_t layer) const noexcept {
  return has(layer) ? at(layer).uses.load() : 0;
}

bool TieredStore::is_lossy(int32_t layer) const noexcept { return has(layer) && at(layer).lossy; }

Status TieredStore::demote(int32_t layer) {
  GEN_TRY(check_layer(layer));
  const std::lock_guard lock(at(layer).mutex);
  GEN_TRY(check_open());
  return step_down(layer);
}

Status TieredStore::promote(int32_t layer) {
  GEN_TRY(check_layer(layer));
  const std::lock_guard lock(at(layer).mutex);
  GEN_TRY(check_open());
  return step_up(layer);
}

Status TieredStore::manage() {
  Status first;
  for (int32_t i = 0; i < num_layers(); ++i) {
    const std::lock_guard lock(at(i).mutex);
    GEN_TRY(check_open());
    const int64_t uses = at(i).uses.exchange(0);
    Status moved;
    if (uses < options_.demote_threshold && at(i).tier != Tier::kCold) {
      moved = step_down(i);
    } else if (uses >= options_.promote_threshold) {
      moved = step_up(i);
    }
    if (first.ok() && !moved.ok()) first = moved;
  }
  return first;
}

// --- prefetching

Status TieredStore::prefetch(std::span<const int32_t> layers) {
  GEN_TRY(check_open());
  prefetcher_.add(layers, [this](int32_t layer) {
    return has(layer) && at(layer).tier != Tier::kHot && !at(layer).fetched;
  });
  return {};
}

/// A failure here occurs again in get(), which reports it.
void TieredStore::fetch(int32_t index) {
  Layer& layer = at(index);
  const std::lock_guard lock(layer.mutex);
  if (closed_ || layer.tier == Tier::kHot || layer.fetched) return;
  const TensorShape all = held(index);
  if (all.seq == 0) return;
  const size_t count = elements(all);
  auto copy = Buffer::allocate(allocator_, 2 * count * sizeof(float));
  if (!copy.ok()) return;
  if (!copy_out(index, copy->as<float>(), copy->as<float>() + count).ok()) return;
  layer.copy = std::move(copy).value();
  layer.copy_shape = all;
  layer.fetched = true;
}

Status TieredStore::take_prefetched(int32_t index, float* k, size_t k_capacity, float* v,
                                    size_t v_capacity, TensorShape* shape) {
  *shape = {};
  GEN_TRY(check_open());
  if (!has(index)) return {};
  Layer& layer = at(index);
  const std::lock_guard lock(layer.mutex);
  GEN_TRY(check_open());
  if (!layer.fetched) return {};
  *shape = layer.copy_shape;
  if (k == nullptr && v == nullptr) return {};
  const size_t count = elements(layer.copy_shape);
  for (const auto& [to, capacity] : {std::pair{k, k_capacity}, std::pair{v, v_capacity}}) {
    if (to != nullptr && capacity < count) {
      return error(Code::kOutOfRange, "%zu elements do not fit a buffer of %zu", count, capacity);
    }
  }
  if (k != nullptr) std::copy_n(layer.copy.as<float>(), count, k);
  if (v != nullptr) std::copy_n(layer.copy.as<float>() + count, count, v);
  forget_copy(layer);
  return {};
}

void TieredStore::finish_prefetch() { prefetcher_.finish(); }

Status TieredStore::close() {
  prefetcher_.stop();
  const AllLocked locks(*this);
  closed_ = true;
  for (int32_t i = 0; i < num_layers(); ++i) {
    Layer& layer = at(i);
    forget_copy(layer);
    layer.hot.reset();
    layer.warm.reset();
  }
  return cold_->close();
}

}  // namespace gen::cache
