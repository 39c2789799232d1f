// SPDX-License-Identifier: Apache-2.0
// Tensors whose layers move as a whole between plain memory, the host's or a device's (hot), a
// compact form in the host's memory (warm) and a file (cold), by use: kv_cache_tiered_new of the C
// API. The interface is tensor_provider.h, the compact forms warm_form.h, the files cold_folder.h.
// What attention reads in place is tiered_cache.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "base/file_ops.h"
#include "base/status.h"
#include "cache/tensor/cold_folder.h"
#include "cache/tensor/hot_layer.h"
#include "cache/tensor/layered_store.h"
#include "cache/tensor/prefetch_thread.h"
#include "cache/tensor/warm_form.h"

namespace gen::cache {

struct TierOptions {
  static constexpr int32_t kDefaultChunk = 64;
  static constexpr int32_t kDefaultDemote = 2;
  static constexpr int32_t kDefaultPromote = 5;

  int32_t num_layers = 0;
  int32_t max_seq_len = 0;
  int32_t chunk_size = 0;         // positions of a mean; 0 or less: the default, so for thresholds
  int32_t demote_threshold = 0;   // manage() demotes layers that were used less often
  int32_t promote_threshold = 0;  // and promotes those used as often
  std::string cold_dir;           // empty: a temporary folder
  std::string store_id;           // among the stores of cold_dir; empty: a random one
  std::string warm = "fp32";      // a name of warm_form.h; all but fp32 lose something
  FileOps* files = nullptr;       // null: the system's
  std::shared_ptr<engine::GpuAllocator> device;  // of hot layers; null: the host's memory
};

enum class Tier : int32_t { kHot = 0, kWarm = 1, kCold = 2 };

/// A layer's positions are in exactly one tier; a move takes them along, in their order, and frees
/// what they leave. A cut of a warm or cold layer leaves its bytes as they are and counts fewer.
/// Threads: any call from any thread but the destructor; a layer's calls wait for each other, also
/// while it is written to or read from a file. memory(), truncate() and the like wait for all.
class TieredStore final : public LayeredStore, public TensorCopies {
 public:
  static constexpr const char* kKind = "tiered";

  /// Checks as check(), and at least one layer. kIo if the folder cannot be made. `allocator` and
  /// the files must outlive the store.
  static Result<std::unique_ptr<TieredStore>> create(const TierOptions& options,
                                                     Allocator& allocator);
  /// Takes over what close() has left in options.cold_dir: layers with files are cold, others hot
  /// and empty. kFormat where the shape does not fit; see ColdFolder::open.
  static Result<std::unique_ptr<TieredStore>> open(const TierOptions& options,
                                                   Allocator& allocator);
  ~TieredStore() override;
  TieredStore(const TieredStore&) = delete;
  TieredStore& operator=(const TieredStore&) = delete;

  [[nodiscard]] const TensorTraits& traits() const noexcept override { return traits_; }
  /// A layer that is not hot is promoted to hot first. Counts as a use.
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape) override;
  [[nodiscard]] TensorShape shape(int32_t layer) const noexcept override;
  /// From whichever tier, which stays. Takes a prefetched copy if there is one. Counts as a use.
  Status get(int32_t layer, float* k, float* v) const override;
  Status truncate(int32_t n) override;
  /// Everything is hot and empty, uses 0, and files gone.
  Status reset() override;
  [[nodiscard]] MemoryUse memory() const noexcept override;
  [[nodiscard]] const TensorCopies* copies() const noexcept override { return this; }
  [[nodiscard]] Result<std::unique_ptr<TensorProvider>> clone() const override;
  /// The same with its type.
  [[nodiscard]] Result<std::unique_ptr<TieredStore>> copied() const;
  // These two may meet moves and prefetching of other threads, but no writing.
  Status save(StateWriter& to) const override;
  Status restore(StateReader& from) override;

  /// Out of range: hot.
  [[nodiscard]] Tier tier(int32_t layer) const noexcept;
  /// Uses since the last manage() or reset(); out of range: 0.
  [[nodiscard]] int64_t access_count(int32_t layer) const noexcept;
  /// Whether a form that loses something has been over what the layer holds.
  [[nodiscard]] bool is_lossy(int32_t layer) const noexcept;
  /// One step down or up; nothing happens at the end. kOutOfRange; kInvalidArgument for elements
  /// that the warm form cannot keep; what files say.
  Status demote(int32_t layer);
  Status promote(int32_t layer);
  /// Moves each layer by one step as the thresholds say and sets the uses to 0. Layers that cannot
  /// be moved stay; the first failure is returned.
  Status manage();

  /// Has copies of layers that are not hot made by the thread of the store. Never waits: what is
  /// out of range, waiting already or more than the queue holds is left out.
  Status prefetch(std::span<const int32_t> layers);
  /// Copies a prefetched layer and forgets it; *shape is all 0 if there is none. With k and v null
  /// only the shape is told. kOutOfRange, with *shape, for fewer than its elements.
  Status take_prefetched(int32_t layer, float* k, size_t k_capacity, float* v, size_t v_capacity,
                         TensorShape* shape);
  /// Waits until the queue is empty and the thread idle.
  void finish_prefetch();

  /// Ends the thread and forgets everything in memory; see ColdFolder::close for files. Other calls
  /// are kState then. May be called again, as after a failure.
  Status close();
  [[nodiscard]] const std::string& folder() const noexcept { return cold_->path(); }

 protected:
  [[nodiscard]] StateForm state_form() const noexcept override { return plain_form(DType::kF32); }
  [[nodiscard]] bool saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept override;
  Status save_layer(int32_t layer, StateWriter& to) const override;
  Status restore_layer(int32_t layer, const TensorShape& shape,
                       std::span<const std::byte> bytes) override;

 private:
  struct Layer {
    mutable std::mutex mutex;  // of all but the atomics
    std::atomic<Tier> tier{Tier::kHot};
    std::atomic<int64_t> uses{0};
    std::atomic<bool> lossy{false};
    std::atomic<bool> fetched{false};  // there is a copy
    HotLayer hot;                      // keys, then values, each [batch, max_seq_len, dim]
    Buffer warm;                       // as coded says
    ColdLayer coded;                   // of a warm layer: form, chunk, shape
    Buffer copy;                       // keys, then values, dense
    TensorShape copy_shape;
  };

  TieredStore(const TierOptions& options, const WarmForm& form, Allocator& allocator);
  static Result<std::unique_ptr<TieredStore>> make(const TierOptions& options, bool existing,
                                                   Allocator& allocator);
  [[nodiscard]] Layer& at(int32_t layer) const noexcept {
    return layers_[static_cast<size_t>(layer)];
  }
  [[nodiscard]] Status check_open() const;
  [[nodiscard]] Status check_layer(int32_t layer) const;

  /// Holds the mutexes of all layers. Takes no memory.
  class AllLocked {
   public:
    explicit AllLocked(const TieredStore& store);
    ~AllLocked();
    AllLocked(const AllLocked&) = delete;
    AllLocked& operator=(const AllLocked&) = delete;

   private:
    const TieredStore& store_;
  };

  /// The rest with the layer's mutex held.
  Status reserve_hot(const TensorShape& shape, HotLayer* hot) const;
  /// Dense keys and values into lanes with room for max_seq_len.
  Status write_hot(const HotLayer& hot, const TensorShape& shape, int32_t start, const void* k,
                   const void* v) const;
  Status encode(int32_t layer, Buffer* coded, ColdLayer* what) const;
  /// Decodes a warm or cold layer into lanes that are `stride` elements apart, each with room for
  /// coded positions, or for those held if `exact`.
  Status decode(int32_t layer, float* k, float* v, size_t stride, bool exact) const;
  Status copy_out(int32_t layer, float* k, float* v) const;
  Status step_down(int32_t layer);
  Status step_up(int32_t layer);
  Status to_hot(int32_t layer);
  void forget_copy(Layer& layer) const noexcept;

  /// Makes a copy, for take_prefetched() or get().
  void fetch(int32_t layer);

  const TierOptions options_;
  const WarmForm& form_;
  TensorTraits traits_;
  Allocator& allocator_;
  std::unique_ptr<Layer[]> layers_;
  std::unique_ptr<ColdFolder> cold_;
  std::mutex lengths_mutex_;  // of what LayeredStore keeps about several layers
  std::atomic<bool> closed_ = false;

  PrefetchThread prefetcher_;
};

}  // namespace gen::cache
