// SPDX-License-Identifier: Apache-2.0
// Short lists, above all the edges of a state while automata are built. Up to a few elements are
// stored inline; automata of thousands of states would otherwise need as many heap blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "grammar/base/byte_edge.h"

namespace gen::grammar {

/// For trivially copyable elements; up to `kInside` are stored inline.
template <typename T, uint32_t kInside>
class ShortList {
 public:
  ShortList() noexcept = default;
  explicit ShortList(std::span<const T> list) { append(list); }
  ShortList(const ShortList& other) { append(other); }
  ShortList(ShortList&& other) noexcept { take(&other); }
  ShortList& operator=(const ShortList& other) {
    if (this != &other) assign(other);
    return *this;
  }
  ShortList& operator=(ShortList&& other) noexcept {
    if (this != &other) {
      if (is_outside()) delete[] outside_;
      take(&other);
    }
    return *this;
  }
  ~ShortList() {
    if (is_outside()) delete[] outside_;
  }

  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* begin() noexcept { return is_outside() ? outside_ : inside_; }
  [[nodiscard]] T* end() noexcept { return begin() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return is_outside() ? outside_ : inside_; }
  [[nodiscard]] const T* end() const noexcept { return begin() + size_; }
  [[nodiscard]] T& operator[](size_t i) noexcept { return begin()[i]; }
  [[nodiscard]] const T& operator[](size_t i) const noexcept { return begin()[i]; }
  [[nodiscard]] T& back() noexcept { return begin()[size_ - 1]; }

  /// `one` may refer to an element of the list.
  void push_back(T one) {
    if (size_ == capacity_) grow(size_t{capacity_} * 2);
    begin()[size_++] = one;
  }
  void pop_back() noexcept { --size_; }
  /// Keeps the first `size` elements, which must exist.
  void shrink(size_t size) noexcept { size_ = static_cast<uint32_t>(size); }
  void assign(std::span<const T> list) {
    size_ = 0;
    append(list);
  }

 private:
  [[nodiscard]] bool is_outside() const noexcept { return capacity_ > kInside; }

  void append(std::span<const T> list) {
    if (size_ + list.size() > capacity_) grow(size_ + list.size());
    std::copy(list.begin(), list.end(), end());
    size_ += static_cast<uint32_t>(list.size());
  }
  void grow(size_t capacity) {
    auto* const made = new T[capacity];
    std::copy(begin(), end(), made);
    if (is_outside()) delete[] outside_;
    outside_ = made;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  // Discards the previous content.
  void take(ShortList* other) noexcept {
    size_ = other->size_;
    capacity_ = other->capacity_;
    if (is_outside()) {
      outside_ = other->outside_;
    } else {
      std::copy_n(other->inside_, kInside, inside_);
    }
    other->size_ = 0;
    other->capacity_ = kInside;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = kInside;
  union {
    T inside_[kInside] = {};
    T* outside_;
  };
};

/// The edges of a state.
class EdgeList : public ShortList<ByteEdge, 3> {
 public:
  using ShortList::ShortList;
  /// Appends an edge; merges it with the last one if it continues that to the same target.
  void add(ByteEdge edge) {
    if (!empty() && back().target == edge.target && back().high + 1 == edge.low) {
      back().high = edge.high;
    } else {
      push_back(edge);
    }
  }
};

}  // namespace gen::grammar
