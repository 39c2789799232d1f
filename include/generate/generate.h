/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgenerate: text generation with GGUF models, to be embedded in programs of any language.
 *
 *   gen_model      weights and tokenizer of a file; load once, share            model.h, tokenizer.h
 *                  or a function of one's own in their place                   custom_model.h
 *   gen_generator  a model with cache settings and a scheduler; share           generator.h
 *   gen_session    one growing sequence; one thread at a time                   session.h
 *   gen_stream     a generation pulled piece by piece                           stream.h
 *   gen_request    one of many generations that run together                    batch.h
 *   gen_speculative  a model that a smaller one guesses for; share              speculative.h
 *   gen_draft      guessing and judging as steps of their own                   speculative.h
 *   gen_sampling   how tokens are chosen; copied by each call                   sampling.h
 *   gen_grammar    which texts may be generated                                 grammar.h
 *   gen_chat       a conversation, laid out by the model's chat template        chat.h
 *   gen_chat_session  a conversation that answers, one turn at a time           chat.h
 *   gen_template   a chat template by itself                                    template.h
 *   gen_result     text, tokens, why it ended, counts and times                 result.h
 *   kv_cache       keys and values of a sequence, for direct use                kv_cache.h
 *                  in buffers of a fixed shape                                 kv_cache_tensor.h
 *                  or as raw buffers on a device                               kv_cache_gpu.h
 *                  or of many sequences in one store                           kv_cache_batch.h
 *   kv_cache_pool  blocks for paged caches; share                               kv_cache_pool.h
 *   kv_cache_prefix  blocks that prompts with the same beginning share; share  kv_cache_prefix.h
 *   kv_cache_radix  which blocks hold the beginning of a prompt; share         kv_cache_radix.h
 *   kv_cache_tier_config  tiered caches: memory, then files                     kv_cache_tiered.h
 *   gen_gpu_allocator  where memory on a device comes from                      gpu.h
 *   gen_tracer     a record of what a cache was asked to do                     trace.h
 *   gen_metrics_sink  where counts and times go                                 metrics.h
 *   gen_ssm_state  the state of recurrent layers, for direct use                ssm_state.h
 *
 * Handles   are opaque. *_new, *_load and gen_create make one through an out pointer, *_free ends it and
 *           accepts NULL. What is in use by something else lives on until that is freed too, in any order.
 * Errors    fallible functions return gen_status and take, last, an optional gen_error of the caller's. Any of them may
 *           fail with GEN_ERROR_OUT_OF_MEMORY, and those that use a model or cache on a device with GEN_ERROR_DEVICE,
 *           named in its comment or not.
 *           After a failure out handles are NULL, numbers 0, buffers untouched, and nothing else has changed.
 * Structs   are callback tables and views only. Each begins with struct_size: in one of yours, set it to its sizeof;
 *           in one of the library's it tells the library's. They only grow at the end. What yours has beyond the
 *           library's is ignored, what it lacks counts as 0; a table or view smaller than in 0.1 is refused.
 * Threads   a `const` handle or one called shareable may be used by many threads at once, any other by one
 *           at a time; a second entry is answered with GEN_ERROR_BUSY. Every function has a line on it.
 * Callbacks are functions of the host that the library calls. Handles, options and arguments that a call was given may
 *           be freed and changed in one: a free there returns at once and takes effect when the call that the callback
 *           belongs to, or the next one on the same objects, returns. What a callback may call, and what answers
 *           GEN_ERROR_BUSY in it:
 *             gen_token_callback, gen_batch_callback,       everything; the session, cache or stream that the call is on
 *             gen_progress_callback                         is busy. They run on the calling thread.
 *             functions of gen_forward                      everything but what is made from their model, and passes of
 *                                                           it: that is busy. gen_forward_attention with the batch.
 *             gen_allocator                                 should call nothing. What is made from the model, pool,
 *                                                           cache or configuration it was set for is busy.
 *             gen_gpu_allocator                             should call nothing. The model, pool, cache or configuration it
 *                                                           was set for, and what is made from it, is busy.
 *             gen_metrics_sink                              should call nothing. Generators that tell it, and what is
 *                                                           made from them, are busy.
 *             kv_cache_radix_evict_callback                 everything but its index, which is busy
 *             kv_cache_shift_fn                             everything but its cache, which is busy
 *             gen_log_callback                              nothing: every function with a status is busy
 *           Getters without a status, gen_session_cancel, gen_session_progress and what only reads a model's description
 *           or texts are free in all of them. A callback must not wait for a call on another thread, nor leave by longjmp
 *           or end its thread. It should not throw; a C++ exception makes the call fail with GEN_ERROR_INTERNAL (from an
 *           allocator GEN_ERROR_OUT_OF_MEMORY), a session as it was before, and is dropped where nobody can be told:
 *           in sinks, evict callbacks and functions that free.
 * Text      is UTF-8 with a length, or GEN_NUL_TERMINATED. Returned text is NUL-terminated; `n` does not
 *           count the NUL. With a NULL buffer such functions tell the size.
 * Silence   the library never prints, exits, aborts, installs a signal handler or throws across this border.
 * Files     a model that is mapped (the default) is read from its file for as long as the model lives: whoever shortens
 *           the file ends the process with SIGBUS, whoever writes to it changes what is generated. Replace a model by
 *           renaming a new file into its place, or load it with gen_model_options_set_mmap 0. Everything else is read
 *           into memory before it is checked. Saved sessions and caches, and all files of tiered caches, are readable
 *           by their user alone; a file that is saved over keeps its permissions. Files with no texts in them
 *           (quantised models, records of a tracer) are made as the process' umask says. A write that fails leaves
 *           no part of a file, also beyond RLIMIT_FSIZE: the library takes the SIGXFSZ that its own writes cause.
 * fork()    a child cannot use what its parent made, if it has threads or locks: pools, models, generators, sessions,
 *           streams, grammars and their matchers, caches, block pools, prefix and radix caches, tracers, profiles, metrics
 *           memories. Functions with a status fail with GEN_ERROR_STATE, others answer as for NULL or from what never
 *           changes, and *_free and *_close do nothing: the memory goes with the child, the files stay the parent's. What
 *           holds data only (options, sampling, requests, results, chats, tokenizers) goes on working, and the child may
 *           load a model of its own, at any time, whatever the parent's threads did at the fork. A child that is made in
 *           a callback must not return from it.
 * Results   one row, one result: what a request gives does not depend on batching, chunking, threads or caches; on
 *           devices with gen_options_set_deterministic.
 *
 * While the version is 0.x functions may be added and arguments improved; see CHANGELOG.md.
 */
#ifndef GENERATE_GENERATE_H
#define GENERATE_GENERATE_H

#include "base.h"
#include "batch.h"
#include "chat.h"
#include "custom_model.h"
#include "error.h"
#include "generator.h"
#include "gpu.h"
#include "grammar.h"
#include "kv_cache.h"
#include "kv_cache_batch.h"
#include "kv_cache_gpu.h"
#include "kv_cache_pool.h"
#include "kv_cache_prefix.h"
#include "kv_cache_radix.h"
#include "kv_cache_tensor.h"
#include "memory_estimate.h"
#include "metrics.h"
#include "kv_cache_tiered.h"
#include "model.h"
#include "result.h"
#include "sampling.h"
#include "session.h"
#include "speculative.h"
#include "ssm_state.h"
#include "stream.h"
#include "template.h"
#include "tokenizer.h"
#include "trace.h"

#endif /* GENERATE_GENERATE_H */
