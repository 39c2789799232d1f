// SPDX-License-Identifier: Apache-2.0
// See layered_store.h.
#include "cache/tensor/layered_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "cache/limits.h"

namespace gen::cache {
namespace {

bool is_finite(float x) noexcept {
  constexpr uint32_t kExponent = 0x7F800000;
  return (std::bit_cast<uint32_t>(x) & kExponent) != kExponent;
}

/// Index of the first element that is not finite, or count.
size_t first_not_finite(const float* x, size_t count) noexcept {
  uint32_t found = 0;  // without a branch, so that the loop can be vectorised
  for (size_t i = 0; i < count; ++i) found |= is_finite(x[i]) ? 0U : 1U;
  if (found == 0) return count;
  size_t at = 0;
  while (is_finite(x[at])) ++at;
  return at;
}

/// As in a state, padded with zeros.
using FormName = std::array<char, 8>;
FormName form_name(const char* name) {
  FormName padded{};
  std::copy_n(name, std::min(std::strlen(name), padded.size()), padded.begin());
  return padded;
}

}  // namespace

Status LayeredStore::check(int32_t num_layers, int32_t max_seq_len) {
  if (num_layers < 0 || num_layers > kMaxLayers) {
    return error(Code::kInvalidArgument, "%d layers are outside [0, %d]", num_layers, kMaxLayers);
  }
  if (max_seq_len < 1) {
    return error(Code::kInvalidArgument, "max_seq_len %d is below 1", max_seq_len);
  }
  return {};
}

Status LayeredStore::check_update(int32_t layer, const TensorShape& shape) const {
  if (!has(layer)) {
    return error(Code::kOutOfRange, "layer %d outside a cache of %zu layers", layer,
                 lengths_.size());
  }
  if (shape.batch < 1 || shape.seq < 0 || shape.dim < 1) {
    return error(Code::kInvalidArgument, "shape [%d, %d, %d] is not [batch, seq, dim]", shape.batch,
                 shape.seq, shape.dim);
  }
  const TensorShape own = held(layer);
  if (own.seq > 0 && (own.batch != shape.batch || own.dim != shape.dim)) {
    return error(Code::kInvalidArgument,
                 "layer %d holds batch %d, dim %d; the update has batch %d, dim %d", layer,
                 own.batch, own.dim, shape.batch, shape.dim);
  }
  if (shape.seq > max_seq_len_ - own.seq) {
    return error(Code::kCacheFull, "layer %d holds %d of %d positions, no room for %d more", layer,
                 own.seq, max_seq_len_, shape.seq);
  }
  return {};
}

Status LayeredStore::check_finite(int32_t layer, const float* k, const float* v, size_t count) {
  for (const auto& [name, x] : {std::pair{"k", k}, std::pair{"v", v}}) {
    const size_t at = first_not_finite(x, count);
    if (at < count) {
      return error(Code::kInvalidArgument, "layer %d: %s[%zu] is %g, which this cache cannot keep",
                   layer, name, at, static_cast<double>(x[at]));
    }
  }
  return {};
}

TensorShape LayeredStore::held(int32_t layer) const noexcept {
  const Length& length = lengths_[static_cast<size_t>(layer)];
  return {length.batch, length.positions, length.dim};
}

TensorShape LayeredStore::shape(int32_t layer) const noexcept {
  if (layer_seq_len(layer) == 0) return {};
  return held(layer);
}

int32_t LayeredStore::layer_seq_len(int32_t layer) const noexcept {
  return has(layer) ? lengths_[static_cast<size_t>(layer)].positions.load() : 0;
}

uint64_t LayeredStore::changes(int32_t layer) const noexcept {
  return has(layer) ? lengths_[static_cast<size_t>(layer)].changes.load(std::memory_order_relaxed)
                    : 0;
}

void LayeredStore::advance(int32_t layer, const TensorShape& added) noexcept {
  Length& length = lengths_[static_cast<size_t>(layer)];
  length.batch = added.batch;
  length.dim = added.dim;
  length.positions += added.seq;
  note_change(layer);
  note_agreement();
}

void LayeredStore::cut_layer(int32_t layer, int32_t n) noexcept {
  Length& length = lengths_[static_cast<size_t>(layer)];
  if (length.positions == n) return;
  length.positions = n;
  note_change(layer);
}

void LayeredStore::settle() noexcept {
  int32_t least = agreed_;
  for (const Length& length : lengths_) least = std::min(least, length.positions.load());
  agreed_ = least;
  note_agreement();
}

void LayeredStore::cut(int32_t n) noexcept {
  const int32_t keep = std::max(n, 0);
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    cut_layer(layer, std::min(layer_seq_len(layer), keep));
  }
  settle();
}

void LayeredStore::grow_to(int32_t n, int32_t dim) noexcept {
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    Length& length = lengths_[static_cast<size_t>(layer)];
    if (n > 0 && length.batch == 0) length.batch = 1, length.dim = dim;
    cut_layer(layer, n);
  }
  note_agreement();
}

void LayeredStore::copy_lengths(const LayeredStore& from) noexcept {
  for (size_t i = 0; i < lengths_.size(); ++i) {
    const Length& source = from.lengths_[i];
    if (source.positions == 0) continue;  // the next write may have another shape
    lengths_[i].batch = source.batch;
    lengths_[i].dim = source.dim;
    lengths_[i].positions = source.positions.load();
  }
  agreed_ = from.agreed_.load();
}

Status LayeredStore::save(StateWriter& to) const {
  constexpr size_t kHeader = sizeof(FormName) + 3 * sizeof(int32_t);
  constexpr size_t kLayer = 4 * sizeof(int32_t);
  const auto header = [this](StateWriter& out) {
    const StateForm form = state_form();
    const FormName name = form_name(form.name);
    GEN_TRY(out.write(std::as_bytes(std::span(name))));
    return out.numbers({form.parameter, num_layers(), seq_len()});
  };
  GEN_TRY(to.section("TENS", kHeader, header));
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    TensorShape all = held(layer);
    if (all.seq == 0) all = {};
    size_t bytes = 0;
    if (all.seq > 0 && !saved_bytes(all, &bytes)) {
      return error(Code::kOutOfMemory, "layer %d overflows a size", layer);
    }
    const auto content = [this, layer, &all](StateWriter& out) {
      GEN_TRY(out.numbers({all.batch, all.seq, all.dim, ends_full(all) ? 1 : 0}));
      return all.seq > 0 ? save_layer(layer, out) : Status();
    };
    GEN_TRY(to.section("LAYR", kLayer + bytes, content));
  }
  return {};
}

Result<std::vector<LayeredStore::SavedLayer>> LayeredStore::read_layers(StateReader& from,
                                                                        int32_t* agreed) const {
  GEN_ASSIGN(StateSection header, from.section("TENS"));
  const StateForm own = state_form();
  int32_t parameter = 0;
  int32_t layers = 0;
  GEN_ASSIGN(const auto name, header.bytes(sizeof(FormName)));
  GEN_TRY(header.numbers({&parameter, &layers, agreed}));
  GEN_TRY(header.expect(0));
  FormName saved{};
  std::memcpy(saved.data(), name.data(), saved.size());
  if (saved != form_name(own.name) || parameter != own.parameter) {
    for (char& c : saved) c = c == '\0' || (c >= ' ' && c <= '~') ? c : '?';
    return error(Code::kInvalidArgument, "a state of form %.8s %d for a cache of form %s %d",
                 saved.data(), parameter, own.name, own.parameter);
  }
  if (layers != num_layers()) {
    return error(Code::kInvalidArgument, "a state of %d layers for a cache of %d", layers,
                 num_layers());
  }
  std::vector<SavedLayer> found;
  TensorShape one;  // shape of the last layer with positions
  bool agree = true;
  int32_t least = std::numeric_limits<int32_t>::max();
  for (int32_t layer = 0; layer < layers; ++layer) {
    GEN_ASSIGN(StateSection section, from.section("LAYR"));
    TensorShape shape;
    int32_t full = 0;
    GEN_TRY(section.numbers({&shape.batch, &shape.seq, &shape.dim, &full}));
    const int32_t least_size = shape.seq > 0 ? 1 : 0;
    if (shape.seq < 0 || shape.batch < least_size || shape.dim < least_size || full < 0 ||
        full > 1) {
      return error(Code::kFormat, "layer %d: shape [%d, %d, %d] is not [batch, seq, dim]", layer,
                   shape.batch, shape.seq, shape.dim);
    }
    if (shape.seq > max_seq_len_) {
      return error(Code::kCacheFull, "layer %d: a state of %d positions for a cache of %d", layer,
                   shape.seq, max_seq_len_);
    }
    if ((full != 0) != ends_full(shape)) {
      return error(
          Code::kInvalidArgument,
          "layer %d: %d positions fill one cache and not the other; both must hold as many", layer,
          shape.seq);
    }
    size_t bytes = 0;
    if (shape.seq > 0 && !saved_bytes(shape, &bytes)) {
      return error(Code::kFormat, "layer %d: shape [%d, %d, %d] overflows a size", layer,
                   shape.batch, shape.seq, shape.dim);
    }
    GEN_TRY(section.expect(bytes));
    GEN_ASSIGN(const auto payload, section.bytes(bytes));
    agree = agree && (found.empty() || shape.seq == found.front().shape.seq);
    least = std::min(least, shape.seq);
    found.push_back({shape, payload});
    if (shape.seq == 0) continue;
    if (one.seq > 0 && own.one_shape && (one.batch != shape.batch || one.dim != shape.dim)) {
      return error(Code::kInvalidArgument, "layer %d: batch %d, dim %d after batch %d, dim %d",
                   layer, shape.batch, shape.dim, one.batch, one.dim);
    }
    one = shape;
  }
  GEN_TRY(from.finish());
  const int32_t most = layers > 0 ? least : 0;
  if (*agreed < 0 || *agreed > most || (agree && *agreed != most)) {
    return error(Code::kFormat, "%d positions in common for layers of %d and more", *agreed, most);
  }
  return found;
}

Status LayeredStore::take_layers(std::span<const SavedLayer> layers) {
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    const SavedLayer& saved = layers[static_cast<size_t>(layer)];
    if (saved.shape.seq == 0) continue;
    GEN_TRY(restore_layer(layer, saved.shape, saved.bytes));
    lengths_[static_cast<size_t>(layer)].batch = saved.shape.batch;
    lengths_[static_cast<size_t>(layer)].dim = saved.shape.dim;
  }
  return {};
}

Status LayeredStore::restore(StateReader& from) {
  for (const Length& length : lengths_) GEN_ASSERT(length.positions == 0);
  int32_t agreed = 0;
  GEN_ASSIGN(const std::vector<SavedLayer> layers, read_layers(from, &agreed));
  Status status;
  try {
    status = take_layers(layers);
  } catch (...) {
    drop_restored();
    throw;
  }
  if (!status.ok()) {
    drop_restored();
    return status;
  }
  for (size_t i = 0; i < lengths_.size(); ++i) {
    lengths_[i].positions = layers[i].shape.seq;
    note_change(static_cast<int32_t>(i));
  }
  agreed_ = agreed;
  return {};
}

void LayeredStore::note_agreement() noexcept {
  if (lengths_.empty()) return;
  const int32_t first = lengths_[0].positions;
  for (const Length& length : lengths_) {
    if (length.positions != first) return;
  }
  agreed_ = first;
}

}  // namespace gen::cache
