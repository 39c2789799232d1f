/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the generated layers have beside the public headers: borrowed memory as plain numbers and copies, since no managed
 * language can follow a pointer. Compiled into the wrapper of each language, never seen by its users.
 */
#ifndef GENERATE_BINDINGS_SUPPORT_H
#define GENERATE_BINDINGS_SUPPORT_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <generate/experimental.h>
#include <generate/generate.h>

/* Fields of an event of gen_binding_stream_next. */
enum {
  GEN_BINDING_EVENT_STATE = 0, /* GEN_STREAM_… */
  GEN_BINDING_EVENT_ID = 1,
  GEN_BINDING_EVENT_DONE = 2,
  GEN_BINDING_EVENT_FINISH_REASON = 3,
  GEN_BINDING_EVENT_INDEX = 4,
  GEN_BINDING_EVENT_LOGPROB = 5,  /* the bits of the float */
  GEN_BINDING_EVENT_TEXT = 6,     /* address, until the stream's next call */
  GEN_BINDING_EVENT_TEXT_LEN = 7, /* bytes */
  GEN_BINDING_EVENT_PIECES = 8,   /* for gen_binding_piece, until the stream's next call */
  GEN_BINDING_EVENT_PIECE_COUNT = 9,
  GEN_BINDING_EVENT_FIELDS = 10
};

/* Fields of a piece. */
enum {
  GEN_BINDING_PIECE_KIND = 0, /* GEN_PIECE_… */
  GEN_BINDING_PIECE_CALL = 1,
  GEN_BINDING_PIECE_TEXT = 2, /* address */
  GEN_BINDING_PIECE_LEN = 3,  /* bytes */
  GEN_BINDING_PIECE_FIELDS = 4
};

static void gen_binding_piece(int64_t pieces, size_t index, int64_t *event) {
  const gen_piece *piece = (const gen_piece *)(intptr_t)pieces + index;
  event[GEN_BINDING_PIECE_KIND] = piece->kind;
  event[GEN_BINDING_PIECE_CALL] = piece->call;
  event[GEN_BINDING_PIECE_TEXT] = (int64_t)(intptr_t)piece->text;
  event[GEN_BINDING_PIECE_LEN] = (int64_t)piece->len;
}

static void gen_binding_event(const gen_token *token, int32_t state, int64_t *event, void *text,
                              size_t text_capacity) {
  memset(event, 0, GEN_BINDING_EVENT_FIELDS * sizeof *event);
  event[GEN_BINDING_EVENT_STATE] = state;
  if (token == NULL) return;
  int32_t logprob;
  memcpy(&logprob, &token->logprob, sizeof logprob);
  event[GEN_BINDING_EVENT_ID] = token->id;
  event[GEN_BINDING_EVENT_DONE] = token->done;
  event[GEN_BINDING_EVENT_FINISH_REASON] = token->finish_reason;
  event[GEN_BINDING_EVENT_INDEX] = token->index;
  event[GEN_BINDING_EVENT_LOGPROB] = logprob;
  event[GEN_BINDING_EVENT_TEXT] = (int64_t)(intptr_t)token->text;
  event[GEN_BINDING_EVENT_TEXT_LEN] = (int64_t)token->text_len;
  event[GEN_BINDING_EVENT_PIECES] = (int64_t)(intptr_t)token->pieces;
  event[GEN_BINDING_EVENT_PIECE_COUNT] = token->piece_count;
  if (token->text_len <= text_capacity && token->text_len > 0) {
    memcpy(text, token->text, token->text_len);
  }
}

/*
 * gen_stream_next with the piece as numbers, and its text, too, where it fits into text_capacity bytes; a longer one is
 * fetched with gen_binding_copy.
 */
static gen_status gen_binding_stream_next(gen_stream *stream, int64_t *event, void *text,
                                          size_t text_capacity, gen_error *error) {
  const gen_token *token = NULL;
  const gen_status status = gen_stream_next(stream, &token, error);
  if (status == GEN_OK) {
    gen_binding_event(token, token != NULL ? GEN_STREAM_TOKEN : GEN_STREAM_END, event, text, text_capacity);
  }
  return status;
}

/* The same of gen_stream_poll. */
static gen_status gen_binding_stream_poll(gen_stream *stream, int64_t *event, void *text,
                                          size_t text_capacity, gen_error *error) {
  const gen_token *token = NULL;
  int32_t state = GEN_STREAM_PENDING;
  const gen_status status = gen_stream_poll(stream, &token, &state, error);
  if (status == GEN_OK) gen_binding_event(token, state, event, text, text_capacity);
  return status;
}

/* gen_eagle_new_tensors with the members of its struct as arguments. */
static gen_status gen_binding_eagle_new_tensors(const gen_model *target, int32_t hidden, int32_t vocab_size,
                                                const float *norm_weight, const float *norm_bias,
                                                const float *fc1_weight, const float *fc2_weight, const float *lm_head,
                                                int32_t length, const gen_options *options, gen_eagle **out,
                                                gen_error *error) {
  gen_eagle_tensors tensors;
  memset(&tensors, 0, sizeof tensors);
  tensors.struct_size = sizeof tensors;
  tensors.hidden = hidden;
  tensors.vocab_size = vocab_size;
  tensors.norm_weight = norm_weight;
  tensors.norm_bias = norm_bias;
  tensors.fc1_weight = fc1_weight;
  tensors.fc2_weight = fc2_weight;
  tensors.lm_head = lm_head;
  return gen_eagle_new_tensors(target, &tensors, length, options, out, error);
}

/* Copies n bytes of borrowed memory. */
static void gen_binding_copy(int64_t address, size_t n, void *out) {
  if (n > 0) memcpy(out, (const void *)(intptr_t)address, n);
}

/* Why a result failed; GEN_OK and "" if it did not. */
static int32_t gen_binding_result_code(const gen_result *result) {
  const gen_error *error = gen_result_error(result);
  return error != NULL ? error->code : GEN_OK;
}
static const char *gen_binding_result_message(const gen_result *result) {
  const gen_error *error = gen_result_error(result);
  return error != NULL ? error->message : "";
}

/* Fields of a layer shown in place. */
enum {
  GEN_BINDING_SPAN_TYPE = 0, /* KV_CACHE_TYPE_… */
  GEN_BINDING_SPAN_K = 1,    /* addresses */
  GEN_BINDING_SPAN_V = 2,
  GEN_BINDING_SPAN_BATCH = 3,
  GEN_BINDING_SPAN_SEQ = 4,
  GEN_BINDING_SPAN_K_DIM = 5,
  GEN_BINDING_SPAN_V_DIM = 6,
  GEN_BINDING_SPAN_K_BATCH_STRIDE = 7, /* strides in bytes */
  GEN_BINDING_SPAN_K_SEQ_STRIDE = 8,
  GEN_BINDING_SPAN_V_BATCH_STRIDE = 9,
  GEN_BINDING_SPAN_V_SEQ_STRIDE = 10,
  GEN_BINDING_SPAN_FIELDS = 11
};

static gen_status gen_binding_span(gen_status status, const kv_cache_span *span, int64_t *fields) {
  if (status != GEN_OK) return status;
  fields[GEN_BINDING_SPAN_TYPE] = span->type;
  fields[GEN_BINDING_SPAN_K] = (int64_t)(intptr_t)span->k;
  fields[GEN_BINDING_SPAN_V] = (int64_t)(intptr_t)span->v;
  fields[GEN_BINDING_SPAN_BATCH] = span->batch;
  fields[GEN_BINDING_SPAN_SEQ] = span->seq;
  fields[GEN_BINDING_SPAN_K_DIM] = span->k_dim;
  fields[GEN_BINDING_SPAN_V_DIM] = span->v_dim;
  fields[GEN_BINDING_SPAN_K_BATCH_STRIDE] = (int64_t)span->k_batch_stride;
  fields[GEN_BINDING_SPAN_K_SEQ_STRIDE] = (int64_t)span->k_seq_stride;
  fields[GEN_BINDING_SPAN_V_BATCH_STRIDE] = (int64_t)span->v_batch_stride;
  fields[GEN_BINDING_SPAN_V_SEQ_STRIDE] = (int64_t)span->v_seq_stride;
  return GEN_OK;
}

static gen_status gen_binding_view(const kv_cache *cache, int32_t layer, int64_t *fields, gen_error *error) {
  kv_cache_span span;
  memset(&span, 0, sizeof span);
  span.struct_size = sizeof span;
  return gen_binding_span(kv_cache_view(cache, layer, &span, error), &span, fields);
}

static gen_status gen_binding_full_buffer(const kv_cache *cache, int32_t layer, int64_t *fields,
                                          gen_error *error) {
  kv_cache_span span;
  memset(&span, 0, sizeof span);
  span.struct_size = sizeof span;
  return gen_binding_span(kv_cache_full_buffer(cache, layer, &span, error), &span, fields);
}

/* GPU caches: addresses on the device as numbers; fields are keys, values and, of a layer, the cache's length. */
static gen_status gen_binding_gpu_append_device(kv_cache *cache, int32_t layer, int64_t k, int64_t v, gen_error *error) {
  return kv_cache_gpu_append_device(cache, layer, (const void *)(intptr_t)k, (const void *)(intptr_t)v, error);
}

static gen_status gen_binding_gpu_append_stream(kv_cache *cache, int32_t layer, int64_t k, int64_t v, int64_t stream,
                                                gen_error *error) {
  return kv_cache_gpu_append_stream(cache, layer, (const void *)(intptr_t)k, (const void *)(intptr_t)v,
                                    (void *)(intptr_t)stream, error);
}

static gen_status gen_binding_gpu_pointers(const kv_cache *cache, int32_t layer, int64_t *fields, gen_error *error) {
  const void *k, *v;
  int32_t length;
  const gen_status status = kv_cache_gpu_pointers(cache, layer, &k, &v, &length, error);
  fields[0] = (int64_t)(intptr_t)k;
  fields[1] = (int64_t)(intptr_t)v;
  fields[2] = length;
  return status;
}

static gen_status gen_binding_gpu_pointer_arrays(kv_cache *cache, int64_t *fields, gen_error *error) {
  const void *k, *v;
  const gen_status status = kv_cache_gpu_pointer_arrays(cache, &k, &v, error);
  fields[0] = (int64_t)(intptr_t)k;
  fields[1] = (int64_t)(intptr_t)v;
  return status;
}

/*
 * Progress without calling a managed language: what a gen_progress_callback was told last, and what it is to answer. The
 * callback is gen_binding_progress_function, its user what _new gives (0 without memory). All but _free from any thread.
 */
typedef struct gen_binding_progress {
  double share;
  int32_t stop;
} gen_binding_progress;

static int gen_binding_progress_callback(void *user, double share) {
  gen_binding_progress *progress = (gen_binding_progress *)user;
  if (progress == NULL) return 0;
  __atomic_store(&progress->share, &share, __ATOMIC_RELAXED);
  return __atomic_load_n(&progress->stop, __ATOMIC_RELAXED);
}

static int64_t gen_binding_progress_function(void) { return (int64_t)(intptr_t)&gen_binding_progress_callback; }

static int64_t gen_binding_progress_new(void) {
  return (int64_t)(intptr_t)calloc(1, sizeof(gen_binding_progress));
}

static void gen_binding_progress_free(int64_t progress) { free((void *)(intptr_t)progress); }

/* Cancels the call when its callback is next asked. */
static void gen_binding_progress_stop(int64_t progress) {
  if (progress == 0) return;
  __atomic_store_n(&((gen_binding_progress *)(intptr_t)progress)->stop, 1, __ATOMIC_RELAXED);
}

/* 0 to 1. */
static double gen_binding_progress_share(int64_t progress) {
  double share = 0;
  if (progress == 0) return share;
  __atomic_load(&((gen_binding_progress *)(intptr_t)progress)->share, &share, __ATOMIC_RELAXED);
  return share;
}

static gen_status gen_binding_failed(gen_error *error, gen_status status, const char *format, const char *what) {
  error->code = status;
  snprintf(error->message, sizeof error->message, format, what);
  return status;
}

/* gen_token_mask of strings that lie one behind the other. */
static gen_status gen_binding_token_mask(const gen_grammar *grammar, const char *text, size_t len,
                                         const uint8_t *strings, const size_t *lengths, size_t count,
                                         uint32_t *bits, size_t words, gen_error *error) {
  const char **each = (const char **)malloc((count + 1) * sizeof *each);
  if (each == NULL) return gen_binding_failed(error, GEN_ERROR_OUT_OF_MEMORY, "no memory for %s", "the strings");
  const char *next = (const char *)strings;
  for (size_t i = 0; i < count; ++i) {
    each[i] = next;
    next += lengths[i];
  }
  const gen_status status = gen_token_mask(grammar, text, len, each, lengths, count, bits, words, error);
  free(each);
  return status;
}

/* gen_chat_session_send without a message, which not every language can say with NULL. */
static gen_status gen_binding_chat_answer(gen_chat_session *chat_session, const gen_sampling *sampling,
                                          gen_result **result, gen_error *error) {
  return gen_chat_session_send(chat_session, NULL, 0, sampling, result, error);
}

/* The same of gen_chat_session_open_stream. */
static gen_status gen_binding_chat_open_answer(gen_chat_session *chat_session, const gen_sampling *sampling, gen_stream **out,
                                               gen_error *error) {
  return gen_chat_session_open_stream(chat_session, NULL, 0, sampling, out, error);
}

/* gen_agent_run and gen_agent_step without a text. */
static gen_status gen_binding_agent_go_on(gen_agent *agent, gen_agent_callback callback, void *user, gen_result **result,
                                          gen_error *error) {
  return gen_agent_run(agent, NULL, 0, callback, user, result, error);
}
static gen_status gen_binding_agent_step(gen_agent *agent, gen_agent_callback callback, void *user, int32_t *finished,
                                         gen_error *error) {
  return gen_agent_step(agent, NULL, 0, callback, user, finished, error);
}

/*
 * A desk: tools and events without calling a managed language. The callbacks are gen_binding_desk_tool_function and
 * _event_function, their user the number of a desk. A callback lays its matter on the desk and waits; a thread of the
 * language takes one after the other with _next, which blocks, and returns each with _answer. After _close what comes fails
 * at once, and _next gives 0; what was taken must still be answered. Numbers of desks are never used twice, so that a tool
 * may outlive its desk.
 */
enum {
  GEN_BINDING_MATTER = 0,    /* for _answer and _stopped; 0: the desk is closed */
  GEN_BINDING_MATTER_KIND = 1, /* -1: a tool; else GEN_AGENT_… */
  GEN_BINDING_MATTER_NAME = 2, /* addresses and lengths, until the answer */
  GEN_BINDING_MATTER_NAME_LEN = 3,
  GEN_BINDING_MATTER_ID = 4,
  GEN_BINDING_MATTER_ID_LEN = 5,
  GEN_BINDING_MATTER_TEXT = 6, /* of a tool: its arguments */
  GEN_BINDING_MATTER_TEXT_LEN = 7,
  GEN_BINDING_MATTER_STEP = 8,
  GEN_BINDING_MATTER_CALL = 9,
  GEN_BINDING_MATTER_IS_ERROR = 10,
  GEN_BINDING_MATTER_FIELDS = 11
};

typedef struct gen_binding_matter {
  const gen_tool_call *call; /* NULL for an event */
  gen_tool_reply *reply;
  const gen_agent_event *event;
  struct gen_binding_desk *desk;
  struct gen_binding_matter *next;
  int taken, answered, failed;
} gen_binding_matter;

typedef struct gen_binding_desk {
  int64_t number;
  gen_binding_matter *first;
  int users; /* calls inside, and 1 until _close */
  int closed;
  pthread_cond_t changed;
  struct gen_binding_desk *next;
} gen_binding_desk;

static pthread_mutex_t gen_binding_desks_mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that is below */
static gen_binding_desk *gen_binding_desks;
static int64_t gen_binding_desks_made;

/* The lock is held, in these two. */
static gen_binding_desk *gen_binding_desk_enter(int64_t number) {
  gen_binding_desk *desk = gen_binding_desks;
  while (desk != NULL && desk->number != number) desk = desk->next;
  if (desk != NULL) ++desk->users;
  return desk;
}
static void gen_binding_desk_leave(gen_binding_desk *desk) {
  if (--desk->users > 0) return;
  gen_binding_desk **at = &gen_binding_desks;
  while (*at != desk) at = &(*at)->next;
  *at = desk->next;
  pthread_cond_destroy(&desk->changed);
  free(desk);
}

/* 0 without memory. */
static int64_t gen_binding_desk_new(void) {
  gen_binding_desk *desk = (gen_binding_desk *)calloc(1, sizeof *desk);
  if (desk == NULL || pthread_cond_init(&desk->changed, NULL) != 0) {
    free(desk);
    return 0;
  }
  pthread_mutex_lock(&gen_binding_desks_mutex);
  desk->number = ++gen_binding_desks_made;
  desk->users = 1;
  desk->next = gen_binding_desks;
  gen_binding_desks = desk;
  pthread_mutex_unlock(&gen_binding_desks_mutex);
  return desk->number;
}

/* What the callback returns. */
static int gen_binding_desk_wait(int64_t number, gen_binding_matter *matter) {
  pthread_mutex_lock(&gen_binding_desks_mutex);
  gen_binding_desk *desk = gen_binding_desk_enter(number);
  matter->failed = 1;
  if (desk != NULL) {
    gen_binding_matter **at = &desk->first;
    while (*at != NULL) at = &(*at)->next;
    *at = matter;
    matter->desk = desk;
    pthread_cond_broadcast(&desk->changed);
    while (!matter->answered && (matter->taken || !desk->closed)) {
      pthread_cond_wait(&desk->changed, &gen_binding_desks_mutex);
    }
    if (!matter->taken) {
      for (at = &desk->first; *at != matter;) at = &(*at)->next;
      *at = matter->next;
    }
    gen_binding_desk_leave(desk);
  }
  pthread_mutex_unlock(&gen_binding_desks_mutex);
  return matter->failed;
}

static int gen_binding_desk_tool(void *user, const gen_tool_call *call, gen_tool_reply *reply) {
  gen_binding_matter matter;
  memset(&matter, 0, sizeof matter);
  matter.call = call;
  matter.reply = reply;
  return gen_binding_desk_wait((int64_t)(intptr_t)user, &matter);
}
static int gen_binding_desk_event(void *user, const gen_agent_event *event) {
  gen_binding_matter matter;
  memset(&matter, 0, sizeof matter);
  matter.event = event;
  return gen_binding_desk_wait((int64_t)(intptr_t)user, &matter);
}
static int64_t gen_binding_desk_tool_function(void) { return (int64_t)(intptr_t)&gen_binding_desk_tool; }
static int64_t gen_binding_desk_event_function(void) { return (int64_t)(intptr_t)&gen_binding_desk_event; }

/* fields: GEN_BINDING_MATTER_FIELDS numbers. */
static void gen_binding_desk_next(int64_t number, int64_t *fields) {
  memset(fields, 0, GEN_BINDING_MATTER_FIELDS * sizeof *fields);
  pthread_mutex_lock(&gen_binding_desks_mutex);
  gen_binding_desk *desk = gen_binding_desk_enter(number);
  if (desk != NULL) {
    while (desk->first == NULL && !desk->closed) pthread_cond_wait(&desk->changed, &gen_binding_desks_mutex);
    gen_binding_matter *matter = desk->closed ? NULL : desk->first;
    if (matter != NULL) {
      const gen_tool_call *call = matter->call;
      const gen_agent_event *event = matter->event;
      const char *name = call != NULL ? call->name : event->name;
      const char *id = call != NULL ? call->id : event->id;
      desk->first = matter->next;
      matter->taken = 1;
      fields[GEN_BINDING_MATTER] = (int64_t)(intptr_t)matter;
      fields[GEN_BINDING_MATTER_KIND] = call != NULL ? -1 : event->kind;
      fields[GEN_BINDING_MATTER_NAME] = (int64_t)(intptr_t)name;
      fields[GEN_BINDING_MATTER_NAME_LEN] = (int64_t)strlen(name);
      fields[GEN_BINDING_MATTER_ID] = (int64_t)(intptr_t)id;
      fields[GEN_BINDING_MATTER_ID_LEN] = (int64_t)strlen(id);
      fields[GEN_BINDING_MATTER_TEXT] = (int64_t)(intptr_t)(call != NULL ? call->arguments : event->text);
      fields[GEN_BINDING_MATTER_TEXT_LEN] = (int64_t)(call != NULL ? call->arguments_len : event->len);
      fields[GEN_BINDING_MATTER_STEP] = event != NULL ? event->step : 0;
      fields[GEN_BINDING_MATTER_CALL] = event != NULL ? event->call : -1;
      fields[GEN_BINDING_MATTER_IS_ERROR] = event != NULL ? event->is_error : 0;
    }
    gen_binding_desk_leave(desk);
  }
  pthread_mutex_unlock(&gen_binding_desks_mutex);
}

/* `text` is the output of a tool; `failed` ends a run where the matter is an event. */
static void gen_binding_desk_answer(int64_t matter, const char *text, size_t len, int32_t failed) {
  gen_binding_matter *it = (gen_binding_matter *)(intptr_t)matter;
  pthread_mutex_lock(&gen_binding_desks_mutex);
  it->failed = failed != 0;
  if (it->reply != NULL && gen_tool_reply_write(it->reply, text, len, NULL) != GEN_OK) it->failed = 1;
  it->answered = 1;
  pthread_cond_broadcast(&it->desk->changed);
  pthread_mutex_unlock(&gen_binding_desks_mutex);
}

/* Whether nobody waits for a tool's output any more. */
static int32_t gen_binding_desk_stopped(int64_t matter) {
  return gen_tool_reply_stopped(((const gen_binding_matter *)(intptr_t)matter)->reply);
}

static void gen_binding_desk_close(int64_t number) {
  pthread_mutex_lock(&gen_binding_desks_mutex);
  gen_binding_desk *desk = gen_binding_desk_enter(number);
  if (desk != NULL) {
    if (!desk->closed) --desk->users;
    desk->closed = 1;
    pthread_cond_broadcast(&desk->changed);
    gen_binding_desk_leave(desk);
  }
  pthread_mutex_unlock(&gen_binding_desks_mutex);
}

/*
 * The address of a symbol in another library: of a gen_forward, gen_metrics_sink, gen_allocator or function in C that is to
 * be passed on. The library stays open.
 */
static gen_status gen_binding_symbol(const char *library, const char *name, int64_t *address, gen_error *error) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return gen_binding_failed(error, GEN_ERROR_IO, "%s", dlerror());
  void *found = dlsym(handle, name);
  if (found == NULL) return gen_binding_failed(error, GEN_ERROR_INVALID_ARGUMENT, "%s", dlerror());
  *address = (int64_t)(intptr_t)found;
  return GEN_OK;
}

/* GEN_OK if the library that was found has the binary interface that this wrapper was compiled for. */
static gen_status gen_binding_check(gen_error *error) {
  if (gen_abi_version() == GEN_ABI_VERSION) return GEN_OK;
  return gen_binding_failed(error, GEN_ERROR_UNSUPPORTED,
                            "the binding does not fit libgenerate %s: it has another binary interface",
                            gen_version());
}

#endif /* GENERATE_BINDINGS_SUPPORT_H */
