// SPDX-License-Identifier: Apache-2.0
// An engine in a library of its own, libgenerate-<name>.so, loaded when it is first asked for from
// the folder of this library, or from the one that the environment variable GEN_BACKEND_PATH names.
#pragma once

#include "base/status.h"
#include "engine/backend/backend.h"

namespace gen::engine {

/// A loaded library stays loaded. `reason` ends with 0 and is empty where there is a table.
struct BackendLibrary {
  const gen_backend_v1* table = nullptr;
  char reason[640] = {};
};

/// Loads it: the reason is that there is no such library, which says where it was looked for, that
/// it does not load, or that it is of another build.
BackendLibrary load_backend_library(const char* name) noexcept;

/// What load_backend_library("cuda") gave when this was first called. Any thread.
const BackendLibrary& cuda_library() noexcept;

}  // namespace gen::engine
