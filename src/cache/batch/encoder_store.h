// SPDX-License-Identifier: Apache-2.0
// The encoder kind of sequence_store.h: keys and values without positions, such as those of an
// encoded image, for cross attention. Items belong to the position of their placeholder token in
// all sequences that share them, and keep their shape.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/batch/lone_store.h"

namespace gen::cache {

/// In a pass with multimodal tokens the i-th put of a layer is the item of the i-th of them, and
/// replaces an item at the same position. get() returns all items of the batch's sequences one
/// after another, and a mask if some token comes before an item or belongs to another sequence.
/// Items of a sequence have the same heads in a layer; items of several sequences can be read
/// together only if their heads agree. Storage: rows as in causal_store.h, a buffer for each item
/// and layer.
class EncoderStore final : public LoneStore, private EncoderItems {
 public:
  static constexpr const char* kKind = "encoder";
  EncoderStore() noexcept : LoneStore(kKind) {}

  /// kUnsupported for a padding above 1.
  Status configure(const SequenceConfig& config) override;
  void close() noexcept override;
  /// Shifting is never needed.
  Status set_shift(ShiftKeys /*shift*/) override { return open(); }
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
  void commit_compact() noexcept override { pass_.reset(); }
  [[nodiscard]] const EncoderItems* encoder_items() const noexcept override { return this; }
  [[nodiscard]] Result<bool> encoder_cached(int32_t sequence) const override;
  [[nodiscard]] MemoryUse memory() const noexcept override;

 protected:
  /// Capacity and quota are ignored: items are not entries.
  Status prepare(const SequenceLimits& limits) override;

 private:
  /// An item as one layer sees it.
  struct Part {
    int32_t rows = 0;
    int32_t k_heads = 0;
    int32_t k_dim = 0;
    int32_t v_heads = 0;
    int32_t v_dim = 0;
    size_t k_bytes = 0;  // of a row
    size_t v_bytes = 0;
    Buffer k;
    Buffer v;
  };
  struct Item {
    std::vector<std::unique_ptr<Part>> layers;

    [[nodiscard]] const Part* part(int32_t layer) const noexcept {
      const auto i = static_cast<size_t>(layer);
      return i < layers.size() ? layers[i].get() : nullptr;
    }
  };
  struct Link {
    int32_t sequence;
    int32_t position;
    std::shared_ptr<Item> item;
  };
  /// What a pass reads in a layer. `sees[t * items.size() + i]`: whether token t may look at item
  /// i.
  struct Seen {
    int32_t layer = -1;
    std::vector<const Item*> items;
    std::vector<uint8_t> sees;
  };
  struct Pass {
    bool reserve = false;
    std::vector<int32_t> positions;
    std::vector<int32_t> sequences;
    std::vector<uint8_t> except;
    std::vector<Link> items;    // of this pass; item is null until its first put
    std::vector<int32_t> puts;  // for each layer
    Seen seen;                  // of the layer last read; none after what may change it
  };
  struct Removal {
    int32_t sequence = 0;
    int32_t begin = 0;
    int32_t end = 0;
  };

  Status in_pass() const;
  /// Cost: O(items * log + tokens * links of their sequences), once for a layer of a pass.
  const Seen& find_seen();
  [[nodiscard]] size_t place_of(int32_t sequence, int32_t position) const noexcept;
  Result<std::unique_ptr<Part>> new_part(const PutRows& k, const PutRows& v, int32_t n) const;
  /// Items of a sequence in this layer, except one, must have the same heads.
  Status check_part(const Part& part, int32_t sequence, const Item* but) const;
  static Status check_same(const Part& part, const Part& other);

  std::vector<Link> links_;  // by sequence and position
  std::optional<Pass> pass_;
  std::optional<Pass> planned_;
  std::vector<Link> copied_;
  Removal removal_;
};

}  // namespace gen::cache
