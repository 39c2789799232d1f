// SPDX-License-Identifier: Apache-2.0
// The adapter from gen_allocator. See c_allocator.h.
#include "api/c_allocator.h"

#include "api/caller_struct.h"

namespace gen::api {
namespace {

class CAllocator final : public Allocator {
 public:
  explicit CAllocator(const gen_allocator& table) noexcept : table_(table) {}

  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    *out = nullptr;
    const gen_status status = table_.allocate(table_.user, bytes, align, out);
    if (status == GEN_OK && *out != nullptr) return {};
    *out = nullptr;
    return error(Code::kOutOfMemory, "the caller's allocator gave status %d for %zu bytes", status,
                 bytes);
  }
  void release(void* pointer, size_t bytes) noexcept override {
    table_.release(table_.user, pointer, bytes);
  }

 private:
  gen_allocator table_;
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
