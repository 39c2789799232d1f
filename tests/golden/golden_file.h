// SPDX-License-Identifier: Apache-2.0
// A golden file: what another program computed for a text on a model. Lines of a keyword and
// values: "model KIND NAME FINGERPRINT", "text …", "tokens id…" (with BOS), "greedy id…"
// and, for each position, "top id:probability…", best first. make_goldens.sh writes them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gen::test {

struct GoldenFile {
  /// "random": of random_models.h; "bundled": of examples/demo_model; "dequantised": one of those
  /// in float32, see bundled_models.h.
  std::string kind;
  std::string model;  // without ".gguf"
  uint64_t fingerprint = 0;
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<int32_t> greedy;
  std::vector<std::vector<std::pair<int32_t, double>>> top;
};

/// Paths of all golden files of a folder, in order.
std::vector<std::string> golden_paths(const std::string& folder);

/// False if the file is missing, damaged or has another number of positions than of tokens.
bool read_golden(const std::string& path, GoldenFile* out);

}  // namespace gen::test
