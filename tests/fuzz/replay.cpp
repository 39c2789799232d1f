// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer in ordinary builds: gives every file of the folders on the command line
// to the target, whole, cut short at many places, and with single bytes changed by a fixed rule. It
// proves that the target still builds and survives its seeds under every compiler and sanitizer;
// finding new inputs is libFuzzer's work.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/sanitized.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

// Each input lives in an allocation of its exact size, so that reading past its end is seen.
void give(const Bytes& bytes) {
  const Bytes exact(bytes);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void give_with_damage(const Bytes& seed) {
  constexpr size_t kCuts = gen::test::kSanitized ? 8 : 64;
  constexpr size_t kChanges = gen::test::kSanitized ? 32 : 256;
  std::set<Bytes> given;  // of a short seed much comes out alike
  const auto give_once = [&](Bytes bytes) {
    const auto [place, added] = given.insert(std::move(bytes));
    if (added) give(*place);
  };
  give_once(seed);
  for (size_t i = 0; i < kCuts; ++i) {
    const auto length = static_cast<std::ptrdiff_t>(seed.size() * i / kCuts);
    give_once(Bytes(seed.begin(), seed.begin() + length));
  }
  for (size_t i = 0; i < kChanges && !seed.empty(); ++i) {
    Bytes changed(seed);
    const uint8_t values[] = {0x00, 0xFF, 0x7F, 0x80};
    // Headers come first in every format, so most changes fall there.
    const size_t limit = i % 4 == 0 ? seed.size() : std::min<size_t>(seed.size(), 512);
    changed[i * 7919 % limit] = values[i % 4];
    give_once(std::move(changed));
  }
}

}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  give({});
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      give_with_damage(Bytes(std::istreambuf_iterator<char>(file), {}));
      ++files;
    }
  }
  std::printf("%zu seeds replayed\n", files);
  return 0;
}
