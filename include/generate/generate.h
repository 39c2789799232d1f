/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgenerate: text generation with GGUF models, as a library for programs in any language.
 *
 *   gen_model      weights and tokenizer of a file; load once, share            model.h, tokenizer.h
 *                  or a forward function of your own in their place            custom_model.h
 *   gen_generator  a model with cache settings and a scheduler; share           generator.h
 *   gen_session    one growing sequence; one thread at a time                   session.h
 *   gen_stream     a generation pulled piece by piece                           stream.h
 *   gen_request    one of many generations that run together                    batch.h
 *   gen_speculative  a model accelerated by a smaller draft model; share        speculative.h
 *   gen_eagle      a model accelerated by a head that was trained for it; share  eagle.h
 *   gen_draft      drafting and verification as separate steps                  speculative.h
 *   gen_sampling   how tokens are chosen; copied by each call                   sampling.h
 *   gen_grammar    which texts may be generated                                 grammar.h
 *   gen_chat       a conversation, rendered by the model's chat template        chat.h
 *   gen_chat_session  a conversation and a session that generates its answers   chat.h
 *   gen_tool_registry  functions that a model may call; share                  agent.h
 *   gen_agent      a conversation in which a model calls tools until it is done  agent.h
 *   gen_supervisor  several agents on one task                                  agent.h
 *   gen_template   a chat template by itself                                    template.h
 *   gen_result     text, tokens, finish reason, counts and times                result.h
 *   kv_cache       keys and values of a sequence, for direct use                kv_cache.h
 *                  in buffers of a fixed shape                                 kv_cache_tensor.h
 *                  or as raw buffers on a device                               kv_cache_gpu.h
 *                  or of many sequences in one store                           kv_cache_batch.h
 *   kv_cache_pool  blocks for paged caches; share                               kv_cache_pool.h
 *   kv_cache_prefix  blocks that prompts with the same beginning share; share  kv_cache_prefix.h
 *   kv_cache_radix  which blocks hold the beginning of a prompt; share         kv_cache_radix.h
 *   kv_cache_tier_config  tiered caches: memory, then files                     kv_cache_tiered.h
 *   gen_gpu_allocator  the caller's allocator of device memory                  gpu.h
 *   gen_tracer     a record of the operations of caches and forward passes      trace.h
 *   gen_metrics_sink  receives counters, gauges and histograms                  metrics.h
 *   gen_ssm_state  the state of recurrent layers: a session's, or for direct use  ssm_state.h
 *
 * Handles   are opaque. *_new, *_load and gen_create return one through an out pointer; *_free releases it and
 *           accepts NULL. An object that others use stays alive until they are freed; handles may be freed in any
 *           order.
 * Errors    Fallible functions return gen_status and take, as their last argument, an optional gen_error owned by the
 *           caller. Any of them may fail with GEN_ERROR_OUT_OF_MEMORY, and any that uses a model or cache on a device
 *           with GEN_ERROR_DEVICE, even where its comment does not list these.
 *           On failure, out handles are set to NULL and numbers to 0; buffers are untouched, and nothing else changes.
 * Structs   Only callback tables, views and tensors that a caller gives are structs. Each begins with struct_size. Set it to sizeof in a struct
 *           that you fill; in one that the library fills it is the library's size. Structs only grow at the end. The
 *           library ignores members that it does not know and treats missing ones as 0; it refuses one that is
 *           smaller than in version 0.1.
 * Threads   Many threads may use a `const` handle, or one called shareable, at once. Any other handle serves one thread
 *           at a time; a concurrent call returns GEN_ERROR_BUSY. Every function documents its rule.
 * Callbacks are functions of the host that the library calls. In a callback, handles, options and arguments of the
 *           running call may be freed or changed. A free returns at once; it takes effect when the call that invoked
 *           the callback, or the next call on the same objects, returns. What a callback may call, and which objects
 *           return GEN_ERROR_BUSY inside it:
 *             gen_token_callback, gen_batch_callback,       may call anything. The session, cache or stream of the running
 *             gen_progress_callback                         call is busy. They run on the calling thread.
 *             functions of gen_forward                      may call anything, and gen_forward_attention with their batch.
 *                                                           Passes of their model and objects made from it are busy.
 *             gen_allocator                                 should call nothing. Objects made from the model, pool,
 *                                                           cache or configuration that has this allocator are busy.
 *             gen_gpu_allocator                             should call nothing. The model, pool, cache or configuration
 *                                                           that has it, and objects made from these, are busy.
 *             gen_metrics_sink                              should call nothing. Generators that report to it, and
 *                                                           objects made from them, are busy.
 *             kv_cache_radix_evict_callback                 may call anything. Its index is busy.
 *             kv_cache_shift_fn                             may call anything. Its cache is busy.
 *             gen_log_callback                              should call nothing: every function with a status is busy.
 *           In all of them, getters without a status, gen_session_cancel, gen_session_progress and functions that only
 *           read a model's description or texts work. A callback must not wait for a call on another thread, leave by
 *           longjmp, or end its thread. It should not throw. A C++ exception makes the call fail with
 *           GEN_ERROR_INTERNAL (from an allocator GEN_ERROR_OUT_OF_MEMORY) and leaves a session as it was before the
 *           call. It is dropped where no call can report it: in sinks, evict callbacks and functions that free.
 * Text      is UTF-8 with a length, or GEN_NUL_TERMINATED. Returned text is NUL-terminated; `n` does not
 *           count the NUL. With a NULL buffer such functions return the size.
 * Silence   The library never prints, exits, aborts, installs a signal handler or throws across the C boundary.
 * Files     A mapped model (the default) is read from its file as long as the model lives. Shortening the file ends the
 *           process with SIGBUS; writing to it changes what is generated. To replace a model, rename a new file into
 *           its place, or load it with gen_model_options_set_mmap 0. Every other file is read into memory before it is
 *           checked. Saved sessions and caches, and all files of tiered caches, are readable only by their user; saving
 *           over a file keeps its permissions. Files that hold no text (quantised models, records of a tracer) follow
 *           the umask. A failed write leaves no partial file, even beyond RLIMIT_FSIZE: the library handles the SIGXFSZ
 *           that its own writes cause.
 * fork()    A child process cannot use objects of its parent that have threads or locks: pools, models, generators,
 *           sessions and their states, streams, grammars and their matchers, caches, block pools, prefix and radix caches, tracers,
 *           profiles, metrics memories. In the child, functions with a status fail with GEN_ERROR_STATE; others answer
 *           as for NULL, or return constants; *_free and *_close do nothing: the memory is freed with the child, and
 *           the files stay the parent's. Objects that hold only data (options, sampling, requests, results, chats,
 *           tokenizers) keep working. The child may load a model of its own at any time, whatever the parent's threads
 *           were doing at the fork. A child that is forked inside a callback must not return from it.
 * Results   The result of a request does not depend on batching, chunking, threads or caches; on devices this needs
 *           gen_options_set_deterministic.
 *
 * While the version is 0.x, functions may be added and arguments improved; see CHANGELOG.md.
 */
#ifndef GENERATE_GENERATE_H
#define GENERATE_GENERATE_H

#include "adapter.h"
#include "agent.h"
#include "base.h"
#include "batch.h"
#include "chat.h"
#include "custom_model.h"
#include "eagle.h"
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
#include "quantize.h"
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
