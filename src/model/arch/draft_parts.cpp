// SPDX-License-Identifier: Apache-2.0
// The parts of a block that drafts. See decoder_builder.h.
#include "graph/batch.h"
#include "model/arch/decoder_builder.h"

namespace gen::model::arch {

using graph::ValueId;

ValueId DecoderBuilder::draft_input() {
  const std::string own = name("nextn.embed_tokens", ".weight");
  const ValueId token = graph_.embed(
      weights_.matrix(weights_.has(own) ? own : "token_embd.weight", h_.vocab_size, h_.hidden),
      h_.embedding_factor);
  const ValueId before = graph_.features(h_.hidden);
  const ValueId both = graph_.join(norm(token, "nextn.enorm"), norm(before, "nextn.hnorm"));
  const ValueId x = product(both, name("nextn.eh_proj", ".weight"), h_.hidden,
                            2 * int64_t{h_.hidden}, "", Bias::kNone, -1);
  graph_.tap(0, x);
  return x;
}

void DecoderBuilder::draft_head(ValueId x, Bias bias, const char* last_norm) {
  graph_.tap(1, x);
  const std::string own = name("nextn.shared_head_norm", "");
  x = norm_of(x, weights_.has(own + ".weight") ? own : last_norm, h_.hidden);
  graph_.last_hidden(x);
  logits(x, bias, name("nextn.shared_head_head", ".weight"), -1);
}

}  // namespace gen::model::arch
