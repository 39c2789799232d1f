// SPDX-License-Identifier: Apache-2.0
// GLM-4, dense (general.architecture "glm4"): norms before and after attention and feed-forward,
// gate and up in one tensor, partial rotary embedding. Vision models rotate by several positions,
// which are equal in text; the pairs of their files are half of the rotated part apart.
#include <algorithm>

#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

Status read_glm4(const DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(read_dense_decoder(style, keys, h));
  // Pairs of time, height, width and a fourth position that text does not have.
  std::vector<uint32_t> sections;
  GEN_TRY(keys.list("rope.dimension_sections", &sections));
  if (std::all_of(sections.begin(), sections.end(), [](uint32_t n) { return n == 0; })) return {};
  if (sections.size() < 2 || sections[0] == 0 || sections[1] == 0 ||
      (sections.size() > 3 && sections[3] != 0)) {
    return error(Code::kUnsupported, "%s is not of two or three positions",
                 keys.key("rope.dimension_sections").c_str());
  }
  for (LayerParams& layer : h->layers) layer.rope.kind = engine::RopeKind::kHalves;
  return {};
}

}  // namespace

constinit const Architecture kGlm4 = {
    "glm4",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .norm_after = true,
     .input_bias = Bias::kOptional,
     .feed_forward = FeedForward::kFused},
    read_glm4,
};

}  // namespace gen::model::arch
