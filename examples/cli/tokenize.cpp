// SPDX-License-Identifier: Apache-2.0
// generate tokenize: standard input or a text, byte for byte, to token ids.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model_file.h"
#include "option_help.h"

namespace cli {
namespace {

struct Tokenize {
  ModelChoice model;
  std::string text;
  bool has_text = false;  // else standard input is the text
  bool json = false;
  bool bos = false;
  bool special = false;
};

std::string text_for(const Tokenize& options) {
  if (options.has_text) return options.text;
  if (isatty(STDIN_FILENO) == 1) {
    throw Failure("no text: it comes from standard input or follows the file, or -p", 2);
  }
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

/// A text where the file should be: `tokenize "hi there"`.
bool looks_like_text(const std::string& path) {
  std::error_code failure;
  if (path.empty() || std::filesystem::exists(path, failure)) return false;
  return path.find(' ') != std::string::npos || path.find('.') == std::string::npos;
}

void tokenize(const Tokenize& options) {
  if (looks_like_text(options.model.path)) {
    throw Failure("there is no file '" + options.model.path + "'; a text is given with -p");
  }
  const std::string text = text_for(options);
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
  CLI::App* command = app.add_subcommand("tokenize", "convert a text to token ids");
  command->add_option("-m,--model,FILE", options->model.path,
                      "GGUF or SentencePiece file (the bundled model if not given)");
  command->add_option("-p,--prompt,TEXT", options->text,
                      "the text; without it standard input, byte for byte");
  command->add_option("--pre-tokenizer", options->model.pre_tokenizer, model_help("pre_tokenizer"));
  command->add_flag("--json", options->json, "print {\"tokens\":[…]}");
  command->add_flag("--bos", options->bos, "put the begin-of-sequence token first");
  command->add_flag("--special", options->special,
                    "turn names of special tokens into these tokens");
  command->callback([options, command] {
    options->has_text = command->count("--prompt") > 0;
    tokenize(*options);
  });
}

}  // namespace cli
