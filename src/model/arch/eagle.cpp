// SPDX-License-Identifier: Apache-2.0
// See eagle.h.
#include "model/arch/eagle.h"

#include <algorithm>
#include <limits>
#include <string>

#include "model/arch/decoder_builder.h"
#include "model/arch/decoder_keys.h"

namespace gen::model::arch {
namespace {

using graph::SiteKind;
using graph::ValueId;

constexpr float kMlpEps = 1e-5F;

Status read_layer(KeyReader& keys, HParams* h) {
  GEN_TRY(read_model(keys, h));
  if (h->n_layers != 1) {
    return error(Code::kUnsupported, "%s is %d: heads have one layer",
                 keys.key("block_count").c_str(), h->n_layers);
  }
  GEN_TRY(read_feed_forward(keys, h));
  GEN_TRY(read_heads(keys, false, h));
  return read_rope(keys, {.kind = engine::RopeKind::kHalves, .freq_factors = true}, h);
}

/// What a head lacks is the model's.
engine::WeightSource embedding_of(const EagleTarget& target, int32_t hidden, Weights& weights) {
  constexpr const char* kOwn = "token_embd.weight";
  const bool fits = target.embedding != nullptr && target.embedding->cols == hidden;
  if (!weights.has(kOwn) && fits) return *target.embedding;
  return weights.matrix(kOwn, target.vocab_size, hidden);
}
engine::WeightSource head_of(const EagleTarget& target, int32_t hidden, int64_t outputs,
                             Weights& weights) {
  constexpr const char* kOwn = "output.weight";
  const bool fits =
      target.head != nullptr && target.head->cols == hidden && target.head->rows == outputs;
  if (!weights.has(kOwn) && fits) return *target.head;
  return weights.matrix(kOwn, outputs, hidden);
}

/// The rest of a layer whose attention reads `a` and whose result is added to x.
ValueId layer_of(const HParams& h, DecoderBuilder& d, graph::GraphBuilder& graph, ValueId a,
                 ValueId x, int64_t inputs) {
  const ValueId q = d.linear(a, "attn_q", d.q_rows(), inputs, SiteKind::kQ, Bias::kOptional);
  const ValueId k = d.linear(a, "attn_k", d.k_rows(), inputs, SiteKind::kK, Bias::kOptional);
  const ValueId v = d.linear(a, "attn_v", d.v_rows(), inputs, SiteKind::kV, Bias::kOptional);
  const ValueId attended = d.attend(q, k, v, HeadNorms::kNone);
  x = graph.add(x, d.linear(attended, "attn_output", h.hidden, d.q_rows(), SiteKind::kAttnOut,
                            Bias::kOptional));
  return graph.add(
      x, d.gated_feed_forward(d.norm(x, "ffn_norm"), engine::Act::kSilu, Bias::kOptional));
}

}  // namespace

Status read_eagle3(KeyReader& keys, Eagle3Params* out) {
  GEN_TRY(read_layer(keys, &out->layer));
  const char* name = "target_layers";
  if (!keys.has(name) && keys.has("extract_layers")) name = "extract_layers";
  std::vector<uint32_t> layers;
  GEN_TRY(keys.list(name, &layers));
  if (layers.size() != 3) {
    return error(Code::kFormat, "%s names %zu layers, and must name 3", keys.key(name).c_str(),
                 layers.size());
  }
  for (const uint32_t layer : layers) {
    out->target_layers.push_back(
        static_cast<int32_t>(std::min<uint32_t>(layer, std::numeric_limits<int32_t>::max())));
  }
  GEN_TRY(
      keys.integer_or("target_hidden_size", out->layer.hidden, 1, 1 << 20, &out->target_hidden));
  GEN_TRY(keys.flag_or("norm_before_residual", false, &out->norm_before_residual));
  return keys.flag_or("norm_before_fc", false, &out->norm_before_fc);
}

void build_eagle3(const Eagle3Params& params, const EagleTarget& target, bool mixes,
                  int64_t outputs, Weights& weights, graph::GraphBuilder& graph) {
  const HParams& h = params.layer;
  DecoderBuilder d(h, weights, graph);
  d.begin_layer(0);
  const ValueId token = graph.embed(embedding_of(target, h.hidden, weights));
  const int64_t all = 3 * int64_t{params.target_hidden};
  ValueId g = graph.features(mixes ? all : h.hidden);
  if (mixes && params.norm_before_fc) {
    g = graph.rms_norm(g, weights.vector("enc.output_norm.weight", all), h.norm_eps);
  }
  if (mixes) g = graph.linear(g, weights.matrix("fc.weight", h.hidden, all), {}, -1);
  const ValueId both = graph.join(d.norm(token, "attn_norm"), d.norm(g, "attn_norm_2"));
  const ValueId x = params.norm_before_residual ? d.norm(g, "attn_norm_2") : g;
  const ValueId y = layer_of(h, d, graph, both, x, 2 * int64_t{h.hidden});
  graph.tap(0, y);
  const ValueId last =
      graph.rms_norm(y, weights.vector("output_norm.weight", h.hidden), h.norm_eps);
  graph.logits(
      graph.linear(graph.select_rows(last), head_of(target, h.hidden, outputs, weights), {}, -1));
  for (const char* name : {"d2t", "t2d", "fc.weight", "enc.output_norm.weight"}) {
    weights.ignore(name);
  }
}

Status read_eagle(KeyReader& keys, HParams* out) { return read_layer(keys, out); }

void build_eagle(const HParams& h, const EagleTarget& target, Weights& weights,
                 graph::GraphBuilder& graph) {
  DecoderBuilder d(h, weights, graph);
  d.begin_layer(0);
  const ValueId token = graph.embed(embedding_of(target, h.hidden, weights));
  const ValueId both = graph.join(token, graph.features(h.hidden));
  const ValueId x = graph.linear(both, weights.matrix("fc.weight", h.hidden, 2 * h.hidden),
                                 weights.optional_vector("fc.bias", h.hidden), -1);
  const ValueId y = layer_of(h, d, graph, x, x, h.hidden);
  graph.tap(0, y);
  graph.logits(graph.linear(graph.select_rows(y),
                            head_of(target, h.hidden, target.vocab_size, weights), {}, -1));
}

EagleMlp read_eagle_mlp(const EagleTarget& target, const std::string& prefix, Weights& weights) {
  const int32_t n = target.hidden;
  EagleMlp head;
  head.norm = weights.vector(prefix + "norm.weight", n);
  head.bias = weights.vector(prefix + "norm.bias", n);
  head.fc1 = weights.transposed(prefix + "fc1.weight", n);
  head.fc2 = weights.transposed(prefix + "fc2.weight", n);
  // With a prefix, the file may be another model's, which has an output layer, too.
  const bool shares = !prefix.empty() && target.head != nullptr;
  head.output = shares ? *target.head : head_of(target, n, target.vocab_size, weights);
  return head;
}

void build_eagle_mlp(const EagleMlp& head, graph::GraphBuilder& graph) {
  const ValueId features = graph.only_features(head.fc1.cols, head.output.rows);
  const ValueId x = graph.layer_norm(features, head.norm, head.bias, kMlpEps);
  const ValueId inner = graph.apply(engine::Op::kActivate, {graph.linear(x, head.fc1, {}, -1)},
                                    {.kind = engine::Act::kSilu});
  const ValueId y = graph.linear(inner, head.fc2, {}, -1);
  graph.tap(0, y);
  graph.logits(graph.linear(graph.select_rows(y), head.output, {}, -1));
}

}  // namespace gen::model::arch
