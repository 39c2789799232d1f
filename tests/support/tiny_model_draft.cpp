// SPDX-License-Identifier: Apache-2.0
// The blocks of tiny models that draft: their tensors, and what they compute, in double precision
// and by their definition alone (DeepSeek-V3, arXiv 2412.19437, section 2.2).
#include <string>

#include "support/tiny_model.h"
#include "support/tiny_model_parts.h"

namespace gen::test {

void TinyModel::draft_tensors(int32_t i) {
  const TinyModelSpec& spec = spec_;
  norm_tensors(in_layer(i, "nextn.enorm"));
  norm_tensors(in_layer(i, "nextn.hnorm"));
  matrix(in_layer(i, "nextn.eh_proj.weight"), spec.hidden, 2 * spec.hidden, spec.type);
  if (spec.draft_tables) {
    matrix(in_layer(i, "nextn.embed_tokens.weight"), spec.vocab, spec.hidden, spec.type);
  }
  if (spec.draft_norms) norm_tensors(in_layer(i, "nextn.shared_head_norm"));
  if (spec.draft_heads) {
    matrix(in_layer(i, "nextn.shared_head_head.weight"), spec.vocab, spec.hidden, spec.type);
  }
}

TinyModel::Drafted TinyModel::drafted(const std::vector<int32_t>& tokens,
                                      const std::vector<float>& features, int32_t block) const {
  const int32_t index = spec_.layers + block;
  const auto d = static_cast<size_t>(spec_.hidden);
  std::vector<Row> hidden;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const std::string table =
        spec_.draft_tables ? in_layer(index, "nextn.embed_tokens") : "token_embd";
    Row both = norm(in_layer(index, "nextn.enorm"), embedded(table, tokens[t]));
    const auto first = features.begin() + static_cast<std::ptrdiff_t>(t * d);
    const Row before =
        norm(in_layer(index, "nextn.hnorm"), Row(first, first + static_cast<std::ptrdiff_t>(d)));
    both.insert(both.end(), before.begin(), before.end());
    hidden.push_back(product(in_layer(index, "nextn.eh_proj"), both));
  }
  std::vector<Kept> kept(static_cast<size_t>(index) + 1);
  const std::vector<Row> in = hidden;
  attend(index, &kept, &hidden);
  mix(index, in, &hidden);
  Drafted all;
  for (const Row& x : hidden) {
    const std::string own = in_layer(index, "nextn.shared_head_norm");
    const Row y = norm(spec_.draft_norms ? own : style_.last_norm, x);
    const std::string head = spec_.draft_heads ? in_layer(index, "nextn.shared_head_head")
                             : spec_.tied      ? "token_embd"
                                               : "output";
    const Row row = scores(head, y);
    all.hidden.insert(all.hidden.end(), x.begin(), x.end());
    all.normed.insert(all.normed.end(), y.begin(), y.end());
    all.logits.insert(all.logits.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace gen::test
