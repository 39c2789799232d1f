// SPDX-License-Identifier: Apache-2.0
// The tokens that the body of a counted loop allows, by the number of completed rounds: all levels
// in one walk over the vocabulary's trie. See MaskMaker::levels().
#include <algorithm>
#include <utility>

#include "grammar/base/byte_kind.h"
#include "grammar/mask/mask_maker.h"

namespace gen::grammar {

// Kinds of bytes that are a complete body by themselves, and of which no other body consists.
uint64_t MaskMaker::whole_bodies(Id body) const {
  const SetAutomaton& sets = shared_.sets;
  uint64_t others = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    const SetAutomaton::State& to = sets.at(sets.row(body)[byte]);
    if (!to.outside || to.count > 0) others |= uint64_t{1} << kByteKinds[byte];
  }
  return ~others;
}

bool MaskMaker::levels(const StateMask& before, const WalkStart& body, std::vector<Level>* out) {
  SetAutomaton& sets = shared_.sets;
  if (!body.set.has_value() || !expand(sets, *body.set)) return false;
  const Id begin = *body.set;
  const uint64_t ends_at_once = whole_bodies(begin);
  const auto trie = vocabulary_.trie();
  if (path_.size() <= vocabulary_.longest()) path_.resize(vocabulary_.longest() + 1);
  level_path_.resize(vocabulary_.longest() + 1);
  const auto level = [&](size_t n) -> Level& {
    if (out->size() <= n) out->resize(n + 1);
    return (*out)[n];
  };
  const auto take = [&](Level& to, int32_t token) {
    for (; token >= 0; token = vocabulary_.twin(token)) to.tokens.push_back(token);
  };
  for (const uint32_t top : before.exits) {
    const uint32_t base = trie[top].depth;
    path_[0] = begin;
    level_path_[0] = 0;
    for (uint32_t i = top + 1; i < trie[top].skip;) {
      const Vocabulary::Node& node = trie[i];
      const uint32_t depth = node.depth - base;
      const uint32_t n = level_path_[depth - 1];
      const Id to = sets.row(path_[depth - 1])[node.byte];
      if (to == SetAutomaton::kNone) {
        i = node.skip;
        continue;
      }
      if (node.skip > i + 1 && !expand(sets, to)) return false;
      const SetAutomaton::State& state = sets.at(to);
      Level& here = level(n);
      const bool leaf = node.skip == i + 1;
      if (!leaf && !state.outside && (vocabulary_.kinds_below(i) & ~state.loops) == 0) {
        const auto below = vocabulary_.tokens_from(i);
        here.tokens.insert(here.tokens.end(), below.begin(), below.end());
        here.worst = std::max(here.worst, state.least);
        i = node.skip;
        continue;
      }
      take(here, node.token);
      if (node.token >= 0) here.worst = std::max(here.worst, state.least);
      if (leaf) {
        ++i;
        continue;
      }
      if (!state.outside) {
        path_[depth] = to;
        level_path_[depth] = n;
        i = (vocabulary_.kinds_next(i) & state.reads) == 0 ? node.skip : i + 1;
        continue;
      }
      if (state.count > 0) return false;  // it may end here or continue: levels overlap
      here.exits.push_back(i);
      if ((vocabulary_.kinds_below(i) & ~ends_at_once) == 0) {
        for (uint32_t k = i + 1; k < node.skip; ++k) {
          Level& below = level(n + trie[k].depth - node.depth);
          take(below, trie[k].token);
          if (trie[k].skip > k + 1) below.exits.push_back(k);
        }
        i = node.skip;
        continue;
      }
      path_[depth] = begin;
      level_path_[depth] = n + 1;
      i = (vocabulary_.kinds_next(i) & sets.at(begin).reads) == 0 ? node.skip : i + 1;
    }
  }
  if (out->empty() || !out->back().exits.empty()) out->emplace_back();
  return true;
}

}  // namespace gen::grammar
