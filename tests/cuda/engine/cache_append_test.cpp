// SPDX-License-Identifier: Apache-2.0
// Proves appends to GPU caches on the caller's streams. Random programs of appends from the host,
// from the device and on a stream, of graphs that are captured and replayed, also beyond the room
// that there is, of truncates, resets and syncs: what the cache holds and tells is what a plain
// model says, on a device and in host memory that poses as one. The kernel writes what the
// host's reference writes, to the byte. Nothing is waited for, and what fails changes nothing.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "cache/tensor/device_store.h"
#include "cuda/engine/caller_stream.h"
#include "cuda/engine/tested_engine.h"
#include "support/gpu_allocator.h"

namespace gen::test {
namespace {

using cache::DeviceStore;
using engine::AppendCounter;
using engine::CountedAppend;

/// Memory of a table with something in it.
class DevicePiece {
 public:
  DevicePiece(TableAllocator& memory, const void* from, size_t bytes) : memory_(memory) {
    buffer_ = std::move(engine::GpuBuffer::allocate(memory, bytes)).value();
    EXPECT_TRUE(memory.copy_up(buffer_.at(), from, bytes).ok());
  }
  template <typename T>
  [[nodiscard]] T* at(size_t index = 0) const {
    return static_cast<T*>(buffer_.at(index * sizeof(T)));
  }
  template <typename T>
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> out(buffer_.size() / sizeof(T));
    EXPECT_TRUE(memory_.copy_down(out.data(), buffer_.at(), buffer_.size()).ok());
    return out;
  }

 private:
  TableAllocator& memory_;
  engine::GpuBuffer buffer_;
};

std::vector<float> counted(size_t n, float from) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), from);
  return values;
}

/// All that one append left, written by the kernel or by the reference.
std::vector<uint32_t> bytes_after_append(bool on_device, int32_t dim, int32_t position,
                                         bool moves) {
  constexpr int32_t kRoom = 5;
  const auto table = device_table();
  TestGpuAllocator guarded(on_device ? *table : host_table());
  TableAllocator memory(guarded.table());
  const auto n = static_cast<size_t>(kRoom * dim);
  const DevicePiece k(memory, counted(n, 1).data(), n * sizeof(float));
  const DevicePiece v(memory, counted(n, -9000).data(), n * sizeof(float));
  const auto rows = counted(2 * static_cast<size_t>(dim), 50000);
  const DevicePiece from(memory, rows.data(), rows.size() * sizeof(float));
  const AppendCounter before = {position, 0, 0};
  const DevicePiece counter(memory, &before, sizeof before);
  CountedAppend append;
  append.k = k.at<float>();
  append.v = v.at<float>();
  append.k_row = from.at<float>();
  append.v_row = from.at<float>(static_cast<size_t>(dim));
  append.counter = counter.at<AppendCounter>();
  append.max_seq_len = kRoom;
  append.dim = dim;
  append.moves = moves;
  if (on_device) {
    CallerStream stream;
    EXPECT_TRUE(memory.append(append, stream.get()).ok());
    stream.wait();
  } else {
    EXPECT_TRUE(memory.append(append, nullptr).ok());
  }
  std::vector<uint32_t> all = k.read<uint32_t>();
  for (const DevicePiece* each : {&v, &counter}) {
    const auto more = each->read<uint32_t>();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(CudaCacheAppend, TheKernelWritesWhatTheReferenceWrites) {
  for (const int32_t dim : {1, 31, 255, 256, 257, 1100}) {
    for (const int32_t position : {-2147483647, -1, 0, 3, 4, 5, 2147483647}) {
      for (const bool moves : {false, true}) {
        SCOPED_TRACE(testing::Message() << dim << " at " << position << (moves ? " moves" : ""));
        const auto got = bytes_after_append(true, dim, position, moves);
        EXPECT_EQ(got, bytes_after_append(false, dim, position, moves));
        const bool fits = position >= 0 && position < 5;
        const size_t counter = 10 * static_cast<size_t>(dim);
        EXPECT_EQ(got[counter], static_cast<uint32_t>(position + (fits && moves ? 1 : 0)));
        EXPECT_EQ(got[counter + 1], fits ? 0U : 1U);
        EXPECT_EQ(got[counter + 2], 0U);
      }
    }
  }
}

/// A cache with all that appends to it: rows that lie on the device, a stream, captured appends.
/// In host memory a capture notes what it is given, and a replay does it.
class AppendSide final {
 public:
  AppendSide(bool on_device, int32_t layers, int32_t room, int32_t dim,
             const std::vector<float>& rows)
      : table_(device_table()),
        guarded_(on_device ? *table_ : host_table()),
        memory_(guarded_.table()) {
    if (on_device) stream_.emplace();
    allocator_ = std::make_shared<Noting>(*this);
    store = std::move(DeviceStore::create_fixed(layers, room, dim, allocator_)).value();
    rows_.emplace(memory_, rows.data(), rows.size() * sizeof(float));
  }
  ~AppendSide() { drop(); }
  AppendSide(const AppendSide&) = delete;
  AppendSide& operator=(const AppendSide&) = delete;

  [[nodiscard]] const float* row(size_t element) const { return rows_->at<float>(element); }
  Status append(int32_t layer, const float* k, const float* v) {
    return store->append_stream(layer, k, v, stream_ ? stream_->get() : nullptr);
  }
  void wait() {
    if (stream_) stream_->wait();
  }
  void begin_capture() {
    drop();
    capturing_ = true;
    if (stream_) stream_->begin_capture();
  }
  void end_capture() {
    capturing_ = false;
    if (stream_) exec_ = stream_->end_capture();
  }
  void replay() {
    if (stream_) return stream_->replay(exec_);
    for (const CountedAppend& each : noted_) engine::append_on_host(each);
  }
  /// The store goes when nothing is on its way to it, and before what it is in.
  void end() {
    wait();
    store.reset();
  }
  TableAllocator& memory() { return memory_; }
  CallerStream& stream() { return *stream_; }

  std::unique_ptr<DeviceStore> store;

 private:
  /// What the store has, which may live longer than the side's other parts.
  class Noting final : public engine::GpuAllocator {
   public:
    explicit Noting(AppendSide& side) : side_(side) {}
    Status allocate(size_t bytes, void** out) override {
      return side_.memory_.allocate(bytes, out);
    }
    void release(void* at) noexcept override { side_.memory_.release(at); }
    Status copy_up(void* to, const void* from, size_t bytes) override {
      return side_.memory_.copy_up(to, from, bytes);
    }
    Status copy_down(void* to, const void* from, size_t bytes) override {
      return side_.memory_.copy_down(to, from, bytes);
    }
    Status copy_across(void* to, const void* from, size_t bytes) override {
      return side_.memory_.copy_across(to, from, bytes);
    }
    Status append(const CountedAppend& append, void* stream) override {
      if (side_.capturing_ && !side_.stream_) {
        side_.noted_.push_back(append);
        return {};
      }
      return side_.memory_.append(append, stream);
    }

   private:
    AppendSide& side_;
  };

  void drop() {
    noted_.clear();
    if (exec_ != nullptr) CallerStream::drop(exec_);
    exec_ = nullptr;
  }

  std::shared_ptr<const engine::GpuTable> table_;
  TestGpuAllocator guarded_;  // which looks at the bytes around each piece
  TableAllocator memory_;
  std::optional<CallerStream> stream_;
  std::shared_ptr<Noting> allocator_;
  std::optional<DevicePiece> rows_;
  bool capturing_ = false;
  std::vector<CountedAppend> noted_;
  void* exec_ = nullptr;
};

/// What a cache should hold and say, without kernels, streams and counters.
struct AppendModel {
  AppendModel(int32_t layers, int32_t room_, int32_t dim_)
      : lengths(static_cast<size_t>(layers), 0),
        room(room_),
        dim(dim_),
        held(static_cast<size_t>(layers)) {}

  std::vector<int32_t> lengths;  // of the layers, as the host has them
  int32_t length = 0;
  int32_t position = 0;  // as the device has it
  bool dropped = false;
  int32_t room;
  int32_t dim;
  std::vector<std::map<int32_t, size_t>> held;  // position → first element of the keys' row

  [[nodiscard]] Code refusal(int32_t layer, int32_t at) const {
    if (layer < 0 || layer >= static_cast<int32_t>(lengths.size())) return Code::kOutOfRange;
    if (at != length) return Code::kSequence;
    if (at >= room) return Code::kCacheFull;
    return lengths[static_cast<size_t>(layer)] != at ? Code::kState : Code::kOk;
  }
  /// The host's part; true when all layers have the position.
  bool note(int32_t layer) {
    ++lengths[static_cast<size_t>(layer)];
    for (const int32_t each : lengths) {
      if (each != length + 1) return false;
    }
    ++length;
    return true;
  }
  void from_host(int32_t layer, size_t row) {
    held[static_cast<size_t>(layer)][length] = row;
    if (note(layer)) position = length;
  }
  /// What the kernel does.
  void run(int32_t layer, size_t row, bool moves) {
    if (position >= room) {
      dropped = true;
      return;
    }
    held[static_cast<size_t>(layer)][position] = row;
    if (moves) ++position;
  }
  void truncate(int32_t n) {
    for (int32_t& each : lengths) each = std::min(each, n);
    const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
    length = *least == *most ? *least : std::min(length, *least);
    position = length;
    dropped = false;
  }
  Code sync() {
    if (dropped) {
      dropped = false;
      return Code::kCacheFull;
    }
    std::fill(lengths.begin(), lengths.end(), position);
    length = position;
    return Code::kOk;
  }
};

class AppendProgram {
 public:
  explicit AppendProgram(uint32_t seed)
      : random_(seed),
        layers_(draw(1, 4)),
        room_(draw(1, 9)),
        dim_(std::array{1, 7, 255, 256, 300}[static_cast<size_t>(draw(0, 4))]),
        rows_(counted(static_cast<size_t>(kRows * 2 * dim_), 1)),
        model_(layers_, room_, dim_),
        device_(true, layers_, room_, dim_, rows_),
        host_(false, layers_, room_, dim_, rows_) {}
  ~AppendProgram() {
    device_.end();
    host_.end();
  }
  AppendProgram(const AppendProgram&) = delete;
  AppendProgram& operator=(const AppendProgram&) = delete;

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << layers_ << " layers, room " << room_ << ", dim " << dim_
                                      << ", step " << step);
      one();
    }
  }
  int replays = 0;
  int drops = 0;

 private:
  static constexpr int32_t kRows = 64;

  int32_t draw(int32_t from, int32_t to) {
    return from + static_cast<int32_t>(random_() % static_cast<uint32_t>(to - from + 1));
  }
  /// First element of keys, with the values behind them.
  size_t any_row() {
    return static_cast<size_t>(draw(0, kRows - 1)) * 2 * static_cast<size_t>(dim_);
  }
  const float* values(const float* keys) const { return keys + dim_; }

  void one() {
    const int32_t what = draw(0, 99);
    if (what < 25) return token();
    if (what < 50) return on_stream(draw(-1, layers_), any_row());
    if (what < 60) return from_host();
    if (what < 70) return from_device();
    if (what < 80) return replayed();
    if (what < 90) return sync();
    wait();
    const int32_t n = what < 97 ? draw(0, room_) : 0;
    for (AppendSide* side : sides()) {
      EXPECT_TRUE((what < 97 ? side->store->truncate(n) : side->store->reset()).ok());
    }
    model_.truncate(n);
    compare();
  }
  std::array<AppendSide*, 2> sides() { return {&device_, &host_}; }
  void wait() {
    device_.wait();
    host_.wait();
  }
  void on_stream(int32_t layer, size_t row) {
    const Code code = model_.refusal(layer, model_.length);
    for (AppendSide* side : sides()) {
      EXPECT_EQ(side->append(layer, side->row(row), values(side->row(row))).code(), code);
    }
    if (code == Code::kOk) model_.run(layer, row, model_.note(layer));
  }
  /// All layers that lack it, in any order.
  void token() {
    std::vector<int32_t> order(static_cast<size_t>(layers_));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int32_t layer : order) on_stream(layer, any_row());
  }
  void from_host() {
    wait();
    const int32_t layer = draw(-1, layers_);
    const int32_t at = draw(0, 9) == 0 ? draw(0, room_) : model_.length;
    const size_t row = any_row();
    const Code code = model_.refusal(layer, at);
    for (AppendSide* side : sides()) {
      EXPECT_EQ(side->store->append(layer, &rows_[row], values(&rows_[row]), at).code(), code);
    }
    if (code == Code::kOk) model_.from_host(layer, row);
    compare();
  }
  void from_device() {
    wait();
    const int32_t layer = draw(0, layers_ - 1);
    const size_t row = any_row();
    const Code code = model_.refusal(layer, model_.length);
    for (AppendSide* side : sides()) {
      const float* const keys = side->row(row);
      EXPECT_EQ(side->store->append_device(layer, keys, values(keys)).code(), code);
    }
    if (code == Code::kOk) model_.from_host(layer, row);
  }
  /// A whole position is captured, which runs nothing; what replays of it leave the host takes.
  void replayed() {
    wait();
    const int32_t n = std::min(draw(0, room_ - 1), model_.length);
    model_.truncate(n);
    for (AppendSide* side : sides()) {
      EXPECT_TRUE(side->store->truncate(n).ok());
      side->begin_capture();
    }
    std::vector<std::pair<int32_t, size_t>> captured;
    const AppendModel before = model_;
    for (int32_t layer = layers_ - 1; layer >= 0; --layer) {
      captured.emplace_back(layer, any_row());
      on_stream(captured.back().first, captured.back().second);
    }
    for (AppendSide* side : sides()) side->end_capture();
    model_.held = before.held;
    model_.position = before.position;
    model_.dropped = before.dropped;
    compare();
    for (int32_t left = draw(0, room_ + 2); left > 0; --left, ++replays) {
      for (AppendSide* side : sides()) side->replay();
      for (const auto& [layer, row] : captured) model_.run(layer, row, layer == 0);
    }
    wait();
    if (draw(0, 3) > 0) return sync();
    model_.truncate(0);  // the counter is the host's again, though its length was 0 or will be
    for (AppendSide* side : sides()) EXPECT_TRUE(side->store->reset().ok());
    compare();
  }
  void sync() {
    wait();
    const Code code = model_.sync();
    drops += code == Code::kCacheFull ? 1 : 0;
    for (AppendSide* side : sides()) EXPECT_EQ(side->store->sync_counter().code(), code);
    compare();
    if (code == Code::kOk) return;
    EXPECT_EQ(model_.sync(), Code::kOk);
    for (AppendSide* side : sides()) EXPECT_TRUE(side->store->sync_counter().ok());
    compare();
  }
  void compare() {
    for (AppendSide* side : sides()) {
      SCOPED_TRACE(side == &device_ ? "on the device" : "in host memory");
      DeviceStore& store = *side->store;
      EXPECT_EQ(store.seq_len(), model_.length);
      AppendCounter counter;
      EXPECT_TRUE(
          side->memory().copy_down(&counter, store.position_counter(), sizeof counter).ok());
      EXPECT_EQ(counter.position, model_.position);
      EXPECT_EQ(counter.dropped != 0, model_.dropped);
      EXPECT_EQ(counter.arrived, 0U);
      for (int32_t layer = 0; layer < layers_; ++layer) {
        EXPECT_EQ(store.layer_seq_len(layer), model_.lengths[static_cast<size_t>(layer)]);
        compare(*side, layer);
      }
    }
  }
  void compare(AppendSide& side, int32_t layer) {
    const auto dim = static_cast<size_t>(dim_);
    const cache::TensorSpan span = side.store->full_buffer(layer);
    std::vector<float> found(static_cast<size_t>(room_) * dim);
    for (const bool keys : {true, false}) {
      const size_t bytes = found.size() * sizeof(float);
      EXPECT_TRUE(side.memory().copy_down(found.data(), keys ? span.k : span.v, bytes).ok());
      for (const auto& [position, row] : model_.held[static_cast<size_t>(layer)]) {
        const float* const got = &found[static_cast<size_t>(position) * dim];
        EXPECT_TRUE(std::equal(got, got + dim, &rows_[keys ? row : row + dim]))
            << (keys ? "keys" : "values") << " of layer " << layer << " at " << position;
      }
    }
  }

  std::mt19937 random_;
  const int32_t layers_;
  const int32_t room_;
  const int32_t dim_;
  const std::vector<float> rows_;
  AppendModel model_;
  AppendSide device_;
  AppendSide host_;
};

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
  explicit SmallSide(bool on_device, int32_t layers = 1)
      : rows(counted(size_t{8} * kDim, 1)), side(on_device, layers, 3, kDim, rows) {}
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

TEST(CudaCacheAppend, ReplaysBeyondTheRoomLeaveAllAsItIs) {
  SmallSide small(true, 2);
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
    std::vector<float> k(size_t{3} * SmallSide::kDim);
    EXPECT_TRUE(small.side.memory()
                    .copy_down(k.data(), small.side.store->full_buffer(layer).k, k.size() * 4)
                    .ok());
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

TEST(CudaCacheAppend, OtherLayersAndAddressesAreRefused) {
  for (const bool on_device : {true, false}) {
    SmallSide small(on_device, 2);
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

TEST(CudaCacheAppend, NothingIsWaitedFor) {
  cuda::emulator::configure({});
  SmallSide small(true, 2);
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
  for (size_t i = 0; i < k.size(); ++i) ASSERT_EQ(k[i], small.rows[i % SmallSide::kDim]);
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
    auto store = std::move(DeviceStore::create_fixed(2, 3, 4,
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
