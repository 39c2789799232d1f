/* SPDX-License-Identifier: Apache-2.0 */
/* What a program in C has of CUDA beside the library, with the emulator in the place of a device: streams, and graphs that
 * are captured from one. The emulated libgenerate-cuda.so exports the function emulated_streams_get, which gives this table. */
#ifndef GEN_TESTS_EMULATED_STREAMS_H_
#define GEN_TESTS_EMULATED_STREAMS_H_

#ifdef __cplusplus
extern "C" {
#endif

struct emulated_streams {
  void* (*stream_new)(void);
  void (*stream_wait)(void* stream);
  void (*stream_free)(void* stream);
  void (*capture_begin)(void* stream);
  void* (*capture_end)(void* stream); /* a graph to be replayed */
  void (*replay)(void* graph, void* stream);
  void (*graph_free)(void* graph);
};

typedef const struct emulated_streams* (*emulated_streams_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
