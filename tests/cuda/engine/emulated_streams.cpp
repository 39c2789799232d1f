// SPDX-License-Identifier: Apache-2.0
// See emulated_streams.h. Calls that fail give null, or are seen by what follows.
#include "cuda/engine/emulated_streams.h"

#include "cuda/device/runtime.h"

namespace {

namespace device = gen::cuda::device;

device::Stream stream_of(void* at) { return static_cast<device::Stream>(at); }
device::GraphExec graph_of(void* at) { return static_cast<device::GraphExec>(at); }

void* stream_new() {
  device::Stream made = nullptr;
  static_cast<void>(device::stream_create(&made));
  return made;
}
void stream_wait(void* stream) { static_cast<void>(device::stream_synchronize(stream_of(stream))); }
void stream_free(void* stream) { static_cast<void>(device::stream_destroy(stream_of(stream))); }
void capture_begin(void* stream) { static_cast<void>(device::capture_begin(stream_of(stream))); }
void* capture_end(void* stream) {
  device::Graph graph = nullptr;
  device::GraphExec made = nullptr;
  if (!device::capture_end(stream_of(stream), &graph).ok()) return nullptr;
  static_cast<void>(device::graph_instantiate(graph, &made));
  static_cast<void>(device::graph_destroy(graph));
  return made;
}
void replay(void* graph, void* stream) {
  static_cast<void>(device::graph_launch(graph_of(graph), stream_of(stream)));
}
void graph_free(void* graph) { static_cast<void>(device::graph_exec_destroy(graph_of(graph))); }

constexpr emulated_streams kTable = {stream_new,  stream_wait, stream_free, capture_begin,
                                     capture_end, replay,      graph_free};

}  // namespace

extern "C" __attribute__((visibility("default"))) const emulated_streams* emulated_streams_get() {
  return &kTable;
}
