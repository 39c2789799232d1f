// SPDX-License-Identifier: Apache-2.0
// See random_vocabulary.h.
#include "golden/random_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace gen::test {
namespace {

/// The special tokens, and those of bytes.
constexpr size_t kFirstPiece = 259;

/// A leading '_' stands for the space.
constexpr std::string_view kPieces =
    "_t he _a in er on re _s at en _w it es or _b _m an _f ou _c is nd _d ar al ing _the "
    "ed _h _p le ll st ic as ve om _l _g ent ow ro ly ay _in _n _to _of _and ch ri ot ld "
    "_re ke ho _he se us id ir _was _it _on ur ion _on et gh ght ver am ut _be _for "
    "_ a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H I J K L M N O P "
    "Q R S T U V W X Y Z 0 1 2 3 4 5 6 7 8 9 . , : ; ! ? ' - ( )";

/// Pairs of tokens that make one, of each token the first.
std::vector<std::string> merges_of(const std::vector<std::string>& tokens) {
  const auto known = [&](std::string_view text) {
    return std::find(tokens.begin() + kFirstPiece, tokens.end(), text) != tokens.end();
  };
  std::vector<std::string> merges;
  for (const std::string& token : tokens) {
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const std::string left = token.substr(0, cut);
      if (!known(left) || !known(token.substr(cut))) continue;
      merges.push_back(left + " " + token.substr(cut));
      break;
    }
  }
  return merges;
}

}  // namespace

uint64_t set_random_vocabulary(std::string_view architecture, GgufWriter* gguf) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  constexpr const char* kHex = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    tokens.push_back(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">");
    types.push_back(6);
  }
  const std::string space = "\xE2\x96\x81";
  for (size_t begin = 0; begin < kPieces.size();) {
    const size_t end = std::min(kPieces.find(' ', begin), kPieces.size());
    std::string piece(kPieces.substr(begin, end - begin));
    begin = end + 1;
    if (piece[0] == '_') piece.replace(0, 1, space);
    if (std::find(tokens.begin(), tokens.end(), piece) != tokens.end()) continue;
    tokens.push_back(piece);
    types.push_back(1);
  }
  if (architecture == "phi3") {  // without which the other program does not load it
    tokens.emplace_back("<|endoftext|>");
    types.push_back(3);
  }
  const bool merges = architecture == "gemma4";
  if (merges) gguf->set_strings("tokenizer.ggml.merges", merges_of(tokens));
  std::vector<float> scores(tokens.size(), 0.0F);
  for (size_t i = kFirstPiece; i < scores.size(); ++i) {
    scores[i] = -static_cast<float>(i - kFirstPiece + 1);
  }
  gguf->set_string("tokenizer.ggml.model", merges ? "gemma4" : "llama");
  gguf->set_strings("tokenizer.ggml.tokens", tokens);
  gguf->set_array("tokenizer.ggml.scores", scores);
  gguf->set_array("tokenizer.ggml.token_type", types);
  gguf->set<uint32_t>("tokenizer.ggml.bos_token_id", 1);
  gguf->set<uint32_t>("tokenizer.ggml.eos_token_id", 2);
  gguf->set<uint32_t>("tokenizer.ggml.unknown_token_id", 0);
  gguf->set<bool>("tokenizer.ggml.add_bos_token", true);
  return tokens.size();
}

}  // namespace gen::test
