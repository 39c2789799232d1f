/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a small adapter for a llama model, of one product that is as its queries are. */
#ifndef TESTS_SUPPORT_ADAPTER_FILE_H
#define TESTS_SUPPORT_ADAPTER_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <generate/model.h>

static inline void put_number_(FILE* to, uint64_t number, size_t bytes) {
  unsigned char text[8];
  for (size_t i = 0; i < bytes; ++i) text[i] = (unsigned char)(number >> (8 * i));
  fwrite(text, 1, bytes, to);
}
static inline void put_text_(FILE* to, const char* text) {
  put_number_(to, strlen(text), 8);
  fwrite(text, 1, strlen(text), to);
}
static inline void put_entry_(FILE* to, const char* key, const char* value) {
  put_text_(to, key);
  put_number_(to, 8, 4); /* a string */
  put_text_(to, value);
}
static inline void put_tensor_(FILE* to, const char* name, uint64_t cols, uint64_t rows,
                               uint64_t offset) {
  put_text_(to, name);
  put_number_(to, 2, 4);
  put_number_(to, cols, 8);
  put_number_(to, rows, 8);
  put_number_(to, 0, 4); /* float32 */
  put_number_(to, offset, 8);
}

/* `gain`: the size of its weights. `tensor`: the base, "blk.0.attn_q.weight" for one that fits. 0
 * if the file cannot be written. */
static inline int write_adapter_of_rank(const char* path, const gen_model* model,
                                        const char* tensor, uint64_t rank, float gain) {
  const gen_model_config* config = gen_model_get_config(model);
  const uint64_t in = (uint64_t)gen_model_config_hidden(config);
  const uint64_t out =
      (uint64_t)(gen_model_config_num_heads(config) * gen_model_config_head_dim(config));
  char name[128];
  FILE* to = fopen(path, "wb");
  if (to == NULL) return 0;
  fwrite("GGUF", 1, 4, to);
  put_number_(to, 3, 4);
  put_number_(to, 2, 8); /* tensors */
  put_number_(to, 3, 8); /* entries */
  put_entry_(to, "general.type", "adapter");
  put_entry_(to, "general.architecture", "llama");
  put_entry_(to, "adapter.type", "lora");
  const uint64_t first = (rank * in * 4 + 31) / 32 * 32; /* bytes of A, aligned */
  snprintf(name, sizeof name, "%s.lora_a", tensor);
  put_tensor_(to, name, in, rank, 0);
  snprintf(name, sizeof name, "%s.lora_b", tensor);
  put_tensor_(to, name, rank, out, first);
  while (ftell(to) % 32 != 0) fputc(0, to);
  uint32_t state = 1;
  for (uint64_t i = 0; i < first / 4 + rank * out; ++i) {
    state = state * 1664525U + 1013904223U;
    const float value = gain * ((float)(state >> 8) / 16777216.0F - 0.5F);
    uint32_t bits = 0;
    memcpy(&bits, &value, 4);
    put_number_(to, bits, 4);
  }
  while (ftell(to) % 32 != 0) fputc(0, to);
  return fclose(to) == 0;
}

/* One of rank 2. */
static inline int write_adapter(const char* path, const gen_model* model, const char* tensor,
                                float gain) {
  return write_adapter_of_rank(path, model, tensor, 2, gain);
}

#endif /* TESTS_SUPPORT_ADAPTER_FILE_H */
