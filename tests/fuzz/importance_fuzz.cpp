// SPDX-License-Identifier: Apache-2.0
// Fuzzes the path of an untrusted importance matrix, in both forms. Whatever the reader lets
// through must be finite and not negative, and no larger than the file. Seeds: importance_seeds.py.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "model/importance_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = gen::model::parse_importance(std::as_bytes(std::span(data, size)));
  if (!read.ok()) {
    require(read.status().message()[0] != '\0');
    return 0;
  }
  require(!read.value().all().empty());
  size_t values = 0;
  for (const auto& [name, means] : read.value().all()) {
    require(!name.empty() && !means.empty());
    require(read.value().find(name) == &means);
    for (const float mean : means) require(std::isfinite(mean) && mean >= 0);
    values += means.size();
  }
  require(values * sizeof(float) <= size);
  return 0;
}
