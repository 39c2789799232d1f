/* SPDX-License-Identifier: Apache-2.0 */
/* A page in Prometheus' text format, made by a metrics sink: a server would return such a page at
 * /metrics.   prometheus MODEL PROMPT…
 *   cc prometheus.c $(pkg-config --cflags --libs generate) -pthread -o prometheus */
#include <generate/generate.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum kind { COUNTER, GAUGE, HISTOGRAM };
static const char* const kKinds[] = {"counter", "gauge", "histogram"};
static const double kBounds[] = {0.0001, 0.001, 0.01, 0.1, 1, 10, 100, 1000};
enum { BOUNDS = sizeof kBounds / sizeof kBounds[0], METRICS = 100 };

struct metric {
  const char* name; /* the library's, which stays */
  enum kind kind;
  double value;             /* a counter's or histogram's sum, a gauge's last value */
  double count[BOUNDS + 1]; /* values up to each bound, and all of them */
};
struct page {
  pthread_mutex_t lock; /* the library tells from any thread */
  struct metric metrics[METRICS];
  size_t n;
};

/* Records one value; each name gets its own metric. */
static void note(struct page* page, enum kind kind, const char* name, double value) {
  pthread_mutex_lock(&page->lock);
  size_t i = 0;
  while (i < page->n && strcmp(page->metrics[i].name, name) != 0) ++i;
  if (i < METRICS) {
    struct metric* metric = &page->metrics[i];
    if (i == page->n) page->n = i + 1;
    metric->name = name;
    metric->kind = kind;
    metric->value = kind == GAUGE ? value : metric->value + value;
    for (int bound = 0; bound < BOUNDS; ++bound) metric->count[bound] += value <= kBounds[bound];
    ++metric->count[BOUNDS];
  }
  pthread_mutex_unlock(&page->lock);
}

static void counter_add(void* user, const char* name, double value) {
  note(user, COUNTER, name, value);
}
static void gauge_set(void* user, const char* name, double value) {
  note(user, GAUGE, name, value);
}
static void histogram_observe(void* user, const char* name, double value) {
  note(user, HISTOGRAM, name, value);
}

static void print_page(struct page* page) {
  pthread_mutex_lock(&page->lock);
  for (size_t i = 0; i < page->n; ++i) {
    const struct metric* metric = &page->metrics[i];
    const char* total = metric->kind == COUNTER ? "_total" : "";
    printf("# TYPE gen_%s%s %s\n", metric->name, total, kKinds[metric->kind]);
    if (metric->kind != HISTOGRAM) {
      printf("gen_%s%s %.9g\n", metric->name, total, metric->value);
      continue;
    }
    for (int bound = 0; bound < BOUNDS; ++bound)
      printf("gen_%s_bucket{le=\"%g\"} %.0f\n", metric->name, kBounds[bound], metric->count[bound]);
    printf("gen_%s_bucket{le=\"+Inf\"} %.0f\n", metric->name, metric->count[BOUNDS]);
    printf("gen_%s_sum %.9g\ngen_%s_count %.0f\n", metric->name, metric->value, metric->name,
           metric->count[BOUNDS]);
  }
  pthread_mutex_unlock(&page->lock);
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: prometheus MODEL PROMPT...\n"), 2;
  static struct page page = {.lock = PTHREAD_MUTEX_INITIALIZER};
  const gen_metrics_sink sink = {.struct_size = sizeof sink,
                                 .user = &page,
                                 .counter_add = counter_add,
                                 .gauge_set = gauge_set,
                                 .histogram_observe = histogram_observe};
  gen_model* model = NULL;
  gen_options* options = NULL;
  gen_sampling* sampling = NULL;
  gen_generator* generator = NULL;
  gen_error error;
  int failed = gen_model_load(argv[1], NULL, &model, &error) || gen_options_new(&options, &error) ||
               gen_options_set_paged_kv(options, 64, 16, &error) ||
               gen_options_set_metrics(options, &sink, &error) ||
               gen_sampling_new(&sampling, &error) ||
               gen_sampling_set_max_new_tokens(sampling, 40, &error) ||
               gen_create(model, options, &generator, &error);
  for (int i = 2; i < argc && !failed; ++i) {
    gen_result* result = NULL;
    failed = gen_generate(generator, argv[i], GEN_NUL_TERMINATED, sampling, &result, &error);
    gen_result_free(result);
  }
  if (failed) fprintf(stderr, "%s\n", error.message);
  print_page(&page); /* also what failed is counted */
  gen_free(generator);
  gen_sampling_free(sampling);
  gen_options_free(options);
  gen_model_free(model);
  return failed ? 1 : 0;
}
