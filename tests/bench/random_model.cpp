// SPDX-License-Identifier: Apache-2.0
// Writes a model with random weights as a GGUF file, of any shape and weight type, so that anyone
// can repeat a speed measurement without a download:
//   random_model OUT.gguf [--family llama] [--type Q8_0] [--layers 22] [--width 2048] [--heads 32]
//                [--kv-heads 4] [--head-dim N] [--ffn 5632] [--vocab 32000] [--context 16384]
//                [--experts 0] [--used 2]
// The shape not asked for is that of a model with 1.1 billion weights; of the family qwen35 that of
// one with 0.8 billion, with a block that drafts. The family eagle3 is a head for a llama of the
// shape. With --experts each layer has so many feed-forwards, of which --used are chosen for a
// token. Types are those that quant/format.h encodes, and Q4_K_M, the usual mixture of Q4_K and
// Q6_K. The text that such a model writes means nothing.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "bench/random_families.h"

namespace gen::test {
namespace {

int usage() {
  std::fprintf(
      stderr,
      "usage: random_model OUT.gguf [--family llama|eagle3|qwen35] [--type Q8_0] [--layers N]\n"
      "                    [--width N] [--heads N] [--kv-heads N] [--head-dim N] [--ffn N]\n"
      "                    [--vocab N] [--context N] [--experts N] [--used N]\n"
      "width must be a multiple of heads, heads of kv-heads; vocab at least 400, experts at\n"
      "least used\n");
  return 2;
}

int run(int argc, char** argv) {
  Shape shape;
  if (argc < 2 || argc % 2 != 0 || argv[1][0] == '-') return usage();
  shape.path = argv[1];
  const std::map<std::string, uint64_t Shape::*> numbers = {
      {"--layers", &Shape::layers},     {"--width", &Shape::width},     {"--heads", &Shape::heads},
      {"--kv-heads", &Shape::kv_heads}, {"--ffn", &Shape::ffn},         {"--vocab", &Shape::vocab},
      {"--context", &Shape::context},   {"--experts", &Shape::experts}, {"--used", &Shape::used},
      {"--head-dim", &Shape::head_dim}};
  std::string family = "llama";
  for (int i = 2; i < argc; i += 2) {
    if (std::string(argv[i]) == "--family") family = argv[i + 1];
  }
  if (family == "qwen35") {
    shape = {.path = shape.path,
             .layers = 24,
             .width = 1024,
             .heads = 8,
             .kv_heads = 2,
             .ffn = 3584,
             .vocab = 248320,
             .head_dim = 256};
  }
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--family") continue;
    if (name == "--type") {
      shape.type = argv[i + 1];
      for (char& c : shape.type) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      continue;
    }
    const auto number = numbers.find(name);
    char* end = nullptr;
    const unsigned long long value = std::strtoull(argv[i + 1], &end, 10);
    if (number == numbers.end() || *end != '\0' || value == 0 || value > 1ULL << 24) return usage();
    shape.*number->second = value;
  }
  if (shape.width % shape.heads != 0 || shape.heads % shape.kv_heads != 0 || shape.vocab < 400 ||
      shape.head_width() % 2 != 0 || (shape.experts > 0 && shape.experts < shape.used)) {
    return usage();
  }
  if (family == "llama") return LlamaFile(shape).write() ? 0 : 1;
  if (family == "eagle3") return Eagle3File(shape).write() ? 0 : 1;
  return family == "qwen35" ? (Qwen35File(shape).write() ? 0 : 1) : usage();
}

}  // namespace
}  // namespace gen::test

int main(int argc, char** argv) { return gen::test::run(argc, argv); }
