// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of device code: a stream with a pool, and arrays of device memory that copy
// whole vectors to and from the device.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cuda/device/runtime.h"

namespace gen::test {

#define GEN_EXPECT_OK(call)                                               \
  do {                                                                    \
    const ::gen::cuda::device::Error gen_error = (call);                  \
    EXPECT_TRUE(gen_error.ok()) << gen_error.name() << " from " << #call; \
  } while (false)

class DeviceStream {
 public:
  DeviceStream() {
    GEN_EXPECT_OK(cuda::device::stream_create(&stream_));
    GEN_EXPECT_OK(cuda::device::pool_create(0, &pool_));
  }
  ~DeviceStream() {
    // After a failure of the device these calls fail, but still free the memory.
    static_cast<void>(cuda::device::stream_destroy(stream_));
    static_cast<void>(cuda::device::pool_destroy(pool_));
  }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  [[nodiscard]] cuda::device::Stream get() const { return stream_; }
  [[nodiscard]] cuda::device::Pool pool() const { return pool_; }
  cuda::device::Error synchronize() const { return cuda::device::stream_synchronize(stream_); }

 private:
  cuda::device::Stream stream_ = nullptr;
  cuda::device::Pool pool_ = nullptr;
};

template <typename T>
class DeviceArray {
 public:
  DeviceArray(const DeviceStream& stream, size_t count) : stream_(stream), count_(count) {
    void* memory = nullptr;
    GEN_EXPECT_OK(
        cuda::device::malloc_async(count * sizeof(T), stream.pool(), stream.get(), &memory));
    data_ = static_cast<T*>(memory);
  }
  DeviceArray(const DeviceStream& stream, const std::vector<T>& values)
      : DeviceArray(stream, values.size()) {
    GEN_EXPECT_OK(cuda::device::copy_async(data_, values.data(), values.size() * sizeof(T),
                                           cuda::device::CopyKind::kHostToDevice, stream.get()));
  }
  ~DeviceArray() { static_cast<void>(cuda::device::free_async(data_, stream_.get())); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] T* get() const { return data_; }
  [[nodiscard]] size_t size() const { return count_; }
  /// After all work enqueued on the stream.
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    static_cast<void>(cuda::device::copy_async(values.data(), data_, count_ * sizeof(T),
                                               cuda::device::CopyKind::kDeviceToHost,
                                               stream_.get()));
    static_cast<void>(stream_.synchronize());
    return values;
  }

 private:
  const DeviceStream& stream_;
  size_t count_;
  T* data_ = nullptr;
};

}  // namespace gen::test
