/* SPDX-License-Identifier: Apache-2.0 */
/* A Markov chain over the words of a text, as a custom model: its function returns how often each word
 * followed another; the loop, sampling and stopping are the library's.   markov TEXT FIRST-WORD [SEED]
 *   cc markov.c $(pkg-config --cflags --libs generate) -lm -o markov */
#include <generate/generate.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 16384, LETTERS = 24 };
static struct chain {
  char words[WORDS][LETTERS];
  int32_t vocab_size, length, text[WORDS]; /* the text as numbers of words */
} chain;

static int32_t id_of(const char* word) {
  int32_t id = 0;
  while (id < chain.vocab_size && strcmp(chain.words[id], word) != 0) ++id;
  return id;
}

static gen_status forward(void* user, const gen_forward_batch* batch, float* logits, float* f, gen_error* e) {
  const struct chain* c = ((void)f, (void)e, user);
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    if (!batch->wants_logits[row]) continue;
    for (int32_t id = 0; id < c->vocab_size; ++id) logits[id] = 0;
    for (int32_t i = 0; i < c->length; ++i)
      if (c->text[i] == batch->tokens[row]) ++logits[c->text[(i + 1) % c->length]];
    for (int32_t id = 0; id < c->vocab_size; ++id) logits[id] = logf(logits[id]); /* -inf: never */
    logits += c->vocab_size;
  }
  return GEN_OK;
}

int main(int argc, char** argv) {
  FILE* file = argc > 2 ? fopen(argv[1], "r") : NULL;
  if (file == NULL) return fprintf(stderr, "usage: markov TEXT FIRST-WORD [SEED]\n"), 2;
  while (chain.length < WORDS && fscanf(file, "%23s", chain.words[chain.vocab_size]) == 1) {
    const int32_t id = chain.text[chain.length++] = id_of(chain.words[chain.vocab_size]);
    chain.vocab_size += id == chain.vocab_size;
  }
  const gen_forward table = {.struct_size = sizeof table, .user = &chain, .forward = forward};
  const int32_t first = id_of(argv[2]);
  gen_model_config* config; gen_model* model;
  gen_generator* generator; gen_session* session;
  gen_sampling* sampling;
  gen_result* result = NULL;
  gen_error error;
  if (gen_model_config_new(&config, &error) || gen_sampling_new(&sampling, &error) ||
      gen_model_config_set_vocab_size(config, chain.vocab_size, &error) ||
      gen_model_config_set_max_seq_len(config, 50, &error) ||
      gen_sampling_set(sampling, "seed", argc > 3 ? argv[3] : "1", &error) ||
      gen_model_new_custom(&table, config, NULL, &model, &error) || gen_create(model, NULL, &generator, &error) ||
      gen_session_new(generator, &session, &error) || gen_session_append_tokens(session, &first, 1, &error) ||
      gen_session_generate(session, "", 0, sampling, &result, &error))
    return fprintf(stderr, "%s\n", error.message), 1;
  size_t n;
  const int32_t* said = gen_result_tokens(result, &n);
  for (size_t i = 0; i < n; ++i) printf("%s%c", chain.words[said[i]], i + 1 < n ? ' ' : '\n');
  return 0; /* with all of it open: nothing has to be freed when a process ends */
}
