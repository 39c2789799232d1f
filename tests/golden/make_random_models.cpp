// SPDX-License-Identifier: Apache-2.0
// Writes the random models to a folder, for another program to run: make_random_models FOLDER.
#include <cstdio>
#include <filesystem>

#include "golden/random_models.h"
#include "support/gguf_writer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_random_models FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  for (const std::string& name : gen::test::random_model_names()) {
    const std::string path = (folder / (name + ".gguf")).string();
    const auto bytes = gen::test::make_random_model(name);
    if (!gen::test::write_file(path, bytes)) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
    std::printf("%s %016llx\n", path.c_str(),
                static_cast<unsigned long long>(gen::test::fingerprint(bytes)));
  }
  return 0;
}
