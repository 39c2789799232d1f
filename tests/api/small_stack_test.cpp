// SPDX-License-Identifier: Apache-2.0
// What takes a stranger's text, called on a thread with a stack of 64 kB: files of models with
// hostile chat templates, conversations, grammars, schemas, and an ordinary generation.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <vector>

#include "support/sanitized.h"
#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "status_record.h"

namespace gen {
namespace {

constexpr size_t kStack = size_t{64} << 10;

std::string repeated(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::vector<std::string> templates() {
  std::vector<std::string> made = {"{% for m in messages %}{{ m.content }}{% endfor %}",
                                   "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
                                   "{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
                                   "{% set n = namespace(l=1) %}{% for i in range(900) %}{% set "
                                   "n.l = [n.l] %}{% endfor %}{{ n.l|tojson }}"};
  for (const char* const open : {"(", "[", "-", "not ", "x|d(", "{1:"}) {
    for (const size_t count : {40U, 95U, 5000U}) made.push_back("{{" + repeated(open, count) + "1");
  }
  for (const char* const block : {"{% if 1 %}", "{% for a in [1] %}", "{% set a %}"}) {
    made.push_back(repeated(block, 5000));
  }
  return made;
}

std::vector<std::byte> model_with(const std::string& form) {
  test::TinyModelSpec spec;
  test::TinyModel tiny(spec);
  test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab))
      .set_string("tokenizer.ggml.pre", "gpt-2")
      .set_string("tokenizer.chat_template", form);
  return tiny.bytes();
}

using Failures = std::vector<std::string>;

/// What is refused has a message; what is not has worked.
void note(Failures* failures, const std::string& what, gen_status status, const gen_error& error) {
  if (status != GEN_OK && error.message[0] == '\0') failures->push_back(what + ": no message");
}

gen_chat* conversation(const std::string& content) {
  gen_chat* chat = nullptr;
  gen_error error;
  if (gen_chat_new(&chat, &error) != GEN_OK) return nullptr;
  (void)gen_chat_add(chat, "user", content.data(), content.size(), &error);
  return chat;
}

void* load_and_encode(void* out) {
  auto* failures = static_cast<Failures*>(out);
  for (const std::string& form : templates()) {
    const std::vector<std::byte> file = model_with(form);
    gen_model* model = nullptr;
    gen_error error = {};
    const gen_status loaded =
        gen_model_load_memory(file.data(), file.size(), nullptr, &model, &error);
    if (loaded != GEN_OK) {
      failures->push_back(form.substr(0, 40) + ": " + error.message);
      continue;
    }
    gen_chat* chat = conversation(repeated("[{", 3000));
    std::vector<int32_t> ids(20'000);
    size_t n = 0;
    note(failures, form.substr(0, 40),
         gen_chat_encode(model, chat, 1, ids.data(), ids.size(), &n, &error), error);
    gen_generator* generator = nullptr;
    gen_session* session = nullptr;
    if (gen_create(model, nullptr, &generator, &error) != GEN_OK ||
        gen_session_new(generator, &session, &error) != GEN_OK) {
      failures->emplace_back(error.message);
    } else {
      note(failures, form.substr(0, 40), gen_session_append_chat(session, chat, 1, &error), error);
    }
    gen_session_free(session);
    gen_free(generator);
    for (const std::string& other : templates()) {
      if (gen_chat_set_template(chat, other.data(), other.size(), &error) != GEN_OK) continue;
      note(failures, other.substr(0, 40),
           gen_chat_encode(model, chat, 1, ids.data(), ids.size(), &n, &error), error);
    }
    gen_chat_free(chat);
    gen_model_free(model);
  }
  return nullptr;
}

void* build_grammars(void* out) {
  auto* failures = static_cast<Failures*>(out);
  using From =
      gen_status (*)(const char*, size_t, const gen_grammar_options*, gen_grammar**, gen_error*);
  const std::pair<From, std::string> texts[] = {
      {gen_grammar_from_json_schema, repeated(R"({"not":)", 5000)},
      {gen_grammar_from_json_schema, repeated(R"({"items":)", 5000) + "true" + repeated("}", 5000)},
      {gen_grammar_from_json_schema, repeated(R"({"items":)", 60) + "true" + repeated("}", 60)},
      {gen_grammar_from_json_schema, R"({"pattern":")" + repeated("(", 5000) + R"("})"},
      {gen_grammar_from_json_schema, R"({"properties":{"a":{"$ref":"#"}}})"},
      {gen_grammar_from_regex, repeated("(", 50'000) + "a" + repeated(")*", 50'000)},
      {gen_grammar_from_gbnf,
       "root ::= " + repeated("(", 50'000) + "\"a\"" + repeated(")", 50'000)},
      {gen_grammar_from_lark, "start: " + repeated("(", 50'000) + "\"a\"" + repeated(")", 50'000)},
      {gen_grammar_from_tags, repeated("[", 50'000)},
  };
  for (const auto& [from, text] : texts) {
    gen_grammar* grammar = nullptr;
    gen_error error = {};
    note(failures, text.substr(0, 40), from(text.data(), text.size(), nullptr, &grammar, &error),
         error);
    gen_grammar_free(grammar);
  }
  return nullptr;
}

void* generate(void* out) {
  auto* failures = static_cast<Failures*>(out);
  const std::vector<std::byte> file = model_with("{{ messages[0].content }}");
  gen_model* model = nullptr;
  gen_generator* generator = nullptr;
  gen_session* session = nullptr;
  gen_result* result = nullptr;
  gen_error error = {};
  const std::string text = repeated("ab", 20);
  if (gen_model_load_memory(file.data(), file.size(), nullptr, &model, &error) != GEN_OK ||
      gen_create(model, nullptr, &generator, &error) != GEN_OK ||
      gen_session_new(generator, &session, &error) != GEN_OK ||
      gen_session_generate(session, text.data(), text.size(), nullptr, &result, &error) != GEN_OK) {
    failures->emplace_back(error.message);
  }
  gen_result_free(result);
  gen_session_free(session);
  gen_free(generator);
  gen_model_free(model);
  return nullptr;
}

void run_on_small_stack(void* (*what)(void*)) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers take more stack";
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread{};
  Failures failures;
  ASSERT_EQ(pthread_create(&thread, &attributes, what, &failures), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

TEST(SmallStack, HostileTemplatesOfFilesAndChats) { run_on_small_stack(load_and_encode); }
TEST(SmallStack, HostileGrammars) { run_on_small_stack(build_grammars); }
TEST(SmallStack, AnOrdinaryGeneration) { run_on_small_stack(generate); }

}  // namespace
}  // namespace gen
