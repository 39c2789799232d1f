// SPDX-License-Identifier: Apache-2.0
// Streams, events, graphs and copies of the emulator: what is ordered happens in order, and what is
// not ordered goes wrong in some order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "cuda/device_buffer.h"
#include "cuda/emulator/emulator.h"
#include "cuda/sample_kernels.h"

namespace gen::test {
namespace {

using namespace cuda::device;

constexpr int kCount = 700;

class Queues : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override { cuda::emulator::configure({.seed = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Queues, testing::Range<uint64_t>(1, 9));

struct OwnedEvent {
  OwnedEvent() { GEN_EXPECT_OK(event_create(&event, true)); }
  ~OwnedEvent() { GEN_EXPECT_OK(event_destroy(event)); }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  Event event = nullptr;
};

std::vector<int32_t> counting(int from) {
  std::vector<int32_t> values(kCount);
  std::iota(values.begin(), values.end(), from);
  return values;
}

/// What one stream reads of what another writes.
std::vector<int32_t> pass_between_streams(bool waits) {
  const DeviceStream one;
  const DeviceStream other;
  const OwnedEvent event;
  const DeviceArray<int32_t> from(one, counting(0));
  const DeviceArray<int32_t> middle(one, std::vector<int32_t>(kCount));
  const DeviceArray<int32_t> to(other, kCount);
  GEN_EXPECT_OK(one.synchronize());
  GEN_EXPECT_OK(add(from.get(), middle.get(), kCount, 10, Start::kPlain, one.get()));
  GEN_EXPECT_OK(event_record(event.event, one.get()));
  if (waits) GEN_EXPECT_OK(stream_wait(other.get(), event.event));
  GEN_EXPECT_OK(add(middle.get(), to.get(), kCount, 5, Start::kPlain, other.get()));
  std::vector<int32_t> got = to.read();
  GEN_EXPECT_OK(one.synchronize());
  return got;
}

TEST_P(Queues, AStreamWaitsForAnother) { EXPECT_EQ(pass_between_streams(true), counting(15)); }

TEST(QueuesWithoutWait, GoWrongInSomeOrder) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    cuda::emulator::configure({.seed = seed});
    wrong += pass_between_streams(false) != counting(15);
  }
  EXPECT_GT(wrong, 0);
}

/// What kernels on three streams make, each of what the one before it has made.
std::vector<int32_t> pass_along(const std::vector<Stream>& streams) {
  const DeviceStream own;
  const DeviceArray<int32_t> a(own, counting(0));
  const DeviceArray<int32_t> b(own, std::vector<int32_t>(kCount));
  const DeviceArray<int32_t> c(own, std::vector<int32_t>(kCount));
  GEN_EXPECT_OK(own.synchronize());
  GEN_EXPECT_OK(add(a.get(), b.get(), kCount, 10, Start::kPlain, streams[0]));
  GEN_EXPECT_OK(add(b.get(), c.get(), kCount, 5, Start::kPlain, streams[1]));
  GEN_EXPECT_OK(add(c.get(), b.get(), kCount, 1, Start::kPlain, streams[2]));
  GEN_EXPECT_OK(stream_synchronize(streams[2]));
  std::vector<int32_t> got = b.read();
  for (const Stream stream : streams) GEN_EXPECT_OK(stream_synchronize(stream));
  return got;
}
struct BlockingStream {
  BlockingStream() { GEN_EXPECT_OK(cuda::emulator::blocking_stream_create(&stream)); }
  ~BlockingStream() { static_cast<void>(stream_destroy(stream)); }
  BlockingStream(const BlockingStream&) = delete;
  BlockingStream& operator=(const BlockingStream&) = delete;
  Stream stream = nullptr;
};

TEST_P(Queues, TheLegacyStreamIsOrderedWithBlockingOnes) {
  using cuda::emulator::legacy_stream;
  using cuda::emulator::stream_of_thread;
  const BlockingStream one;
  const BlockingStream other;
  EXPECT_EQ(pass_along({one.stream, legacy_stream(), other.stream}), counting(16));
  EXPECT_EQ(pass_along({legacy_stream(), one.stream, legacy_stream()}), counting(16));
  EXPECT_EQ(pass_along({stream_of_thread(), legacy_stream(), one.stream}), counting(16));
  EXPECT_EQ(pass_along({one.stream, legacy_stream(), stream_of_thread()}), counting(16));
  EXPECT_EQ(pass_along({legacy_stream(), legacy_stream(), legacy_stream()}), counting(16));
}

TEST(QueuesWithoutOrder, GoWrongInSomeOrder) {
  int without = 0;
  int of_thread = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    cuda::emulator::configure({.seed = seed});
    const BlockingStream one;
    const DeviceStream free;
    const Stream legacy = cuda::emulator::legacy_stream();
    without += pass_along({legacy, free.get(), legacy}) != counting(16);
    of_thread +=
        pass_along({one.stream, cuda::emulator::stream_of_thread(), one.stream}) != counting(16);
  }
  EXPECT_GT(without, 0);
  EXPECT_GT(of_thread, 0);
}

TEST_P(Queues, DefaultStreamsInCaptures) {
  const Stream legacy = cuda::emulator::legacy_stream();
  const Stream own = cuda::emulator::stream_of_thread();
  const DeviceStream stream;
  const DeviceArray<int32_t> a(stream, counting(0));
  const DeviceArray<int32_t> b(stream, std::vector<int32_t>(kCount));
  GEN_EXPECT_OK(stream.synchronize());
  EXPECT_EQ(capture_begin(legacy), kCaptureUnsupported);
  GEN_EXPECT_OK(add(a.get(), b.get(), kCount, 3, Start::kPlain, legacy));
  GEN_EXPECT_OK(stream_synchronize(legacy));
  EXPECT_EQ(b.read(), counting(3));

  GEN_EXPECT_OK(capture_begin(own));
  GEN_EXPECT_OK(add(a.get(), b.get(), kCount, 7, Start::kPlain, own));
  EXPECT_EQ(add(a.get(), b.get(), kCount, 8, Start::kPlain, legacy), kCaptureImplicit);
  // Another thread's is another stream.
  std::thread([&] {
    GEN_EXPECT_OK(add(a.get(), b.get(), kCount, 5, Start::kPlain, own));
    GEN_EXPECT_OK(stream_synchronize(own));
  }).join();
  EXPECT_EQ(b.read(), counting(5));
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  GEN_EXPECT_OK(capture_end(own, &graph));
  GEN_EXPECT_OK(graph_instantiate(graph, &exec));
  GEN_EXPECT_OK(graph_destroy(graph));
  GEN_EXPECT_OK(graph_launch(exec, own));
  GEN_EXPECT_OK(stream_synchronize(own));
  EXPECT_EQ(b.read(), counting(7));
  GEN_EXPECT_OK(graph_launch(exec, legacy));
  GEN_EXPECT_OK(stream_synchronize(legacy));
  GEN_EXPECT_OK(graph_exec_destroy(exec));
  // Nobody's to destroy.
  EXPECT_EQ(stream_destroy(legacy), kInvalidHandle);
  EXPECT_EQ(stream_destroy(own), kInvalidHandle);
}

TEST_P(Queues, CopiesLandAtTheirWait) {
  const DeviceStream stream;
  void* pinned = nullptr;
  GEN_EXPECT_OK(host_malloc(kCount * sizeof(int32_t), &pinned));
  auto* const host = static_cast<int32_t*>(pinned);
  const DeviceArray<int32_t> data(stream, kCount);
  const std::vector<int32_t> first = counting(1);
  const std::vector<int32_t> second = counting(2);
  const size_t bytes = kCount * sizeof(int32_t);

  // Pinned memory is read when the copy runs, so who changes it early changes the copy.
  std::memcpy(host, first.data(), bytes);
  GEN_EXPECT_OK(copy_async(data.get(), host, bytes, CopyKind::kHostToDevice, stream.get()));
  std::memcpy(host, second.data(), bytes);
  EXPECT_EQ(data.read(), second);
  // Other memory is read at the call.
  std::vector<int32_t> pageable = first;
  GEN_EXPECT_OK(
      copy_async(data.get(), pageable.data(), bytes, CopyKind::kHostToDevice, stream.get()));
  pageable = second;
  EXPECT_EQ(data.read(), first);
  // Down: not before the event.
  const OwnedEvent event;
  std::memset(host, 0, bytes);
  GEN_EXPECT_OK(copy_async(host, data.get(), bytes, CopyKind::kDeviceToHost, stream.get()));
  GEN_EXPECT_OK(event_record(event.event, stream.get()));
  EXPECT_EQ(host[0], 0);
  EXPECT_EQ(event_query(event.event), kNotReady);
  GEN_EXPECT_OK(event_synchronize(event.event));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), host));
  GEN_EXPECT_OK(event_query(event.event));

  GEN_EXPECT_OK(copy_async(host, data.get(), bytes, CopyKind::kDeviceToHost, stream.get()));
  const cuda::emulator::FailureWatch watch;
  GEN_EXPECT_OK(host_free(pinned));
  EXPECT_EQ(stream.synchronize(), kLaunchFailure);
  EXPECT_EQ(watch.text(), "a copy of 2800 bytes with pinned memory that has been freed");
}

TEST_P(Queues, EventsTellTime) {
  const DeviceStream stream;
  const OwnedEvent begin;
  const OwnedEvent end;
  float ms = -1;
  GEN_EXPECT_OK(event_record(begin.event, stream.get()));
  GEN_EXPECT_OK(event_record(end.event, stream.get()));
  EXPECT_EQ(event_elapsed_ms(begin.event, end.event, &ms), kNotReady);
  GEN_EXPECT_OK(stream.synchronize());
  GEN_EXPECT_OK(event_elapsed_ms(begin.event, end.event, &ms));
  EXPECT_GE(ms, 0);
}

/// Three kernels, two of them side by side, and a copy.
void fork_and_join(const DeviceStream& main, Stream side, const std::vector<OwnedEvent>& events,
                   const std::vector<int32_t*>& at, int32_t* host) {
  GEN_EXPECT_OK(add(at[0], at[1], kCount, 1, Start::kPlain, main.get()));
  GEN_EXPECT_OK(event_record(events[0].event, main.get()));
  GEN_EXPECT_OK(stream_wait(side, events[0].event));
  GEN_EXPECT_OK(add(at[1], at[2], kCount, 10, Start::kPlain, side));
  GEN_EXPECT_OK(event_record(events[1].event, side));
  GEN_EXPECT_OK(add(at[1], at[3], kCount, 100, Start::kPlain, main.get()));
  GEN_EXPECT_OK(stream_wait(main.get(), events[1].event));
  GEN_EXPECT_OK(add(at[2], at[0], kCount, 1000, Start::kPlain, main.get()));
  GEN_EXPECT_OK(
      copy_async(host, at[3], kCount * sizeof(int32_t), CopyKind::kDeviceToHost, main.get()));
}

TEST_P(Queues, AGraphDoesWhatItsCallsDid) {
  const DeviceStream stream;
  const DeviceStream side;
  const std::vector<OwnedEvent> events(2);
  const DeviceArray<int32_t> a(stream, counting(0));
  const DeviceArray<int32_t> b(stream, kCount);
  const DeviceArray<int32_t> c(stream, kCount);
  const DeviceArray<int32_t> d(stream, kCount);
  const std::vector<int32_t*> at = {a.get(), b.get(), c.get(), d.get()};
  std::vector<int32_t> host(kCount);
  GEN_EXPECT_OK(stream.synchronize());
  fork_and_join(stream, side.get(), events, at, host.data());
  GEN_EXPECT_OK(stream.synchronize());
  EXPECT_EQ(host, counting(101));
  EXPECT_EQ(a.read(), counting(1011));

  Graph graph = nullptr;
  GraphExec exec = nullptr;
  const uint64_t kernels = cuda::emulator::kernels_run();
  GEN_EXPECT_OK(capture_begin(stream.get()));
  fork_and_join(stream, side.get(), events, at, host.data());
  EXPECT_EQ(stream.synchronize(), kCaptureUnsupported);
  GEN_EXPECT_OK(capture_end(stream.get(), &graph));
  EXPECT_EQ(cuda::emulator::kernels_run(), kernels);
  size_t nodes = 0;
  GEN_EXPECT_OK(graph_node_count(graph, &nodes));
  EXPECT_EQ(nodes, 5U);
  GEN_EXPECT_OK(graph_instantiate(graph, &exec));
  GEN_EXPECT_OK(graph_destroy(graph));
  for (int time = 1; time <= 3; ++time) {
    GEN_EXPECT_OK(graph_launch(exec, stream.get()));
    GEN_EXPECT_OK(stream.synchronize());
    EXPECT_EQ(host, counting(101 + 1011 * time));
    EXPECT_EQ(a.read(), counting(1011 + 1011 * time));
  }
  GEN_EXPECT_OK(graph_exec_destroy(exec));
}

TEST_P(Queues, ACaptureHasToBeJoined) {
  const DeviceStream stream;
  const DeviceStream side;
  const OwnedEvent event;
  const DeviceArray<int32_t> a(stream, counting(0));
  Graph graph = nullptr;
  GEN_EXPECT_OK(capture_begin(stream.get()));
  GEN_EXPECT_OK(event_record(event.event, stream.get()));
  GEN_EXPECT_OK(stream_wait(side.get(), event.event));
  GEN_EXPECT_OK(add(a.get(), a.get(), kCount, 1, Start::kPlain, side.get()));
  EXPECT_EQ(capture_end(stream.get(), &graph), kCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
}

TEST_P(Queues, AProgrammaticLaunchSeesNothingBeforeItWaits) {
  const DeviceStream stream;
  for (const Start start :
       {Start::kProgrammatic, Start::kProgrammaticWithoutWait, Start::kProgrammaticFetchingAhead}) {
    const DeviceArray<int32_t> a(stream, counting(0));
    const DeviceArray<int32_t> b(stream, std::vector<int32_t>(kCount));
    const DeviceArray<int32_t> c(stream, std::vector<int32_t>(kCount));
    GEN_EXPECT_OK(stream.synchronize());
    GEN_EXPECT_OK(add(a.get(), b.get(), kCount, 10, Start::kPlain, stream.get()));
    GEN_EXPECT_OK(add(b.get(), c.get(), kCount, 5, start, stream.get()));
    GEN_EXPECT_OK(add(c.get(), a.get(), kCount, 1, start, stream.get()));
    const bool right = a.read() == counting(16) && c.read() == counting(15);
    EXPECT_EQ(right, start == Start::kProgrammatic);
  }
}

TEST(QueuesOfADevice, MemoryEndsAndErrorsStay) {
  cuda::emulator::configure({.devices = 2, .device_bytes = 1 << 20});
  {
    const DeviceStream stream;
    void* pointer = nullptr;
    EXPECT_EQ(malloc_async((1 << 20) + 1, stream.pool(), stream.get(), &pointer), kOutOfMemory);
    EXPECT_EQ(last_error(), kOutOfMemory);
    EXPECT_EQ(last_error(), kSuccess);
    GEN_EXPECT_OK(malloc_async(1 << 20, stream.pool(), stream.get(), &pointer));
    size_t free_bytes = 1;
    size_t total_bytes = 0;
    GEN_EXPECT_OK(memory_info(&free_bytes, &total_bytes));
    EXPECT_EQ(free_bytes, 0U);
    EXPECT_EQ(total_bytes, size_t{1} << 20);
    GEN_EXPECT_OK(free_async(pointer, stream.get()));
    GEN_EXPECT_OK(stream.synchronize());

    int device = -1;
    EXPECT_EQ(set_device(2), kInvalidDevice);
    GEN_EXPECT_OK(set_device(1));
    GEN_EXPECT_OK(current_device(&device));
    EXPECT_EQ(device, 1);
    GEN_EXPECT_OK(set_device(0));

    cuda::emulator::break_device(kEccUncorrectable);
    EXPECT_EQ(stream.synchronize(), kEccUncorrectable);
    EXPECT_TRUE(last_error().sticky());
    EXPECT_TRUE(last_error().sticky());
    EXPECT_STREQ(kEccUncorrectable.name(), "cudaErrorECCUncorrectable");
  }
  cuda::emulator::configure({.driver_version = 11000});
  int count = 0;
  EXPECT_EQ(device_count(&count), kDriverTooOld);
  cuda::emulator::configure({});
}

}  // namespace
}  // namespace gen::test
