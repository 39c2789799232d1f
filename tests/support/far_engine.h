// SPDX-License-Identifier: Apache-2.0
// FarEngine: the CPU engine on inaccessible memory (far_memory.h), to prove properties of device
// engines without a device. It is lazy: a stream runs when it is finished.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/memory.h"
#include "support/cpu_engine.h"
#include "support/far_memory.h"

namespace gen::test {

class FarEngine final : public engine::Engine {
 public:
  explicit FarEngine(FarMemory& memory, int32_t threads = 1) : memory_(memory) {
    engine::EngineOptions options;
    options.pool = ThreadPool::create(threads).value();
    options.cpu_level = detect_cpu_level();
    options.memory = &memory;
    options.distance = memory.distance();
    inner_ = engine::create_engine("cpu", options).value();
  }

  [[nodiscard]] const char* name() const noexcept override { return "far"; }
  [[nodiscard]] engine::EngineMemory& memory() noexcept override { return memory_; }
  Result<std::unique_ptr<engine::Weight>> prepare(
      engine::WeightRole role, std::span<const engine::WeightSource> sources,
      const std::shared_ptr<engine::WeightMemory>& memory) override {
    return inner_->prepare(role, sources, memory);
  }
  [[nodiscard]] size_t weight_bytes(
      engine::WeightRole role,
      std::span<const engine::WeightSource> sources) const noexcept override {
    return inner_->weight_bytes(role, sources);
  }
  [[nodiscard]] size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept override {
    return inner_->activation_bytes(forms, cols);
  }
  Result<std::unique_ptr<engine::Stream>> new_stream() override {
    auto stream = std::make_unique<FarStream>();
    GEN_ASSIGN(stream->inner, inner_->new_stream());
    return std::unique_ptr<engine::Stream>(std::move(stream));
  }
  [[nodiscard]] bool can(engine::Op op) const noexcept override { return inner_->can(op); }

  Status run(engine::Stream& stream, const engine::OpArgs& args) override {
    if (operations++ == refused) throw std::bad_alloc();
    if (std::holds_alternative<engine::EmbedArgs>(args)) ++passes;
    return enqueue(stream, [this, args](engine::Stream& own) { return inner_->run(own, args); });
  }
  Status upload(engine::Stream& stream, engine::EnginePtr<std::byte> to, const void* from,
                size_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(from);
    std::vector<std::byte> taken(begin, begin + bytes);
    return enqueue(stream, [this, to, taken = std::move(taken)](engine::Stream& own) {
      return inner_->upload(own, to, taken.data(), taken.size());
    });
  }
  Status download(engine::Stream& stream, void* to, engine::EnginePtr<const std::byte> from,
                  size_t bytes) override {
    if (bytes == counted_bytes) ++counted_downloads;
    return enqueue(stream, [this, to, from, bytes](engine::Stream& own) {
      return inner_->download(own, to, from, bytes);
    });
  }
  Status finish(engine::Stream& stream) override {
    auto& far = static_cast<FarStream&>(stream);
    ++finishes;
    memory_.settle();
    Status first;
    for (const Work& work : std::exchange(far.queue, {})) {
      Status status = work(*far.inner);
      if (first.ok()) first = std::move(status);
    }
    return first;
  }

  [[nodiscard]] bool has_room(std::span<const size_t> pieces) override {
    asked.assign(pieces.begin(), pieces.end());
    if (std::accumulate(asked.begin(), asked.end(), size_t{0}) > room) return false;
    return Engine::has_room(pieces);
  }
  [[nodiscard]] int64_t room_rows(int64_t n) const noexcept override {
    return pads ? std::max<int64_t>(n, 64) : n;
  }
  /// With `pads`, steps are padded to a power of two, as on devices.
  [[nodiscard]] int64_t step_rows(int64_t n) const noexcept override {
    return pads ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))) : n;
  }

  /// With `gathered`, operations are passed as lists, as on devices.
  [[nodiscard]] bool gathers() const noexcept override { return gathered; }

  bool pads = false;
  bool gathered = false;
  std::vector<size_t> asked;          // whether there was room for
  size_t room = ~size_t{0};           // bytes that has_room() says are there
  size_t counted_bytes = ~size_t{0};  // of downloads that are counted
  std::atomic<size_t> counted_downloads{0};
  std::atomic<size_t> finishes{0};
  std::atomic<size_t> passes{0};  // begun
  std::atomic<size_t> operations{0};
  size_t refused = ~size_t{0};  // index of the one that there is no memory for

 private:
  using Work = std::function<Status(engine::Stream& inner)>;
  struct FarStream final : engine::Stream {
    std::unique_ptr<engine::Stream> inner;
    std::vector<Work> queue;
  };
  static Status enqueue(engine::Stream& stream, Work work) {
    static_cast<FarStream&>(stream).queue.push_back(std::move(work));
    return {};
  }

  FarMemory& memory_;
  std::shared_ptr<engine::Engine> inner_;
};

}  // namespace gen::test
