// SPDX-License-Identifier: Apache-2.0
// Proves appends to GPU caches on the caller's streams. Random programs of appends from the host,
// from the device and on a stream, of graphs that are captured and replayed, also beyond the room
// that there is, of truncates, resets and syncs: what the cache holds and tells is what a plain
// model says, on a device and in host memory that poses as one. The kernel writes what the
// host's reference writes, to the byte, and binary16 is what exact arithmetic says. Nothing is
// waited for, and what fails changes nothing.
#include <cmath>
#include <cstdlib>

#include "cuda/engine/append_program.h"

namespace gen::test {
namespace {

constexpr int32_t kRoom = 5;

/// All that one append left, written by the kernel or by the reference: k, v and the counter.
/// Before it every byte of k and v is 0x5A.
std::vector<std::byte> bytes_after_append(bool on_device, DType type, int32_t position, bool moves,
                                          const std::vector<float>& k_row,
                                          const std::vector<float>& v_row) {
  const auto table = device_table();
  TestGpuAllocator guarded(on_device ? *table : host_table());
  TableAllocator memory(guarded.table());
  const size_t element = type == DType::kF16 ? sizeof(uint16_t) : sizeof(float);
  const std::vector<std::byte> old(kRoom * k_row.size() * element, std::byte{0x5A});
  const DevicePiece k(memory, old.data(), old.size());
  const DevicePiece v(memory, old.data(), old.size());
  const DevicePiece from_k(memory, k_row.data(), k_row.size() * sizeof(float));
  const DevicePiece from_v(memory, v_row.data(), v_row.size() * sizeof(float));
  const AppendCounter before = {position, 0, 0};
  const DevicePiece counter(memory, &before, sizeof before);
  CountedAppend append;
  append.k = k.at<std::byte>();
  append.v = v.at<std::byte>();
  append.type = type;
  append.k_row = from_k.at<float>();
  append.v_row = from_v.at<float>();
  append.counter = counter.at<AppendCounter>();
  append.max_seq_len = kRoom;
  append.dim = static_cast<int32_t>(k_row.size());
  append.moves = moves;
  if (on_device) {
    CallerStream stream;
    EXPECT_TRUE(memory.append(append, stream.get()).ok());
    stream.wait();
  } else {
    EXPECT_TRUE(memory.append(append, nullptr).ok());
  }
  std::vector<std::byte> all = k.read<std::byte>();
  for (const DevicePiece* each : {&v, &counter}) {
    const auto more = each->read<std::byte>();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// What they should be.
std::vector<std::byte> bytes_wanted(DType type, int32_t position, bool moves,
                                    const std::vector<float>& k_row,
                                    const std::vector<float>& v_row) {
  const bool fits = position >= 0 && position < kRoom;
  std::vector<std::byte> all;
  for (const std::vector<float>* row : {&k_row, &v_row}) {
    const std::vector<std::byte> bytes = kept(type, row->data(), row->size());
    for (int32_t p = 0; p < kRoom; ++p) {
      if (p == position) {
        all.insert(all.end(), bytes.begin(), bytes.end());
      } else {
        all.insert(all.end(), bytes.size(), std::byte{0x5A});
      }
    }
  }
  const AppendCounter counter = {position + (fits && moves ? 1 : 0), fits ? 0 : 1, 0};
  const auto* const from = reinterpret_cast<const std::byte*>(&counter);
  all.insert(all.end(), from, from + sizeof counter);
  return all;
}

TEST(CudaCacheAppend, TheKernelWritesWhatTheReferenceWrites) {
  for (const DType type : {DType::kF32, DType::kF16}) {
    for (const int32_t dim : {1, 31, 255, 256, 257, 1100}) {
      const auto k = mixed(static_cast<size_t>(dim), 1);
      const auto v = mixed(static_cast<size_t>(dim), 2);
      for (const int32_t position : {-2147483647, -1, 0, 3, 4, 5, 2147483647}) {
        for (const bool moves : {false, true}) {
          SCOPED_TRACE(testing::Message() << dim << " at " << position << (moves ? " moves" : "")
                                          << (type == DType::kF16 ? " fp16" : " fp32"));
          const auto want = bytes_wanted(type, position, moves, k, v);
          EXPECT_TRUE(bytes_after_append(true, type, position, moves, k, v) == want);
          EXPECT_TRUE(bytes_after_append(false, type, position, moves, k, v) == want);
        }
      }
    }
  }
}

/// Numbers of binary16 of every exponent, what lies halfway to the next, and beside that.
TEST(CudaCacheAppend, Binary16IsTheNearest) {
  std::vector<float> x;
  for (uint32_t exponent = 0; exponent < 31; ++exponent) {
    for (const uint32_t fraction : {0U, 1U, 2U, 3U, 511U, 512U, 682U, 1021U, 1022U, 1023U}) {
      const uint32_t bits = exponent << 10 | fraction;
      const auto middle = static_cast<float>((half_magnitude(bits) + half_magnitude(bits + 1)) / 2);
      for (const float each : {static_cast<float>(half_magnitude(bits)), middle,
                               std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)}) {
        x.insert(x.end(), {each, -each});
      }
    }
  }
  std::vector<float> hard(x.size());
  hard_row(hard.data(), hard.size(), 0);
  const auto want = bytes_wanted(DType::kF16, 2, true, x, hard);
  for (const bool on_device : {true, false}) {
    EXPECT_TRUE(bytes_after_append(on_device, DType::kF16, 2, true, x, hard) == want);
  }
}

TEST(CudaCacheAppend, RandomProgramsDoWhatAPlainModelSays) {
  const char* const wanted = std::getenv("GEN_TRIALS");
  const auto trials = static_cast<uint32_t>(wanted != nullptr ? 4 * std::atoi(wanted) : 24);
  int replays = 0;
  int drops = 0;
  for (uint32_t seed = 1; seed <= trials && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
#ifndef GEN_ON_DEVICE
    cuda::emulator::configure({.seed = seed});
#endif
    AppendProgram program(seed);
    program.run(60);
    replays += program.replays;
    drops += program.drops;
  }
  EXPECT_GT(replays, 0);
  EXPECT_GT(drops, 0);
}

/// A side with a layer or two, room for three positions and rows of 300 elements.
struct SmallSide {
  explicit SmallSide(bool on_device, int32_t layers = 1, DType type = DType::kF32)
      : rows(counted(size_t{8} * kDim, 1)), side(on_device, type, layers, 3, kDim, rows) {}
  ~SmallSide() { side.end(); }
  static constexpr int32_t kDim = 300;

  Status append(int32_t layer = 0) { return side.append(layer, side.row(0), side.row(kDim)); }
  [[nodiscard]] AppendCounter counter() {
    AppendCounter found;
    EXPECT_TRUE(side.memory().copy_down(&found, side.store->position_counter(), sizeof found).ok());
    return found;
  }

  std::vector<float> rows;
  AppendSide side;
};

class CudaCacheAppendOf : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, CudaCacheAppendOf, testing::Values(DType::kF32, DType::kF16),
                         [](const auto& of) { return of.param == DType::kF32 ? "fp32" : "fp16"; });

TEST_P(CudaCacheAppendOf, ReplaysBeyondTheRoomLeaveAllAsItIs) {
  SmallSide small(true, 2, GetParam());
  small.side.begin_capture();
  EXPECT_TRUE(small.append(0).ok());
  EXPECT_TRUE(small.append(1).ok());
  small.side.end_capture();
  EXPECT_EQ(small.side.store->seq_len(), 1);  // the host's, though nothing has run
  EXPECT_EQ(small.counter().position, 0);
  for (int i = 0; i < 3; ++i) small.side.replay();
  small.side.wait();
  EXPECT_EQ(small.side.store->seq_len(), 1);
  EXPECT_EQ(small.counter().position, 3);
  EXPECT_EQ(small.counter().dropped, 0);
  const auto all_of = [&](int32_t layer) {
    const cache::TensorSpan span = small.side.store->full_buffer(layer);
    std::vector<std::byte> k(3 * span.seq_stride);
    EXPECT_TRUE(small.side.memory().copy_down(k.data(), span.k, k.size()).ok());
    return k;
  };
  const auto before = all_of(1);
  for (int i = 0; i < 7; ++i) small.side.replay();
  small.side.wait();
  EXPECT_EQ(small.counter().position, 3);
  EXPECT_EQ(small.counter().dropped, 1);
  EXPECT_EQ(all_of(1), before);
  // It is told once, changes nothing, and stands until it is told or there is another start.
  EXPECT_EQ(small.side.store->sync_counter().code(), Code::kCacheFull);
  EXPECT_EQ(small.side.store->seq_len(), 1);
  EXPECT_TRUE(small.side.store->sync_counter().ok());
  EXPECT_EQ(small.side.store->seq_len(), 3);
  small.side.replay();
  small.side.wait();
  EXPECT_TRUE(small.side.store->truncate(1).ok());
  EXPECT_TRUE(small.side.store->sync_counter().ok());
  EXPECT_EQ(small.side.store->seq_len(), 1);
}

TEST(CudaCacheAppend, ReplaysThatTheHostDidNotSeeAreForgotten) {
  SmallSide small(true);
  small.side.begin_capture();
  EXPECT_TRUE(small.append().ok());
  small.side.end_capture();
  EXPECT_TRUE(small.side.store->reset().ok());
  for (int i = 0; i < 2; ++i) small.side.replay();
  small.side.wait();
  EXPECT_EQ(small.counter().position, 2);
  EXPECT_TRUE(small.side.store->reset().ok());  // whose length is 0 already
  EXPECT_EQ(small.counter().position, 0);
}

TEST_P(CudaCacheAppendOf, OtherLayersAndAddressesAreRefused) {
  for (const bool on_device : {true, false}) {
    SmallSide small(on_device, 2, GetParam());
    DeviceStore& store = *small.side.store;
    const auto* const odd = reinterpret_cast<const char*>(small.side.row(0)) + 2;
    void* const stream = on_device ? small.side.stream().get() : nullptr;
    EXPECT_EQ(store.append_stream(0, odd, small.side.row(0), stream).code(),
              Code::kInvalidArgument);
    EXPECT_EQ(store.append_stream(0, small.side.row(0), odd, stream).code(),
              Code::kInvalidArgument);
    EXPECT_EQ(small.append(2).code(), Code::kOutOfRange);
    EXPECT_TRUE(small.append(1).ok());
    EXPECT_EQ(small.append(1).code(), Code::kState);
    EXPECT_EQ(store.seq_len(), 0);
  }
  SmallSide small(false);
  int some = 0;
  EXPECT_EQ(small.side.store->append_stream(0, small.side.row(0), small.side.row(0), &some).code(),
            Code::kInvalidArgument);
}

/// A copy that failed leaves the counter unknown: the next append makes it known, or fails as well.
TEST(CudaCacheAppend, AnUnknownCounterIsSetBefore) {
  for (const bool on_device : {true, false}) {
    SmallSide small(on_device);
    TableAllocator& memory = small.side.memory();
    EXPECT_TRUE(small.append().ok());
    small.side.wait();
    memory.fails_at = memory.copies + 2;
    EXPECT_EQ(small.side.store->append(0, small.rows.data(), small.rows.data(), 1).code(),
              Code::kDevice);
    const int32_t torn = 77;
    EXPECT_TRUE(
        memory
            .copy_up(const_cast<int32_t*>(small.side.store->position_counter()), &torn, sizeof torn)
            .ok());
    memory.fails_at = memory.copies;
    EXPECT_EQ(small.append().code(), Code::kDevice);
    EXPECT_EQ(small.side.store->seq_len(), 1);
    EXPECT_TRUE(small.append().ok());
    small.side.wait();
    EXPECT_EQ(small.side.store->seq_len(), 2);
    EXPECT_EQ(small.counter().position, 2);
    EXPECT_EQ(small.counter().dropped, 0);
  }
}

/// A copy of the counter that fails, and what then sets it again, hide nothing of what was dropped.
TEST(CudaCacheAppend, WhatWasDroppedIsToldAfterACopyThatFails) {
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device ? "on a device" : "in host memory");
    SmallSide small(on_device);
    DeviceStore& store = *small.side.store;
    TableAllocator& memory = small.side.memory();
    const AppendCounter dropped = {0, 1, 0};  // as replays leave it that found no room
    ASSERT_TRUE(
        memory.copy_up(const_cast<int32_t*>(store.position_counter()), &dropped, sizeof dropped)
            .ok());
    memory.fails_at = memory.copies + 2;  // the counter's
    EXPECT_EQ(store.append(0, small.rows.data(), small.rows.data(), 0).code(), Code::kDevice);
    memory.fails_at = -1;
    EXPECT_TRUE(small.append().ok());
    small.side.wait();
    EXPECT_EQ(store.sync_counter().code(), Code::kCacheFull);
    EXPECT_TRUE(store.sync_counter().ok());
    EXPECT_EQ(store.seq_len(), 1);
  }
}

TEST(CudaCacheAppend, WhatWasDroppedIsToldAgainIfTellingFails) {
  SmallSide small(false);
  TableAllocator& memory = small.side.memory();
  const AppendCounter dropped = {2, 1, 0};
  auto* const at = const_cast<int32_t*>(small.side.store->position_counter());
  EXPECT_TRUE(memory.copy_up(at, &dropped, sizeof dropped).ok());
  for (const int copy : {0, 1}) {
    memory.fails_at = memory.copies + copy;
    EXPECT_EQ(small.side.store->sync_counter().code(), Code::kDevice);
  }
  // An append from the host does not hide it.
  EXPECT_TRUE(small.side.store->append(0, small.rows.data(), small.rows.data(), 0).ok());
  EXPECT_EQ(small.side.store->sync_counter().code(), Code::kCacheFull);
  EXPECT_TRUE(small.side.store->sync_counter().ok());
  EXPECT_EQ(small.side.store->seq_len(), 1);
}

#ifndef GEN_ON_DEVICE

TEST_P(CudaCacheAppendOf, NothingIsWaitedFor) {
  cuda::emulator::configure({});
  SmallSide small(true, 2, GetParam());
  const uint64_t kernels = cuda::emulator::kernels_run();
  const uint64_t waits = cuda::emulator::host_waits();
  for (int p = 0; p < 3; ++p) {
    for (const int32_t layer : {0, 1}) EXPECT_TRUE(small.append(layer).ok());
  }
  EXPECT_EQ(small.append().code(), Code::kCacheFull);
  EXPECT_EQ(small.side.store->seq_len(), 3);
  EXPECT_EQ(cuda::emulator::kernels_run(), kernels);  // they wait on the stream
  EXPECT_EQ(cuda::emulator::host_waits(), waits);
  small.side.wait();
  EXPECT_EQ(cuda::emulator::kernels_run(), kernels + 6);  // one for both tensors and the counter
  EXPECT_EQ(small.counter().position, 3);
  std::vector<float> k(size_t{3} * SmallSide::kDim);
  EXPECT_TRUE(small.side.store->get(1, k.data(), nullptr).ok());
  for (size_t i = 0; i < k.size(); ++i)
    ASSERT_EQ(k[i], small.rows[i % SmallSide::kDim]);  // in both
}

TEST(CudaCacheAppend, TheCallersDeviceStaysTheCallers) {
  cuda::emulator::configure({.devices = 2});
  {
    SmallSide small(true);
    ASSERT_TRUE(cuda::device::set_device(1).ok());
    EXPECT_TRUE(small.append().ok());
    int now = -1;
    EXPECT_TRUE(cuda::device::current_device(&now).ok());
    EXPECT_EQ(now, 1);
    ASSERT_TRUE(cuda::device::set_device(0).ok());
    small.side.wait();
    EXPECT_EQ(small.counter().position, 1);
  }
  cuda::emulator::configure({});
}

TEST(CudaCacheAppend, AKernelThatDoesNotStartChangesNothing) {
  SmallSide small(true, 2);
  {
    const cuda::emulator::FailureWatch watch;
    int none = 0;
    const Status status =
        small.side.store->append_stream(0, small.side.row(0), small.side.row(0), &none);
    EXPECT_EQ(status.code(), Code::kDevice);
    EXPECT_NE(std::string(status.message()).find("cache_append"), std::string::npos);
    EXPECT_EQ(small.side.store->layer_seq_len(0), 0);
  }
  for (const int32_t layer : {0, 1}) EXPECT_TRUE(small.append(layer).ok());
  small.side.wait();
  EXPECT_EQ(small.side.store->seq_len(), 1);
  EXPECT_EQ(small.counter().position, 1);
}

TEST(CudaCacheAppend, ALostDeviceChangesNothing) {
  {
    const auto table = device_table();
    TableAllocator memory(*table);
    const auto rows = counted(2 * 4, 1);
    const CallerStream stream;
    std::optional<DevicePiece> from(std::in_place, memory, rows.data(),
                                    rows.size() * sizeof(float));
    auto store = std::move(DeviceStore::create_fixed(DType::kF32, 2, 3, 4,
                                                     std::shared_ptr<engine::GpuAllocator>(
                                                         std::shared_ptr<void>(), &memory)))
                     .value();
    const auto append = [&](int32_t layer) {
      return store->append_stream(layer, from->at<float>(), from->at<float>(4), stream.get());
    };
    EXPECT_TRUE(append(1).ok());
    cuda::emulator::break_device(cuda::device::kEccUncorrectable);
    for (int i = 0; i < 2; ++i) {
      const Status status = append(0);
      EXPECT_EQ(status.code(), Code::kDevice);
      EXPECT_NE(std::string(status.message()).find("uncorrectable ECC error"), std::string::npos);
      EXPECT_EQ(store->layer_seq_len(0), 0);
      EXPECT_EQ(store->layer_seq_len(1), 1);
    }
    EXPECT_EQ(store->sync_counter().code(), Code::kDevice);
    store.reset();
    from.reset();
  }
  cuda::emulator::configure({});
}

#endif

}  // namespace
}  // namespace gen::test
