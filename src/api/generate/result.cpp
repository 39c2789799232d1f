// SPDX-License-Identifier: Apache-2.0
// result.h of the C API, and the conversion of parameters, events and results for generating calls.
#include <generate/result.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "calls/answer_json.h"
#include <generate/generator.h>

namespace gen::api {

void fill_result(generate::GenResult&& result, gen_result* handle) noexcept {
  ResultData& data = handle->data;
  data.result = std::move(result);
  report(data.result.status, &data.failure);
}

generate::CallParams params_of(const gen_sampling* sampling) {
  return sampling != nullptr ? sampling->params : generate::CallParams();
}

void fill_token(const generate::Event& event, gen_token* token) noexcept {
  token->struct_size = sizeof(gen_token);
  token->id = event.token;
  token->text = event.text.data();
  token->text_len = event.text.size();
  token->logprob = event.logprob;
  token->done = event.done ? 1 : 0;
  token->finish_reason = static_cast<int32_t>(event.finish_reason);
  token->index = event.index;
  static_assert(sizeof(gen_token_logprob) == sizeof(sampling::TokenLogprob) &&
                offsetof(gen_token_logprob, logprob) == offsetof(sampling::TokenLogprob, logprob));
  token->top = reinterpret_cast<const gen_token_logprob*>(event.top.data());
  token->top_count = static_cast<int32_t>(event.top.size());
  token->piece_count = 0;
  token->pieces = nullptr;
}

void fill_token(const generate::Event& event, std::vector<gen_piece>* pieces, gen_token* token) {
  pieces->clear();
  for (const calls::Piece& piece : event.pieces) {
    pieces->push_back({static_cast<int32_t>(piece.kind), static_cast<int32_t>(piece.call),
                       piece.text.c_str(), piece.text.size()});
  }
  fill_token(event, token);
  token->piece_count = static_cast<int32_t>(pieces->size());
  token->pieces = pieces->data();
}

}  // namespace gen::api

namespace {

template <typename T>
const T* lend(const std::vector<T>& values, size_t* n) {
  if (n != nullptr) *n = values.size();
  return values.empty() ? nullptr : values.data();
}

template <typename T>
const T* lend_nothing(size_t* n) {
  if (n != nullptr) *n = 0;
  return nullptr;
}

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;

template <typename T, size_t N>
Status find_value(const std::pair<const char*, T> (&rows)[N], const char* key, T* value) {
  for (const auto& [name, number] : rows) {
    if (std::strcmp(name, key) == 0) {
      *value = number;
      return {};
    }
  }
  std::string known;
  for (const auto& [name, number] : rows) known.append(known.empty() ? "" : ", ").append(name);
  return gen::error(Code::kInvalidArgument, "unknown key \"%.60s\", known are %s", key,
                    known.c_str());
}

/// The values of one list of an object, comma-separated.
template <typename Rows, typename Value>
std::string list_of(const Rows& rows, Value value) {
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string one = value(rows[i], i);
    if (one.empty()) continue;
    out.append(out.empty() ? "" : ",").append(one);
  }
  return "[" + out + "]";
}

std::string drafts_json(const gen::generate::DraftRows& drafts) {
  using Token = gen::generate::DraftRows::Token;
  size_t begin = 0;
  std::string out;
  for (const gen::generate::DraftRows::Step& step : drafts.steps) {
    const auto rows = std::span(drafts.tokens).subspan(begin, step.end - begin);
    begin = step.end;
    const auto list = [&](auto value) { return list_of(rows, value); };
    const auto number = [&](auto Token::*of) {
      return list([of](const Token& row, size_t) { return std::to_string(row.*of); });
    };
    out.append(out.empty() ? "" : ",\n");
    out += "{\"index\":" + std::to_string(step.index) + ",\"drafter\":\"" + step.drafter +
           "\",\"tokens\":" + number(&Token::token) + ",\"parents\":" + number(&Token::parent) +
           ",\"grades\":" + number(&Token::grade) +
           ",\"accepted\":" + list([](const Token& row, size_t i) {
             return row.accepted ? std::to_string(i) : std::string();
           }) +
           "}";
  }
  return "[" + out + "]";
}

}  // namespace

const char* gen_result_text(const gen_result* result, size_t* n) {
  if (result == nullptr) return lend_nothing<char>(n);
  const std::string& text = result->data.result.text;
  if (n != nullptr) *n = text.size();
  return text.c_str();
}

const int32_t* gen_result_tokens(const gen_result* result, size_t* n) {
  return result != nullptr ? lend(result->data.result.tokens, n) : lend_nothing<int32_t>(n);
}

const float* gen_result_logprobs(const gen_result* result, size_t* n) {
  return result != nullptr ? lend(result->data.result.logprobs, n) : lend_nothing<float>(n);
}

size_t gen_result_top_logprobs(const gen_result* result, size_t index, const int32_t** ids,
                               const float** logprobs) {
  if (ids != nullptr) *ids = nullptr;
  if (logprobs != nullptr) *logprobs = nullptr;
  if (result == nullptr) return 0;
  const gen::generate::GenResult& held = result->data.result;
  const auto count = static_cast<size_t>(held.top_count);
  if (count == 0 || index >= held.top_ids.size() / count) return 0;
  if (ids != nullptr) *ids = held.top_ids.data() + index * count;
  if (logprobs != nullptr) *logprobs = held.top_logprobs.data() + index * count;
  return count;
}

int32_t gen_result_finish_reason(const gen_result* result) {
  return result != nullptr ? static_cast<int32_t>(result->data.result.finish_reason)
                           : GEN_FINISH_NONE;
}

gen_status gen_result_usage(const gen_result* result, const char* key, int64_t* value,
                            gen_error* error) {
  if (value != nullptr) *value = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(result, "result"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    const auto& held = result->data.result;
    const auto& usage = held.usage;
    const std::pair<const char*, int64_t> rows[] = {{"prompt", usage.prompt},
                                                    {"prompt_cached", usage.prompt_cached},
                                                    {"prompt_evaluated", usage.prompt_evaluated},
                                                    {"completion", usage.completion},
                                                    {"dropped", usage.dropped},
                                                    {"drafted", usage.drafted},
                                                    {"accepted", usage.accepted},
                                                    {"grammar_complete", held.grammar_complete}};
    return find_value(rows, key, value);
  });
}

gen_status gen_result_drafts(const gen_result* result, char* buf, size_t capacity, size_t* n,
                             gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(result, "result"));
    GEN_TRY(not_null(n, "n"));
    const gen::generate::DraftRows& drafts = result->data.result.drafts;
    if (drafts.incomplete) {
      return {Code::kOutOfMemory, "a pass had no memory for its drafts, whose list is incomplete"};
    }
    return gen::api::text_out(drafts_json(drafts), buf, capacity, n);
  });
}

gen_status gen_result_answer(const gen_result* result, char* buf, size_t capacity, size_t* n,
                             gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(result, "result"));
    GEN_TRY(not_null(n, "n"));
    const gen::generate::GenResult& data = result->data.result;
    gen::calls::Answer plain;
    if (data.answer == nullptr) plain.text = data.text;
    return gen::api::text_out(
        gen::calls::answer_json(data.answer != nullptr ? *data.answer : plain), buf, capacity, n);
  });
}

gen_status gen_result_timings(const gen_result* result, const char* key, double* seconds,
                              gen_error* error) {
  if (seconds != nullptr) *seconds = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(result, "result"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(seconds, "seconds"));
    const auto& timings = result->data.result.timings;
    const std::pair<const char*, double> rows[] = {{"prefill", timings.prefill},
                                                   {"first_token", timings.first_token},
                                                   {"decode", timings.decode},
                                                   {"total", timings.first_token + timings.decode}};
    return find_value(rows, key, seconds);
  });
}

const gen_error* gen_result_error(const gen_result* result) {
  if (result == nullptr || result->data.result.status.ok()) return nullptr;
  return &result->data.failure;
}

int32_t gen_result_user_code(const gen_result* result) {
  return result != nullptr ? result->data.result.user_code : 0;
}

void gen_result_free(gen_result* result) { delete result; }
