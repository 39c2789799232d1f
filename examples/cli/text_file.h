// SPDX-License-Identifier: Apache-2.0
// Files that options name.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "handles.h"

namespace cli {

/// Of a text; its tokens take several times as much memory. Devices have no end.
constexpr size_t kMostTextBytes = size_t{256} << 20;

/// The content of a file, or a Failure that names it.
inline std::string text_of_file(const std::string& path) {
  std::string text;
  int reason = 0;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    char part[4096];
    for (size_t n = 0;
         text.size() <= kMostTextBytes && (n = std::fread(part, 1, sizeof part, file)) > 0;) {
      text.append(part, n);
    }
    reason = std::ferror(file) != 0 ? errno : 0;
    std::fclose(file);
  } else {
    reason = errno;
  }
  if (reason != 0) {
    throw Failure("cannot read '" + path + "': " + std::system_category().message(reason));
  }
  if (text.size() > kMostTextBytes) {
    throw Failure("'" + path + "' is too long: a text may have " +
                  std::to_string(kMostTextBytes >> 20) + " MiB");
  }
  return text;
}

/// The ids of a text, without special tokens.
inline std::vector<int32_t> tokens_of_file(const Model& model, const std::string& path) {
  const std::string text = text_of_file(path);
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model.get());
  gen_error error;
  size_t n = 0;
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), 0, nullptr, 0, &n, &error),
        error);
  std::vector<int32_t> ids(n);
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), 0, ids.data(), n, &n, &error),
        error);
  return ids;
}

/// What the tokenizer puts before a text.
inline std::vector<int32_t> tokens_before(const Model& model) {
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model.get());
  gen_error error;
  size_t n = 0;
  check(gen_tokenizer_encode(tokenizer, "", 0, GEN_ENCODE_ADD_BOS, nullptr, 0, &n, &error), error);
  std::vector<int32_t> ids(n);
  check(gen_tokenizer_encode(tokenizer, "", 0, GEN_ENCODE_ADD_BOS, ids.data(), n, &n, &error),
        error);
  return ids;
}

}  // namespace cli
