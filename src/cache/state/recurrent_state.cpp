// SPDX-License-Identifier: Apache-2.0
// See recurrent_state.h.
#include "cache/state/recurrent_state.h"

#include <cstring>
#include <utility>

#include "cache/state/state_file.h"

namespace gen::cache {

class RecurrentState::Snapshot final : public StateSnapshot {
 public:
  [[nodiscard]] int32_t length() const noexcept override { return after; }

  std::shared_ptr<const StateLayout> layout;
  std::shared_ptr<Piece> piece;
  int32_t unsettled = 0;
  int32_t after = 0;
};

namespace {

constexpr const char* kSection = "RECU";

size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

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

}  // namespace

Result<std::shared_ptr<RecurrentState::Piece>> RecurrentState::new_piece(int64_t kept_rows) const {
  auto made = std::make_shared<Piece>();
  GEN_ASSIGN(made->cells, memory_.allocate(bytes_of(layout_->cells)));
  GEN_ASSIGN(made->kept, memory_.allocate(bytes_of(layout_->inputs * kept_rows)));
  return made;
}

RecurrentState::RecurrentState(std::shared_ptr<const StateLayout> layout,
                               engine::EngineMemory& memory) noexcept
    : layout_(std::move(layout)), memory_(memory) {}

RecurrentState::~RecurrentState() = default;

std::span<const StateShape> RecurrentState::shapes() const noexcept { return layout_->shapes; }

Result<StatePlan> RecurrentState::plan(int32_t n, Keep keep) {
  if (next_ == nullptr) {
    GEN_ASSIGN(next_, new_piece(0));
  }
  const size_t kept = keep == Keep::kSome ? bytes_of(layout_->inputs * n) : 0;
  if (kept > next_->kept.size()) {
    next_->kept.reset();
    GEN_ASSIGN(next_->kept, memory_.allocate(kept));
  }
  return StatePlan{length_, n, keep};
}

void RecurrentState::rows(const StatePlan& plan, engine::StateRows* rows) const noexcept {
  if (now_.piece != nullptr) {
    rows->read = now_.piece->cells.data().as<const float>();
    rows->kept = now_.piece->kept.data().as<const float>();
  }
  rows->unsettled = unsettled_;
  rows->write = next_->cells.data().as<float>();
  if (plan.keep == Keep::kSome) rows->keep = next_->kept.data().as<float>();
}

void RecurrentState::commit(const StatePlan& plan, Kept kept) noexcept {
  GEN_ASSERT(kept.rows == nullptr && plan.start == length_ && kept.n <= plan.count);
  if (kept.n == 0) return;
  GEN_ASSERT(plan.keep == Keep::kSome || kept.n == plan.count);
  std::swap(now_.piece, next_);
  if (std::exchange(now_.shared, false)) next_ = std::move(spare_);
  unsettled_ = plan.keep == Keep::kSome ? kept.n : 0;
  length_ += kept.n;
}

void RecurrentState::drop(const StatePlan& /*plan*/) noexcept {}

Result<int32_t> RecurrentState::rewind(int32_t n) {
  if (n >= length_) return length_;
  // Snapshots beyond the length belong to tokens that will be replaced.
  while (!snapshots_.empty() && snapshots_.back()->length() > n) snapshots_.pop_back();
  if (!snapshots_.empty()) {
    take(*snapshots_.back());
    return length_;
  }
  now_ = {};
  unsettled_ = length_ = 0;
  return 0;
}

void RecurrentState::take(const Snapshot& snapshot) noexcept {
  now_ = {snapshot.piece, true};
  unsettled_ = snapshot.unsettled;
  length_ = snapshot.length();
}

Result<std::unique_ptr<SequenceState>> RecurrentState::fork() {
  auto copy = std::make_unique<RecurrentState>(layout_, memory_);
  copy->snapshots_ = snapshots_;
  now_.shared = true;
  copy->now_ = now_;
  copy->unsettled_ = unsettled_;
  copy->length_ = length_;
  return std::unique_ptr<SequenceState>(std::move(copy));
}

Result<std::shared_ptr<const StateSnapshot>> RecurrentState::snapshot() {
  snapshots_.reserve(kSnapshots + 1);
  GEN_ASSIGN(auto made, new_snapshot());
  if (snapshots_.empty() || snapshots_.back() != made) snapshots_.push_back(made);
  if (snapshots_.size() > kSnapshots) snapshots_.erase(snapshots_.begin());
  return std::shared_ptr<const StateSnapshot>(std::move(made));
}

Result<std::shared_ptr<const StateSnapshot>> RecurrentState::share() {
  GEN_ASSIGN(auto made, new_snapshot());
  return std::shared_ptr<const StateSnapshot>(std::move(made));
}

Result<std::shared_ptr<const RecurrentState::Snapshot>> RecurrentState::new_snapshot() {
  if (!snapshots_.empty() && snapshots_.back()->length() == length_) return snapshots_.back();
  auto made = std::make_shared<Snapshot>();
  made->layout = layout_;
  made->piece = now_.piece;
  made->unsettled = unsettled_;
  made->after = length_;
  if (now_.piece != nullptr && !now_.shared && spare_ == nullptr) {
    GEN_ASSIGN(spare_, new_piece(0));
  }
  now_.shared = true;
  return std::shared_ptr<const Snapshot>(std::move(made));
}

Status RecurrentState::restore(std::shared_ptr<const StateSnapshot> snapshot) {
  auto own = std::dynamic_pointer_cast<const Snapshot>(std::move(snapshot));
  if (own == nullptr || own->layout->shapes != layout_->shapes) {
    return error(Code::kInvalidArgument, "a snapshot of another model's state");
  }
  std::vector<std::shared_ptr<const Snapshot>> list;
  list.reserve(kSnapshots + 1);
  take(*own);
  list.push_back(std::move(own));
  snapshots_ = std::move(list);
  return {};
}

Status RecurrentState::save(StateWriter& to) const {
  const std::vector<StateShape>& shapes = layout_->shapes;
  int64_t floats = 0;
  for (const StateShape& shape : shapes) {
    floats += length_ > 0 ? shape.cells + unsettled_ * shape.inputs : 0;
  }
  const size_t size = 3 * sizeof(int32_t) + shapes.size() * sizeof(StateShape) + bytes_of(floats);
  return to.section(kSection, size, [&](StateWriter& out) -> Status {
    GEN_TRY(out.numbers({length_, unsettled_, static_cast<int32_t>(shapes.size())}));
    GEN_TRY(out.write(std::as_bytes(std::span(shapes))));
    if (length_ == 0) return {};
    std::vector<float> cells(static_cast<size_t>(layout_->cells));
    std::vector<float> kept(static_cast<size_t>(layout_->inputs * unsettled_));
    const auto get = [&](std::vector<float>& values, const engine::EngineBuffer& from) {
      return memory_.read(values.data(), from.data(), values.size() * sizeof(float));
    };
    GEN_TRY(get(cells, now_.piece->cells));
    GEN_TRY(get(kept, now_.piece->kept));
    const auto put = [&](const std::vector<float>& values, int64_t row) {
      return [&out, &values, row](int64_t first, int64_t n) {
        const auto at = static_cast<size_t>(row + first);
        return out.write(std::as_bytes(std::span(values).subspan(at, static_cast<size_t>(n))));
      };
    };
    GEN_TRY(each_layer(*layout_, false, put(cells, 0)));
    for (int64_t i = 0; i < unsettled_; ++i) {
      GEN_TRY(each_layer(*layout_, true, put(kept, i * layout_->inputs)));
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
  int64_t floats = 0;
  for (const StateShape& shape : layout_->shapes) {
    StateShape saved;
    GEN_TRY(section.number(&saved.cells));
    GEN_TRY(section.number(&saved.inputs));
    if (saved != shape) {
      return error(Code::kInvalidArgument,
                   "the state has a recurrent layer of %lld cells, the model one of %lld",
                   static_cast<long long>(saved.cells), static_cast<long long>(shape.cells));
    }
    floats += length > 0 ? shape.cells + unsettled * shape.inputs : 0;
  }
  GEN_TRY(section.expect(bytes_of(floats)));
  if (length == 0) return {};
  std::vector<float> cells(static_cast<size_t>(layout_->cells));
  std::vector<float> kept(static_cast<size_t>(layout_->inputs * unsettled));
  const auto get = [&](std::vector<float>& values, int64_t row) {
    return [&section, &values, row](int64_t first, int64_t n) -> Status {
      GEN_ASSIGN(const auto bytes, section.bytes(bytes_of(n)));
      std::memcpy(values.data() + row + first, bytes.data(), bytes.size());
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
  now_ = {std::move(piece), false};
  unsettled_ = unsettled;
  length_ = length;
  return {};
}

}  // namespace gen::cache
