// SPDX-License-Identifier: Apache-2.0
// A canonical form for JSON values: two texts have equal values if and only if their forms are the
// same bytes. Numbers are compared by value, strings by their characters, objects regardless of the
// order of their members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gen::grammar {

/// Reused, so that it allocates nothing once its tables have grown.
/// Threads: not synchronised.
class JsonCanonical {
 public:
  /// Writes the form of a JSON text, which may have white space around it, to `*out`. For invalid
  /// JSON the result is unspecified.
  void write(std::string_view text, std::string* out);
  /// Bytes before the characters of a string, which may be unterminated.
  static constexpr uint32_t kBeforeString = 5;

  /// For the last text, if it is an unterminated object or array: the number of members, or of
  /// items, that a comma follows.
  [[nodiscard]] size_t n_parts() const noexcept { return n_parts_; }
  [[nodiscard]] std::string_view part(size_t i) const noexcept {
    const size_t end = i + 1 < n_parts_ ? members_[i + 1] : end_of_parts_;
    return std::string_view(*out_).substr(members_[i], end - members_[i]);
  }
  [[nodiscard]] std::string_view items() const noexcept {
    return std::string_view(*out_).substr(0, end_of_parts_);
  }

 private:
  struct Open {
    size_t first_member;  // in members_
    bool object;
  };
  void read_string();
  void read_escape();
  void read_number();
  void sort_members(size_t first);

  std::string_view text_;
  size_t at_ = 0;
  std::string* out_ = nullptr;
  std::vector<Open> open_;
  std::vector<size_t> members_;  // where they begin
  size_t n_parts_ = 0;
  size_t end_of_parts_ = 0;
  std::vector<std::string_view> sorted_;
  std::string copy_;
};

}  // namespace gen::grammar
