// SPDX-License-Identifier: Apache-2.0
// The CPU engine for tests.
#pragma once

#include <cstdint>
#include <memory>

#include "base/allocator.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "engine/backend/registry.h"

namespace gen::test {

struct CpuEngineOptions {
  int32_t threads = 1;
  CpuLevel level = detect_cpu_level();
  Allocator* allocator = &system_allocator();
  bool repack = true;
};

inline std::shared_ptr<engine::Engine> cpu_engine(const CpuEngineOptions& options = {}) {
  engine::EngineOptions engine_options;
  engine_options.pool = ThreadPool::create(options.threads).value();
  engine_options.cpu_level = options.level;
  engine_options.allocator = options.allocator;
  engine_options.repack = options.repack;
  return engine::create_engine("cpu", engine_options).value();
}

}  // namespace gen::test
