// SPDX-License-Identifier: Apache-2.0
// Reading golden files. See golden_file.h.
#include "golden/golden_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gen::test {
namespace {

bool read_ids(std::istringstream& line, std::vector<int32_t>* out) {
  int32_t id = 0;
  while (line >> id) out->push_back(id);
  return line.eof() && !out->empty();
}

bool read_top(std::istringstream& line, GoldenFile* out) {
  std::vector<std::pair<int32_t, double>> top;
  int32_t id = 0;
  char colon = 0;
  double probability = 0;
  while (line >> id >> colon >> probability) top.emplace_back(id, probability);
  out->top.push_back(top);
  return line.eof() && !top.empty();
}

bool read_line(const std::string& text, GoldenFile* out) {
  std::istringstream line(text);
  std::string keyword;
  line >> keyword;
  if (keyword == "model") {
    line >> out->kind >> out->model >> std::hex >> out->fingerprint;
    return !line.fail();
  }
  if (keyword == "text") {
    out->text = text.substr(std::min(text.size(), sizeof "text"));
    return true;
  }
  if (keyword == "tokens") return read_ids(line, &out->tokens);
  if (keyword == "greedy") return read_ids(line, &out->greedy);
  if (keyword == "top") return read_top(line, out);
  return keyword == "#";
}

}  // namespace

std::vector<std::string> golden_paths(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".golden") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool read_golden(const std::string& path, GoldenFile* out) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!read_line(line, out)) return false;
  }
  return !out->model.empty() && !out->tokens.empty() && out->top.size() == out->tokens.size();
}

}  // namespace gen::test
