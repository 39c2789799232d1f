// SPDX-License-Identifier: Apache-2.0
// How recurrent states and their snapshots are saved: docs/state-format.md. See recurrent_state.h.
#include <cstring>
#include <utility>
#include <vector>

#include "cache/state/recurrent_state.h"
#include "cache/state/state_file.h"

namespace gen::cache {
namespace {

constexpr const char* kSection = "RECU";
constexpr const char* kListSection = "SNAP";

/// Calls visit(floats before, floats) for each layer of a state or of a kept row.
template <typename Visit>
Status each_layer(const StateLayout& layout, bool kept, const Visit& visit) {
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const StateShape& shape = layout.shapes[i];
    const engine::StateLayer& layer = layout.layers[i];
    GEN_TRY(kept ? visit(layer.kept, shape.inputs) : visit(layer.first, shape.cells));
  }
  return {};
}

/// What is written of a snapshot beside its memory.
struct SavedSnapshot {
  int32_t length = 0;
  int32_t unsettled = 0;
  int32_t place = 0;
  int32_t shares = 0;  // memory with the one before
};

}  // namespace

size_t RecurrentState::saved_bytes(int64_t unsettled) const noexcept {
  int64_t floats = 0;
  for (const StateShape& shape : layout_->shapes) floats += shape.cells + unsettled * shape.inputs;
  return float_bytes(floats);
}

// Without what lies between layers.
Status RecurrentState::write_piece(const Piece& piece, int64_t unsettled, StateWriter& out) const {
  std::vector<float> cells(static_cast<size_t>(layout_->cells));
  std::vector<float> kept(static_cast<size_t>(layout_->inputs * unsettled));
  const auto get = [&](std::vector<float>& values, const engine::EngineBuffer& from) {
    return memory_.read(values.data(), from.data(), values.size() * sizeof(float));
  };
  GEN_TRY(get(cells, piece.cells));
  GEN_TRY(get(kept, piece.kept));
  const auto put = [&](const std::vector<float>& values, int64_t row) {
    return [&out, &values, row](int64_t first, int64_t n) {
      const auto at = static_cast<size_t>(row + first);
      return out.write(std::as_bytes(std::span(values).subspan(at, static_cast<size_t>(n))));
    };
  };
  GEN_TRY(each_layer(*layout_, false, put(cells, 0)));
  for (int64_t i = 0; i < unsettled; ++i) {
    GEN_TRY(each_layer(*layout_, true, put(kept, i * layout_->inputs)));
  }
  return {};
}

Result<std::shared_ptr<RecurrentState::Piece>> RecurrentState::read_piece(
    int64_t unsettled, StateSection* from) const {
  // Held against what is there before memory is made for it.
  GEN_ASSIGN(const auto saved, from->bytes(saved_bytes(unsettled)));
  std::vector<float> cells(static_cast<size_t>(layout_->cells));
  std::vector<float> kept(static_cast<size_t>(layout_->inputs * unsettled));
  const std::byte* next = saved.data();
  const auto get = [&next](std::vector<float>& values, int64_t row) {
    return [&next, &values, row](int64_t first, int64_t n) -> Status {
      std::memcpy(values.data() + row + first, next, float_bytes(n));
      next += float_bytes(n);
      return {};
    };
  };
  GEN_TRY(each_layer(*layout_, false, get(cells, 0)));
  for (int64_t i = 0; i < unsettled; ++i) {
    GEN_TRY(each_layer(*layout_, true, get(kept, i * layout_->inputs)));
  }
  GEN_ASSIGN(auto piece, new_piece(unsettled));
  const auto put = [&](const engine::EngineBuffer& to, const std::vector<float>& values) {
    return memory_.write(to.data(), values.data(), values.size() * sizeof(float));
  };
  GEN_TRY(put(piece->cells, cells));
  GEN_TRY(put(piece->kept, kept));
  return piece;
}

Status RecurrentState::save(StateWriter& to) const {
  const std::vector<StateShape>& shapes = layout_->shapes;
  const size_t size = 3 * sizeof(int32_t) + shapes.size() * sizeof(StateShape) +
                      (length_ > 0 ? saved_bytes(unsettled_) : 0);
  const auto fill = [&](StateWriter& out) -> Status {
    GEN_TRY(out.numbers({length_, unsettled_, static_cast<int32_t>(shapes.size())}));
    GEN_TRY(out.write(std::as_bytes(std::span(shapes))));
    return length_ > 0 ? write_piece(*now_.piece, unsettled_, out) : Status();
  };
  GEN_TRY(to.section(kSection, size, fill));
  return save_list(to);
}

Status RecurrentState::save_list(StateWriter& to) const {
  const auto entries = snapshots_.entries();
  if (entries.empty()) return {};
  const auto snapshot = [&](size_t i) -> const Snapshot& {
    return static_cast<const Snapshot&>(*entries[i].snapshot);
  };
  const auto shares = [&](size_t i) {
    return i > 0 && i < entries.size() && snapshot(i).piece == snapshot(i - 1).piece;
  };
  size_t size = sizeof(int32_t) + entries.size() * sizeof(SavedSnapshot);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!shares(i + 1)) size += saved_bytes(snapshot(i).unsettled);
  }
  return to.section(kListSection, size, [&](StateWriter& out) -> Status {
    GEN_TRY(out.number(static_cast<int32_t>(entries.size())));
    for (size_t i = 0; i < entries.size(); ++i) {
      GEN_TRY(out.numbers({snapshot(i).length(), snapshot(i).unsettled,
                           static_cast<int32_t>(entries[i].place), shares(i) ? 1 : 0}));
    }
    // The last of those that share memory has the most rows.
    for (size_t i = 0; i < entries.size(); ++i) {
      if (!shares(i + 1)) GEN_TRY(write_piece(*snapshot(i).piece, snapshot(i).unsettled, out));
    }
    return {};
  });
}

Status RecurrentState::load(StateReader& from) {
  GEN_ASSIGN(StateSection section, from.section(kSection));
  int32_t length = 0;
  int32_t unsettled = 0;
  int32_t layers = 0;
  GEN_TRY(section.numbers({&length, &unsettled, &layers}));
  if (length < 0 || unsettled < 0 || unsettled > length) {
    return error(Code::kFormat, "a state after %d positions, %d of them kept apart", length,
                 unsettled);
  }
  if (std::cmp_not_equal(layers, layout_->shapes.size())) {
    return error(Code::kInvalidArgument, "the state has %d recurrent layers, the model %zu", layers,
                 layout_->shapes.size());
  }
  for (const StateShape& shape : layout_->shapes) {
    StateShape saved;
    GEN_TRY(section.number(&saved.cells));
    GEN_TRY(section.number(&saved.inputs));
    if (saved != shape) {
      return error(Code::kInvalidArgument,
                   "the state has a recurrent layer of %lld cells, the model one of %lld",
                   static_cast<long long>(saved.cells), static_cast<long long>(shape.cells));
    }
  }
  GEN_TRY(section.expect(length > 0 ? saved_bytes(unsettled) : 0));
  std::shared_ptr<Piece> piece;
  if (length > 0) {
    GEN_ASSIGN(piece, read_piece(unsettled, &section));
  }
  SnapshotList list;
  list.set_budget(snapshots_.budget());
  if (from.next_is(kListSection)) GEN_TRY(load_list(length, from, &list));
  snapshots_ = std::move(list);
  if (length == 0) return {};
  now_ = {std::move(piece), false};
  unsettled_ = unsettled;
  length_ = length;
  return {};
}

Status RecurrentState::load_list(int32_t length, StateReader& from, SnapshotList* list) const {
  GEN_ASSIGN(StateSection section, from.section(kListSection));
  int32_t count = 0;
  GEN_TRY(section.number(&count));
  std::vector<SavedSnapshot> all;
  for (int32_t i = 0; i < count; ++i) {
    SavedSnapshot one;
    GEN_TRY(section.numbers({&one.length, &one.unsettled, &one.place, &one.shares}));
    const SavedSnapshot before = all.empty() ? SavedSnapshot() : all.back();
    const bool shares = one.shares == 1 && !all.empty() &&
                        one.unsettled - before.unsettled == one.length - before.length;
    if (one.length <= before.length || one.length > length || one.unsettled < 0 ||
        one.unsettled > one.length || (one.shares != 0 && !shares) ||
        (one.place != static_cast<int32_t>(SnapshotPlace::kPlain) &&
         one.place != static_cast<int32_t>(SnapshotPlace::kBorder))) {
      return error(Code::kFormat, "snapshot %d of a state after %d positions is one after %d", i,
                   length, one.length);
    }
    all.push_back(one);
  }
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end].shares == 1) ++end;
    GEN_ASSIGN(const auto piece, read_piece(all[end - 1].unsettled, &section));
    for (; i < end; ++i) {
      auto made = std::make_shared<Snapshot>();
      made->layout = layout_;
      made->piece = piece;
      made->unsettled = all[i].unsettled;
      made->after = all[i].length;
      list->reserve(1);
      list->add(std::move(made), static_cast<SnapshotPlace>(all[i].place));
    }
  }
  return section.expect(0);
}

}  // namespace gen::cache
