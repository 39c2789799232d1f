// SPDX-License-Identifier: Apache-2.0
// See ngram_lookup.h.
#include "generate/draft/ngram_lookup.h"

#include <algorithm>
#include <array>

#include "generate/draft/followed_text.h"

namespace gen::generate {
namespace {

struct NgramState final : DraftState {
  explicit NgramState(int32_t key) noexcept : text(key) {}
  [[nodiscard]] std::unique_ptr<DraftState> fork() const override {
    return std::make_unique<NgramState>(*this);
  }
  FollowedText text;
};

constexpr size_t kPlaces = 16;  // places that are compared for a longer match

}  // namespace

NgramLookup::NgramLookup(int32_t ngram, int32_t most) noexcept
    : ngram_(std::max(ngram, 1)), most_(std::clamp(most, 0, kMaxDraftRows - 1)) {}

std::unique_ptr<DraftState> NgramLookup::begin() { return std::make_unique<NgramState>(ngram_); }

void NgramLookup::look_up(std::span<DraftJob* const> jobs) {
  for (DraftJob* const job : jobs) {
    auto& text = static_cast<NgramState*>(job->state)->text;
    text.follow(job->tokens);
    std::array<TextIndex::Match, kPlaces> places;
    const size_t found = text.index().find(job->tokens, ngram_, places);
    if (found == 0) continue;
    const auto best =
        std::max_element(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(found),
                         [](const auto& a, const auto& b) { return a.length < b.length; });
    for (int32_t i = 0; i < std::min(job->most, most_); ++i) {
      const int32_t token = text.at(best->next + i, job->tree);
      if (token < 0) break;
      job->tree.add(token, i, FollowedText::grade(best->length, 1.0));
    }
    cut_to_rule(job);
  }
}

}  // namespace gen::generate
