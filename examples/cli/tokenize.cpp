// SPDX-License-Identifier: Apache-2.0
// generate tokenize: standard input, byte for byte, to token ids.
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model_file.h"

namespace cli {
namespace {

struct Tokenize {
  ModelChoice model;
  bool json = false;
  bool bos = false;
  bool special = false;
};

void tokenize(const Tokenize& options) {
  const std::string text((std::istreambuf_iterator<char>(std::cin)),
                         std::istreambuf_iterator<char>());
  const Tokenizer tokenizer = load_tokenizer(options.model);
  uint32_t flags = 0;
  if (options.bos) flags |= GEN_ENCODE_ADD_BOS;
  if (options.special) flags |= GEN_ENCODE_PARSE_SPECIAL;
  gen_error error;
  // A text has no more ids than bytes, plus one id in front and one added space.
  std::vector<int32_t> ids(text.size() + 2);
  size_t n = 0;
  gen_status status = gen_tokenizer_encode(tokenizer.get(), text.data(), text.size(), flags,
                                           ids.data(), ids.size(), &n, &error);
  if (status == GEN_ERROR_OUT_OF_RANGE) {
    ids.resize(n);
    status = gen_tokenizer_encode(tokenizer.get(), text.data(), text.size(), flags, ids.data(),
                                  ids.size(), &n, &error);
  }
  check(status, error);
  ids.resize(n);
  if (options.json) {
    std::cout << nlohmann::json{{"tokens", ids}}.dump() << "\n";
    return;
  }
  for (const int32_t id : ids) {
    const std::string piece = text_of([&](char* buf, size_t capacity, size_t* size, gen_error* e) {
      return gen_tokenizer_piece(tokenizer.get(), id, buf, capacity, size, e);
    });
    std::cout << id << "\t"
              << nlohmann::json(piece).dump(-1, ' ', false,
                                            nlohmann::json::error_handler_t::replace)
              << "\n";
  }
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto options = std::make_shared<Tokenize>();
  CLI::App* command = app.add_subcommand("tokenize", "convert standard input to token ids");
  command->add_option("-m,--model,FILE", options->model.path,
                      "GGUF or SentencePiece file (the bundled model if not given)");
  command->add_flag("--json", options->json, "print {\"tokens\":[…]}");
  command->add_flag("--bos", options->bos, "put the begin-of-sequence token first");
  command->add_flag("--special", options->special,
                    "turn names of special tokens into these tokens");
  command->callback([options] { tokenize(*options); });
}

}  // namespace cli
