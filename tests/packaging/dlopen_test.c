/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, uses and closes the library, twice: hosts of plug-ins do. It must load with all symbols bound, keep its own
 * to itself, and leave without a trace.
 */
#include <dlfcn.h>
#include <generate/generate.h>
#include <stdio.h>
#include <string.h>

/* ISO C has no cast from void * to a function; a copy of the pointer is what POSIX means. */
#define LOOK_UP(function)                                        \
  do {                                                           \
    void *symbol = dlsym(library, #function);                    \
    if (symbol == NULL) return fail("no symbol " #function);     \
    memcpy(&p_##function, &symbol, sizeof symbol);               \
  } while (0)

static int fail(const char *what) {
  const char *reason = dlerror();
  fprintf(stderr, "%s: %s\n", what, reason != NULL ? reason : "");
  return 1;
}

static int use(const char *path, const char *model_path) {
  int32_t (*p_gen_abi_version)(void);
  gen_status (*p_gen_model_load)(const char *, const gen_model_options *, gen_model **, gen_error *);
  void (*p_gen_model_free)(gen_model *);
  gen_status (*p_gen_create)(const gen_model *, const gen_options *, gen_generator **, gen_error *);
  void (*p_gen_free)(gen_generator *);
  gen_status (*p_gen_generate)(gen_generator *, const char *, size_t, const gen_sampling *, gen_result **,
                               gen_error *);
  const char *(*p_gen_result_text)(const gen_result *, size_t *);
  void (*p_gen_result_free)(gen_result *);
  gen_error error;
  gen_model *model = NULL;
  gen_generator *generator = NULL;
  gen_result *result = NULL;
  size_t length = 0;

  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail("dlopen");
  LOOK_UP(gen_abi_version);
  LOOK_UP(gen_model_load);
  LOOK_UP(gen_model_free);
  LOOK_UP(gen_create);
  LOOK_UP(gen_free);
  LOOK_UP(gen_generate);
  LOOK_UP(gen_result_text);
  LOOK_UP(gen_result_free);
  if (dlsym(RTLD_DEFAULT, "gen_abi_version") != NULL) return fail("symbols leaked to the program");
  if (p_gen_abi_version() != GEN_ABI_VERSION) return fail("gen_abi_version");
  if (p_gen_model_load(model_path, NULL, &model, &error) != GEN_OK ||
      p_gen_create(model, NULL, &generator, &error) != GEN_OK ||
      p_gen_generate(generator, "One day", GEN_NUL_TERMINATED, NULL, &result, &error) != GEN_OK) {
    return fail(error.message);
  }
  if (p_gen_result_text(result, &length) == NULL || length == 0) return fail("no text");
  /* In the unusual order: what is in use lives on. */
  p_gen_model_free(model);
  p_gen_free(generator);
  p_gen_result_free(result);
  return dlclose(library) == 0 ? 0 : fail("dlclose");
}

int main(int argc, char **argv) {
  int round;
  if (argc != 3) return fail("usage: dlopen_test LIBRARY MODEL");
  for (round = 0; round < 2; ++round) {
    if (use(argv[1], argv[2]) != 0) return 1;
  }
  return 0;
}
