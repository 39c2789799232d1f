// SPDX-License-Identifier: Apache-2.0
// Saving, restoring and forking sequences: docs/state-format.md. See sequence.h.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cache/sequence/cache_state.h"
#include "cache/sequence/registry.h"
#include "generate/draft/head_state.h"
#include "generate/loop/generator.h"
#include "generate/loop/sequence.h"

namespace gen::generate {
namespace {

constexpr const char* kModelSection = "MODL";
constexpr const char* kTokenSection = "TOKS";
constexpr const char* kAdapterSection = "ADPT";

/// Identifies the model of a state; the name is for messages.
struct ModelMark {
  uint64_t fingerprint = 0;
  int32_t vocab_size = 0;
  int32_t num_layers = 0;
  std::array<char, model::kMaxModelName + 1> architecture{};
};
static_assert(sizeof(ModelMark) == 48);

ModelMark mark_of(const model::ModelTraits& traits) {
  ModelMark mark;
  mark.fingerprint = traits.fingerprint;
  mark.vocab_size = traits.vocab_size;
  mark.num_layers = traits.num_layers;
  const size_t length = std::min(traits.architecture.size(), mark.architecture.size());
  std::copy_n(traits.architecture.begin(), length, mark.architecture.begin());
  return mark;
}

std::string printable(std::span<const char> name) {
  std::string text;
  for (const char c : name) {
    if (c == '\0') break;
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

Status check_model(cache::StateReader& from, const model::ModelTraits& traits) {
  GEN_ASSIGN(cache::StateSection section, from.section(kModelSection));
  GEN_TRY(section.expect(sizeof(ModelMark)));
  ModelMark saved;
  GEN_ASSIGN(const auto bytes, section.bytes(sizeof(saved)));
  std::memcpy(&saved, bytes.data(), sizeof(saved));
  const ModelMark own = mark_of(traits);
  if (saved.fingerprint == own.fingerprint && saved.vocab_size == own.vocab_size &&
      saved.num_layers == own.num_layers && saved.architecture == own.architecture) {
    return {};
  }
  return error(Code::kInvalidArgument,
               "the state is another model's: %s of %d layers and %d tokens, fingerprint %016llx; "
               "this one is %s of %d layers and %d tokens, fingerprint %016llx",
               printable(saved.architecture).c_str(), saved.num_layers, saved.vocab_size,
               static_cast<unsigned long long>(saved.fingerprint),
               printable(own.architecture).c_str(), own.num_layers, own.vocab_size,
               static_cast<unsigned long long>(own.fingerprint));
}

}  // namespace

Status Sequence::check_savable() const {
  if (state_ == nullptr || state_->snapshots() != nullptr) return {};
  return {Code::kUnsupported, "the model has a state of its own that cannot be saved"};
}

Status Sequence::cannot_be_copied() {
  return {Code::kUnsupported, "the model has a state of its own that cannot be copied"};
}

Result<std::unique_ptr<cache::SequenceState>> Sequence::fork_state() const {
  cache::StateCopies* const copies = state_->copies();
  if (copies != nullptr) {
    return state_is_left() ? new_state(*generator_) : copies->fork();
  }
  return cannot_be_copied();
}

Result<Sequence> Sequence::fork() const {
  std::unique_ptr<cache::KvCache> cache;
  std::unique_ptr<cache::SequenceState> state;
  if (state_ != nullptr) {
    GEN_ASSIGN(state, stale_ ? new_state(*generator_) : fork_state());
  }
  if (stale_) {
    GEN_ASSIGN(cache, generator_->make_cache(generator_->max_seq_len()));
  } else {
    GEN_ASSIGN(cache, cache_->fork());
  }
  Sequence copy(generator_, std::move(cache), std::move(state));
  copy.tokens_ = tokens_;
  copy.adapters_ = adapters_;
  copy.adapted_from_ = adapted_from_;
  copy.made_ = made_;
  copy.remembered_ = remembered_;
  copy.genuine_ = genuine_;
  copy.more_kept_ = more_kept_;
  return copy;
}

Status Sequence::save(cache::StateWriter& to, const DraftState* drafts) const {
  GEN_TRY(check_savable());
  const ModelMark mark = mark_of(generator_->model().traits());
  const auto model = [&mark](cache::StateWriter& out) {
    return out.write(std::as_bytes(std::span(&mark, 1)));
  };
  GEN_TRY(to.section(kModelSection, sizeof(mark), model));
  const auto tokens = [this](cache::StateWriter& out) {
    GEN_TRY(out.numbers({length(), evaluated()}));
    return out.write(std::as_bytes(std::span(tokens_)));
  };
  GEN_TRY(to.section(kTokenSection, (2 + tokens_.size()) * sizeof(int32_t), tokens));
  if (evaluated() == 0) return {};
  if (made_.by != 0) {
    const auto adapters = [this](cache::StateWriter& out) {
      GEN_TRY(out.write(std::as_bytes(std::span(&made_.by, 1))));
      return out.numbers({made_.from});
    };
    GEN_TRY(to.section(kAdapterSection, sizeof(made_.by) + sizeof(made_.from), adapters));
  }
  if (drafts != nullptr) {
    const auto text = std::span(tokens_).first(static_cast<size_t>(evaluated()));
    GEN_TRY(drafts->save(text, to));
  }
  if (state_ != nullptr) GEN_TRY(state_->snapshots()->save(to));
  return cache_->save(to);
}

Result<std::vector<int32_t>> Sequence::read_tokens(cache::StateReader& from,
                                                   int32_t* evaluated) const {
  GEN_ASSIGN(cache::StateSection section, from.section(kTokenSection));
  int32_t count = 0;
  GEN_TRY(section.numbers({&count, evaluated}));
  if (count < 0 || *evaluated < 0 || *evaluated > count) {
    return error(Code::kFormat, "a state of %d tokens, %d of them evaluated", count, *evaluated);
  }
  GEN_TRY(section.expect(static_cast<size_t>(count) * sizeof(int32_t)));
  if (count > generator_->max_seq_len()) {
    return error(Code::kContextFull, "a state of %d tokens exceeds context of %d", count,
                 generator_->max_seq_len());
  }
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) {
    GEN_TRY(section.number(&token));
    if (token < 0 || token >= generator_->vocab_size()) {
      return error(Code::kFormat, "token %d outside vocabulary of %d", token,
                   generator_->vocab_size());
    }
  }
  return tokens;
}

Status Sequence::restore(cache::StateReader& from, std::unique_ptr<DraftState>* drafts) {
  GEN_TRY(check_savable());
  GEN_TRY(check_model(from, generator_->model().traits()));
  int32_t evaluated = 0;
  GEN_ASSIGN(std::vector<int32_t> tokens, read_tokens(from, &evaluated));
  Adapted made;
  std::unique_ptr<DraftState> seen;  // by the drafter
  if (evaluated > 0) {
    if (from.next_is(kAdapterSection)) {
      GEN_ASSIGN(cache::StateSection section, from.section(kAdapterSection));
      GEN_TRY(section.expect(sizeof(made.by) + sizeof(made.from)));
      GEN_ASSIGN(const auto bytes, section.bytes(sizeof(made.by)));
      std::memcpy(&made.by, bytes.data(), sizeof(made.by));
      GEN_TRY(section.number(&made.from));
      if (made.from < 0) {
        return error(Code::kFormat, "adapters from position %d on", made.from);
      }
    }
    if (from.next_is(SavedHead::kSection)) {
      GEN_ASSIGN(const SavedHead saved, SavedHead::read(from, evaluated));
      Drafter* const drafter = generator_->drafter();
      if (drafter != nullptr) {
        GEN_ASSIGN(seen, drafter->restore(tokens, saved));
      }
    }
    std::unique_ptr<cache::SequenceState> state;
    if (state_ != nullptr) {
      GEN_ASSIGN(state, new_state(*generator_));
      GEN_TRY(state->snapshots()->load(from));
      if (state->length() != evaluated) {
        return error(Code::kFormat, "a state after %d positions for %d tokens", state->length(),
                     evaluated);
      }
    }
    GEN_ASSIGN(const cache::SavedOutline outline, cache::saved_outline(from));
    if (outline.positions != evaluated) {
      return error(Code::kFormat, "a cache of %d positions for %d tokens", outline.positions,
                   evaluated);
    }
    if (stale_) GEN_TRY(rebuild());
    {
      // Two that take the blocks of a pool in turns could both lack the last ones.
      const std::lock_guard<std::mutex> alone(generator_->loads());
      std::optional<SteadyClock::time_point> until;
      for (;;) {
        cache::StateReader content = from;
        const Status status = cache_->restore(content);
        if (status.ok()) break;
        if (status.code() != Code::kPoolExhausted) return status;
        if (generator_->scheduler().free_idle()) continue;
        // An idle session may be in use for a moment, or was freed in this one.
        const SteadyClock::time_point now = SteadyClock::now();
        if (!until.has_value()) until = now + generator_->options().least_starving;
        if (now > *until) return status;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    if (state != nullptr) state_ = std::move(state);
    trace_id_ = generator_->new_trace_id();
  } else {
    GEN_TRY(from.finish());
  }
  tokens_ = std::move(tokens);
  *drafts = std::move(seen);
  made_ = made;
  set_adapters(nullptr);
  remembered_ = 0;
  genuine_ = evaluated == 0;  // a file may hold anything
  return {};
}

}  // namespace gen::generate
