/* SPDX-License-Identifier: Apache-2.0 */
/* A user's whole program: loads the model named on the command line and prints a continuation. */
#include <generate/generate.h>
#include <stdio.h>

int main(int argc, char **argv) {
  gen_model *model = NULL;
  gen_generator *generator = NULL;
  gen_result *result = NULL;
  gen_error error;
  if (argc != 2 || gen_model_load(argv[1], NULL, &model, &error) != GEN_OK ||
      gen_create(model, NULL, &generator, &error) != GEN_OK ||
      gen_generate(generator, "Once upon a time", GEN_NUL_TERMINATED, NULL, &result, &error) != GEN_OK) {
    fprintf(stderr, "%s\n", argc == 2 ? error.message : "usage: story MODEL");
    return 1;
  }
  printf("%s\n", gen_result_text(result, NULL));
  gen_result_free(result);
  gen_free(generator);
  gen_model_free(model);
  return 0;
}
