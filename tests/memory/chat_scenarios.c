/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations, templates, and sessions that hold conversations. After a refused call a
 * conversation is as it was. */
#include <stdio.h>
#include <stdlib.h>

#include "small_generator.h"

#define N GEN_NUL_TERMINATED

static const char everything[] =
    "{{ (tools or []) | tojson }}{{ level }}{{ strftime_now('%Y') }}{% for m in messages "
    "%}<|im_start|>"
    "{{ m.role }}{{ m.name }}{{ m.content }}{{ m.reasoning_content }}{% for c in m.tool_calls or "
    "[] %}{{ c | tojson }}{% endfor %}<|im_end|>{% endfor %}";

static size_t bytes_of(const gen_chat* chat) {
  size_t n = 0;
  TRY(gen_chat_format(model, chat, 0, NULL, 0, &n, E));
  return n;
}

/* The conversation is as long as before a call that was refused. */
#define EDIT(chat, call)                                 \
  do {                                                   \
    const size_t before_ = bytes_of(chat);               \
    TRY_KEEPING(call, CHECK(bytes_of(chat) == before_)); \
  } while (0)

static void conversation(const void* with) {
  (void)with;
  gen_chat* chat = NULL;
  MAKE(chat, gen_chat_new(&chat, E));
  EDIT(chat, gen_chat_set_template(chat, everything, N, E));
  EDIT(chat, gen_chat_set_time(chat, "2026-11-23", E));
  EDIT(chat, gen_chat_add(chat, "user", "This is taken back.", N, E));
  EDIT(chat, gen_chat_truncate(chat, 0, E));
  EDIT(chat, gen_chat_add(chat, "user", "Tell me of the fox, and of the crow.", N, E));
  EDIT(chat, gen_chat_set_name(chat, "a name that is not short", E));
  EDIT(chat, gen_chat_set_variable(chat, "level", "\"as high as it will ever be\"", N, E));
  EDIT(chat, gen_chat_set_variable(chat, "level", "[1, 2, 3]", N, E));
  EDIT(chat, gen_chat_add_tool(chat, "{\"name\": \"a tool with a long name\"}", N, E));
  EDIT(chat, gen_chat_set(chat, "tool_choice", "a tool with a long name", E));
  EDIT(chat, gen_chat_add_tool_call(chat, "the first of all calls", "tool", "{\"a\": [1]}", N, E));
  EDIT(chat, gen_chat_add_tool_call(chat, NULL, "tool", "{\"a\": [1, 2, 3, 4]}", N, E));
  EDIT(chat, gen_chat_set_reasoning(chat, "I thought about it for long.", N, E));
  EDIT(chat, gen_chat_add_tool_result(chat, "the first of all calls", NULL, "<|im_end|", N, E));
  static char text[4096];
  int32_t ids[1024];
  size_t n = 0;
  TRY(gen_chat_format(model, chat, 1, text, sizeof text, &n, E));
  SAME(text, n);
  TRY(gen_chat_encode(model, chat, 1, ids, 1024, &n, E));
  SAME(ids, n * sizeof *ids);
  TRY(gen_chat_describe(chat, text, sizeof text, &n, E));
  SAME(text, n);
  TRY(gen_chat_describe_options(chat, text, sizeof text, &n, E));
  SAME(text, n);
  FREE(gen_chat_free(chat));
}

static void held(const gen_session* session) {
  int32_t ids[400];
  size_t n = 0;
  TRY(gen_session_tokens(session, ids, 400, &n, E));
  SAME(ids, n * sizeof *ids);
}

static void appended(const void* with) {
  (void)with;
  gen_session* session = NULL;
  gen_chat* chat = NULL;
  MAKE(session, gen_session_new(generator, &session, E));
  for (int i = 0; i < 2; ++i) { /* the second one is another conversation */
    MAKE(chat, gen_chat_new(&chat, E));
    for (int turn = 0; turn < 2; ++turn) {
      EDIT(chat, gen_chat_add(chat, "user", i == 0 ? "Hi" : "Ho", 2, E));
      const int32_t length = gen_session_length(session);
      TRY_KEEPING(gen_session_append_chat(session, chat, 1, E),
                  CHECK(gen_session_length(session) == length));
      held(session);
      EDIT(chat, gen_chat_add(chat, "assistant", "There was a fox.", N, E));
    }
    FREE(gen_chat_free(chat));
  }
  FREE(gen_session_free(session));
}

static int take(void* user, const gen_token* token) {
  *(int*)user += token->done == 0;
  return 0;
}

static void chat_session(const void* with) {
  (void)with;
  gen_chat* chat = NULL;
  gen_chat_session* talk = NULL;
  gen_result* result = NULL;
  MAKE(chat, gen_chat_new(&chat, E));
  MAKE(talk, gen_chat_session_new(generator, chat, &talk, E));
  for (int turn = 0; turn < 2; ++turn) {
    EDIT(chat, (gen_result_free(result), result = NULL,
                gen_chat_session_send(talk, "Tell me of the fox.", N, greedy, &result, E)));
    SAME_TEXT(gen_result_text(result, NULL));
    FREE(gen_result_free(result));
    result = NULL;
    held(gen_chat_session_session(talk));
  }
  int pieces = 0;
  EDIT(chat, (pieces = 0,
              gen_chat_session_send_stream(talk, "And then?", N, greedy, take, &pieces, NULL, E)));
  SAME(&pieces, sizeof pieces);
  SAME(&(size_t){bytes_of(chat)}, sizeof(size_t));
  gen_stream* stream = NULL;
  size_t before = bytes_of(chat);
  MAKE(stream, gen_chat_session_open_stream(talk, "And then?", N, greedy, &stream, E));
  FREE(gen_stream_close(stream)); /* before any token */
  CHECK(bytes_of(chat) == before);
  FREE(gen_chat_free(chat));
  FREE(gen_chat_session_free(talk));
}

static int take_pieces(void* user, const gen_token* token) {
  for (int32_t i = 0; i < token->piece_count; ++i) *(size_t*)user += token->pieces[i].len;
  return 0;
}

/* Answers that are read. Without the grammar of calls: grammars have scenarios of their own. */
static void answers(const void* with) {
  (void)with;
  static const char tools[] =
      "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
      "{% for c in m.tool_calls or [] %}<tool_call>{\"name\": \"{{ c.function.name }}\", "
      "\"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>"
      "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>{% endif %}";
  gen_chat* chat = NULL;
  gen_chat_session* talk = NULL;
  gen_result* result = NULL;
  char text[2048];
  size_t n = 0;
  MAKE(chat, gen_chat_new(&chat, E));
  EDIT(chat, gen_chat_set_template(chat, tools, N, E));
  EDIT(chat, gen_chat_add_tool(chat, "{\"name\": \"weather\", \"parameters\": {}}", N, E));
  EDIT(chat, gen_chat_set(chat, "constrain_calls", "0", E));
  EDIT(chat, gen_chat_set(chat, "reasoning_budget", "2", E));
  EDIT(chat, gen_chat_set(chat, "reasoning_control", "1", E));
  MAKE(talk, gen_chat_session_new(generator, chat, &talk, E));
  size_t bytes = 0;
  EDIT(chat, (bytes = 0, gen_result_free(result), result = NULL,
              gen_chat_session_send_stream(talk, "Tell me of the fox.", N, greedy, take_pieces,
                                           &bytes, &result, E)));
  SAME(&bytes, sizeof bytes);
  TRY(gen_chat_session_end_reasoning(talk, E));
  TRY(gen_result_answer(result, text, sizeof text, &n, E));
  SAME(text, n);
  FREE(gen_result_free(result));
  FREE(gen_chat_free(chat));
  FREE(gen_chat_session_free(talk));
}

static void form(const void* with) {
  (void)with;
  static const char request[] =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi <|im_end|>\"}], \"tools\": [{}], "
      "\"add_generation_prompt\": true, \"variables\": {\"x\": [1, 2]}, \"now\": \"2026-11-23\"}";
  static char text[4096];
  size_t n = 0;
  gen_template* made = NULL;
  MAKE(made, gen_template_new(everything, N, &made, E));
  TRY(gen_template_render(made, request, N, text, sizeof text, &n, E));
  SAME(text, n);
  FREE(gen_template_free(made));
  MAKE(made, gen_template_from_tokenizer(gen_model_tokenizer(model), &made, E));
  TRY(gen_template_render(made, request, N, text, sizeof text, &n, E));
  SAME(text, n);
  FREE(gen_template_free(made));
}

const scenario chat_scenarios[] = {{"conversation", begin, conversation, end, NULL},
                                   {"append a chat", begin, appended, end, NULL},
                                   {"chat session", begin, chat_session, end, NULL},
                                   {"answers", begin, answers, end, NULL},
                                   {"template", begin, form, end, NULL},
                                   {0}};
