// SPDX-License-Identifier: Apache-2.0
// See staging.h.
#include "cuda/engine/staging.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace gen::cuda {
namespace {

constexpr size_t kHostAlign = 64;
constexpr size_t kLeastPiece = size_t{64} << 10;

}  // namespace

Staging::~Staging() {
  for (const Piece& piece : pieces_) release(piece);
}

void Staging::release(const Piece& piece) noexcept {
  bytes_ -= piece.size;
  if (engine::gpu_allocator_pins(table_)) {
    static_cast<void>(table_.release_pinned(table_.user, piece.data));
  } else {
    std::free(piece.data);
  }
}

Status Staging::take(size_t bytes, std::byte** out) {
  bytes = (bytes + kHostAlign - 1) / kHostAlign * kHostAlign;
  if (pieces_.empty() || bytes > pieces_.back().size - at_) {
    Piece piece;
    piece.size = std::max({bytes, kLeastPiece, 2 * bytes_});
    void* data = nullptr;
    pieces_.reserve(pieces_.size() + 1);
    if (engine::gpu_allocator_pins(table_)) {
      if (table_.allocate_pinned(table_.user, piece.size, &data) != 0) data = nullptr;
    } else {
      data = std::aligned_alloc(kHostAlign, piece.size);
    }
    if (data == nullptr) {
      return error(Code::kOutOfMemory, "no %zu bytes of pinned memory", piece.size);
    }
    piece.data = static_cast<std::byte*>(data);
    bytes_ += piece.size;
    if (reinterpret_cast<uintptr_t>(data) % alignof(std::max_align_t) != 0) {
      release(piece);
      return error(Code::kDevice,
                   "the device allocator gave %zu pinned bytes on no multiple of %zu", piece.size,
                   alignof(std::max_align_t));
    }
    pieces_.push_back(piece);
    at_ = 0;
  }
  *out = pieces_.back().data + at_;
  at_ += bytes;
  used_ += bytes;
  return {};
}

void Staging::reset() noexcept {
  // The largest piece stays.
  while (pieces_.size() > 1) {
    const auto least =
        std::min_element(pieces_.begin(), pieces_.end(),
                         [](const auto& a, const auto& b) { return a.size < b.size; });
    release(*least);
    pieces_.erase(least);
  }
  at_ = 0;
  used_ = 0;
}

}  // namespace gen::cuda
