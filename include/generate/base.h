/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every other header needs: the export macro, status codes, handles, and functions about the
 * library itself (version, build, log, thread pools, cancel flags, backends). generate.h has the
 * overview.
 */
#ifndef GENERATE_BASE_H
#define GENERATE_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GEN_API __attribute__((visibility("default")))
#else
#define GEN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of these headers; gen_version() returns that of the library. */
#define GEN_VERSION_MAJOR 0
#define GEN_VERSION_MINOR 1
#define GEN_VERSION_PATCH 0
/** Version of the binary interface; the library's soname carries it. */
#define GEN_ABI_VERSION 0

/** As a length: the text ends at its first NUL. */
#define GEN_NUL_TERMINATED SIZE_MAX

/** Outcome of a call: GEN_OK or a negative number. Numbers are frozen. */
typedef int32_t gen_status;
enum {
  GEN_OK = 0,
  GEN_ERROR_INVALID_ARGUMENT = -1, /**< an argument is invalid in itself */
  GEN_ERROR_OUT_OF_MEMORY = -2,
  GEN_ERROR_IO = -3,
  GEN_ERROR_FORMAT = -4, /**< a bad or hostile file */
  GEN_ERROR_UNSUPPORTED = -5,
  GEN_ERROR_CACHE_FULL = -6,
  GEN_ERROR_POOL_EXHAUSTED = -7,
  GEN_ERROR_OUT_OF_RANGE = -8, /**< an id, index or capacity outside its limit */
  GEN_ERROR_SEQUENCE = -9,     /**< append at the wrong position */
  GEN_ERROR_BUSY = -10,        /**< the object is in use by another call */
  GEN_ERROR_CANCELLED = -11,
  GEN_ERROR_GRAMMAR = -12,
  GEN_ERROR_DEVICE = -13,
  GEN_ERROR_CONTEXT_FULL = -14, /**< the prompt does not fit the context */
  GEN_ERROR_STATE = -15,        /**< wrong order of calls */
  GEN_ERROR_MODEL = -16,        /**< the forward pass failed or gave NaN */
  GEN_ERROR_TOKENIZER = -17,
  GEN_ERROR_INTERNAL = -18
};

/** Why a generation ended. Numbers are frozen. */
enum {
  GEN_FINISH_NONE = 0,
  GEN_FINISH_STOP_TOKEN = 1,
  GEN_FINISH_STOP_STRING = 2,
  GEN_FINISH_LENGTH = 3,
  GEN_FINISH_CONTEXT_FULL = 4,
  GEN_FINISH_GRAMMAR_COMPLETE = 5,
  GEN_FINISH_GRAMMAR_DEAD_END = 6,
  GEN_FINISH_CANCELLED = 7,
  GEN_FINISH_CALLBACK = 8,
  GEN_FINISH_ERROR = 9
};

/** Receives the description of a failure; see error.h. */
typedef struct gen_error gen_error;

/** Threads shared by models. Shareable; models keep what they use alive. */
typedef struct gen_thread_pool gen_thread_pool;
/** A flag that stops calls from any thread. Shareable; settings and sessions that were given it keep it alive. */
typedef struct gen_cancel gen_cancel;
/** A loaded model. Shareable between threads, see model.h. */
typedef struct gen_model gen_model;
/** How to load a model. One thread at a time. */
typedef struct gen_model_options gen_model_options;
/**
 * Sizes of a model. Borrowed from a model and immutable, or made by the caller for a custom model,
 * see custom_model.h.
 */
typedef struct gen_model_config gen_model_config;
/** How to quantise a model, see quantize.h. One thread at a time. */
typedef struct gen_quantize_options gen_quantize_options;
/** Text to tokens and back. Shareable. */
typedef struct gen_tokenizer gen_tokenizer;
/** The set of allowed texts, see grammar.h. Shareable. */
typedef struct gen_grammar gen_grammar;
/** How to make a grammar. One thread at a time. */
typedef struct gen_grammar_options gen_grammar_options;
/** The position of a text in a grammar. One thread at a time. */
typedef struct gen_grammar_matcher gen_grammar_matcher;
/** A conversation, rendered by a model's chat template. One thread at a time. */
typedef struct gen_chat gen_chat;
/** A conversation and a session that generates its answers. One thread at a time. */
typedef struct gen_chat_session gen_chat_session;
/** A chat template by itself. Shareable. */
typedef struct gen_template gen_template;
/** How to generate: cache kind, batching. One thread at a time. */
typedef struct gen_options gen_options;
/** A model with a scheduler and cache settings, from which sessions are made. Shareable. */
typedef struct gen_generator gen_generator;
/** A target model with a smaller draft model. Shareable. */
typedef struct gen_speculative gen_speculative;
/** A drafter that the program drives step by step. One thread at a time. */
typedef struct gen_draft gen_draft;
/** One conversation: tokens, cache, position. One thread at a time. */
typedef struct gen_session gen_session;
/** One generation pulled piece by piece. One thread at a time. */
typedef struct gen_stream gen_stream;
/** The outcome of a generation. Immutable. */
typedef struct gen_result gen_result;
/** How to choose tokens. One thread at a time; copied by the call that uses it. */
typedef struct gen_sampling gen_sampling;
/** Keys and values of a sequence, see kv_cache.h. One thread at a time. */
typedef struct kv_cache kv_cache;
/** How to make tiered caches; see kv_cache_tiered.h. */
typedef struct kv_cache_tier_config kv_cache_tier_config;

/**
 * Host memory from the caller. Set struct_size to sizeof(gen_allocator). The functions are called
 * on any thread and should not call the library: objects that use this allocator return
 * GEN_ERROR_BUSY in them. An exception counts as a failure to allocate.
 */
typedef struct gen_allocator {
  uint32_t struct_size; /**< sizeof(gen_allocator) */
  void *user;           /**< passed to both functions, never dereferenced */
  /** `bytes` at a multiple of `align` (a power of two) into *out; GEN_OK or a failure. */
  gen_status (*allocate)(void *user, size_t bytes, size_t align, void **out);
  /** Gives back what allocate gave, with the same size. */
  void (*release)(void *user, void *ptr, size_t bytes);
} gen_allocator;

/**
 * The library's version, "MAJOR.MINOR.PATCH".
 *
 * @return a constant string.
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *gen_version(void);

/**
 * The binary interface's version; equals GEN_ABI_VERSION of the headers the library was built with.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_abi_version(void);

/**
 * Describes this build as one line of JSON: version, compiler, CPU level in use, backends, weight
 * formats, architectures and cache kinds.
 *
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if n is NULL or GEN_CPU names an unknown level;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_build_info(char *buf, size_t capacity, size_t *n, gen_error *error);

/** Levels of the log, from silent to chatty. */
enum {
  GEN_LOG_OFF = 0,
  GEN_LOG_ERROR = 1,
  GEN_LOG_WARNING = 2,
  GEN_LOG_INFO = 3,
  GEN_LOG_DEBUG = 4
};

/**
 * Receives one line without a newline. Called on any thread, one line at a time. Inside it every
 * function with a status returns GEN_ERROR_BUSY; gen_log_set_callback and gen_log_set_level take
 * effect when it returns. Exceptions are dropped.
 */
typedef void (*gen_log_callback)(void *user, int32_t level, const char *line);

/**
 * Sets the receiver of log lines. The library is silent until both a callback and a level are set.
 * Failures are reported as errors and counts as metrics (metrics.h); the log reports oddities, such
 * as a model without a chat template.
 *
 * @param callback  the receiver, or NULL for silence.
 * @param user      passed through.
 * Threads: any; the process has one log.
 * Since:   0.1
 */
GEN_API void gen_log_set_callback(gen_log_callback callback, void *user);

/**
 * Sets the highest level that reaches the callback; GEN_LOG_OFF at start. Lines above it are not
 * even formatted.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API void gen_log_set_level(int32_t level);

/**
 * Makes a thread pool that several models can share.
 *
 * @param threads  threads that work on a job, including the calling one; 0 for one per usable CPU.
 * @param cpus     [n_cpus] CPU numbers to pin to, in turn, or NULL for none.
 * @param out      receives the pool; free it with gen_thread_pool_free.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT if threads is negative or above 1024, or a CPU does not exist;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    starts threads - 1 threads, which sleep while idle.
 * Since:   0.1
 */
GEN_API gen_status gen_thread_pool_new(int32_t threads, const int32_t *cpus, size_t n_cpus,
                                       gen_thread_pool **out, gen_error *error);

/**
 * Releases the pool; it lives on while a model uses it. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_thread_pool_free(gen_thread_pool *pool);

/**
 * Makes a cancel flag for gen_sampling_set_cancel.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_cancel_new(gen_cancel **out, gen_error *error);

/**
 * Raises the flag: calls that use it end with GEN_ERROR_CANCELLED and their partial result. It stays raised.
 *
 * Threads: any, also from a signal handler. NULL does nothing.
 * Since:   0.1
 */
GEN_API void gen_cancel_fire(gen_cancel *cancel);

/**
 * Lowers the flag for the next use.
 *
 * Threads: any. NULL does nothing.
 * Since:   0.1
 */
GEN_API void gen_cancel_reset(gen_cancel *cancel);

/**
 * Releases the flag. It lives on, raised or not, while settings, sessions or calls use it. NULL is
 * fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_cancel_free(gen_cancel *cancel);

/**
 * Number of backends that this build knows, whether or not the library that holds one is installed.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_backend_count(void);

/**
 * Name of backend `index`, for gen_model_options_set_backend; NULL outside [0, count).
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *gen_backend_name(int32_t index);

/**
 * Tells whether a backend can be used on this machine.
 *
 * @param name  a backend's name.
 * @return GEN_OK if it can; GEN_ERROR_UNSUPPORTED with the reason in `error` if not;
 *         GEN_ERROR_INVALID_ARGUMENT for a name this build does not know.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_backend_available(const char *name, gen_error *error);

/**
 * Number of devices of a backend; 0 if it is unknown or cannot be used. The CPU is one device.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_device_count(const char *backend);

/**
 * Describes a device as one line of JSON: for the CPU its level, usable cores and memory; for other
 * devices the name, capabilities and memory.
 *
 * @param buf  as in gen_build_info.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for an unknown backend or a NULL n;
 *         GEN_ERROR_OUT_OF_RANGE for a device outside [0, count) or a buffer that is too small;
 *         GEN_ERROR_DEVICE if the device does not answer.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_device_describe(const char *backend, int32_t device, char *buf,
                                       size_t capacity, size_t *n, gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_BASE_H */
