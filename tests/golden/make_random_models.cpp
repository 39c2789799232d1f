// SPDX-License-Identifier: Apache-2.0
// Writes the models that are not in the tree, random and dequantised, to a folder, for another
// program to run: make_random_models FOLDER. Prints a line of path, kind and fingerprint for each.
#include <cstdio>
#include <filesystem>

#include "golden/bundled_models.h"
#include "golden/random_models.h"
#include "support/gguf_writer.h"

namespace {

bool write_model(const std::filesystem::path& folder, const std::string& name, const char* kind,
                 const std::vector<std::byte>& bytes) {
  const std::string path = (folder / (name + ".gguf")).string();
  if (bytes.empty() || !gen::test::write_file(path, bytes)) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return false;
  }
  std::printf("%s %s %016llx\n", path.c_str(), kind,
              static_cast<unsigned long long>(gen::test::fingerprint(bytes)));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: make_random_models FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  for (const std::string& name : gen::test::random_model_names()) {
    const auto bytes = gen::test::make_random_model(name);
    if (!write_model(folder, name, "random", bytes)) return 1;
    const auto assistant = gen::test::make_random_assistant(name);
    if (assistant.empty()) continue;
    if (!write_model(folder, name + "-assistant", "assistant", assistant)) return 1;
  }
  for (const std::string& name : gen::test::dequantised_model_names()) {
    const auto bytes = gen::test::make_dequantised_model(name);
    if (!write_model(folder, name, "dequantised", bytes)) return 1;
  }
  return 0;
}
