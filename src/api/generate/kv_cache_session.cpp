// SPDX-License-Identifier: Apache-2.0
// gen_session_cache: the cache of a session, lent for reading.
#include <memory>
#include <utility>

#include "api/generate/handles.h"
#include "api/cache/kv_cache_handle.h"
#include "generate/loop/session.h"

namespace gen::api {
namespace {

class SessionForm final : public ModelForm {
 public:
  explicit SessionForm(const generate::Session& session) noexcept : session_(session) {}
  [[nodiscard]] CacheName name(const CacheLabel& label) const noexcept override {
    return {"session's ", label.traits.kind};
  }
  /// A session may replace its cache, so it is looked up on every call. Calls that write check
  /// read_only() first.
  [[nodiscard]] cache::KvCache* model_cache() const noexcept override {
    return const_cast<cache::KvCache*>(&session_.cache());
  }
  [[nodiscard]] Result<SavedForm> saved() const override {
    if (session_.has_state()) {
      return Status(Code::kUnsupported,
                    "the model keeps a state beside the cache, which gen_session_save saves too");
    }
    return ModelForm::saved();
  }

 private:
  const generate::Session& session_;
};

class SessionCache final : public OneSequence {
 public:
  explicit SessionCache(const generate::Session& session)
      : OneSequence(label_of(session.cache())), form_(session) {
    keep(session.generator().shared_from_this());
    lend(&form_);
  }
  [[nodiscard]] const char* read_only() const noexcept override {
    return "a session's cache is read-only";
  }
  [[nodiscard]] bool has_means() const noexcept override {
    return form_.model_cache()->traits().has_means;
  }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override {
    return ModelCacheBody::copy_of(*this);
  }

 private:
  SessionForm form_;
};

}  // namespace

void lend_cache(generate::Session& session, kv_cache* handle) {
  handle->body = std::make_shared<SessionCache>(session);
  handle->in_use = &session.in_use();
  handle->borrowed = true;
}

}  // namespace gen::api
