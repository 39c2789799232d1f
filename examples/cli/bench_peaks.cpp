// SPDX-License-Identifier: Apache-2.0
// Chooses and measures peaks. The ceiling counts instructions:
//
// Products are made for 16 outputs at a time (8 with AVX2), one in each lane. For a block of
// `block` columns that takes
//   dots   block / 4, as each lane sums four 8-bit products,
//   scale  3 for the block's scale: convert the sums to float, multiply the scales of weight and
//          input, multiply and add;
//          with scales of runs inside the block 2 for each run: multiply, add;
//          with minima 1 for each run: multiply and add the sum of the inputs.
// All of them compete for the ports of the dots, so dots / (dots + scale) of the measured dot peak
// can be reached: 8 / (8 + 3) = 73 % for blocks of 32. Without VNNI a dot is 3 instructions, which
// the measured peak includes, and the scales weigh less.
#include "bench_peaks.h"

#include <algorithm>

namespace cli {
namespace {

/// Facts of the file formats.
struct BlockType {
  const char* name;
  int block;  // elements that share a float scale
  int bytes;  // of a block
  int run;    // elements that share an integer scale; 0 for none
  bool minima;
};
constexpr BlockType kBlockTypes[] = {
    {"Q8_0", 32, 34, 0, false},      {"Q4_0", 32, 18, 0, false},
    {"Q4_1", 32, 20, 0, true},       {"Q5_0", 32, 22, 0, false},
    {"Q5_1", 32, 24, 0, true},       {"IQ4_NL", 32, 18, 0, false},
    {"MXFP4", 32, 17, 0, false},     {"Q2_K", 256, 84, 16, true},
    {"Q3_K", 256, 110, 16, false},   {"Q4_K", 256, 144, 32, true},
    {"Q5_K", 256, 176, 32, true},    {"Q6_K", 256, 210, 16, false},
    {"IQ4_XS", 256, 136, 32, false}, {"IQ2_XXS", 256, 66, 32, false},
    {"IQ2_XS", 256, 74, 16, false},  {"IQ2_S", 256, 82, 16, false},
    {"IQ3_XXS", 256, 98, 32, false}, {"IQ3_S", 256, 110, 32, false},
    {"IQ1_S", 256, 50, 32, true},    {"IQ1_M", 256, 56, 16, false},
    {"TQ1_0", 256, 54, 32, false},   {"TQ2_0", 256, 66, 32, false},
};

const BlockType* find_block(const std::string& name) {
  const auto* found = std::find_if(std::begin(kBlockTypes), std::end(kBlockTypes),
                                   [&](const BlockType& type) { return name == type.name; });
  return found == std::end(kBlockTypes) ? nullptr : found;
}

double measured(int32_t threads, const char* what) {
  double value = 0;
  gen_error error;
  check(gen_measure_peaks(threads, what, &value, &error), error);
  return value;
}

std::string level_in_use() {
  return nlohmann::json::parse(text_of(gen_build_info)).value("cpu", "");
}

/// Instructions of a dot at the current CPU level; 0 where the count above does not apply.
int dot_instructions() {
  const std::string level = level_in_use();
  if (level == "avx512_vnni" || level == "avx512_bf16") return 1;
  return level == "avx2" || level == "avx512" ? 3 : 0;
}

/// The ceiling of all block types of the file together, weighted by their numbers of weights. The
/// embedding is included: it has the type of the others or is small.
double ceiling_of_mixture(const nlohmann::json& shares, int dot) {
  double elements = 0;
  double cost = 0;
  for (const auto& [name, share] : shares.items()) {
    const BlockType* type = find_block(name);
    if (type == nullptr) continue;
    const double count = share.get<double>() * type->block / type->bytes;
    elements += count;
    cost += count / std::max(ceiling_of(name, dot), 1e-9);
  }
  return dot > 0 && cost > 0 ? elements / cost : 0;
}

}  // namespace

double ceiling_of(const std::string& type, int dot) {
  if (type == "F32" || type == "F16" || type == "BF16") return 1;
  const BlockType* found = find_block(type);
  if (found == nullptr) return 0;
  const int runs = found->run > 0 ? found->block / found->run : 1;
  const int scale = 3 + (found->run > 0 ? 2 * runs : 0) + (found->minima ? runs : 0);
  const double dots = found->block / 4.0 * dot;
  return dots / (dots + scale);
}

Peaks measure_peaks(int32_t threads, const nlohmann::json& description) {
  Peaks peaks;
  peaks.bandwidth = measured(threads, "read_bandwidth");
  peaks.float_operations = measured(threads, "fma_f32");
  const nlohmann::json& shares = description.at("weight_types");
  // Norms are F32 in every file; the type with the most bytes is that of the products.
  std::string most;
  for (const auto& [name, share] : shares.items()) {
    if (most.empty() || share.get<double>() > shares.at(most).get<double>()) most = name;
  }
  peaks.products = "fma_f32";
  peaks.operations = peaks.float_operations;
  if (find_block(most) != nullptr) {
    peaks.products = "dot_i8";
    peaks.operations = measured(threads, "dot_i8");
    peaks.ceiling = ceiling_of_mixture(shares, dot_instructions());
  } else if (most == "BF16" && level_in_use() == "avx512_bf16") {
    peaks.products = "dot_bf16";
    peaks.operations = measured(threads, "dot_bf16");
  }
  return peaks;
}

}  // namespace cli
