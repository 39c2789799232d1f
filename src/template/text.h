// SPDX-License-Identifier: Apache-2.0
// A text that knows who wrote each of its bytes: the template, or those whose messages it lays out.
// Only the template's own bytes may become special tokens (tokenizer/tokenizer.h, TextSegment).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gen::templates {

enum class Writer : uint8_t { kTemplate = 0, kUser = 1 };

/// Storage: the bytes, the writer of the first, and ascending offsets where the writer changes.
class Text {
 public:
  Text() = default;
  Text(std::string_view bytes, Writer writer) : bytes_(bytes), first_(writer) {}

  [[nodiscard]] std::string_view view() const noexcept { return bytes_; }
  [[nodiscard]] size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  /// Whether one writer wrote all of it.
  [[nodiscard]] bool uniform() const noexcept { return changes_.empty(); }
  /// Of the byte at `offset`, which is below size().
  [[nodiscard]] Writer writer_at(size_t offset) const noexcept {
    const auto passed = std::upper_bound(changes_.begin(), changes_.end(), offset);
    return writer_after(static_cast<size_t>(passed - changes_.begin()));
  }
  [[nodiscard]] Writer first_writer() const noexcept { return first_; }
  /// Of what is made of it as a whole: the template only if all of it is.
  [[nodiscard]] Writer writer_of_all() const noexcept {
    return uniform() ? first_ : Writer::kUser;
  }

  void append(std::string_view bytes, Writer writer) {
    if (bytes.empty()) return;
    if (bytes_.empty()) {
      first_ = writer;
      changes_.clear();
    } else if (writer_after(changes_.size()) != writer) {
      changes_.push_back(bytes_.size());
    }
    bytes_.append(bytes);
  }
  /// Bytes [begin, end) of another text.
  void append(const Text& from, size_t begin, size_t end) {
    from.runs(begin, end, [this](std::string_view run, Writer writer) { append(run, writer); });
  }
  void append(const Text& from) { append(from, 0, from.size()); }

  /// Calls visit(bytes, writer) for each stretch of one writer in [begin, end).
  template <typename Visit>
  void runs(size_t begin, size_t end, Visit visit) const {
    auto change = std::upper_bound(changes_.begin(), changes_.end(), begin);
    while (begin < end) {
      const size_t stop = change == changes_.end() ? end : std::min(end, *change);
      visit(std::string_view(bytes_).substr(begin, stop - begin),
            writer_after(static_cast<size_t>(change - changes_.begin())));
      begin = stop;
      if (change != changes_.end()) ++change;
    }
  }

  [[nodiscard]] Text slice(size_t begin, size_t end) const {
    Text made;
    made.append(*this, begin, end);
    return made;
  }

  /// Of the bytes alone.
  std::string take() && { return std::move(bytes_); }

 private:
  [[nodiscard]] Writer writer_after(size_t changes) const noexcept {
    return static_cast<Writer>((static_cast<size_t>(first_) + changes) % 2);
  }

  std::string bytes_;
  Writer first_ = Writer::kTemplate;
  std::vector<size_t> changes_;
};

}  // namespace gen::templates
