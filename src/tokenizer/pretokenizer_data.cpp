// SPDX-License-Identifier: Apache-2.0
// The word rules of the model families, see pretokenizer_data.h. White space is spelled out as the
// Unicode property White_Space (WS below), because PCRE2's own \s counts U+180E in. Families write
// one of three things for a run of white space that is followed by a word: leave its last character
// to the word, or end it at a line break, or both.
#include "tokenizer/pretokenizer_data.h"

#include <array>

namespace gen::tokenizer {
namespace {

// Inside a class: white space, letters and digits.
#define WS "\\t-\\r\\x{85}\\p{Z}"
#define SPACES "[" WS "]"
#define NOT_WORD "[^" WS "\\p{L}\\p{N}]"
// A run of white space without its last character if a word follows.
#define SPACES_BEFORE_WORD SPACES "+(?![^" WS "])|" SPACES "+"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

// GPT-2: contractions in lower case only; a word takes one space before it along.
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?" NOT_WORD "+|" SPACES_BEFORE_WORD

// Llama 3, Qwen and their relatives: any one sign may lead a word, digits come in groups, line
// breaks stay with the punctuation before them.
#define LETTERS_WITH_SIGN "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS_AND_BREAKS " ?" NOT_WORD "+[\\r\\n]*|" SPACES "*[\\r\\n]+"
#define LLAMA3(digits) \
  CONTRACTION "|" LETTERS_WITH_SIGN "|" digits "|" SIGNS_AND_BREAKS "|" SPACES_BEFORE_WORD

// Tekken and the o200k relatives: a word ends where lower case turns into upper case.
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(suffix)                                                                           \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" suffix "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER \
  "*" suffix
#define CASED_REST " ?" NOT_WORD "+[\\r\\n/]*|" SPACES "*[\\r\\n]+|" SPACES_BEFORE_WORD

constexpr const char* kGpt2[] = {GPT2};
constexpr const char* kDefault[] = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"};
constexpr const char* kFalcon[] = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"};
constexpr const char* kSingleDigits[] = {"\\p{N}", GPT2};
constexpr const char* kLlama3[] = {LLAMA3("\\p{N}{1,3}")};
constexpr const char* kQwen2[] = {LLAMA3("\\p{N}")};
constexpr const char* kQwen35[] = {
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS
                "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES "*[\\r\\n]+|" SPACES_BEFORE_WORD};
constexpr const char* kTekken[] = {CASED("") "|\\p{N}|" CASED_REST};
constexpr const char* kGpt4o[] = {CASED(CONTRACTION "?") "|\\p{N}{1,3}|" CASED_REST};
// Lines apart, then as Qwen 2.
constexpr const char* kLaguna[] = {"[^\\n]+|\\n+", LLAMA3("\\p{N}")};
constexpr const char* kDeepseekCoder[] = {
    "[\\r\\n]", SPACES "?\\p{L}+", SPACES "?\\p{P}+",
    "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+", "\\p{N}"};
constexpr const char* kDeepseek3[] = {
    "\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+",
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES "*[\\r\\n]+|" SPACES_BEFORE_WORD};
constexpr const char* kBloom[] = {" ?[^(" WS
                                  "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}"
                                  "\\x{60C})]+"};

#undef WS
#undef SPACES
#undef NOT_WORD
#undef SPACES_BEFORE_WORD
#undef CONTRACTION
#undef GPT2
#undef LETTERS_WITH_SIGN
#undef SIGNS_AND_BREAKS
#undef LLAMA3
#undef UPPER
#undef LOWER
#undef CASED
#undef CASED_REST

struct Named {
  std::string_view name;
  PretokenizerRules rules;
};

// clang-format off
constexpr std::array kTable = {
    Named{"default", {kDefault, false}},
    Named{"gpt-2", {kGpt2, false}},
    Named{"phi-2", {kGpt2, false}},
    Named{"mpt", {kGpt2, false, true}},
    Named{"olmo", {kGpt2, false, true}},
    Named{"jais", {kGpt2, false}},
    Named{"trillion", {kGpt2, false}},
    Named{"exaone4", {kGpt2, false}},
    Named{"a.x-4.0", {kGpt2, false}},
    Named{"mellum", {kGpt2, false}},
    Named{"gigachat", {kGpt2, false}},
    Named{"granite-docling", {kGpt2, false}},
    Named{"falcon", {kFalcon, false}},
    Named{"starcoder", {kSingleDigits, false}},
    Named{"refact", {kSingleDigits, false}},
    Named{"command-r", {kSingleDigits, false, true}},
    Named{"smollm", {kSingleDigits, false}},
    Named{"codeshell", {kSingleDigits, false}},
    Named{"exaone", {kSingleDigits, false}},
    Named{"minerva-7b", {kSingleDigits, false}},
    Named{"mellum2", {kSingleDigits, false}},
    Named{"llama-bpe", {kLlama3, true}},
    Named{"llama3", {kLlama3, true}},
    Named{"llama-v3", {kLlama3, true}},
    Named{"falcon3", {kLlama3, true}},
    Named{"falcon-h1", {kLlama3, true}},
    Named{"pixtral", {kLlama3, true}},
    Named{"lfm2", {kLlama3, true}},
    Named{"dbrx", {kLlama3, false}},
    Named{"smaug-bpe", {kLlama3, false}},
    Named{"glm4", {kLlama3, false}},
    Named{"chatglm-bpe", {kLlama3, false}},
    Named{"qwen2", {kQwen2, false, true}},
    Named{"deepseek-r1-qwen", {kQwen2, false}},
    Named{"stablelm2", {kQwen2, false, true}},
    Named{"megrez", {kQwen2, false}},
    Named{"hunyuan", {kQwen2, false}},
    Named{"grok-2", {kQwen2, false}},
    Named{"solar-open", {kQwen2, false}},
    Named{"qwen35", {kQwen35, false, true}},
    Named{"tekken", {kTekken, true}},
    Named{"gpt-4o", {kGpt4o, false}},
    Named{"llama4", {kGpt4o, false}},
    Named{"minimax-m2", {kGpt4o, false}},
    Named{"laguna", {kLaguna, false}},
    Named{"deepseek-coder", {kDeepseekCoder, false}},
    Named{"deepseek-v3", {kDeepseek3, false}},
    Named{"hunyuan-dense", {kDeepseek3, false}},
    Named{"bloom", {kBloom, false}},
    Named{"poro-chat", {kBloom, false}},
    Named{"gpt3-finnish", {kBloom, false}},
};
// clang-format on

}  // namespace

const PretokenizerRules* find_pretokenizer_rules(std::string_view name) noexcept {
  for (const Named& entry : kTable) {
    if (entry.name == name) return &entry.rules;
  }
  return nullptr;
}

}  // namespace gen::tokenizer
