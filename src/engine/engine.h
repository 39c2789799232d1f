// SPDX-License-Identifier: Apache-2.0
// The interface between a compiled plan and the engine that executes it: memory, prepared weights,
// operations. Each operation is one argument struct (ops.h). A new engine implements this class and
// has one row in backend/registry.cpp. Operations are enqueued in order on a Stream; finish() waits
// for them. The CPU engine is synchronous: each call returns when its work is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/memory.h"
#include "engine/ops.h"
#include "engine/weight.h"

namespace gen::engine {

/// An ordered queue of operations with its own scratch memory. Used by one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Size of the scratch memory. May be called from any thread.
  [[nodiscard]] virtual size_t bytes() const noexcept { return 0; }
};

/// Threads: any thread may call any function, as long as no two use the same stream at once.
class Engine {
 public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;
  /// Memory that operations can address.
  [[nodiscard]] virtual EngineMemory& memory() noexcept = 0;
  /// Whether operations can address host memory as well.
  [[nodiscard]] virtual bool reaches_host() const noexcept { return false; }
  /// Whether operations can address memory of `other`.
  [[nodiscard]] bool reaches(const EngineMemory& other) noexcept {
    return &other == &memory() || (other.in_host() && reaches_host());
  }

  /// Bytes that prepare() would allocate from a WeightMemory; 0 if it allocates none or refuses.
  [[nodiscard]] virtual size_t weight_bytes(WeightRole role,
                                            std::span<const WeightSource> sources) const noexcept {
    static_cast<void>(role);
    static_cast<void>(sources);
    return 0;
  }
  /// One contiguous allocation for weights of `bytes` in total; null if the engine gains nothing
  /// from one. kOutOfMemory.
  virtual Result<std::shared_ptr<WeightMemory>> new_weight_memory(size_t bytes) {
    static_cast<void>(bytes);
    return std::shared_ptr<WeightMemory>();
  }

  /// Whether buffers of these sizes could all be allocated at once now. A dry run counts memory
  /// without limit, but this function asks the machine even then.
  [[nodiscard]] virtual bool has_room(std::span<const size_t> pieces) {
    std::vector<EngineBuffer> taken;
    for (const size_t bytes : pieces) {
      auto made = memory().allocate(bytes);
      if (!made.ok()) return false;
      taken.push_back(std::move(made).value());
    }
    return true;
  }

  /// Converts weights to the engine's layout. kUnsupported names a type without a kernel; kFormat
  /// names a source whose size or shape does not fit. `sources` need not outlive the call unless
  /// they are lasting. If `memory` is null or full, the weight allocates memory of its own.
  virtual Result<std::unique_ptr<Weight>> prepare(WeightRole role,
                                                  std::span<const WeightSource> sources,
                                                  const std::shared_ptr<WeightMemory>& memory) = 0;

  /// Size of one packed row of `cols` elements in all `forms`, a multiple of 64.
  [[nodiscard]] virtual size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept = 0;

  /// Whether packed rows of these forms are plain float32 rows aligned to 64 bytes. Packing is then
  /// a copy.
  [[nodiscard]] virtual bool packs_as_rows(uint32_t forms) const noexcept {
    static_cast<void>(forms);
    return false;
  }

  /// Whether a packed row begins with its float32 elements, so that a row can be packed in place.
  [[nodiscard]] virtual bool packs_in_place() const noexcept { return false; }

  virtual Result<std::unique_ptr<Stream>> new_stream() = 0;

  /// Whether the engine has a kernel for `op`; compile() refuses graphs with other operations.
  [[nodiscard]] virtual bool can(Op op) const noexcept = 0;
  /// Enqueues an operation. Memory that its arguments point to must stay valid until finish().
  virtual Status run(Stream& stream, const OpArgs& args) = 0;
  /// Copies host memory to engine memory. The source may be freed when the call returns.
  virtual Status upload(Stream& stream, EnginePtr<std::byte> to, const void* from,
                        size_t bytes) = 0;
  /// Enqueues a copy from engine memory to host memory. `to` is valid after finish().
  virtual Status download(Stream& stream, void* to, EnginePtr<const std::byte> from,
                          size_t bytes) = 0;
  /// Waits for all enqueued work; returns the first failure.
  virtual Status finish(Stream& stream) = 0;

  /// Whether run_all() is faster than run() for each operation.
  [[nodiscard]] virtual bool gathers() const noexcept { return false; }
  /// The number of rows, at least `n`, to which a step of n rows should be padded: engines that
  /// replay captured lists work best with few different sizes. Padding belongs to no sequence.
  [[nodiscard]] virtual int64_t step_rows(int64_t n) const noexcept { return n; }
  /// The number of prompt rows, at most 2,048, that a step needs to use the whole engine; 0 for no
  /// preference.
  [[nodiscard]] virtual int32_t prompt_rows() const noexcept { return 0; }
  /// The number of rows, at least `n`, for which the memory of a step of n rows should be
  /// allocated. Captured lists are recognised by their addresses, so they are lost when memory
  /// moves.
  [[nodiscard]] virtual int64_t room_rows(int64_t n) const noexcept { return n; }
  /// Enqueues several operations in order. An engine may capture a list and replay it when it is
  /// passed again.
  virtual Status run_all(Stream& stream, std::span<const OpArgs> list) {
    for (const OpArgs& args : list) GEN_TRY(run(stream, args));
    return {};
  }
};

}  // namespace gen::engine
