/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics: what a generator counts and measures is passed to a table of functions as it happens. gen_metrics_memory is a
 * ready-made table, which is read as JSON. Names are frozen; more may come. Times are in seconds. gen_metrics_describe
 * lists all metrics as JSON.
 *
 *   counters    requests               generating calls that began
 *               prompt_tokens          tokens of their prompts and of appended texts, begin-of-sequence included
 *               prompt_cached_tokens   of these, tokens that a prefix cache had
 *               completion_tokens      tokens generated, without stop tokens
 *               finished_REASON        calls that ended so: stop_token, stop_string, length, context_full,
 *                                      grammar_complete, grammar_dead_end, cancelled, callback, error
 *               errors_NAME            generating, appending and scoring calls that were refused or failed, by status:
 *                                      model, out_of_memory, busy, …; a cancel is no failure
 *               steps, steps_failed    forward passes; those in which a sequence failed
 *               prefix_lookups, prefix_hits, prefix_evictions, preemptions
 *               drafted_tokens, accepted_tokens   guessed and looked at; of these, what the model then said
 *               drafts_failed          times that a drafter could not do its work, for lack of memory or otherwise
 *               rows_again             rows that a device ran again for all their logits, as the largest did not
 *                                      decide the token
 *               tier_demotions, tier_promotions   blocks of all layers that gen_options_set_tiered_kv moved to the
 *                                      file, and back to be written
 *               tier_bytes_written, tier_bytes_read   of these and of what attention read
 *               tier_cold_hits, tier_warm_hits   blocks of one layer in the file that attention read: when it needed
 *                                      them, or ahead of that
 *   gauges      queue_length           sequences that the last step left waiting
 *               cache_blocks_used, cache_blocks_free, cache_fragmentation   of gen_options_set_paged_kv's pool
 *               speculative_acceptance_rate   share of right ones, 0 to 1, among the last 32 drafted tokens of the call
 *                                      that was checked last; that of all is accepted_tokens / drafted_tokens
 *   histograms  first_token_seconds    from the call to its first token
 *               inter_token_seconds    from asking for a further token to having it
 *               tokens_per_second      of a call of two tokens or more, when it ends, without its first one
 *               queue_wait_seconds     of a sequence's rows, until their step begins
 *               step_seconds           of a step
 *               batch_sequences, batch_rows   of a step
 */
#ifndef GENERATE_METRICS_H
#define GENERATE_METRICS_H

#include "base.h"
#include "generator.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Where metrics go. Any function may be NULL. They are called on any thread, several at once, with names that live as
 * long as the library. They should return at once, since generating waits for them, and should not call the library: the
 * generators that call them are GEN_ERROR_BUSY in them. Exceptions are dropped.
 */
typedef struct gen_metrics_sink {
  uint32_t struct_size; /**< sizeof(gen_metrics_sink) */
  void *user;           /**< passed to all functions, never dereferenced */
  void (*counter_add)(void *user, const char *name, double value);       /**< adds to a sum */
  void (*gauge_set)(void *user, const char *name, double value);         /**< replaces a value */
  void (*histogram_observe)(void *user, const char *name, double value); /**< one value of a distribution */
} gen_metrics_sink;

/** A collector of metrics in memory. Shareable. */
typedef struct gen_metrics_memory gen_metrics_memory;

/**
 * Sends the metrics of generators made with these options to a sink.
 *
 * @param sink  table, copied; its functions must work as long as the generators and their sessions. NULL (the default)
 *              for nowhere.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL or struct_size is below that of version 0.1;
 *         GEN_ERROR_OUT_OF_MEMORY. On failure nothing changes.
 * Threads: one at a time per object; the functions are called on any thread.
 * Cost:    without a sink nothing; with one some ten calls a step, and one or two a token.
 * Since:   0.1
 */
GEN_API gen_status gen_options_set_metrics(gen_options *options, const gen_metrics_sink *sink, gen_error *error);

/**
 * All metrics as JSON: an array of {"name","kind","help"} and for histograms "buckets", their upper bounds in
 * gen_metrics_memory. Kinds are "counter", "gauge" and "histogram".
 *
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if n is NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_metrics_describe(char *buf, size_t capacity, size_t *n, gen_error *error);

/**
 * Makes an empty collector.
 *
 * Histograms have fixed buckets. Names that end in "_seconds": 1, 2 and 5 times 0.0001 to 10, and 100. All others: the
 * powers of two from 1 to 4096. A value counts in the first bucket whose bound is not below it, and beyond the last bound
 * in one more bucket.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_metrics_memory_new(gen_metrics_memory **out, gen_error *error);

/**
 * The table to give to gen_options_set_metrics, or to call oneself with further names. Borrowed from the collector; NULL
 * for NULL. Generators that were given it keep the collector alive.
 *
 * Threads: any, its functions too.
 * Since:   0.1
 */
GEN_API const gen_metrics_sink *gen_metrics_memory_sink(const gen_metrics_memory *memory);

/**
 * One moment of all metrics as JSON: {"counters":{NAME:VALUE,…},"gauges":{…},"histograms":{NAME:{"count":3,"sum":0.5,
 * "buckets":[{"le":0.0001,"count":1},…,{"le":null,"count":3}]},…}}. Names are sorted; a metric that never had a value is left out.
 * A bucket's count is that of all values up to its bound, as the Prometheus format has it; `null` is infinity.
 *
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size, which may grow.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if memory or n is NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_metrics_memory_snapshot(const gen_metrics_memory *memory, char *buf, size_t capacity, size_t *n,
                                               gen_error *error);

/**
 * One value: a counter's or a gauge's, the number of values of a histogram, or their sum.
 *
 * @param name  a metric's name, or a histogram's with ".count" or ".sum" behind it.
 * @return the value; 0 for NULL and for a metric that never had one.
 * Threads: any.
 * Since:   0.1
 */
GEN_API double gen_metrics_memory_value(const gen_metrics_memory *memory, const char *name);

/**
 * Gives the collector up; it lives on while generators use it. NULL is fine.
 *
 * Threads: one; the handle and its table must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_metrics_memory_free(gen_metrics_memory *memory);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_METRICS_H */
