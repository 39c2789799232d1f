// SPDX-License-Identifier: Apache-2.0
// The adapters of a sequence: which rows have them, and which entries they made. See sequence.h.
#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "generate/loop/generator.h"
#include "generate/loop/sequence.h"

namespace gen::generate {

int32_t Sequence::Adapted::common(const Adapted& other) const noexcept {
  if (by == other.by && first() == other.first()) return std::numeric_limits<int32_t>::max();
  return std::min(first(), other.first());
}

void Sequence::set_adapters(std::shared_ptr<const model::AdapterMix> adapters) noexcept {
  adapters_ = std::move(adapters);
  find_invocation();
}

void Sequence::find_invocation() noexcept {
  adapted_from_ = 0;
  if (adapters_ == nullptr || adapters_->invocation_tokens.empty()) return;
  const std::vector<int32_t>& invocation = adapters_->invocation_tokens;
  const auto found =
      std::find_end(tokens_.begin(), tokens_.end(), invocation.begin(), invocation.end());
  adapted_from_ = found != tokens_.end() ? static_cast<int32_t>(found - tokens_.begin())
                                         : std::numeric_limits<int32_t>::max();
}

void Sequence::settle_adapters() noexcept {
  const Adapted own = {adapters_ != nullptr ? adapters_->identity : 0, adapted_from_};
  forget(made_.common(own));
  made_ = own;
}

uint64_t Sequence::prefix_domain() const noexcept {
  const uint64_t base = generator_->prefix_domain();
  if (made_.by == 0 || made_.from > 0) return base;
  Checksum both;
  both.add_number(base);
  both.add_number(made_.by);
  return both.value();
}

}  // namespace gen::generate
