// SPDX-License-Identifier: Apache-2.0
// Names of the parts of a split model. See split_name.h.
#include "model/gguf/split_name.h"

#include <algorithm>

namespace gen::gguf {
namespace {

constexpr std::string_view kForm = "-#####-of-#####.gguf";
constexpr size_t kDigits = 5;
constexpr size_t kNumberAt = 1;
constexpr size_t kCountAt = 10;

int number_at(std::string_view tail, size_t at) {
  int number = 0;
  for (const char c : tail.substr(at, kDigits)) number = number * 10 + (c - '0');
  return number;
}

void put_number(std::string* tail, size_t at, int number) {
  for (size_t i = kDigits; i-- > 0; number /= 10) {
    (*tail)[at + i] = static_cast<char>('0' + number % 10);
  }
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view path) {
  if (path.size() < kForm.size()) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kForm.size());
  const bool matches = std::equal(tail.begin(), tail.end(), kForm.begin(), [](char c, char form) {
    return form == '#' ? c >= '0' && c <= '9' : c == form;
  });
  if (!matches) return std::nullopt;
  return SplitName{std::string(path.substr(0, path.size() - kForm.size())),
                   number_at(tail, kNumberAt), number_at(tail, kCountAt)};
}

std::string split_path(std::string_view prefix, int number, int count) {
  std::string tail(kForm);
  put_number(&tail, kNumberAt, number);
  put_number(&tail, kCountAt, count);
  return std::string(prefix) + tail;
}

Status in_part(const Status& status, std::string_view path) noexcept {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  return error(status.code(), "'%.*s': %s", static_cast<int>(std::min<size_t>(name.size(), 200)),
               name.data(), status.message());
}

}  // namespace gen::gguf
