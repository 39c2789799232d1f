// SPDX-License-Identifier: Apache-2.0
// The handles passed to calls besides the object they run.
#pragma once

#include <memory>

#include "base/cancel.h"
#include "base/home_process.h"
#include "base/thread_pool.h"
#include "engine/trace/trace_log.h"
#include <generate/base.h>

struct gen_thread_pool {
  std::shared_ptr<gen::ThreadPool> pool;
  gen::HomeProcess home;
};

struct gen_cancel {
  std::shared_ptr<gen::CancelFlag> flag;
};

struct gen_tracer {
  std::shared_ptr<gen::engine::TraceLog> log;
  gen::HomeProcess home;
};
