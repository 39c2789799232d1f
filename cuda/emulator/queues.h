// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs of the emulator. Nothing runs when it is asked for: work waits in its
// stream until somebody waits for it; then all that it depends on runs, and of other streams as
// much as the seed says. The default streams of CUDA are there under their handles: one of each
// device, the legacy one, and one of each thread and device, made by the first call that names it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cuda/device/runtime.h"
#include "cuda/emulator/machine.h"

namespace gen::cuda::emulator {

struct Capture;

struct EventState {
  uint64_t recorded = 0;
  uint64_t done = 0;
  device::Stream stream = nullptr;  // of the last record
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;  // of the capture, after which it happens
  std::chrono::steady_clock::time_point time;
};

struct Work {
  enum class Kind { kCall, kKernel, kRecord, kWait };
  Kind kind = Kind::kCall;
  std::function<void()> call;
  std::shared_ptr<const Launch> launch;
  std::shared_ptr<EventState> event;
  uint64_t ticket = 0;              // the record meant
  device::Stream source = nullptr;  // where it was recorded
};

/// Work and the nodes it comes after.
struct Node {
  Work work;
  std::vector<size_t> after;
};
struct Capture {
  device::Stream origin = nullptr;
  std::vector<Node> nodes;
};

}  // namespace gen::cuda::emulator

namespace gen::cuda::device {

struct StreamHandle {
  int device = 0;
  std::deque<emulator::Work> queue;
  std::unique_ptr<emulator::Grid> ahead;  // the next kernel, which has begun
  std::shared_ptr<emulator::Capture> capture;
  std::vector<size_t> tails;  // nodes that what is captured next comes after
  bool blocking = false;      // it and the legacy stream of its device wait for one another
};
struct EventHandle {
  std::shared_ptr<emulator::EventState> state;
  bool timed = false;
};
struct GraphHandle {
  std::vector<emulator::Node> nodes;
};
struct GraphExecHandle {
  std::vector<emulator::Node> nodes;
};
struct PoolHandle {
  int device = 0;
};

}  // namespace gen::cuda::device
