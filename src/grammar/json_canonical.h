// SPDX-License-Identifier: Apache-2.0
// One form for each JSON value: two texts stand for equal values exactly if their forms are the
// same bytes. Numbers are compared by value, strings by their characters, objects whatever the
// order of their members.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gen::grammar {

/// Reused, so that it allocates nothing once its tables have grown.
/// Threads: not synchronised.
class JsonCanonical {
 public:
  /// Puts the form of a JSON text, which may have white space around it, into `*out`. Of what is no
  /// JSON it makes something or other.
  void write(std::string_view text, std::string* out);

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
  std::vector<std::string_view> sorted_;
  std::string copy_;
};

}  // namespace gen::grammar
