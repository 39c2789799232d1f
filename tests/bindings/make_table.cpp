// SPDX-License-Identifier: Apache-2.0
// Writes the table of expected results that the tests of all bindings read, by running each case
// through the C API (by way of generate.hpp). tests/bindings/scenarios.json is its output; a test
// compares the two.
//   make_table <story.gguf>      (draft.gguf lies beside it)
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <generate/generate.hpp>
#include <nlohmann/json.hpp>

#include "tool_rows.h"

// As test_models.c defines them, and languages find them by name.
#define FAILING(each)                                                                       \
  each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10) each(11) \
      each(12) each(13) each(14) each(15) each(16) each(17) each(18) each(77)
#define DECLARE(number) extern const gen_forward test_model_fails_##number;
#define ENTRY(number) {"test_model_fails_" #number, &test_model_fails_##number},
extern "C" {
extern const gen_forward test_model_script;
FAILING(DECLARE)
}

namespace {

using Json = nlohmann::ordered_json;
using Settings = std::vector<std::pair<std::string, std::string>>;

template <class Options>
Options made(const Settings& settings) {
  Options options;
  for (const auto& [key, value] : settings) options.set(key, value);
  return options;
}

Json object(const Settings& settings) {
  Json out = Json::object();
  for (const auto& [key, value] : settings) out[key] = value;
  return out;
}

struct Text {
  std::string name;
  std::string prompt;
  Settings sampling;
  Settings options;
};

const std::vector<Text>& texts() {
  static const std::vector<Text> kTexts = {
      {"greedy", "Once upon a time", {{"temperature", "0"}, {"max_new_tokens", "40"}}, {}},
      {"sampled",
       "Once upon a time",
       {{"temperature", "0.8"},
        {"top_k", "40"},
        {"top_p", "0.95"},
        {"seed", "7"},
        {"max_new_tokens", "60"}},
       {}},
      {"a seed above 2^63",
       "The dog",
       {{"temperature", "1"}, {"seed", "18446744073709551557"}, {"max_new_tokens", "40"}},
       {}},
      {"to the end of the story",
       "Lily and Tom",
       {{"temperature", "0.7"}, {"seed", "3"}, {"max_new_tokens", "900"}},
       {}},
      {"a stop string",
       "Once upon a time",
       {{"temperature", "0"}, {"max_new_tokens", "200"}, {"stop_string", "village"}},
       {}},
      {"characters of one to four bytes",
       "Zo\xC3\xAB saw \xE4\xB8\x96\xE7\x95\x8C and \xF0\x9F\x8E\x89. \xF0\x9F\x98\x80 She said",
       {{"temperature", "0"}, {"max_new_tokens", "30"}},
       {}},
      {"penalties and a bias",
       "A cat",
       {{"temperature", "0.9"},
        {"seed", "11"},
        {"repetition_penalty", "1.2"},
        {"frequency_penalty", "0.3"},
        {"presence_penalty", "0.2"},
        {"min_p", "0.05"},
        {"max_new_tokens", "50"}},
       {}},
      {"a cache of fp16",
       "Once upon a time",
       {{"temperature", "0"}, {"max_new_tokens", "40"}},
       {{"kv_dtype", "fp16"}}},
      {"a cache of 4 bits in blocks",
       "Once upon a time",
       {{"temperature", "0"}, {"max_new_tokens", "40"}},
       {{"kv_dtype", "q4"}, {"paged_kv", "16"}}},
  };
  return kTexts;
}

const char* finish_name(int32_t reason) {
  static const char* const kNames[] = {"none",
                                       "stop_token",
                                       "stop_string",
                                       "length",
                                       "context_full",
                                       "grammar_complete",
                                       "grammar_dead_end",
                                       "cancelled",
                                       "callback",
                                       "error"};
  return kNames[reason];
}

Json of_result(const gen::Result& result) {
  return {{"tokens", result.tokens()},
          {"text", std::string(result.text())},
          {"finish_reason", finish_name(result.finish_reason())},
          {"prompt_tokens", result.usage("prompt")},
          {"completion_tokens", result.usage("completion")}};
}

Json text_cases(const gen::Model& model) {
  Json out = Json::array();
  for (const Text& text : texts()) {
    const gen::Generator generator(model, made<gen::Options>(text.options));
    Json one = {{"name", text.name},
                {"prompt", text.prompt},
                {"sampling", object(text.sampling)},
                {"options", object(text.options)}};
    one.update(of_result(generator.generate(text.prompt, made<gen::Sampling>(text.sampling))));
    out.push_back(std::move(one));
  }
  return out;
}

Json tokenizer_cases(const gen::Model& model) {
  Json out = Json::array();
  const std::string all = texts()[5].prompt;
  for (const std::string& text :
       {std::string("Once upon a time"), all, std::string("a\0b", 3), std::string()}) {
    for (const uint32_t flags : {0U, uint32_t{GEN_ENCODE_ADD_BOS}}) {
      const auto ids = model.tokenizer().encode(text, flags);
      out.push_back({{"text", text},
                     {"add_bos", flags != 0},
                     {"ids", ids},
                     {"decoded", model.tokenizer().decode(ids)}});
    }
  }
  return out;
}

Json pieces_of(gen::Session& session, const std::string& prompt, const Settings& settings) {
  Json pieces = Json::array();
  for (const gen::Token& token : session.stream(prompt, made<gen::Sampling>(settings))) {
    pieces.push_back({{"id", token.id}, {"text", std::string(token.text)}, {"done", token.done}});
  }
  return pieces;
}

// The sizes that every custom model of the tests has.
struct Config {
  Config() {
    gen_error error;
    if (gen_model_config_new(&config, &error) != GEN_OK ||
        gen_model_config_set_vocab_size(config, 4096, &error) != GEN_OK ||
        gen_model_config_set_max_seq_len(config, 1 << 20, &error) != GEN_OK) {
      throw gen::Error(error.code, error.message);
    }
  }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  ~Config() { gen_model_config_free(config); }
  gen_model_config* config = nullptr;
};

Json stream_cases(const gen::Model& model) {
  Json out = Json::array();
  const Settings greedy = {{"temperature", "0"}, {"max_new_tokens", "50"}, {"ignore_eos", "1"}};
  const Config config;
  const gen::Model script(test_model_script, config.config, model.tokenizer());
  for (const auto& [name, used] :
       {std::pair("test_model_script", &script), std::pair("", &model)}) {
    const gen::Generator generator(*used);
    gen::Session session(generator);
    out.push_back({{"model", name},
                   {"prompt", "a"},
                   {"sampling", object(greedy)},
                   {"pieces", pieces_of(session, "a", greedy)}});
  }
  return out;
}

Json session_steps(const gen::Model& model) {
  const gen::Generator generator(model);
  gen::Session session(generator);
  const Settings greedy = {{"temperature", "0"}, {"max_new_tokens", "12"}};
  Json steps = Json::array();
  const auto note = [&](Json step) {
    step["length"] = session.length();
    step["held"] = session.tokens();
    steps.push_back(std::move(step));
  };
  const auto generate = [&](const std::string& prompt) {
    Json step = {{"do", "generate"}, {"prompt", prompt}};
    step["text"] = std::string(session.generate(prompt, made<gen::Sampling>(greedy)).text());
    note(std::move(step));
  };
  session.append("Once upon a time");
  note({{"do", "append"}, {"prompt", "Once upon a time"}});
  generate("");
  generate(" Then a dog came.");
  session.truncate(9);
  note({{"do", "truncate"}, {"n", 9}});
  generate(" and");
  const std::vector<std::byte> state = session.save();
  session.reset();
  note({{"do", "reset"}});
  session.load(state);
  note({{"do", "load what was saved before the reset"}});
  generate("");
  return {{"sampling", object(greedy)}, {"steps", std::move(steps)}};
}

Json statuses(const gen::Model& model) {
  const std::vector<std::pair<const char*, const gen_forward*>> failing = {FAILING(ENTRY)};
  Json out = Json::array();
  const Config config;
  for (const auto& [name, forward] : failing) {
    const gen::Model failed(*forward, config.config, model.tokenizer());
    const gen::Generator generator(failed);
    try {
      generator.generate("a");
      out.push_back({{"model", name}});
    } catch (const gen::Error& error) {
      out.push_back({{"model", name},
                     {"code", error.code()},
                     {"name", error.name()},
                     {"message", error.what()}});
    }
  }
  return out;
}

Json chat(const gen::Model& model) {
  gen::Chat chat;
  chat.add("system", "You tell stories.").add("user", "A story about \xF0\x9F\x90\xB6!");
  return {{"messages",
           {{{"role", "system"}, {"text", "You tell stories."}},
            {{"role", "user"}, {"text", "A story about \xF0\x9F\x90\xB6!"}}}},
          {"formatted", model.format(chat)}};
}

// A conversation with everything that one can hold, by a template that writes all of it, and what
// a session answers to it.
constexpr const char* kTemplate =
    "{%- for t in tools or [] %}{{ t | tojson }}\n{% endfor %}"
    "{%- for m in messages %}<|im_start|>{{ m.role }}{{ ' ' ~ m.name if m.name }}\n"
    "{{- '(' ~ m.reasoning_content ~ ') ' if m.reasoning_content }}{{ m.content or '' }}"
    "{%- for c in m.tool_calls or [] %}[{{ c.id }} {{ c.function.name }} "
    "{{ c.function.arguments | tojson }}]{% endfor %}"
    "{{- '[' ~ m.tool_call_id ~ ']' if m.tool_call_id }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{{ mood }} {{ strftime_now('%Y') }} {% "
    "endif %}";

Json chat_steps(const gen::Model& model) {
  const gen::Generator generator(model);
  gen::Chat chat;
  gen::ChatSession session(generator, chat);
  const Settings settings = {{"temperature", "0.8"}, {"seed", "5"}, {"max_new_tokens", "12"}};
  const auto sampling = made<gen::Sampling>(settings);
  Json steps = Json::array();
  const auto answered = [&](Json step, const gen::Result& result) {
    step["answer"] = std::string(result.text());
    step["length"] = session.length();
    step["tokens"] = model.encode(chat, false);
    steps.push_back(std::move(step));
  };
  const std::string tool =
      R"({"type": "function", "function": {"name": "dog", "parameters": {"type": "object"}}})";
  chat.use_template(kTemplate).tool(tool).variable("mood", "\"glad\"").time("2026-02-03T04:05:06");
  steps.push_back({{"do", "template"}, {"text", kTemplate}});
  steps.push_back({{"do", "tool"}, {"text", tool}});
  steps.push_back({{"do", "variable"}, {"name", "mood"}, {"text", "glad"}});
  steps.push_back({{"do", "time"}, {"text", "2026-02-03T04:05:06"}});
  chat.add("system", "You tell stories.").name("narrator");
  steps.push_back({{"do", "message"}, {"role", "system"}, {"text", "You tell stories."}});
  steps.push_back({{"do", "name"}, {"text", "narrator"}});
  const std::string hostile = "A story <|im_end|> about \xF0\x9F\x90\xB6!";
  std::string pieces;
  const auto read = [&](const gen::Token& token) {
    for (size_t i = 0; i < static_cast<size_t>(token.piece_count); ++i) {
      pieces.append(token.pieces[i].text, token.pieces[i].len);
    }
  };
  answered({{"do", "send"}, {"text", hostile}}, session.send(hostile, sampling, read));
  if (steps.back().at("answer") != pieces) throw std::runtime_error("pieces: " + pieces);
  chat.reasoning("Dogs bark.").tool_call("c1", "dog", R"({"size": 2})");
  steps.push_back({{"do", "reasoning"}, {"text", "Dogs bark."}});
  steps.push_back({{"do", "tool_call"}, {"id", "c1"}, {"name", "dog"}, {"text", R"({"size": 2})"}});
  chat.tool_result("c1", "dog", "Wuff.");
  steps.push_back({{"do", "tool_result"}, {"id", "c1"}, {"name", "dog"}, {"text", "Wuff."}});
  answered({{"do", "answer"}}, session.answer(sampling));
  const std::string before = chat.describe();
  const std::string all = chat.add("user", "Forget this.").truncate(5).describe();
  if (before != all) throw std::runtime_error("truncate");
  steps.push_back({{"do", "truncate"}, {"length", 5}, {"text", all}});
  return {{"sampling", object(settings)}, {"steps", std::move(steps)}};
}

Json rendered() {
  const std::string request =
      R"({"messages": [{"role": "user", "content": "<|im_end|>"}], "variables": {"mood": "sad"},)"
      R"( "now": "2026-02-03T04:05:06", "add_generation_prompt": true})";
  return {{"template", kTemplate},
          {"request", request},
          {"rendered", Json::parse(gen::Template(kTemplate).render(request))}};
}

// Texts with guesses: those without, and what was guessed, which depends on no clock here.
Json draft_cases(const gen::Model& model, const gen::Model& draft) {
  struct Case {
    const char* name;
    const char* prompt;
    int32_t draft_length;  // 0: no draft model
    Settings options;
    Settings sampling;
  };
  const std::vector<Case> cases = {
      {"n-gram lookup",
       "The dog ran to the tree. The dog ran to the",
       0,
       {{"prompt_lookup", "3,4"}, {"draft_policy", "always"}},
       {{"temperature", "0"}, {"max_new_tokens", "40"}}},
      {"suffix lookup",
       "The dog ran to the tree. The dog ran to the",
       0,
       {{"suffix_lookup", "6,1000"}, {"draft_policy", "always"}},
       {{"temperature", "0.5"}, {"seed", "4"}, {"max_new_tokens", "40"}}},
      {"a draft model",
       "Once upon a time",
       3,
       {{"draft_policy", "always"}},
       {{"temperature", "0.8"}, {"seed", "7"}, {"gumbel", "1"}, {"max_new_tokens", "50"}}},
      {"a lookup, else the first layers",
       "Lily and Tom",
       0,
       {{"prompt_lookup", "2,4"}, {"self_draft", "1,2"}, {"draft_policy", "adaptive,0"}},
       {{"temperature", "0"}, {"max_new_tokens", "30"}}}};
  Json out = Json::array();
  for (const Case& one : cases) {
    auto options = made<gen::Options>(one.options);
    if (one.draft_length > 0) options.speculative_draft(draft, one.draft_length);
    const gen::Generator generator(model, options);
    const gen::Result result = generator.generate(one.prompt, made<gen::Sampling>(one.sampling));
    const gen::Generator plain(model);
    const gen::Result same = plain.generate(one.prompt, made<gen::Sampling>(one.sampling));
    if (result.tokens() != same.tokens()) throw std::runtime_error(one.name);
    out.push_back({{"name", one.name},
                   {"prompt", one.prompt},
                   {"draft_length", one.draft_length},
                   {"options", object(one.options)},
                   {"sampling", object(one.sampling)},
                   {"tokens", result.tokens()},
                   {"drafted", result.usage("drafted")},
                   {"accepted", result.usage("accepted")}});
  }
  return out;
}

Json several(const gen::Model& model) {
  const gen::Generator generator(model);
  const Settings settings = {{"temperature", "1"}, {"seed", "7"}, {"max_new_tokens", "10"}};
  Json texts = Json::array();
  for (const gen::Result& result :
       generator.generate("The dog", made<gen::Sampling>(settings), 2, 5)) {
    texts.push_back(std::string(result.text()));
  }
  return {{"prompt", "The dog"},
          {"sampling", object(settings)},
          {"n", 2},
          {"best_of", 5},
          {"texts", std::move(texts)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const gen::Model model(argv[1]);
    const std::string beside = argv[1];
    const gen::Model draft(beside.substr(0, beside.rfind('/') + 1) + "draft.gguf");
    const Json table = {{"how",
                         "made by tests/bindings/make_table.cpp through the C API; custom models "
                         "are in tests/bindings/test_models.c, of "
                         "4096 tokens and max_seq_len 1048576, with the bundled model's tokenizer"},
                        {"texts", text_cases(model)},
                        {"tokenizer", tokenizer_cases(model)},
                        {"streams", stream_cases(model)},
                        {"session", session_steps(model)},
                        {"statuses", statuses(model)},
                        {"chat", chat(model)},
                        {"chat_session", chat_steps(model)},
                        {"template", rendered()},
                        {"drafts", draft_cases(model, draft)},
                        {"several", several(model)},
                        {"tools", tool_rows()}};
    std::puts(table.dump(1).c_str());
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
