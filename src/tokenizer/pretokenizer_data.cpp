// SPDX-License-Identifier: Apache-2.0
// The word rules of the model families, see pretokenizer_data.h. White space is spelled out as the
// Unicode property White_Space (WS below), because PCRE2's own \s counts U+180E in. Families write
// one of three things for a run of white space that is followed by a word: leave its last character
// to the word, or end it at a line break, or both.
#include "tokenizer/pretokenizer_data.h"

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

// Chinese, Japanese kana; and the rest of the rules that the DeepSeek 3 family shares.
#define HAN_AND_KANA "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
#define SIGN_AND_LATIN "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define MARKED_LETTERS "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
#define DEEPSEEK_WORDS                                                    \
  SIGN_AND_LATIN "|" MARKED_LETTERS "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES \
                 "*[\\r\\n]+|" SPACES_BEFORE_WORD

constexpr const char* kGpt2[] = {GPT2};
constexpr const char* kDefault[] = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"};
constexpr const char* kFalcon[] = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"};
constexpr const char* kSingleDigits[] = {"\\p{N}", GPT2};
constexpr const char* kChameleon[] = {"<sentinel:[0-9]+>",      "IMGIMG[A-I]{1,4}Z",
                                      "[\\t\\n]|    |  ",       "\\p{N}",
                                      "[\\p{P}!-/:-@\\[-`{-~]", GPT2};
constexpr const char* kLlama3[] = {LLAMA3("\\p{N}{1,3}")};
constexpr const char* kMinicpm5[] = {"\\p{N}{1,3}", LLAMA3("\\p{N}+")};
constexpr const char* kQwen2[] = {LLAMA3("\\p{N}")};
constexpr const char* kWithoutContractions[] = {LETTERS_WITH_SIGN "|\\p{N}|" SIGNS_AND_BREAKS
                                                                  "|" SPACES_BEFORE_WORD};
constexpr const char* kSeedCoder[] = {CONTRACTION "|" LETTERS_WITH_SIGN "|\\p{N}| ?[^" WS
                                                  "\\p{L}\\p{N}]+|" SPACES
                                                  "*[\\r\\n]+|" SPACES_BEFORE_WORD};
constexpr const char* kQwen35[] = {
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS
                "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES "*[\\r\\n]+|" SPACES_BEFORE_WORD};
// Letters with single spaces between them are one word.
constexpr const char* kExaoneMoe[] = {
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}\\p{M}*+(?: ?\\p{L}\\p{M}*+)*+|\\p{N}| ?" NOT_WORD
                "+[\\r\\n/]?|" SPACES "*[\\r\\n]|" SPACES_BEFORE_WORD};
constexpr const char* kTekken[] = {CASED("") "|\\p{N}|" CASED_REST};
constexpr const char* kGpt4o[] = {CASED(CONTRACTION "?") "|\\p{N}{1,3}|" CASED_REST};
// Numbers at whose end a word ends are cut into threes from the right.
constexpr const char* kCohere2Moe[] = {"(?<!\\p{Nd})\\p{Nd}++(?![\\p{L}\\p{M}\\p{N}\\p{Pc}])",
                                       CASED(CONTRACTION "?") "|\\p{N}{1,3}|" CASED_REST};
constexpr const char* kYoutu[] = {
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|"
    "[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}"
    "\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|" HAN_AND_KANA,
    CASED(CONTRACTION "?") "|\\p{N}|" CASED_REST};
// As in Tekken, but Han letters are words of their own.
#define UPPER_NOT_HAN "[^\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{Han}]"
#define LOWER_NOT_HAN "[^\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{Han}]"
constexpr const char* kKimiK2[] = {
    "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?" UPPER_NOT_HAN "*" LOWER_NOT_HAN "+" CONTRACTION
    "?|[^\\r\\n\\p{L}\\p{N}]?" UPPER_NOT_HAN "+" LOWER_NOT_HAN "*" CONTRACTION
    "?|\\p{N}{1,3}|" SIGNS_AND_BREAKS "|" SPACES_BEFORE_WORD};
#undef UPPER_NOT_HAN
#undef LOWER_NOT_HAN
// Lines apart, then as Qwen 2.
constexpr const char* kLaguna[] = {"[^\\n]+|\\n+", LLAMA3("\\p{N}")};
// The letters are most of those with case, as this family lists them.
constexpr const char* kDeepseekLlm[] = {
    "[\\r\\n]",
    SPACES
    "?[A-Za-z"
    "\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-"
    "\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}"
    "\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}"
    "\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-"
    "\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}"
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-"
    "\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-"
    "\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-"
    "\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}"
    "\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}"
    "\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-"
    "\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-"
    "\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-"
    "\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-"
    "\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-"
    "\\x{118DF}\\x{1E900}-\\x{1E943}"
    "]+",
    SPACES "?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+",
    "(?<!" SPACES ")" SPACES "++\\z",  // tried where a run begins, not at each of its places
    "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+",
    "\\p{N}+"};
constexpr const char* kDeepseekCoder[] = {
    "[\\r\\n]", SPACES "?\\p{L}+", SPACES "?\\p{P}+",
    "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+", "\\p{N}"};
constexpr const char* kDeepseek3[] = {"\\p{N}{1,3}", HAN_AND_KANA, DEEPSEEK_WORDS};
constexpr const char* kSpark[] = {
    "\\p{N}{1,3}", HAN_AND_KANA,
    SIGN_AND_LATIN "|" MARKED_LETTERS "| ?[\\p{P}\\p{S}]+|[\\r\\n]|" SPACES_BEFORE_WORD, "\\p{N}"};
// Han, kana, Thai, Lao, Khmer, Burmese and Hangul between numbers and the words of DeepSeek 3.
constexpr const char* kAfmoe[] = {
    "\\p{N}+",
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{3040}-\\x{309F}\\x{30A0}-\\x{"
    "30FF}"
    "\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}\\x{E80}-\\x{EFF}\\x{1780}-\\x{17FF}"
    "\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}"
    "\\x{1100}-\\x{11FF}]+",
    DEEPSEEK_WORDS};
// Merges go over everything but numbers.
constexpr const char* kSuperBpe[] = {"\\p{Nd}+", "\\p{N}+"};
#define BLOOM " ?[^(" WS "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"
constexpr const char* kBloom[] = {BLOOM};
constexpr const char* kViking[] = {BLOOM, "\\p{N}"};

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
#undef HAN_AND_KANA
#undef SIGN_AND_LATIN
#undef MARKED_LETTERS
#undef DEEPSEEK_WORDS
#undef BLOOM

struct Named {
  std::string_view name;
  PretokenizerRules rules;
};

// clang-format off
constexpr Named kTable[] = {
    Named{"default", {kDefault}},
    Named{"gpt-2", {kGpt2}},
    Named{"phi-2", {kGpt2}},
    Named{"jais", {kGpt2}},
    Named{"trillion", {kGpt2}},
    Named{"exaone4", {kGpt2}},
    Named{"a.x-4.0", {kGpt2}},
    Named{"mellum", {kGpt2}},
    Named{"gigachat", {kGpt2}},
    Named{"granite-docling", {kGpt2}},
    Named{"modern-bert", {kGpt2}},
    Named{"roberta-bpe", {kGpt2}},
    Named{"jina-es", {kGpt2}},
    Named{"jina-de", {kGpt2}},
    Named{"jina-v1-en", {kGpt2}},
    Named{"jina-v2-es", {kGpt2}},
    Named{"jina-v2-de", {kGpt2}},
    Named{"jina-v2-code", {kGpt2}},
    Named{"mpt", {kGpt2, kFormC}},
    Named{"olmo", {kGpt2, kFormC}},
    Named{"falcon", {kFalcon}},
    Named{"starcoder", {kSingleDigits}},
    Named{"refact", {kSingleDigits}},
    Named{"smollm", {kSingleDigits}},
    Named{"codeshell", {kSingleDigits}},
    Named{"exaone", {kSingleDigits}},
    Named{"minerva-7b", {kSingleDigits}},
    Named{"mellum2", {kSingleDigits}},
    Named{"command-r", {kSingleDigits, kFormC}},
    Named{"chameleon", {kChameleon, kBeginsWithBos}},
    Named{"llama-bpe", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"llama3", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"llama-v3", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"falcon3", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"falcon-h1", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"pixtral", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"lfm2", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"midm-2.0", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"jina-v5-nano", {kLlama3, kWholeWordsFirst | kBeginsWithBos}},
    Named{"dbrx", {kLlama3}},
    Named{"smaug-bpe", {kLlama3}},
    Named{"glm4", {kLlama3}},
    Named{"chatglm-bpe", {kLlama3}},
    Named{"jais-2", {kLlama3, kSpacesByPowers}},
    Named{"minicpm5", {kMinicpm5, kWholeWordsFirst}},
    Named{"qwen2", {kQwen2, kFormC}},
    Named{"stablelm2", {kQwen2, kFormC}},
    Named{"deepseek-r1-qwen", {kQwen2}},
    Named{"kormo", {kQwen2}},
    Named{"f2llmv2", {kQwen2}},
    Named{"megrez", {kQwen2}},
    Named{"hunyuan", {kQwen2}},
    Named{"grok-2", {kQwen2}},
    Named{"solar-open", {kQwen2}},
    Named{"bailingmoe", {kQwen2}},
    Named{"bailingmoe2", {kQwen2}},
    Named{"llada-moe", {kQwen2}},
    Named{"ufakzeka", {kWithoutContractions}},
    Named{"seed-coder", {kSeedCoder}},
    Named{"qwen35", {kQwen35, kFormC}},
    Named{"exaone-moe", {kExaoneMoe}},
    Named{"tekken", {kTekken, kWholeWordsFirst | kBeginsWithBos}},
    Named{"gpt-4o", {kGpt4o}},
    Named{"llama4", {kGpt4o}},
    Named{"minimax-m2", {kGpt4o}},
    Named{"kanana2", {kGpt4o}},
    Named{"talkie", {kGpt4o}},
    Named{"granite-embed-multi-97m", {kGpt4o, kWholeWordsFirst}},
    Named{"cohere2moe", {kCohere2Moe, kThreesFromRight}},
    Named{"cohere2_moe", {kCohere2Moe, kThreesFromRight}},
    Named{"tiny_aya", {kCohere2Moe, kThreesFromRight}},
    Named{"youtu", {kYoutu, kWholeWordsFirst}},
    Named{"kimi-k2", {kKimiK2}},
    Named{"laguna", {kLaguna}},
    Named{"deepseek-llm", {kDeepseekLlm}},
    Named{"deepseek-coder", {kDeepseekCoder}},
    Named{"deepseek-v3", {kDeepseek3}},
    Named{"hunyuan-dense", {kDeepseek3}},
    Named{"joyai-llm", {kDeepseek3}},
    Named{"hy_v4", {kDeepseek3}},
    Named{"spark2_5", {kSpark}},
    Named{"afmoe", {kAfmoe, kThreesFromRight}},
    Named{"superbpe", {kSuperBpe, kThreesFromRight}},
    Named{"bloom", {kBloom}},
    Named{"poro-chat", {kBloom}},
    Named{"gpt3-finnish", {kBloom}},
    Named{"viking", {kViking}},
};
// clang-format on

}  // namespace

const PretokenizerRules* find_pretokenizer_rules(std::string_view name) noexcept {
  for (const Named& entry : kTable) {
    if (entry.name == name) return &entry.rules;
  }
  return nullptr;
}

std::string pretokenizer_examples() {
  std::string names;
  const char* const* last = nullptr;
  for (const Named& entry : kTable) {
    const auto* const expressions = entry.rules.expressions.data();
    if (expressions == last) continue;
    last = expressions;
    names.append(names.empty() ? "" : ", ").append(entry.name);
  }
  return names;
}

}  // namespace gen::tokenizer
