// SPDX-License-Identifier: Apache-2.0
// The interface between a compiled plan and what executes it: memory, prepared weights, operations.
// Each operation is one argument struct (ops.h); an engine is added by implementing this class and
// giving registry.h one row. Operations are enqueued in order on a
// Stream; finish() waits for them. The CPU engine runs each call to its end before it returns.
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

/// An ordered queue of operations with its own scratch memory. One user at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Bytes of the scratch memory. Any thread.
  [[nodiscard]] virtual size_t bytes() const noexcept { return 0; }
};

/// Threads: all functions are const in effect and may be called from any thread, each with a stream
/// of its own.
class Engine {
 public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;
  /// Memory that operations can address.
  [[nodiscard]] virtual EngineMemory& memory() noexcept = 0;
  /// Whether they can address all of the host's memory beside it.
  [[nodiscard]] virtual bool reaches_host() const noexcept { return false; }
  /// Whether they can address what lies there.
  [[nodiscard]] bool reaches(const EngineMemory& other) noexcept {
    return &other == &memory() || (other.in_host() && reaches_host());
  }

  /// Bytes that prepare() would take of a WeightMemory; 0 if it takes none or refuses.
  [[nodiscard]] virtual size_t weight_bytes(WeightRole role,
                                            std::span<const WeightSource> sources) const noexcept {
    static_cast<void>(role);
    static_cast<void>(sources);
    return 0;
  }
  /// Memory for weights of `bytes` together, which then lie side by side; null if there is nothing
  /// to gain. kOutOfMemory.
  virtual Result<std::shared_ptr<WeightMemory>> new_weight_memory(size_t bytes) {
    static_cast<void>(bytes);
    return std::shared_ptr<WeightMemory>();
  }

  /// Whether there is memory for pieces of these sizes together now. In a dry run, which takes what
  /// no machine has, this asks the machine.
  [[nodiscard]] virtual bool has_room(std::span<const size_t> pieces) {
    std::vector<EngineBuffer> taken;
    for (const size_t bytes : pieces) {
      auto made = memory().allocate(bytes);
      if (!made.ok()) return false;
      taken.push_back(std::move(made).value());
    }
    return true;
  }

  /// Brings weights into the engine's layout. kUnsupported names a type there is no kernel for;
  /// kFormat names a source whose size or shape does not fit. `sources` need not outlive the call
  /// unless lasting. `memory` may be null or full: the weight then has its own.
  virtual Result<std::unique_ptr<Weight>> prepare(WeightRole role,
                                                  std::span<const WeightSource> sources,
                                                  const std::shared_ptr<WeightMemory>& memory) = 0;

  /// Bytes of one packed row of `cols` elements in all `forms`, a multiple of 64.
  [[nodiscard]] virtual size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept = 0;

  /// Whether packed rows of these forms are rows of float32 that begin at multiples of 64 bytes,
  /// and nothing else: packing is then a copy.
  [[nodiscard]] virtual bool packs_as_rows(uint32_t forms) const noexcept {
    static_cast<void>(forms);
    return false;
  }

  /// Whether packed rows begin with the float32 that they are made of, so that they can be packed
  /// where they lie.
  [[nodiscard]] virtual bool packs_in_place() const noexcept { return false; }

  virtual Result<std::unique_ptr<Stream>> new_stream() = 0;

  /// Whether there is a kernel for it; compile() refuses a graph that needs another.
  [[nodiscard]] virtual bool can(Op op) const noexcept = 0;
  /// Enqueues an operation. What its arguments point at stays until finish().
  virtual Status run(Stream& stream, const OpArgs& args) = 0;
  /// Copies host memory to engine memory; the host bytes may go when it returns.
  virtual Status upload(Stream& stream, EnginePtr<std::byte> to, const void* from,
                        size_t bytes) = 0;
  /// Copies engine memory to host memory, where the bytes are after finish().
  virtual Status download(Stream& stream, void* to, EnginePtr<const std::byte> from,
                          size_t bytes) = 0;
  /// Waits for everything enqueued; reports the first failure.
  virtual Status finish(Stream& stream) = 0;

  /// Whether it gains by being told many at once.
  [[nodiscard]] virtual bool gathers() const noexcept { return false; }
  /// The rows, at least `n`, that a step of n rows had better have: engines that recognise lists
  /// want few different ones. The others belong to no sequence.
  [[nodiscard]] virtual int64_t step_rows(int64_t n) const noexcept { return n; }
  /// Rows of prompts that a step had better have, at most 2,048: fewer leave a part of the engine
  /// idle. 0: it does not matter.
  [[nodiscard]] virtual int32_t prompt_rows() const noexcept { return 0; }
  /// The rows, at least `n`, that memory for a step of n rows had better be taken for: a list is
  /// recognised by its addresses, so that memory that moves makes all of them new ones.
  [[nodiscard]] virtual int64_t room_rows(int64_t n) const noexcept { return n; }
  /// The same for operations one after another. An engine may recognise a list that it has run.
  virtual Status run_all(Stream& stream, std::span<const OpArgs> list) {
    for (const OpArgs& args : list) GEN_TRY(run(stream, args));
    return {};
  }
};

}  // namespace gen::engine
