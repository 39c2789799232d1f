// SPDX-License-Identifier: Apache-2.0
// The body of a gen_ssm_state handle: numbers of the host (ssm_state_host.cpp), or a view of what a
// session's model keeps (api/generate/ssm_state_session.cpp).
#pragma once

#include <generate/ssm_state.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/entry.h"
#include "base/callbacks.h"
#include "base/home_process.h"
#include "base/status.h"

namespace gen::api {

/// Threads: the getters at any time, the calls one at a time; a second one gets kBusy.
class SsmStateBody {
 public:
  virtual ~SsmStateBody() = default;
  [[nodiscard]] virtual int32_t num_layers() const noexcept = 0;
  [[nodiscard]] virtual int32_t position() const noexcept = 0;
  /// Of a layer in [0, num_layers()).
  [[nodiscard]] virtual const char* kind(int32_t layer) const noexcept = 0;
  [[nodiscard]] virtual int32_t model_layer(int32_t layer) const noexcept = 0;
  [[nodiscard]] virtual int64_t bytes() const noexcept = 0;

  /// `h` may be null; `shape` has been set to zeros.
  virtual Status get_layer(int32_t layer, float* h, size_t capacity, int32_t shape[3]) = 0;
  virtual Status set_layer(int32_t layer, const float* h, const int32_t shape[3]) = 0;
  virtual Result<int64_t> snapshot() = 0;
  virtual Status restore(int64_t snapshot) = 0;
  virtual Status reset() = 0;
};

}  // namespace gen::api

struct gen_ssm_state {
  std::shared_ptr<gen::api::SsmStateBody> body;
  gen::SharedCallbacks callbacks;        // of a session
  std::optional<gen::HomeProcess> home;  // of a session's
  bool lent = false;                     // part of another handle
};
