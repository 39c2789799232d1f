// SPDX-License-Identifier: Apache-2.0
// Structural tags, see tags.h. Free text is a search for the triggers, expressed as a
// diagram: at the end of a trigger its tags follow, and after them free text restarts.
#include "grammar/notation/tags.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "grammar/base/word_search.h"
#include "grammar/json/json_text.h"
#include "grammar/base/text_error.h"

namespace gen::grammar {
namespace {

// Each byte of a trigger takes a node of 1 KiB during compilation, and each trigger is compared
// with all others.
constexpr size_t kMaxTriggerBytes = 16'384;
constexpr size_t kMaxTriggers = 1024;
constexpr size_t kMaxTags = 1024;

class TagWriter {
 public:
  TagWriter(std::span<const Tag> tags, const TagOptions& options, Expressions& to)
      : tags_(tags), options_(options), to_(to), triggers_(options.triggers) {}

  Result<ExprId> run() {
    GEN_TRY(check());
    std::vector<ExprId> all;
    for (const std::string& trigger : triggers_) {
      std::vector<ExprId> tags;
      for (const Tag& tag : tags_) {
        if (tag.begin.empty() || !tag.begin.starts_with(trigger)) continue;
        tags.push_back(rest_of(tag, trigger.size()));
      }
      behind_.push_back(to_.choice(tags));
      const std::array<ExprId, 2> whole = {to_.literal(trigger), behind_.back()};
      all.push_back(to_.sequence(whole));
    }
    for (const Tag& tag : tags_) {
      if (!tag.begin_token) continue;
      const std::array<ExprId, 2> whole = {to_.token(*tag.begin_token), rest_of(tag, 0)};
      by_token_.push_back(to_.sequence(whole));
    }
    if (!options_.free_text) {
      all.insert(all.end(), by_token_.begin(), by_token_.end());
      return to_.repeat(to_.choice(all), options_.at_least_one ? 1 : 0,
                        options_.stop_after_first ? 1 : kUnbounded);
    }
    return diagram();
  }

 private:
  Status check() {
    if (tags_.empty()) return error(Code::kGrammar, "no tags");
    if (tags_.size() > kMaxTags) {
      return error(Code::kGrammar, "%zu tags are above %zu", tags_.size(), kMaxTags);
    }
    if (triggers_.empty()) {
      for (const Tag& tag : tags_) {
        const bool known =
            std::find(triggers_.begin(), triggers_.end(), tag.begin) != triggers_.end();
        if (!tag.begin.empty() && !known) triggers_.push_back(tag.begin);
      }
    }
    for (size_t i = 0; i < tags_.size(); ++i) {
      const Tag& tag = tags_[i];
      if (tag.begin.empty() != tag.begin_token.has_value()) {
        return error(Code::kGrammar, "tag %zu begins with %s", i,
                     tag.begin.empty() ? "nothing" : "a text and a token");
      }
      const auto starts = [&](const std::string& trigger) {
        return tag.begin.starts_with(trigger);
      };
      if (!tag.begin.empty() && std::none_of(triggers_.begin(), triggers_.end(), starts)) {
        return error(Code::kGrammar, "no trigger begins tag %s", quoted(tag.begin).c_str());
      }
    }
    size_t bytes = 0;
    for (const std::string& trigger : triggers_) bytes += trigger.size();
    if (triggers_.size() > kMaxTriggers || bytes > kMaxTriggerBytes) {
      return error(Code::kGrammar, "%zu triggers of %zu bytes are above %zu of %zu",
                   triggers_.size(), bytes, kMaxTriggers, kMaxTriggerBytes);
    }
    for (size_t i = 0; i < triggers_.size(); ++i) {
      if (triggers_[i].empty()) return error(Code::kGrammar, "trigger %zu is empty", i);
      for (size_t k = 0; k < triggers_.size(); ++k) {
        if (i == k || triggers_[i].find(triggers_[k]) == std::string::npos) continue;
        return error(Code::kGrammar, "trigger %s holds trigger %s", quoted(triggers_[i]).c_str(),
                     quoted(triggers_[k]).c_str());
      }
      const auto starts = [&](const Tag& tag) { return tag.begin.starts_with(triggers_[i]); };
      if (std::none_of(tags_.begin(), tags_.end(), starts)) {
        return error(Code::kGrammar, "no tag begins with trigger %s", quoted(triggers_[i]).c_str());
      }
    }
    return {};
  }

  // The rest of a tag after the first `from` bytes of its begin.
  ExprId rest_of(const Tag& tag, size_t from) {
    std::vector<ExprId> parts = {to_.literal(std::string_view(tag.begin).substr(from)), tag.body,
                                 to_.literal(tag.end)};
    if (tag.end_token) parts.push_back(to_.token(*tag.end_token));
    const RuleId rule = to_.add_rule();
    to_.define(rule, to_.sequence(parts));
    return to_.rule(rule);
  }

  ExprId diagram() {
    const WordSearch free(triggers_);
    const auto count = static_cast<uint32_t>(free.nodes().size());
    Diagram diagram;
    // Free text before the first tag, and separately after it, if that differs.
    const bool again = options_.at_least_one || options_.stop_after_first;
    const uint32_t behind = again ? count : 0;
    add_free(free, 0, behind, !options_.at_least_one, &diagram);
    if (options_.stop_after_first) {
      diagram.final.push_back(true);
    } else if (again) {
      add_free(free, behind, behind, true, &diagram);
    }
    return to_.diagram(std::move(diagram));
  }

  // Adds nodes from `base` on, which is the current number of nodes; tags lead to `behind`.
  void add_free(const WordSearch& free, uint32_t base, uint32_t behind, bool final, Diagram* out) {
    for (uint32_t n = 0; n < free.nodes().size(); ++n) {
      const bool trigger = free.nodes()[n].word != WordSearch::kNone;
      out->final.push_back(final && !trigger);
      if (trigger) {
        out->transitions.push_back({base + n, behind, behind_[free.nodes()[n].word]});
        continue;
      }
      std::map<uint32_t, ByteSet> sets;
      const uint32_t n_bytes = options_.watched ? kFirstSignal : 256;
      for (uint32_t byte = 0; byte < n_bytes; ++byte) {
        sets[free.nodes()[n].to[byte]].add(static_cast<uint8_t>(byte));
      }
      for (const auto& [to, set] : sets)
        out->transitions.push_back({base + n, base + to, to_.bytes(set)});
      if (!by_token_.empty()) out->transitions.push_back({base + n, behind, to_.choice(by_token_)});
    }
  }

  std::span<const Tag> tags_;
  const TagOptions& options_;
  Expressions& to_;
  std::vector<std::string> triggers_;
  std::vector<ExprId> behind_;    // what follows each trigger
  std::vector<ExprId> by_token_;  // whole tags that begin with a token
};

}  // namespace

Result<ExprId> tags_expression(std::span<const Tag> tags, const TagOptions& options,
                               Expressions& to) {
  return TagWriter(tags, options, to).run();
}

}  // namespace gen::grammar
