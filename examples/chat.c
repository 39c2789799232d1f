/* SPDX-License-Identifier: Apache-2.0 */
/* A chat at the terminal: each line is a message, and the answer is streamed. "/again" removes the last answer
 * and draws another one, "/more" continues one that was cut, "/show" prints the conversation as JSON.
 * chat MODEL [SYSTEM-MESSAGE]
 *   cc chat.c $(pkg-config --cflags --libs generate) -o chat */
#include <generate/generate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print(void* user, const gen_token* token) {
  fwrite(token->text, 1, token->text_len, user);
  fflush(user);
  return 0; /* non-zero ends the answer, which stays as far as it came */
}

static gen_status show(const gen_chat* chat, gen_error* error) {
  size_t n = 0;
  gen_status status = gen_chat_describe(chat, NULL, 0, &n, error);
  char* json = status == GEN_OK ? malloc(n + 1) : NULL;
  if (json == NULL) return status == GEN_OK ? GEN_ERROR_OUT_OF_MEMORY : status;
  status = gen_chat_describe(chat, json, n + 1, &n, error);
  if (status == GEN_OK) puts(json);
  free(json);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: chat MODEL [SYSTEM-MESSAGE]\n"), 2;
  gen_model* model = NULL;
  gen_generator* generator = NULL;
  gen_sampling* sampling = NULL;
  gen_chat* chat = NULL;
  gen_chat_session* talk = NULL;
  gen_error error;
  if (gen_model_load(argv[1], NULL, &model, &error) || gen_create(model, NULL, &generator, &error) ||
      gen_sampling_new(&sampling, &error) || gen_sampling_set_max_new_tokens(sampling, 60, &error) ||
      gen_chat_new(&chat, &error) ||
      (argc > 2 && gen_chat_add(chat, "system", argv[2], GEN_NUL_TERMINATED, &error)) ||
      gen_chat_session_new(generator, chat, &talk, &error))
    return fprintf(stderr, "%s\n", error.message), 1;

  char line[4096];
  uint64_t seed = 1;
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "/show") == 0) {
      if (show(chat, &error)) fprintf(stderr, "%s\n", error.message);
      continue;
    }
    const int again = strcmp(line, "/again") == 0;
    const int more = strcmp(line, "/more") == 0;
    const char* message = again || more ? NULL : line; /* NULL: to what the conversation ends with */
    if ((again && gen_chat_truncate(chat, -1, &error)) || gen_sampling_set_seed(sampling, seed++, &error) ||
        gen_chat_session_send_stream(talk, message, GEN_NUL_TERMINATED, sampling, print, stdout, NULL, &error))
      fprintf(stderr, "%s\n", error.message); /* the conversation goes on */
    else
      printf("\n");
  }
  gen_chat_session_free(talk);
  gen_chat_free(chat);
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_model_free(model);
  return 0;
}
