/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics: a generator reports counts and measurements to a table of functions as they happen.
 * gen_metrics_memory is a ready-made table that can be read as JSON. Names are frozen; more may be
 * added. Times are in seconds. gen_metrics_describe lists all metrics as JSON.
 *
 *   counters    requests               generating calls that began
 *               prompt_tokens          tokens of their prompts and of appended texts, begin-of-sequence included
 *               prompt_cached_tokens   of these, tokens found in a prefix cache
 *               completion_tokens      tokens generated, without stop tokens
 *               finished_REASON        calls by finish reason: stop_token, stop_string, length, context_full,
 *                                      grammar_complete, grammar_dead_end, cancelled, callback, error
 *               errors_NAME            generating, appending and scoring calls that were refused or failed, by status:
 *                                      model, out_of_memory, busy, …; a cancel is no failure
 *               steps, steps_failed    forward passes; those in which a sequence failed
 *               prefix_lookups, prefix_hits, prefix_evictions, preemptions
 *               drafted_tokens, accepted_tokens   draft tokens that were verified; of these, accepted ones
 *               drafts_failed          times that a drafter failed, for lack of memory or otherwise
 *               rows_again             rows that a device computed again to get all their logits, because the largest
 *                                      did not decide the token
 *               tier_demotions, tier_promotions   blocks of all layers that gen_options_set_tiered_kv moved to the
 *                                      file, and back in order to write them
 *               tier_bytes_written, tier_bytes_read   of these and of what attention read
 *               tier_cold_hits, tier_warm_hits   blocks of one layer that attention read from the file: on demand, or
 *                                      ahead of time
 *   gauges      queue_length           sequences that the last step left waiting
 *               cache_blocks_used, cache_blocks_free, cache_fragmentation   of the pool of gen_options_set_paged_kv
 *               cache_window_blocks_used, cache_window_fragmentation   of its blocks for layers with windows
 *               speculative_acceptance_rate   acceptance rate, 0 to 1, of the last 32 draft tokens of the call that was
 *                                      verified last; the overall rate is accepted_tokens / drafted_tokens
 *   histograms  first_token_seconds    from the call to its first token
 *               inter_token_seconds    from asking for a further token to having it
 *               tokens_per_second      of a call of two tokens or more, when it ends, not counting its first token
 *               queue_wait_seconds     time that a sequence's rows wait for their step
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
 * Receives metrics. Any function may be NULL. They are called on any thread, several at once, with
 * names that stay valid as long as the library is loaded. They should return at once, because
 * generating waits for them, and should not call the library: the generators that report to them
 * return GEN_ERROR_BUSY in them. Exceptions are dropped.
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
 * Reports the metrics of generators made with these options to a sink.
 *
 * @param sink  table, copied; its functions must work as long as the generators and their sessions. NULL (the default)
 *              for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL or struct_size is below that of version 0.1;
 *         GEN_ERROR_OUT_OF_MEMORY. On failure nothing changes.
 * Threads: one at a time per object; the functions are called on any thread.
 * Cost:    none without a sink; with one, about ten calls per step, and one or two per token.
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
 * Histograms have fixed buckets. For names that end in "_seconds" the bounds are 1, 2 and 5 times
 * 0.0001 to 10, and 100; for all others the powers of two from 1 to 4096. A value counts in the
 * first bucket whose bound is not below it; one more bucket has no bound.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_metrics_memory_new(gen_metrics_memory **out, gen_error *error);

/**
 * The table to pass to gen_options_set_metrics, or to call with metrics of your own. Borrowed from
 * the collector; NULL for NULL. Generators that use it keep the collector alive.
 *
 * Threads: any, its functions too.
 * Since:   0.1
 */
GEN_API const gen_metrics_sink *gen_metrics_memory_sink(const gen_metrics_memory *memory);

/**
 * A consistent snapshot of all metrics as JSON:
 * {"counters":{NAME:VALUE,…},"gauges":{…},"histograms":{NAME:{"count":3,"sum":0.5,
 * "buckets":[{"le":0.0001,"count":1},…,{"le":null,"count":3}]},…}}. Names are sorted; a metric that
 * never had a value is left out. Bucket counts are cumulative, as in the Prometheus format; `null`
 * is infinity.
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
 * Returns one value: that of a counter or gauge, or the number or the sum of a histogram's values.
 *
 * @param name  a metric's name, or that of a histogram followed by ".count" or ".sum".
 * @return the value; 0 for NULL and for a metric that never had one.
 * Threads: any.
 * Since:   0.1
 */
GEN_API double gen_metrics_memory_value(const gen_metrics_memory *memory, const char *name);

/**
 * Releases the collector; it lives on while generators use it. NULL is fine.
 *
 * Threads: one; the handle and its table must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_metrics_memory_free(gen_metrics_memory *memory);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_METRICS_H */
