// SPDX-License-Identifier: Apache-2.0
// The functions of runtime.h and launch.h over the CUDA runtime; each is one call of it.
#include "cuda/device/runtime.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "cuda/device/launch.h"

namespace gen::cuda::device {
namespace {

Error result(cudaError_t code) noexcept { return {static_cast<int>(code)}; }
cudaStream_t native(Stream stream) noexcept { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t native(Event event) noexcept { return reinterpret_cast<cudaEvent_t>(event); }
cudaGraph_t native(Graph graph) noexcept { return reinterpret_cast<cudaGraph_t>(graph); }
cudaGraphExec_t native(GraphExec exec) noexcept { return reinterpret_cast<cudaGraphExec_t>(exec); }
cudaMemPool_t native(Pool pool) noexcept { return reinterpret_cast<cudaMemPool_t>(pool); }

/// The shared memory per block that needs no opt-in.
constexpr size_t kPlainSharedBytes = 48 << 10;

/// A function of the driver, looked up through the runtime, so that nothing links with the driver.
template <typename Function>
Error find_driver(const char* name, Function* out) noexcept {
  constexpr unsigned kVersion = 12000;  // of the function, that of any driver that we run with
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  const Error error =
      result(cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &status));
  if (!error.ok()) return error;
  if (status != cudaDriverEntryPointSuccess || found == nullptr) return kDriverTooOld;
  *out = reinterpret_cast<Function>(found);
  return kSuccess;
}

Error attribute(int device, cudaDeviceAttr what, int* out) noexcept {
  return result(cudaDeviceGetAttribute(out, what, device));
}

}  // namespace

bool Error::sticky() const noexcept {
  switch (static_cast<cudaError_t>(code)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorContextIsDestroyed:
      return true;
    default:
      return false;
  }
}
const char* Error::name() const noexcept {
  return cudaGetErrorName(static_cast<cudaError_t>(code));
}
const char* Error::message() const noexcept {
  return cudaGetErrorString(static_cast<cudaError_t>(code));
}

Error driver_version(int* out) noexcept { return result(cudaDriverGetVersion(out)); }
Error runtime_version(int* out) noexcept { return result(cudaRuntimeGetVersion(out)); }
Error device_count(int* out) noexcept { return result(cudaGetDeviceCount(out)); }

Error device_properties(int device, DeviceProperties* out) noexcept {
  cudaDeviceProp all;
  if (const Error error = result(cudaGetDeviceProperties(&all, device)); !error.ok()) return error;
  int pools = 0;
  if (const Error error = attribute(device, cudaDevAttrMemoryPoolsSupported, &pools); !error.ok()) {
    return error;
  }
  DeviceProperties properties;
  std::memcpy(properties.name, all.name, std::min(sizeof properties.name, sizeof all.name) - 1);
  properties.major = all.major;
  properties.minor = all.minor;
  properties.sm_count = all.multiProcessorCount;
  properties.max_threads_per_block = all.maxThreadsPerBlock;
  properties.max_threads_per_sm = all.maxThreadsPerMultiProcessor;
  properties.pci_domain = all.pciDomainID;
  properties.pci_bus = all.pciBusID;
  properties.pci_device = all.pciDeviceID;
  properties.total_bytes = all.totalGlobalMem;
  properties.l2_bytes = static_cast<size_t>(all.l2CacheSize);
  properties.shared_bytes_per_block = all.sharedMemPerBlock;
  properties.shared_bytes_per_block_optin = all.sharedMemPerBlockOptin;
  properties.shared_bytes_per_sm = all.sharedMemPerMultiprocessor;
  properties.cooperative = all.cooperativeLaunch != 0;
  properties.pools = pools != 0;
  *out = properties;
  return kSuccess;
}

Error set_device(int device) noexcept { return result(cudaSetDevice(device)); }
Error current_device(int* out) noexcept { return result(cudaGetDevice(out)); }
Error primary_context(int device, Context* out) noexcept {
  using Retain = int (*)(void** context, int device);
  Retain retain = nullptr;
  if (const Error error = find_driver("cuDevicePrimaryCtxRetain", &retain); !error.ok()) {
    return error;
  }
  void* context = nullptr;
  if (retain(&context, device) != 0) return kInvalidDevice;
  *out = static_cast<Context>(context);
  return kSuccess;
}
Error release_primary_context(int device) noexcept {
  using Release = int (*)(int device);
  Release release = nullptr;
  if (const Error error = find_driver("cuDevicePrimaryCtxRelease", &release); !error.ok()) {
    return error;
  }
  return release(device) == 0 ? kSuccess : kInvalidDevice;
}
Error push_context(Context context) noexcept {
  using Push = int (*)(void* context);
  Push push = nullptr;
  if (const Error error = find_driver("cuCtxPushCurrent", &push); !error.ok()) return error;
  return push(context) == 0 ? kSuccess : kInvalidHandle;
}
Error pop_context() noexcept {
  using Pop = int (*)(void** context);
  Pop pop = nullptr;
  if (const Error error = find_driver("cuCtxPopCurrent", &pop); !error.ok()) return error;
  void* popped = nullptr;
  return pop(&popped) == 0 ? kSuccess : kInvalidHandle;
}
Error device_synchronize() noexcept { return result(cudaDeviceSynchronize()); }
Error memory_info(size_t* free_bytes, size_t* total_bytes) noexcept {
  return result(cudaMemGetInfo(free_bytes, total_bytes));
}
Error last_error() noexcept { return result(cudaGetLastError()); }

Error pool_create(size_t keep_bytes, Pool* out) noexcept {
  int device = 0;
  if (const Error error = current_device(&device); !error.ok()) return error;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t pool = nullptr;
  if (const Error error = result(cudaMemPoolCreate(&pool, &properties)); !error.ok()) return error;
  uint64_t threshold = keep_bytes;
  const Error error =
      result(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  if (!error.ok()) {
    static_cast<void>(cudaMemPoolDestroy(pool));
    return error;
  }
  *out = reinterpret_cast<Pool>(pool);
  return kSuccess;
}
Error pool_destroy(Pool pool) noexcept { return result(cudaMemPoolDestroy(native(pool))); }
Error pool_trim(Pool pool, size_t keep_bytes) noexcept {
  return result(cudaMemPoolTrimTo(native(pool), keep_bytes));
}
Error malloc_async(size_t bytes, Pool pool, Stream stream, void** out) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaMallocFromPoolAsync(out, bytes, native(pool), native(stream)));
}
Error free_async(void* pointer, Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaFreeAsync(pointer, native(stream)));
}
Error host_malloc(size_t bytes, void** out) noexcept {
  return result(cudaHostAlloc(out, bytes, cudaHostAllocDefault));
}
Error host_free(void* pointer) noexcept { return result(cudaFreeHost(pointer)); }

Error copy_async(void* to, const void* from, size_t bytes, CopyKind kind, Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(
      cudaMemcpyAsync(to, from, bytes, static_cast<cudaMemcpyKind>(kind), native(stream)));
}
Error memset_async(void* to, int value, size_t bytes, Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaMemsetAsync(to, value, bytes, native(stream)));
}

Error stream_create(Stream* out, int priority) noexcept {
  cudaStream_t stream = nullptr;
  const Error error =
      result(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  if (error.ok()) *out = reinterpret_cast<Stream>(stream);
  return error;
}
Error stream_destroy(Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaStreamDestroy(native(stream)));
}
Error stream_synchronize(Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaStreamSynchronize(native(stream)));
}
Error stream_query(Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaStreamQuery(native(stream)));
}
Error stream_wait(Stream stream, Event event) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaStreamWaitEvent(native(stream), native(event), cudaEventWaitDefault));
}

Error event_create(Event* out, bool timed) noexcept {
  cudaEvent_t event = nullptr;
  const Error error =
      result(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  if (error.ok()) *out = reinterpret_cast<Event>(event);
  return error;
}
Error event_destroy(Event event) noexcept { return result(cudaEventDestroy(native(event))); }
Error event_record(Event event, Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaEventRecord(native(event), native(stream)));
}
Error event_query(Event event) noexcept { return result(cudaEventQuery(native(event))); }
Error event_synchronize(Event event) noexcept {
  return result(cudaEventSynchronize(native(event)));
}
Error event_elapsed_ms(Event begin, Event end, float* out) noexcept {
  return result(cudaEventElapsedTime(out, native(begin), native(end)));
}

Error capture_begin(Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal));
}
Error capture_end(Stream stream, Graph* out) noexcept {
  cudaGraph_t graph = nullptr;
  const Error error = result(cudaStreamEndCapture(native(stream), &graph));
  if (error.ok()) *out = reinterpret_cast<Graph>(graph);
  return error;
}
Error graph_node_count(Graph graph, size_t* out) noexcept {
  return result(cudaGraphGetNodes(native(graph), nullptr, out));
}
Error graph_destroy(Graph graph) noexcept { return result(cudaGraphDestroy(native(graph))); }
Error graph_instantiate(Graph graph, GraphExec* out) noexcept {
  cudaGraphExec_t exec = nullptr;
  const Error error = result(cudaGraphInstantiate(&exec, native(graph), 0));
  if (error.ok()) *out = reinterpret_cast<GraphExec>(exec);
  return error;
}
Error graph_upload(GraphExec exec, Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaGraphUpload(native(exec), native(stream)));
}
Error graph_launch(GraphExec exec, Stream stream) noexcept {
  if (stream == nullptr) return kInvalidHandle;
  return result(cudaGraphLaunch(native(exec), native(stream)));
}
Error graph_exec_destroy(GraphExec exec) noexcept {
  return result(cudaGraphExecDestroy(native(exec)));
}

namespace {
/// Opts a kernel in to more shared memory than the default.
Error allow_shared_bytes(const void* kernel, size_t bytes) noexcept {
  if (bytes <= kPlainSharedBytes) return kSuccess;
  const Error error = result(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  if (!error.ok()) return error;
  // Prefer shared memory to L1, so that as many blocks are resident as fit.
  static_cast<void>(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                         cudaSharedmemCarveoutMaxShared));
  return kSuccess;
}
}  // namespace

Error launch_kernel(const void* kernel, const LaunchConfig& config, void** arguments) noexcept {
  if (config.stream == nullptr) return kInvalidHandle;
  if (const Error error = allow_shared_bytes(kernel, config.dynamic_shared_bytes); !error.ok()) {
    return error;
  }
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t native_config{};
  native_config.gridDim = {config.grid.x, config.grid.y, config.grid.z};
  native_config.blockDim = {config.block.x, config.block.y, config.block.z};
  native_config.dynamicSmemBytes = config.dynamic_shared_bytes;
  native_config.stream = native(config.stream);
  native_config.attrs = attributes;
  if (config.cooperative) {
    attributes[native_config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[native_config.numAttrs++].val.cooperative = 1;
  }
  if (config.programmatic) {
    attributes[native_config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[native_config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  return result(cudaLaunchKernelExC(&native_config, kernel, arguments));
}

Error compiled_for(const void* kernel, int* out) noexcept {
  cudaFuncAttributes attributes = {};
  const Error error = result(cudaFuncGetAttributes(&attributes, kernel));
  if (error.ok()) *out = attributes.ptxVersion;
  return error;
}

Error occupancy(const void* kernel, int threads, size_t dynamic_shared_bytes, int* out) noexcept {
  // The result is 0 if the kernel may not have this much shared memory.
  if (const Error error = allow_shared_bytes(kernel, dynamic_shared_bytes); !error.ok()) {
    return error;
  }
  return result(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(out, kernel, threads, dynamic_shared_bytes));
}

}  // namespace gen::cuda::device
