// SPDX-License-Identifier: Apache-2.0
// See foreign_types.h.
#include "model/gguf/foreign_types.h"

namespace gen::gguf {
namespace {

struct ForeignType {
  uint32_t number;
  const char* name;
};

// Types that files no longer have, then those of ik_llama.cpp.
constexpr ForeignType kForeignTypes[] = {
    {4, "Q4_2"},         {5, "Q4_3"},        {31, "Q4_0_4_4"},    {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},    {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"},  {38, "IQ4_NL_8_8"},
    {133, "Q6_0"},       {134, "IQ1_BN"},    {135, "IQ2_BN"},     {137, "IQ2_K"},
    {138, "IQ3_K"},      {139, "IQ4_K"},     {140, "IQ5_K"},      {141, "IQ6_K"},
    {144, "IQ4_KS"},     {145, "IQ2_KS"},    {146, "IQ4_KSS"},    {148, "Q8_K32"},
    {151, "Q8_KV"},      {152, "IQ5_KS"},    {153, "IQ2_KT"},     {154, "IQ3_KT"},
    {155, "IQ4_KT"},     {156, "IQ3_KS"},    {157, "IQ2_KL"},     {158, "IQ1_KT"},
    {202, "Q4_0_R8"},    {206, "Q5_0_R4"},   {208, "Q8_0_R8"},    {210, "Q2_K_R4"},
    {211, "Q3_K_R4"},    {212, "Q4_K_R4"},   {213, "Q5_K_R4"},    {214, "Q6_K_R4"},
    {216, "IQ2_XXS_R4"}, {217, "IQ2_XS_R4"}, {218, "IQ3_XXS_R4"}, {219, "IQ1_S_R4"},
    {220, "IQ4_NL_R4"},  {221, "IQ3_S_R4"},  {222, "IQ2_S_R4"},   {223, "IQ4_XS_R8"},
    {229, "IQ1_M_R4"},   {230, "BF16_R16"},  {233, "Q6_0_R4"},    {335, "IQ2_BN_R4"},
    {337, "IQ2_K_R4"},   {338, "IQ3_K_R4"},  {339, "IQ4_K_R4"},   {340, "IQ5_K_R4"},
    {344, "IQ4_KS_R4"},  {352, "IQ5_KS_R4"}, {397, "Q8_K_R16"},   {398, "Q8_KV_R8"},
    {399, "Q8_K_R8"},
};
constexpr uint32_t kFirstOfIk = 133;
constexpr uint32_t kLastOfIk = 158;
constexpr uint32_t kFirstRepacked = 200;

}  // namespace

std::string describe_foreign_type(uint32_t number) {
  std::string text = std::to_string(number);
  bool known = false;
  for (const ForeignType& type : kForeignTypes) {
    if (type.number != number) continue;
    // Files of ollama's first days have halves of bytes in another order than MXFP4 has.
    const char* const or_else = number == 4 ? ", or MXFP4 of ollama's first files" : "";
    text.append(" (").append(type.name).append(or_else).append(")");
    known = true;
  }
  const bool of_ik =
      (number >= kFirstOfIk && number <= kLastOfIk) || (known && number >= kFirstRepacked);
  return text + (of_ik ? " is made for ik_llama.cpp" : " is not supported");
}

}  // namespace gen::gguf
