// SPDX-License-Identifier: Apache-2.0
// gen_session_ssm_state: what a session's model keeps beside keys and values, lent for reading and
// for going back to earlier states.
#include <generate/session.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/cache/ssm_state_body.h"
#include "api/generate/handles.h"
#include "base/in_use.h"
#include "cache/state/ssm_state.h"
#include "generate/loop/session.h"

namespace gen::api {
namespace {

class SessionState final : public SsmStateBody {
 public:
  explicit SessionState(std::shared_ptr<generate::Session> session)
      : session_(std::move(session)), facts_(session_->state_facts()) {}

  [[nodiscard]] int32_t num_layers() const noexcept override {
    return static_cast<int32_t>(facts_.size());
  }
  [[nodiscard]] int32_t position() const noexcept override { return session_->evaluated(); }
  [[nodiscard]] const char* kind(int32_t layer) const noexcept override {
    return facts_[static_cast<size_t>(layer)].kind;
  }
  [[nodiscard]] int32_t model_layer(int32_t layer) const noexcept override {
    return facts_[static_cast<size_t>(layer)].block;
  }
  [[nodiscard]] int64_t bytes() const noexcept override {
    int64_t numbers = 0;
    for (const cache::StateFacts& facts : facts_) numbers += cache::state_numbers(facts.dims);
    return numbers * static_cast<int64_t>(sizeof(float));
  }

  Status get_layer(int32_t layer, float* h, size_t capacity, int32_t shape[3]) override {
    std::array<int32_t, 3> dims = {};
    const Status status = session_->read_state(layer, &dims, h, capacity);
    std::copy(dims.begin(), dims.end(), shape);
    return status;
  }
  Status set_layer(int32_t /*layer*/, const float* /*h*/, const int32_t* /*shape*/) override {
    return belongs_to_text("it cannot be set, only restored from a snapshot");
  }
  Status reset() override { return belongs_to_text("use gen_session_reset"); }

  Result<int64_t> snapshot() override {
    const InUseGuard use(&in_use_);
    GEN_TRY(use.entered("the state"));
    GEN_ASSIGN(points_[Numbers::place(newest_ + 1)], session_->point());
    return ++newest_;
  }

  Status restore(int64_t snapshot) override {
    const InUseGuard use(&in_use_);
    GEN_TRY(use.entered("the state"));
    GEN_TRY(Numbers::check_snapshot(snapshot, newest_));
    return session_->go_back(points_[Numbers::place(snapshot)]);
  }

 private:
  using Numbers = cache::SsmState;  // snapshots of both kinds of state are numbered alike

  [[nodiscard]] Status belongs_to_text(const char* instead) const {
    const InUseGuard use(&session_->in_use());
    GEN_TRY(use.entered("session"));
    return {Code::kUnsupported, std::string("a session's state is that of its text: ") + instead};
  }

  std::shared_ptr<generate::Session> session_;
  const std::vector<cache::StateFacts> facts_;
  InUseFlag in_use_;  // guards what follows
  int64_t newest_ = 0;
  std::array<generate::Session::Point, static_cast<size_t>(Numbers::kSnapshots)> points_;
};

}  // namespace

void lend_state(const std::shared_ptr<generate::Session>& session, const SharedCallbacks& callbacks,
                gen_ssm_state* handle) {
  handle->lent = true;
  if (!session->has_state()) return;
  handle->body = std::make_shared<SessionState>(session);
  handle->callbacks = callbacks;
  handle->home.emplace();
}

}  // namespace gen::api

gen_ssm_state* gen_session_ssm_state(gen_session* session) {
  return session != nullptr && session->state.body != nullptr ? &session->state : nullptr;
}
