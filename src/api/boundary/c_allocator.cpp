// SPDX-License-Identifier: Apache-2.0
// Wraps gen_allocator. See c_allocator.h.
#include "api/boundary/c_allocator.h"

#include "api/boundary/caller_struct.h"
#include "api/boundary/host_call.h"

namespace gen::api {
namespace {

class CAllocator final : public Allocator {
 public:
  explicit CAllocator(const gen_allocator& table) : table_(table) {}

  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    *out = nullptr;
    gen_status given = GEN_OK;
    const Status thrown = host_status(*callbacks_, "allocate", [&]() -> Status {
      given = table_.allocate(table_.user, bytes, align, out);
      return {};
    });
    if (thrown.ok() && given == GEN_OK && *out != nullptr) return {};
    *out = nullptr;
    if (!thrown.ok()) {
      return error(Code::kOutOfMemory, "the caller's %s, asked for %zu bytes", thrown.message(),
                   bytes);
    }
    return error(Code::kOutOfMemory, "the caller's allocator gave status %d for %zu bytes", given,
                 bytes);
  }
  void release(void* pointer, size_t bytes) noexcept override {
    host_notice(*callbacks_, [&] { table_.release(table_.user, pointer, bytes); });
  }
  [[nodiscard]] std::shared_ptr<Callbacks> callbacks() const noexcept override {
    return callbacks_;
  }

 private:
  gen_allocator table_;
  std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>();
};

}  // namespace

Result<std::shared_ptr<Allocator>> wrap_allocator(const gen_allocator& table) {
  GEN_ASSIGN(const gen_allocator ours, read_struct(table));
  if (ours.allocate == nullptr || ours.release == nullptr) {
    return error(Code::kInvalidArgument, "gen_allocator lacks allocate or release");
  }
  return std::shared_ptr<Allocator>(std::make_shared<CAllocator>(ours));
}

}  // namespace gen::api
