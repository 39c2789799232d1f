// SPDX-License-Identifier: Apache-2.0
// How a sequence continues when its context is full: the oldest tokens after the kept ones are
// dropped. See sequence.h.
#include <algorithm>

#include "cache/sequence/window_cache.h"
#include "cache/window_start.h"
#include "generate/loop/generator.h"
#include "generate/loop/sequence.h"

namespace gen::generate {

bool Sequence::shifts() const noexcept {
  return generator_->options().shift_context && generator_->model().traits().can_shift &&
         state_ == nullptr && cache_->shifting() != nullptr;
}

int32_t Sequence::first_kept() const noexcept {
  return std::max(generator_->options().context_keep, more_kept_);
}

Status Sequence::make_room(size_t n) {
  const int32_t context = generator_->max_seq_len();
  if (n <= static_cast<size_t>(context - length())) return {};
  const int32_t keep = std::min(first_kept(), length());
  if (n > static_cast<size_t>(context - keep)) {
    return error(Code::kContextFull, "the prompt has %zu tokens, %d are kept, the context only %d",
                 n, keep, context);
  }
  const int32_t needed = length() - (context - static_cast<int32_t>(n));
  return drop(keep, std::max(needed, (length() - keep) / 2));
}

// Short windows do not hold the first tokens. Where one would see some of them again, all caches
// evaluate the tokens behind them, so that results do not depend on what a cache keeps.
bool Sequence::windows_reach(int32_t first, int32_t left) const noexcept {
  const auto layers = generator_->model().layer_shapes();
  return std::any_of(layers.begin(), layers.end(), [&](const cache::LayerShape& layer) {
    return cache::window_slides(layer, generator_->max_seq_len(),
                                generator_->options().context_keep) &&
           cache::window_start(left, cache::window_reach(layer)) < first;
  });
}

Status Sequence::drop(int32_t first, int32_t n) {
  if (evaluated() > first + n && !stale_ && shifts() && !windows_reach(first, evaluated() - n)) {
    // An allocation failure is returned as well: evaluating the tokens again would give different
    // entries. A state that was saved where contexts do not shift may lack some of a window.
    const Status shifted = cache_->shifting()->shift(first, n);
    if (!shifted.ok() && shifted.code() != Code::kUnsupported) return shifted;
    genuine_ = genuine_ && !shifted.ok();
    if (!shifted.ok()) forget(first);
  } else {
    forget(first);
  }
  for (int32_t* const from : {&adapted_from_, &made_.from}) {
    if (*from > first) *from = std::max(*from - n, first);
  }
  const auto at = tokens_.begin() + first;
  tokens_.erase(at, at + n);
  dropped_ += n;
  trace_id_ = generator_->new_trace_id();  // positions belong to other tokens now
  return {};
}

// Each shift dropped tokens right after the kept ones.
Sequence::Mark Sequence::moved(const Mark& mark) const noexcept {
  const int64_t n = dropped_ - mark.dropped;
  const int32_t keep = first_kept();
  const auto where = [&](int32_t at) {
    return static_cast<int32_t>(std::max<int64_t>(std::min(at, keep), at - n));
  };
  return {where(mark.length), where(mark.evaluated), dropped_};
}

}  // namespace gen::generate
