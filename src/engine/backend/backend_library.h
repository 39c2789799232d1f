// SPDX-License-Identifier: Apache-2.0
// An engine in a shared library of its own, libgenerate-<name>.so. It is loaded on first use from
// the folder of this library, or from the folder in the environment variable GEN_BACKEND_PATH.
#pragma once

#include "base/status.h"
#include "engine/backend/backend.h"

namespace gen::engine {

/// A loaded library stays loaded. `reason` is NUL-terminated, and empty if there is a table.
struct BackendLibrary {
  const gen_backend_v1* table = nullptr;
  char reason[640] = {};
};

/// Loads a backend library. Reasons for a failure: no such library (with the folder that was
/// searched), an error of the loader, or a library of another build.
BackendLibrary load_backend_library(const char* name) noexcept;

/// The result of load_backend_library("cuda"), called once. May be called from any thread.
const BackendLibrary& cuda_library() noexcept;

}  // namespace gen::engine
