// SPDX-License-Identifier: Apache-2.0
// See as_written.h.
#include "as_written.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

namespace server {
namespace {

constexpr std::string_view kSpace = " \t\n\r";

class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  /// The value at the path `names` of the object that comes next; nothing if no object comes next.
  void object(std::span<const std::string_view> names) {
    if (!take('{')) return;
    while (at_ < text_.size() && !take('}')) {
      const std::string_view name = value();
      if (!take(':')) return;
      if (!is(name, names[0])) {
        value();
      } else {
        taken_ = {};  // an earlier duplicate does not count
        if (names.size() == 1) {
          taken_ = value();
        } else {
          skip_space();
          const size_t begin = at_;
          object(names.subspan(1));
          at_ = begin;
          value();
        }
      }
      if (!take(',') && !(at_ < text_.size() && text_[at_] == '}')) return;
    }
  }

  [[nodiscard]] std::string_view taken() const { return taken_; }

 private:
  static bool is(std::string_view name, std::string_view wanted) {
    // Whatever stands where a name should; an array would take many times its size.
    if (name.empty() || name.front() != '"') return false;
    const auto read = nlohmann::json::parse(name, nullptr, false);
    return read.is_string() && read.get_ref<const std::string&>() == wanted;
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }

  /// Skips white space, and then `c` if it comes next.
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// Skips a value, up to the bracket that closes its first one.
  std::string_view value() {
    skip_space();
    const size_t begin = at_;
    size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        string();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (depth == 0) {
        at_ = std::min(text_.find_first_of(",:}] \t\n\r", at_), text_.size());
      } else {
        if (c == '}' || c == ']') --depth;
        ++at_;
      }
      if (depth == 0) break;
    }
    return text_.substr(begin, at_ - begin);
  }

  void string() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"')
      at_ += text_[at_] == '\\' ? size_t{2} : size_t{1};
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string_view taken_;
};

}  // namespace

std::string_view take_as_written(std::string_view object,
                                 std::initializer_list<std::string_view> names, std::string* taken,
                                 std::string* room) {
  Walk walk(object);
  walk.object(std::span(names.begin(), names.size()));
  const std::string_view found = walk.taken();
  *taken = found;
  if (found.size() < 2 || (found[0] != '{' && found[0] != '[')) return object;
  const auto begin = static_cast<size_t>(found.data() - object.data());
  const char end = found[0] == '{' ? '}' : ']';
  const size_t size = found.size();
  if (object.data() != room->data()) *room = object;
  room->replace(begin + 1, size - 2, size - 2, ' ');
  (*room)[begin + size - 1] = end;
  return *room;
}

}  // namespace server
