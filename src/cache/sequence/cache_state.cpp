// SPDX-License-Identifier: Apache-2.0
// See cache_state.h. A layer is read and written by rows of tiles: sixteen entries of all heads,
// then the data that heads share.
#include "cache/sequence/cache_state.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "cache/limits.h"
#include "cache/sequence/cache_format.h"
#include "cache/sequence/staged_entries.h"

namespace gen::cache {
namespace {

using engine::KvOrder;

constexpr const char* kCacheSection = "CACH";
constexpr const char* kLayerSection = "LAYR";
constexpr const char* kWindowSection = "LAYW";  // a layer without its first entries
constexpr size_t kCacheNumbers = 3;
constexpr size_t kLayerNumbers = 10;

/// Entries of a layer in a state.
int32_t saved_of(const SavedLayer& layer, int32_t entries) { return entries - layer.first; }

/// False on overflow.
bool side_bytes(engine::KvFormat format, engine::KvOrder order, int32_t heads, int32_t dim,
                int32_t entries, size_t* bytes) {
  // An upper bound: no element takes more than four bytes, and padding at most triples a tile.
  size_t most = 16 * sizeof(float) * engine::kKvTile;
  if (!checked_mul(most, static_cast<size_t>(heads), &most) ||
      !checked_mul(most, static_cast<size_t>(dim) + 64, &most)) {
    return false;
  }
  return checked_mul(tile_rows(format, order, heads, dim).row_bytes, tile_count(entries), bytes);
}

bool layer_bytes(const SavedLayer& layer, int32_t entries, size_t* bytes) {
  const LayerShape& shape = layer.shape;
  size_t v = 0;
  entries = saved_of(layer, entries);
  return side_bytes(layer.k, engine::KvOrder::kKeys, shape.kv_heads, shape.k_dim, entries, bytes) &&
         side_bytes(layer.v, engine::KvOrder::kValues, shape.kv_heads, shape.v_dim, entries, &v) &&
         checked_add(*bytes, v, bytes);
}

Status save_side(KvCache& cache, int32_t layer, int32_t from, const CachePlan& plan, KvOrder order,
                 StateWriter& to) {
  GEN_ASSIGN(StagedSide side, StagedSide::create(cache, layer, plan, order));
  for (int32_t first = from; first < plan.start; first += StagedSide::kMost) {
    const int32_t n = std::min(plan.start - first, StagedSide::kMost);
    // Unused lanes are zeros, so that equal caches give equal states.
    GEN_ASSIGN(const auto bytes, side.read(first, n));
    GEN_TRY(to.write(bytes));
  }
  return {};
}

Status save_layer(const SavedLayer& layer, KvCache& cache, int32_t index, const CachePlan& plan,
                  StateWriter& to) {
  const LayerShape& shape = layer.shape;
  GEN_TRY(
      to.numbers({shape.kv_heads, shape.k_dim, shape.v_dim, shape.window,
                  static_cast<int32_t>(shape.rope), shape.rope_dims, static_cast<int32_t>(layer.k),
                  static_cast<int32_t>(layer.v), static_cast<int32_t>(layer.form), shape.chunk}));
  if (layer.first > 0) GEN_TRY(to.numbers({layer.first, 0}));
  GEN_TRY(save_side(cache, index, layer.first, plan, KvOrder::kKeys, to));
  return save_side(cache, index, layer.first, plan, KvOrder::kValues, to);
}

/// `bytes` hold the entries from `from` on; those of the plan are written to the cache.
Status restore_side(std::span<const std::byte> bytes, int32_t from, KvCache& cache, int32_t layer,
                    const CachePlan& plan, KvOrder order) {
  GEN_ASSIGN(StagedSide side, StagedSide::create(cache, layer, plan, order));
  const size_t row = side.rows().row_bytes;
  const int32_t end = plan.start + plan.count;
  for (int32_t first = std::max(plan.start, from); first < end;) {
    const int32_t skip = first % engine::kKvTile;  // entries of the tile that exist already
    const int32_t n = std::min(end - first, StagedSide::kMost - skip);
    const size_t tile = static_cast<size_t>((first - from) / engine::kKvTile);
    GEN_TRY(side.write(bytes.subspan(tile * row, tile_count(skip + n) * row), skip, first, n));
    first += n;
  }
  return {};
}

Status check_number(const char* what, size_t layer, int32_t value, int32_t least, int32_t most) {
  if (value >= least && value <= most) return {};
  return error(Code::kFormat, "layer %zu: %s %d outside [%d, %d]", layer, what, value, least, most);
}

Result<SavedLayer> read_layer(StateSection& section, size_t index, bool is_window,
                              int32_t entries) {
  constexpr int32_t kAny = std::numeric_limits<int32_t>::max();
  SavedLayer layer;
  const struct {
    const char* what;
    int32_t least;
    int32_t most;
  } limits[kLayerNumbers] = {
      {"kv heads", 1, kAny},
      {"key elements", 1, kAny},
      {"value elements", 1, kAny},
      {"window", 0, kAny},
      {"rope kind", 0, static_cast<int32_t>(engine::RopeKind::kHalves)},
      {"rope elements", 0, kAny},
      {"key format", 0, engine::kKvFormats - 1},
      {"value format", 0, engine::kKvFormats - 1},
      {"key form", 0, static_cast<int32_t>(engine::KeyForm::kHadamard)},
      {"chunk", 0, kAny},
  };
  int32_t numbers[kLayerNumbers];
  for (size_t i = 0; i < kLayerNumbers; ++i) {
    GEN_TRY(section.number(&numbers[i]));
    GEN_TRY(check_number(limits[i].what, index, numbers[i], limits[i].least, limits[i].most));
  }
  layer.shape.kv_heads = numbers[0];
  layer.shape.k_dim = numbers[1];
  layer.shape.v_dim = numbers[2];
  layer.shape.window = numbers[3];
  layer.shape.rope = static_cast<engine::RopeKind>(numbers[4]);
  layer.shape.rope_dims = numbers[5];
  layer.shape.chunk = numbers[9];
  layer.k = static_cast<engine::KvFormat>(numbers[6]);
  layer.v = static_cast<engine::KvFormat>(numbers[7]);
  layer.form = static_cast<engine::KeyForm>(numbers[8]);
  if (!is_window) return layer;
  int32_t zero = 0;
  GEN_TRY(section.numbers({&layer.first, &zero}));
  GEN_TRY(check_number("first entry", index, layer.first, engine::kKvTile, entries));
  GEN_TRY(check_number("first entry's lane", index, layer.first % engine::kKvTile, 0, 0));
  GEN_TRY(check_number("a number that is always 0,", index, zero, 0, 0));
  return layer;
}

const char* format_name(engine::KvFormat format) {
  for (const CacheKind& kind : cache_kinds()) {
    if (kind.format == format) return kind.name;
  }
  return "unknown";
}

const char* form_name(engine::KeyForm form) {
  constexpr const char* kFormNames[] = {"rotated", "unrotated", "hadamard"};
  return kFormNames[static_cast<int32_t>(form)];
}

Status check_same_name(size_t layer, const char* what, const char* saved, const char* own) {
  if (std::string_view(saved) == own) return {};
  return error(Code::kInvalidArgument, "the state's layer %zu has %s %s, the cache's has %s", layer,
               what, saved, own);
}

Status check_same(const SavedLayer& saved, const LayerShape& shape, const engine::KvLayer& own,
                  size_t layer) {
  if (const ShapeDifference found = shape_difference(saved.shape, shape)) {
    return error(Code::kInvalidArgument, "the state's layer %zu has %s %d, the cache's has %d",
                 layer, found.what, found.first, found.second);
  }
  GEN_TRY(check_same_name(layer, "key format", format_name(saved.k), format_name(own.k.format)));
  GEN_TRY(check_same_name(layer, "value format", format_name(saved.v), format_name(own.v.format)));
  return check_same_name(layer, "key form", form_name(saved.form), form_name(own.key_form));
}

/// Restores as many entries as fit into one plan. A failure commits nothing.
Status restore_some(const SavedEntries& saved, int32_t count, KvCache& cache) {
  GEN_ASSIGN(const CachePlan plan, cache.plan(count));
  for (size_t i = 0; i < saved.layers.size(); ++i) {
    const SavedLayer& layer = saved.layers[i];
    size_t k_bytes = 0;
    const bool fits = side_bytes(layer.k, engine::KvOrder::kKeys, layer.shape.kv_heads,
                                 layer.shape.k_dim, saved_of(layer, saved.entries), &k_bytes);
    GEN_ASSERT(fits && plan.start + plan.count <= saved.entries);
    const auto index = static_cast<int32_t>(i);
    GEN_TRY(restore_side(saved.payloads[i].first(k_bytes), layer.first, cache, index, plan,
                         KvOrder::kKeys));
    GEN_TRY(restore_side(saved.payloads[i].subspan(k_bytes), layer.first, cache, index, plan,
                         KvOrder::kValues));
  }
  cache.commit(plan);
  return {};
}

}  // namespace

Status save_entries(KvCache& cache, StateWriter& to) {
  GEN_ASSIGN(const CachePlan plan, cache.plan(0));
  if (plan.start != cache.length()) {
    return error(Code::kUnsupported, "a %s cache of %d entries for %d positions cannot be saved",
                 cache.traits().kind, plan.start, cache.length());
  }
  const auto layers = static_cast<int32_t>(cache.layers().size());
  const auto header = [&](StateWriter& out) {
    return out.numbers({layers, cache.length(), plan.start});
  };
  GEN_TRY(to.section(kCacheSection, kCacheNumbers * sizeof(int32_t), header));
  for (int32_t i = 0; i < layers; ++i) {
    const engine::KvLayer& form = cache.kv_layers()[static_cast<size_t>(i)];
    GEN_ASSIGN(const engine::KvTables tables, cache.tables(form.part, plan));
    if (tables.first_cell > 0) {
      return error(Code::kUnsupported, "layer %d no longer holds the positions before %d", i,
                   tables.first_cell);
    }
    const SavedLayer layer{cache.layers()[static_cast<size_t>(i)], form.k.format, form.v.format,
                           form.key_form, cache.saves_from(i)};
    const bool is_window = layer.first > 0;
    size_t bytes = 0;
    if (!layer_bytes(layer, plan.start, &bytes)) {
      return error(Code::kOutOfMemory, "layer %d overflows a size", i);
    }
    const auto content = [&](StateWriter& out) { return save_layer(layer, cache, i, plan, out); };
    const size_t numbers = kLayerNumbers + (is_window ? 2 : 0);
    GEN_TRY(to.section(is_window ? kWindowSection : kLayerSection,
                       numbers * sizeof(int32_t) + bytes, content));
  }
  return {};
}

Result<SavedEntries> read_entries(StateReader& from) {
  if (from.next_is(kPoolSection)) {
    return Status(Code::kInvalidArgument, "the state is of a compressed cache, and this is none");
  }
  GEN_ASSIGN(StateSection header, from.section(kCacheSection));
  int32_t layers = 0;
  int32_t positions = 0;
  SavedEntries saved;
  GEN_TRY(header.numbers({&layers, &positions, &saved.entries}));
  GEN_TRY(header.expect(0));
  if (layers < 0 || layers > kMaxLayers || saved.entries < 0 || positions != saved.entries) {
    return error(Code::kFormat, "a cache of %d layers and %d entries for %d positions", layers,
                 saved.entries, positions);
  }
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
    const bool is_window = from.next_is(kWindowSection);
    GEN_ASSIGN(StateSection section, from.section(is_window ? kWindowSection : kLayerSection));
    GEN_ASSIGN(const SavedLayer layer, read_layer(section, i, is_window, saved.entries));
    size_t bytes = 0;
    if (!layer_bytes(layer, saved.entries, &bytes)) {
      return error(Code::kFormat, "layer %zu: %d entries of %d heads overflow a size", i,
                   saved.entries, layer.shape.kv_heads);
    }
    GEN_TRY(section.expect(bytes));
    GEN_ASSIGN(const auto payload, section.bytes(bytes));
    saved.layers.push_back(layer);
    saved.payloads.push_back(payload);
  }
  return saved;
}

Status check_entries(const SavedEntries& saved, KvCache& cache) {
  GEN_ASSERT(cache.length() == 0);
  if (saved.layers.size() != cache.layers().size()) {
    return error(Code::kInvalidArgument, "the state has %zu layers, the cache %zu",
                 saved.layers.size(), cache.layers().size());
  }
  if (saved.entries > cache.capacity()) {
    return error(Code::kCacheFull, "a state of %d entries for a cache of at most %d", saved.entries,
                 cache.capacity());
  }
  for (size_t i = 0; i < saved.layers.size(); ++i) {
    GEN_TRY(check_same(saved.layers[i], cache.layers()[i], cache.kv_layers()[i], i));
    const int32_t behind = cache.keeps_behind(static_cast<int32_t>(i));
    if (saved.layers[i].first <= KvCache::first_kept(saved.entries, behind)) continue;
    return error(Code::kInvalidArgument,
                 "the state's layer %zu lacks the first %d positions, which this cache keeps: its "
                 "session kept windows only (window_rewind)",
                 i, saved.layers[i].first);
  }
  return {};
}

Status restore_entries(const SavedEntries& saved, KvCache& cache) {
  // As a session evaluates them: layers with windows give blocks back between plans.
  int32_t most = std::min(cache.plan_limit(), engine::kKvChunk);
  while (cache.length() < saved.entries) {
    const int32_t count = std::min(saved.entries - cache.length(), most);
    Status status;
    try {
      status = restore_some(saved, count, cache);
    } catch (...) {
      static_cast<void>(cache.truncate(0));
      throw;
    }
    if (status.code() == Code::kPoolExhausted && most > engine::kKvTile) {
      most /= 2;
      continue;
    }
    if (!status.ok()) {
      static_cast<void>(cache.truncate(0));
      return status;
    }
    // What the state lacks takes no blocks either.
    for (size_t i = 0; i < saved.layers.size(); ++i) {
      const int32_t first = std::min(saved.layers[i].first, cache.length());
      cache.set_first_held(static_cast<int32_t>(i), first);
    }
  }
  return {};
}

Status KvCache::save(StateWriter& to) { return save_entries(*this, to); }

Status KvCache::restore(StateReader& from) {
  GEN_ASSIGN(const SavedEntries saved, read_entries(from));
  GEN_TRY(from.finish());
  GEN_TRY(check_entries(saved, *this));
  return restore_entries(saved, *this);
}

Result<SavedChunks> read_chunks(StateReader& from) {
  SavedChunks saved;
  GEN_ASSIGN(StateSection header, from.section(kPoolSection));
  GEN_TRY(header.numbers({&saved.chunk, &saved.positions}));
  GEN_TRY(header.expect(0));
  GEN_ASSIGN(saved.entries, read_entries(from));
  GEN_ASSIGN(saved.kept, read_entries(from));
  const int32_t chunk = saved.chunk;
  const int32_t kept = saved.kept.entries;
  if (chunk < 1 || saved.positions < 0 ||
      saved.entries.entries != saved.positions / chunk + saved.positions % chunk ||
      (kept != 0 && (kept != chunk || saved.positions < chunk))) {
    return error(Code::kFormat, "%d entries and %d rows for %d positions in chunks of %d",
                 saved.entries.entries, kept, saved.positions, chunk);
  }
  return saved;
}

Result<SavedOutline> saved_outline(StateReader from) {
  SavedOutline outline;
  SavedEntries entries;
  if (from.next_is(kPoolSection)) {
    GEN_ASSIGN(SavedChunks saved, read_chunks(from));
    entries = std::move(saved.entries);
    outline.positions = saved.positions;
    outline.chunk = saved.chunk;
    outline.capacity = std::max(saved.positions, saved.chunk);
  } else {
    GEN_ASSIGN(entries, read_entries(from));
    outline.positions = outline.capacity = entries.entries;
  }
  GEN_TRY(from.finish());
  for (const SavedLayer& layer : entries.layers) outline.layers.push_back(layer.shape);
  return outline;
}

}  // namespace gen::cache
