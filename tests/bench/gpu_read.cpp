// SPDX-License-Identifier: Apache-2.0
// What gpu.sh runs first: at what rate a kernel reads device memory that does nothing else, and at
// what rate pinned host memory is copied to the device.
//   gpu_read RESULTS    lines of the table, lines of JSON more in RESULTS
// Ends with 3 if the machine refuses, with 4 if what it computes is wrong.
#include <cstdio>
#include <cstring>

#include "read_rate.h"

namespace gen::test {
namespace {

namespace device = cuda::device;

// No cache holds a noticeable part of it.
constexpr size_t kBytes = size_t{4} << 30;
constexpr size_t kCopyBytes = size_t{256} << 20;
constexpr int kByte = 3;
constexpr uint32_t kWord = 0x03030303U;
constexpr int kRounds = 20;
// Of so many blocks a processor the best counts.
constexpr int kBlocksEach[] = {1, 2, 4, 8};

class Rates {
 public:
  explicit Rates(const char* path) : path_(path) {}
  ~Rates() {
    if (memory_ != nullptr) (void)device::free_async(memory_, stream_);
    if (sum_ != nullptr) (void)device::free_async(sum_, stream_);
    if (stream_ != nullptr) {
      (void)device::stream_synchronize(stream_);
      (void)device::stream_destroy(stream_);
    }
    if (pool_ != nullptr) (void)device::pool_destroy(pool_);
    if (host_ != nullptr) (void)device::host_free(host_);
    for (device::Event each : events_) {
      if (each != nullptr) (void)device::event_destroy(each);
    }
  }

  /// The exit status.
  int run() { return set_up() && read() && copy_up() ? right_ ? 0 : 4 : refused(); }

 private:
  bool good(device::Error error) {
    error_ = error;
    return error.ok();
  }
  int refused() const {
    std::printf("%-30s refused: %s\n", "read", error_.message());
    return 3;
  }
  bool set_up() {
    device::DeviceProperties properties;
    const bool made =
        good(device::set_device(0)) && good(device::device_properties(0, &properties)) &&
        good(device::stream_create(&stream_)) && good(device::pool_create(0, &pool_)) &&
        good(device::malloc_async(kBytes, pool_, stream_, &memory_)) &&
        good(device::malloc_async(sizeof(uint32_t), pool_, stream_, &sum_)) &&
        good(device::event_create(&events_[0], true)) &&
        good(device::event_create(&events_[1], true)) &&
        good(device::memset_async(memory_, kByte, kBytes, stream_)) &&
        good(device::host_malloc(kCopyBytes, &host_));
    processors_ = properties.sm_count;
    return made;
  }
  bool read() {
    double best = 0.0;
    for (const int each : kBlocksEach) {
      for (int round = 0; round < kRounds; ++round) {
        uint32_t sum = 0;
        if (!good(device::memset_async(sum_, 0, sizeof(uint32_t), stream_))) return false;
        const auto launch = [&] {
          return launch_read_rate(memory_, kBytes, static_cast<uint32_t*>(sum_), each * processors_,
                                  stream_);
        };
        if (!fewest(launch, &best) ||
            !good(device::copy_async(&sum, sum_, sizeof sum, device::CopyKind::kDeviceToHost,
                                     stream_)) ||
            !good(device::stream_synchronize(stream_))) {
          return false;
        }
        right_ = right_ && sum == static_cast<uint32_t>(kBytes / sizeof(uint32_t)) * kWord;
      }
    }
    tell("read", kBytes, best);
    return true;
  }
  bool copy_up() {
    double best = 0.0;
    std::memset(host_, kByte, kCopyBytes);
    for (int round = 0; round < kRounds; ++round) {
      const auto copy = [&] {
        return device::copy_async(memory_, host_, kCopyBytes, device::CopyKind::kHostToDevice,
                                  stream_);
      };
      if (!fewest(copy, &best)) return false;
    }
    tell("upload", kCopyBytes, best);
    return true;
  }
  /// Lowers *best, unless it is 0, to the seconds that one more run takes.
  template <typename Run>
  bool fewest(Run run, double* best) {
    float ms = 0.0F;
    if (!good(device::event_record(events_[0], stream_)) || !good(run()) ||
        !good(device::event_record(events_[1], stream_)) ||
        !good(device::event_synchronize(events_[1])) ||
        !good(device::event_elapsed_ms(events_[0], events_[1], &ms))) {
      return false;
    }
    const double seconds = static_cast<double>(ms) * 1e-3;
    if (*best == 0.0 || seconds < *best) *best = seconds;
    return true;
  }
  void tell(const char* part, size_t bytes, double seconds) const {
    std::printf("%-30s %12.2f us %9.1f GB/s%s\n", part, seconds * 1e6,
                static_cast<double>(bytes) / seconds * 1e-9, right_ ? "" : "  WRONG");
    std::FILE* const file = std::fopen(path_, "a");
    if (file == nullptr) return;
    std::fprintf(file, "{\"part\":\"%s\",\"seconds\":%.9g,\"bytes\":%zu}\n", part, seconds, bytes);
    std::fclose(file);
  }

  const char* const path_;
  int processors_ = 0;
  bool right_ = true;
  device::Stream stream_ = nullptr;
  device::Pool pool_ = nullptr;
  device::Event events_[2] = {};
  void* memory_ = nullptr;
  void* sum_ = nullptr;
  void* host_ = nullptr;
  device::Error error_;
};

}  // namespace
}  // namespace gen::test

int main(int argc, char** argv) {
  if (argc == 2) return gen::test::Rates(argv[1]).run();
  std::fputs("usage: gpu_read RESULTS\n", stderr);
  return 2;
}
