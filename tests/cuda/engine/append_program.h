// SPDX-License-Identifier: Apache-2.0
// Random programs of appends to a GPU cache, from the host, from the device, on a stream and in
// graphs, and the plain model of what the cache then holds and tells.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
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
#include "support/nearest_half.h"

namespace gen::test {

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

inline std::vector<float> counted(size_t n, float from) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), from);
  return values;
}

/// The bytes that a cache of `type` stores for float32 numbers.
inline std::vector<std::byte> kept(DType type, const float* x, size_t n) {
  std::vector<uint16_t> halves(type == DType::kF16 ? n : 0);
  std::transform(x, x + halves.size(), halves.begin(), nearest_half);
  std::vector<std::byte> bytes(n * (type == DType::kF16 ? sizeof(uint16_t) : sizeof(float)));
  const void* const from = type == DType::kF16 ? static_cast<const void*>(halves.data()) : x;
  if (n > 0) std::memcpy(bytes.data(), from, bytes.size());
  return bytes;
}

/// Numbers of all kinds: counted ones, any in the range of binary16, hard ones, any bits.
inline std::vector<float> mixed(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values = counted(n, 1);
  for (float& each : values) {
    const auto what = random() % 4;
    const auto any = static_cast<uint32_t>(random());
    // Exponents from 2^-28 to 2^17.
    const uint32_t in_range = (any & 0x807FFFFFU) | (99 + any / 8388608 % 46) << 23;
    if (what == 1) std::memcpy(&each, &in_range, sizeof each);
    if (what == 2) hard_row(&each, 1, any);
    if (what == 3) std::memcpy(&each, &any, sizeof each);
  }
  return values;
}

/// A cache with the means to append to it: rows in device memory, a stream, captured appends. In
/// host memory a capture records the calls, and a replay makes them.
class AppendSide final {
 public:
  AppendSide(bool on_device, DType type, int32_t layers, int32_t room, int32_t dim,
             const std::vector<float>& rows)
      : table_(device_table()),
        guarded_(on_device ? *table_ : host_table()),
        memory_(guarded_.table()) {
    if (on_device) stream_.emplace();
    allocator_ = std::make_shared<Noting>(*this);
    store = std::move(DeviceStore::create_fixed(type, layers, room, dim, allocator_)).value();
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
  /// Destroys the store when no append is in flight, and before its memory.
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

/// The expected contents and results of a cache, without kernels, streams and counters.
struct AppendModel {
  AppendModel(int32_t layers, int32_t room_, int32_t dim_)
      : lengths(static_cast<size_t>(layers), 0),
        room(room_),
        dim(dim_),
        held(static_cast<size_t>(layers)) {}

  std::vector<int32_t> lengths;  // of the layers, on the host
  int32_t length = 0;
  int32_t position = 0;  // the counter on the device
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
  /// The effect of the kernel.
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
        type_(draw(0, 1) == 0 ? DType::kF32 : DType::kF16),
        rows_(mixed(static_cast<size_t>(kRows * 2 * dim_), seed)),
        model_(layers_, room_, dim_),
        device_(true, type_, layers_, room_, dim_, rows_),
        host_(false, type_, layers_, room_, dim_, rows_) {}
  ~AppendProgram() {
    device_.end();
    host_.end();
  }
  AppendProgram(const AppendProgram&) = delete;
  AppendProgram& operator=(const AppendProgram&) = delete;

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message()
                   << (type_ == DType::kF16 ? "fp16, " : "fp32, ") << layers_ << " layers, room "
                   << room_ << ", dim " << dim_ << ", step " << step);
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
    EXPECT_EQ(span.type, type_);
    EXPECT_EQ(span.seq_stride, dim * (type_ == DType::kF16 ? 2 : 4));
    std::vector<std::byte> found(static_cast<size_t>(room_) * span.seq_stride);
    for (const bool keys : {true, false}) {
      EXPECT_TRUE(side.memory().copy_down(found.data(), keys ? span.k : span.v, found.size()).ok());
      for (const auto& [position, row] : model_.held[static_cast<size_t>(layer)]) {
        const auto want = kept(type_, &rows_[keys ? row : row + dim], dim);
        const std::byte* const got = &found[static_cast<size_t>(position) * span.seq_stride];
        EXPECT_TRUE(std::equal(want.begin(), want.end(), got))
            << (keys ? "keys" : "values") << " of layer " << layer << " at " << position;
      }
    }
  }

  std::mt19937 random_;
  const int32_t layers_;
  const int32_t room_;
  const int32_t dim_;
  const DType type_;
  const std::vector<float> rows_;
  AppendModel model_;
  AppendSide device_;
  AppendSide host_;
};

}  // namespace gen::test
