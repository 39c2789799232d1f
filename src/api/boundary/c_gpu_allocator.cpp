// SPDX-License-Identifier: Apache-2.0
// See c_gpu_allocator.h.
#include "api/boundary/c_gpu_allocator.h"

#include "api/boundary/boundary.h"
#include "api/boundary/caller_struct.h"
#include "api/boundary/host_call.h"
#include "api/boundary/own_gpu.h"
#include "engine/backend/registry.h"

namespace gen::api {
namespace {

class CGpuAllocator final : public engine::GpuAllocator {
 public:
  explicit CGpuAllocator(const gen_gpu_allocator& table) : table_(table), own_(OwnGpu::of(table)) {}

  Status allocate(size_t bytes, void** out) override {
    gen_status given = GEN_OK;
    void* made = nullptr;
    const Status thrown = host_status(*callbacks_, "allocate", [&]() -> Status {
      given = table_.allocate(table_.user, bytes, &made);
      return {};
    });
    if (!thrown.ok()) {
      return error(Code::kOutOfMemory, "the caller's %s, asked for %zu bytes", thrown.message(),
                   bytes);
    }
    if (given == GEN_OK && made != nullptr) {
      *out = made;
      return {};
    }
    const Code code = given == GEN_ERROR_DEVICE ? Code::kDevice : Code::kOutOfMemory;
    return error(code, "the GPU allocator gave status %d for %zu bytes", given, bytes);
  }
  void release(void* at) noexcept override {
    host_notice(*callbacks_, [&] { static_cast<void>(table_.release(table_.user, at)); });
  }
  Status copy_up(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, GEN_GPU_COPY_TO_DEVICE);
  }
  Status copy_down(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, GEN_GPU_COPY_TO_HOST);
  }
  Status copy_across(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, GEN_GPU_COPY_ON_DEVICE);
  }
  Status append(const engine::CountedAppend& append, void* stream) override {
    return engine::append_on_device(table_.device, append, stream);
  }
  [[nodiscard]] std::shared_ptr<Callbacks> callbacks() const noexcept override {
    return callbacks_;
  }

 private:
  Status copy(void* to, const void* from, size_t bytes, int32_t kind) {
    if (bytes == 0) return {};
    gen_status given = GEN_OK;
    const Status thrown = host_status(*callbacks_, "copy", [&]() -> Status {
      given = table_.copy(table_.user, to, from, bytes, kind);
      return {};
    });
    if (!thrown.ok()) {
      return error(Code::kDevice, "the caller's %s, given %zu bytes", thrown.message(), bytes);
    }
    if (given == GEN_OK) return {};
    return error(Code::kDevice, "the GPU allocator gave status %d for a copy of %zu bytes", given,
                 bytes);
  }

  gen_gpu_allocator table_;
  OwnGpuRef own_;
  std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>();
};

/// Presents the caller's table to engines and maps its failures to the documented statuses.
class EngineTable {
 public:
  explicit EngineTable(const gen_gpu_allocator& theirs)
      : theirs_(theirs), own_(OwnGpu::of(theirs)) {
    table_ = {
        sizeof(engine::GpuTable), this, allocate, release, copy, theirs.device, nullptr, nullptr};
    if (theirs.allocate_pinned != nullptr) {
      table_.allocate_pinned = allocate_pinned;
      table_.release_pinned = release_pinned;
    }
  }
  EngineTable(const EngineTable&) = delete;
  EngineTable& operator=(const EngineTable&) = delete;

  [[nodiscard]] const engine::GpuTable& table() const noexcept { return table_; }
  [[nodiscard]] const std::shared_ptr<Callbacks>& callbacks() const noexcept { return callbacks_; }

 private:
  static EngineTable& self(void* user) { return *static_cast<EngineTable*>(user); }

  template <typename F>
  int32_t call(const char* function, gen_status otherwise, F&& theirs) {
    gen_status given = GEN_OK;
    const Status thrown = host_status(*callbacks_, function, [&]() -> Status {
      given = theirs();
      return {};
    });
    if (thrown.ok() && given == GEN_OK) return GEN_OK;
    return thrown.ok() && given == GEN_ERROR_DEVICE ? GEN_ERROR_DEVICE : otherwise;
  }
  static int32_t allocate(void* user, size_t bytes, void** out) {
    const gen_gpu_allocator& of = self(user).theirs_;
    return self(user).call("allocate", GEN_ERROR_OUT_OF_MEMORY,
                           [&] { return of.allocate(of.user, bytes, out); });
  }
  static int32_t release(void* user, void* ptr) {
    const gen_gpu_allocator& of = self(user).theirs_;
    return self(user).call("release", GEN_ERROR_DEVICE, [&] { return of.release(of.user, ptr); });
  }
  static int32_t copy(void* user, void* to, const void* from, size_t bytes, int32_t kind) {
    const gen_gpu_allocator& of = self(user).theirs_;
    return self(user).call("copy", GEN_ERROR_DEVICE,
                           [&] { return of.copy(of.user, to, from, bytes, kind); });
  }
  static int32_t allocate_pinned(void* user, size_t bytes, void** out) {
    const gen_gpu_allocator& of = self(user).theirs_;
    return self(user).call("allocate_pinned", GEN_ERROR_OUT_OF_MEMORY,
                           [&] { return of.allocate_pinned(of.user, bytes, out); });
  }
  static int32_t release_pinned(void* user, void* ptr) {
    const gen_gpu_allocator& of = self(user).theirs_;
    return self(user).call("release_pinned", GEN_ERROR_DEVICE,
                           [&] { return of.release_pinned(of.user, ptr); });
  }

  const gen_gpu_allocator theirs_;
  OwnGpuRef own_;
  engine::GpuTable table_ = {};
  std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>();
};

Result<gen_gpu_allocator> checked(const gen_gpu_allocator* table) {
  GEN_TRY(not_null(table, "allocator"));
  GEN_ASSIGN(const gen_gpu_allocator ours, read_struct(*table));
  if (ours.allocate == nullptr || ours.release == nullptr || ours.copy == nullptr) {
    return error(Code::kInvalidArgument, "gen_gpu_allocator lacks allocate, release or copy");
  }
  if (ours.device < -1) {
    return error(Code::kInvalidArgument, "gen_gpu_allocator has device %d, below -1", ours.device);
  }
  if ((ours.allocate_pinned == nullptr) != (ours.release_pinned == nullptr)) {
    const bool takes = ours.allocate_pinned != nullptr;
    return error(Code::kInvalidArgument, "gen_gpu_allocator has %s_pinned without %s_pinned",
                 takes ? "allocate" : "release", takes ? "release" : "allocate");
  }
  return ours;
}

}  // namespace

Result<EngineGpu> engine_gpu_allocator(const gen_gpu_allocator& table) {
  GEN_ASSIGN(const gen_gpu_allocator ours, checked(&table));
  const auto made = std::make_shared<EngineTable>(ours);
  return EngineGpu{{made, &made->table()}, made->callbacks()};
}

Result<std::shared_ptr<engine::GpuAllocator>> wrap_gpu_allocator(const gen_gpu_allocator* table) {
  GEN_ASSIGN(const gen_gpu_allocator ours, checked(table));
  return std::shared_ptr<engine::GpuAllocator>(std::make_shared<CGpuAllocator>(ours));
}

}  // namespace gen::api
