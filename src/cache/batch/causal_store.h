// SPDX-License-Identifier: Apache-2.0
// The causal kinds of sequence_store.h: full, sliding window, sliding window with memory, chunked.
// Rows lie one cell after another, as float32, binary16, Q8_0 or Q4_0, by layer; which cell is
// whose is causal_cells.h. A shift of positions is kept as one number for each cell and applied to
// what is read, so that keys stay as they were written however often they are shifted.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/batch/causal_cells.h"
#include "cache/batch/lone_store.h"

namespace gen::cache {

class CausalStore final : public LoneStore {
 public:
  using Made = Result<std::shared_ptr<SequenceStore>>;
  /// The kinds. kInvalidArgument for a window or chunk below 1, and a memory below the window.
  static Made full();
  static Made sliding(int32_t window);
  static Made sliding_with_memory(int32_t window, int32_t memory);
  static Made chunked(int32_t chunk);

  /// `kind` is static text. Rules as CausalCells::create takes them, which init() calls.
  CausalStore(const char* kind, const CausalRules& rules) : LoneStore(kind), rules_(rules) {}

  void undo_init() noexcept override;
  void close() noexcept override;
  Status set_shift(ShiftKeys shift) override;
  Status set_quota(int32_t entries) override;
  Status plan_start(const SequenceBatch& batch) override;
  void commit_start() noexcept override;
  Status put(const PutRows& k, const PutRows& v, int32_t n) override;
  Result<HistoryShape> shape() override;
  Status get(float* k, float* v, void* mask) override;
  Status set_causal(std::span<const int32_t> except) override;
  Status plan_copy_prefix(int32_t src, int32_t dst, int32_t length) override;
  void commit_copy_prefix() noexcept override;
  [[nodiscard]] Result<bool> can_resume(int32_t sequence, int32_t position) const override;
  Status plan_remove(int32_t sequence, int32_t begin, int32_t end) override;
  void commit_remove() noexcept override;
  Result<int32_t> plan_compact(int32_t budget) override;
  void commit_compact() noexcept override;
  [[nodiscard]] MemoryUse memory() const noexcept override;

 protected:
  Status prepare(const SequenceLimits& limits) override;

 private:
  /// Keys or values of a layer.
  struct Rows {
    int32_t heads = 0;
    int32_t dim = 0;
    size_t elements = 0;  // of a row
    size_t bytes = 0;     // of a row
    Buffer buffer;

    [[nodiscard]] std::byte* row(int32_t cell) const noexcept {
      return buffer.data() + static_cast<size_t>(cell) * bytes;
    }
  };
  struct Layer {
    Rows k;
    Rows v;
  };
  struct Range {
    int32_t first = 0;
    int32_t length = 0;
  };
  /// From a start_forward until the lists next change otherwise.
  struct Pass {
    CausalCells::BatchPlan plan;
    bool reserve = false;
    std::vector<uint8_t> except;  // of each token
    Range range;                  // valid once `ranged`
    bool ranged = false;
    std::vector<float> mask;  // [n, length]; empty until asked for
  };
  struct Copying {
    int32_t src;
    int32_t dst;
    int32_t length;
  };

  Status in_pass() const;
  Result<Rows> new_rows(const PutRows& rows) const;
  Status check_rows(const char* what, const PutRows& rows, int32_t n, const Rows* own) const;
  [[nodiscard]] const Layer* layer() const noexcept;
  void find_range() noexcept;
  void make_mask();
  Status read_keys(const Rows& rows, float* k);
  void read_values(const Rows& rows, float* v) const;
  void copy_rows(std::span<const CellMove> moves) noexcept;
  [[nodiscard]] int32_t offset(int32_t cell) const noexcept;

  CausalRules rules_;
  int32_t quota_ = 0;
  ShiftKeys shift_;
  std::optional<CausalCells> cells_;  // there between init and close
  std::vector<int32_t> offsets_;      // of each cell: by how much its key's position was shifted
  bool shifted_ = false;              // some offset may differ from 0
  std::vector<std::unique_ptr<Layer>> layers_;
  std::optional<Pass> pass_;
  std::optional<Pass> planned_;
  Copying copying_ = {0, 0, 0};
  CausalCells::Removal removal_;
  std::vector<CellMove> moves_;
};

}  // namespace gen::cache
