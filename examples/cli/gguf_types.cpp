// SPDX-License-Identifier: Apache-2.0
// See gguf_types.h. Block sizes are facts of the format.
#include "gguf_types.h"

#include <iterator>

namespace cli {
namespace {

struct Type {
  uint32_t number;
  const char* name;
  uint32_t elements;  // of a block; 0: not known here
  uint32_t bytes;
};
constexpr Type kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},     {4, "Q4_2", 0, 0},
    {5, "Q4_3", 0, 0},        {31, "Q4_0_4_4", 0, 0},   {32, "Q4_0_4_8", 0, 0},
    {33, "Q4_0_8_8", 0, 0},   {36, "IQ4_NL_4_4", 0, 0}, {133, "Q6_0", 0, 0},
    {134, "IQ1_BN", 0, 0},    {135, "IQ2_BN", 0, 0},    {137, "IQ2_K", 0, 0},
    {138, "IQ3_K", 0, 0},     {139, "IQ4_K", 0, 0},     {140, "IQ5_K", 0, 0},
    {141, "IQ6_K", 0, 0},     {144, "IQ4_KS", 0, 0},    {145, "IQ2_KS", 0, 0},
    {146, "IQ4_KSS", 0, 0},   {148, "Q8_K32", 0, 0},    {151, "Q8_KV", 0, 0},
    {152, "IQ5_KS", 0, 0},    {153, "IQ2_KT", 0, 0},    {154, "IQ3_KT", 0, 0},
    {155, "IQ4_KT", 0, 0},    {156, "IQ3_KS", 0, 0},    {157, "IQ2_KL", 0, 0},
    {158, "IQ1_KT", 0, 0},
};

/// By number; numbers without a name were given up.
constexpr const char* kFileTypes[] = {
    "F32",   "F16",     "Q4_0",      "Q4_1",   "",       "",        "",       "Q8_0",   "Q5_0",
    "Q5_1",  "Q2_K",    "Q3_K_S",    "Q3_K_M", "Q3_K_L", "Q4_K_S",  "Q4_K_M", "Q5_K_S", "Q5_K_M",
    "Q6_K",  "IQ2_XXS", "IQ2_XS",    "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S",  "IQ4_NL", "IQ3_S",
    "IQ3_M", "IQ2_S",   "IQ2_M",     "IQ4_XS", "IQ1_M",  "BF16",    "",       "",       "",
    "TQ1_0", "TQ2_0",   "MXFP4_MOE", "NVFP4",  "Q1_0",   "Q2_0"};

const Type* find(uint32_t number) {
  for (const Type& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

}  // namespace

std::string gguf_type_name(uint32_t number) {
  const Type* type = find(number);
  if (type == nullptr) return "type " + std::to_string(number);
  return type->elements > 0 ? type->name : type->name + (" (" + std::to_string(number) + ")");
}

std::string gguf_file_type_name(uint64_t number) {
  return number < std::size(kFileTypes) ? kFileTypes[number] : "";
}

std::optional<uint64_t> gguf_type_bytes(uint32_t number, uint64_t elements) {
  const Type* type = find(number);
  if (type == nullptr || type->elements == 0 || elements % type->elements != 0) return std::nullopt;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / type->elements, uint64_t{type->bytes}, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace cli
