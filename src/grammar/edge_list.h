// SPDX-License-Identifier: Apache-2.0
// The edges of a state while automata are made. Most states have few, which stand in the list
// itself: automata of thousands of states would else be as many blocks of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "grammar/byte_edge.h"

namespace gen::grammar {

class EdgeList {
 public:
  EdgeList() noexcept = default;
  explicit EdgeList(std::span<const ByteEdge> edges) { append(edges); }
  EdgeList(const EdgeList& other) { append(other); }
  EdgeList(EdgeList&& other) noexcept { take(&other); }
  EdgeList& operator=(const EdgeList& other) {
    if (this != &other) assign(other);
    return *this;
  }
  EdgeList& operator=(EdgeList&& other) noexcept {
    if (this != &other) {
      if (is_outside()) delete[] outside_;
      take(&other);
    }
    return *this;
  }
  ~EdgeList() {
    if (is_outside()) delete[] outside_;
  }

  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] ByteEdge* begin() noexcept { return is_outside() ? outside_ : inside_; }
  [[nodiscard]] ByteEdge* end() noexcept { return begin() + size_; }
  [[nodiscard]] const ByteEdge* begin() const noexcept { return is_outside() ? outside_ : inside_; }
  [[nodiscard]] const ByteEdge* end() const noexcept { return begin() + size_; }
  [[nodiscard]] ByteEdge& operator[](size_t i) noexcept { return begin()[i]; }
  [[nodiscard]] const ByteEdge& operator[](size_t i) const noexcept { return begin()[i]; }
  [[nodiscard]] ByteEdge& back() noexcept { return begin()[size_ - 1]; }

  /// `edge` may be one of the list.
  void push_back(ByteEdge edge) {
    if (size_ == capacity_) grow(size_t{capacity_} * 2);
    begin()[size_++] = edge;
  }
  /// Behind the others; joined with the last one where it goes on to the same target.
  void add(ByteEdge edge) {
    if (size_ > 0 && back().target == edge.target && back().high + 1 == edge.low) {
      back().high = edge.high;
    } else {
      push_back(edge);
    }
  }
  void pop_back() noexcept { --size_; }
  /// Leaves the first `size`, which are there.
  void shrink(size_t size) noexcept { size_ = static_cast<uint32_t>(size); }
  void assign(std::span<const ByteEdge> edges) {
    size_ = 0;
    append(edges);
  }

 private:
  static constexpr uint32_t kInside = 3;

  [[nodiscard]] bool is_outside() const noexcept { return capacity_ > kInside; }

  void append(std::span<const ByteEdge> edges) {
    if (size_ + edges.size() > capacity_) grow(size_ + edges.size());
    std::copy(edges.begin(), edges.end(), end());
    size_ += static_cast<uint32_t>(edges.size());
  }
  void grow(size_t capacity) {
    auto* const made = new ByteEdge[capacity];
    std::copy(begin(), end(), made);
    if (is_outside()) delete[] outside_;
    outside_ = made;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  // Of what this held nothing is left.
  void take(EdgeList* other) noexcept {
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
    ByteEdge inside_[kInside] = {};
    ByteEdge* outside_;
  };
};

}  // namespace gen::grammar
