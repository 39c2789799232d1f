// SPDX-License-Identifier: Apache-2.0
// See recurrent_state.h.
#include "cache/state/recurrent_state.h"

#include <algorithm>
#include <utility>

namespace gen::cache {

namespace {

// A pass of so few rows may always keep them.
constexpr int64_t kFewRows = 16;
// As many as drafts have rows at most.
constexpr int64_t kMostRows = 63;

}  // namespace

Result<std::shared_ptr<RecurrentState::Piece>> RecurrentState::new_piece(int64_t kept_rows) const {
  auto made = std::make_shared<Piece>();
  GEN_ASSIGN(made->cells, memory_.allocate(float_bytes(layout_->cells)));
  GEN_ASSIGN(made->kept, memory_.allocate(float_bytes(layout_->inputs * kept_rows)));
  return made;
}

RecurrentState::RecurrentState(std::shared_ptr<const StateLayout> layout,
                               engine::EngineMemory& memory) noexcept
    : layout_(std::move(layout)), memory_(memory) {}

RecurrentState::~RecurrentState() = default;

std::span<const StateShape> RecurrentState::shapes() const noexcept { return layout_->shapes; }

Result<StatePlan> RecurrentState::plan(int32_t n, Keep keep, int32_t certain) {
  if (next_ == nullptr) {
    GEN_ASSIGN(next_, new_piece(0));
  }
  const size_t kept = keep == Keep::kSome ? float_bytes(layout_->inputs * (n - certain)) : 0;
  if (kept > next_->kept.size()) {
    next_->kept.reset();
    GEN_ASSIGN(next_->kept, memory_.allocate(kept));
  }
  return StatePlan{length_, n, keep, certain};
}

void RecurrentState::rows(const StatePlan& plan, engine::StateRows* rows) const noexcept {
  if (now_.piece != nullptr) {
    rows->read = now_.piece->cells.data().as<const float>();
    rows->kept = now_.piece->kept.data().as<const float>();
  }
  rows->unsettled = unsettled_;
  rows->write = next_->cells.data().as<float>();
  if (plan.keep == Keep::kAll) return;
  rows->certain = plan.certain;
  rows->keep = next_->kept.data().as<float>();
}

void RecurrentState::commit(const StatePlan& plan, Kept kept) noexcept {
  GEN_ASSERT(kept.rows == nullptr && plan.start == length_ && kept.n <= plan.count);
  if (kept.n == 0) return;
  GEN_ASSERT(kept.n >= (plan.keep == Keep::kSome ? plan.certain : plan.count));
  std::swap(now_.piece, next_);
  if (std::exchange(now_.shared, false)) next_ = std::move(spare_);
  unsettled_ = plan.keep == Keep::kSome ? kept.n - plan.certain : 0;
  length_ += kept.n;
}

void RecurrentState::drop(const StatePlan& /*plan*/) noexcept {}

Result<int32_t> RecurrentState::rewind(int32_t n) {
  if (n >= length_) return length_;
  // Snapshots beyond the length belong to tokens that will be replaced.
  snapshots_.cut(n);
  const SnapshotList::Snapshot newest = snapshots_.at_most(n);
  if (newest != nullptr) {
    take(*newest);
    return length_;
  }
  now_ = {};
  unsettled_ = length_ = 0;
  return 0;
}

void RecurrentState::take(const StateSnapshot& snapshot) noexcept {
  const auto& own = static_cast<const Snapshot&>(snapshot);
  now_ = {own.piece, true};
  unsettled_ = own.unsettled;
  length_ = own.length();
}

size_t RecurrentState::bytes() const noexcept {
  return float_bytes(layout_->cells + kFewRows * layout_->inputs);
}

int32_t RecurrentState::most_kept() const noexcept {
  const int64_t rows = layout_->inputs > 0 ? layout_->cells / layout_->inputs : kMostRows;
  return static_cast<int32_t>(std::clamp(rows, kFewRows, kMostRows));
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

Status RecurrentState::read(int32_t layer, std::span<float> to) const {
  const auto at = static_cast<size_t>(layer);
  GEN_ASSERT(settled() && std::cmp_equal(to.size(), layout_->shapes[at].cells));
  if (now_.piece == nullptr) {
    std::fill(to.begin(), to.end(), 0.0F);
    return {};
  }
  const engine::EnginePtr<const std::byte> cells = now_.piece->cells.data();
  return memory_.read(to.data(),
                      cells + static_cast<int64_t>(float_bytes(layout_->layers[at].first)),
                      to.size_bytes());
}

Result<std::shared_ptr<const StateSnapshot>> RecurrentState::share(int32_t at) {
  if (at == kNow) at = length_;
  GEN_ASSERT(at >= earliest() && at <= length_);
  if (auto known = snapshots_.at(at)) return known;
  auto made = std::make_shared<Snapshot>();
  made->layout = layout_;
  made->piece = now_.piece;
  made->unsettled = unsettled_ - (length_ - at);
  made->after = at;
  if (now_.piece != nullptr && !now_.shared && spare_ == nullptr) {
    GEN_ASSIGN(spare_, new_piece(0));
  }
  // Room for rows that this pass did not keep is not worth keeping.
  if (now_.piece != nullptr && !now_.shared && unsettled_ == 0) now_.piece->kept.reset();
  now_.shared = true;
  return std::shared_ptr<const StateSnapshot>(std::move(made));
}

Status RecurrentState::restore(std::shared_ptr<const StateSnapshot> snapshot) {
  const auto* const own = dynamic_cast<const Snapshot*>(snapshot.get());
  if (own == nullptr || own->layout->shapes != layout_->shapes) {
    return error(Code::kInvalidArgument, "a snapshot of another model's state");
  }
  snapshots_.reserve(1);
  take(*own);
  snapshots_.cut(-1);
  snapshots_.add(std::move(snapshot), SnapshotPlace::kPlain);
  return {};
}

}  // namespace gen::cache
