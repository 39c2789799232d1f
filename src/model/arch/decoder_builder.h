// SPDX-License-Identifier: Apache-2.0
// Helpers for the files of this folder: the parts of a decoder. Each is one call that fetches its
// tensors by their usual names and adds the operations. Nothing here depends on an architecture.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "model/hparams.h"
#include "model/weights.h"

namespace gen::model::arch {

/// Whether a product has a bias tensor.
enum class Bias { kNone, kOptional, kRequired };

/// The kind of a family's norms: those of blocks, of heads and the last one.
struct NormStyle {
  /// Each kind has its own key for epsilon; kEither is the kind whose key the file has.
  enum class Kind : uint8_t { kRms, kLayer, kEither };
  Kind kind = Kind::kRms;
  bool weight = true;       // "<name>.weight"; false: a norm without weights
  Bias bias = Bias::kNone;  // "<name>.bias" of layer norms, except those of heads
};

/// The output of attention may be multiplied by act(gate x), as a rule sigmoid(gate x).
enum class AttentionGate : uint8_t {
  kNone,
  kOwn,       // the gate is attn_gate, with a row for each element or for each head
  kMayBeOwn,  // the same, if the file has it
  kInQ,       // attn_q has as many rows of the gate after each head's rows
};

/// Norms of q and k, with the tensors attn_q_norm and attn_k_norm, before the rotary embedding
/// unless stated otherwise.
enum class HeadNorms : uint8_t {
  kNone,
  kEachHead,   // RMS norms of each head, with a tensor of its width
  kMayBeEach,  // the same, if the file has it
  kRotated,    // the same after the rotary embedding
  kAllHeads,   // of all heads together
  kOwnOfEach,  // layer norms of each head, with a row of a matrix for each; if the file has it
};

/// The shared expert, with the tensors ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp.
enum class SharedExpert : uint8_t {
  kNone,
  kPlain,
  kGated,     // times 1 / (1 + e^-x) with x the product of ffn_gate_inp_shexp
  kAveraged,  // the sum of it and the others is halved
};

/// Errors are kept in the Weights and the GraphBuilder, which the loader checks afterwards.
class DecoderBuilder {
 public:
  DecoderBuilder(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph,
                 NormStyle norms = {})
      : h_(hparams), weights_(weights), graph_(graph), norms_(norms) {
    using Kind = NormStyle::Kind;
    if (norms.kind == Kind::kEither) norms_.kind = h_.layer_norms ? Kind::kLayer : Kind::kRms;
  }

  /// "token_embd" times the model's factor, followed by an RMS norm without weight if `normalised`;
  /// also the tap before the first layer.
  graph::ValueId embedding(bool normalised = false);
  /// Starts a layer: later tensors are those of "blk.<layer>.", with the sizes of the layer.
  void begin_layer(int32_t layer) {
    layer_ = layer;
    graph_.begin_block(layer);
  }
  /// The family's norm with the tensors of that name; eps 0 stands for the model's.
  graph::ValueId norm(graph::ValueId x, const char* name, float eps = 0.0F);
  /// x times "<name>.weight" of `rows` outputs.
  graph::ValueId linear(graph::ValueId x, const char* name, int64_t rows, graph::SiteKind kind,
                        Bias bias);
  /// The same for x with `cols` columns.
  graph::ValueId linear(graph::ValueId x, const char* name, int64_t rows, int64_t cols,
                        graph::SiteKind kind, Bias bias);
  struct Inputs {
    graph::ValueId q, k, v;
  };
  /// attn_q, attn_k and attn_v of x; files may have them as attn_qkv, one below the other, unless
  /// gates are among q's rows. Where the layer shares an earlier one's, q alone; where values may
  /// be keys and the file has no attn_v, k twice.
  Inputs inputs(graph::ValueId x, Bias bias, AttentionGate gate = AttentionGate::kNone,
                bool keys_as_values = false);
  /// The RMS norm without weight of each head of v, if there is one.
  graph::ValueId norm_values(graph::ValueId v);
  /// Normalises, rotates, stores and attends, with attn_sinks if the family has `sinks`. k and v
  /// are none where the layer shares an earlier one's.
  graph::ValueId attend(graph::ValueId q, graph::ValueId k, graph::ValueId v, HeadNorms norms,
                        bool sinks = false);
  /// act(gate x) * attended; `attended` itself without a gate.
  graph::ValueId gated_attention(graph::ValueId attended, graph::ValueId x, AttentionGate gate,
                                 engine::Act act, Bias bias);
  /// ssm_out(norm(o) * silu(attn_gate x)) with o the gated delta rule of the convolved attn_qkv x,
  /// ssm_alpha x and ssm_beta x (or both as ssm_ba, by key head), and the norm ssm_norm of each
  /// head.
  graph::ValueId delta_net(graph::ValueId x);
  /// shortconv.out_proj(c * conv(b * u)) with b, c and u the thirds of shortconv.in_proj x.
  graph::ValueId short_convolution(graph::ValueId x, Bias bias);
  /// ssm_out(y * silu(z)) with y the selective scan of u, the convolved half of ssm_in x of which z
  /// is the other, by dt, b and c, the parts of ssm_x u; dt goes through ssm_dt. Before, these
  /// parts have the `norms` ssm_dt_norm, ssm_b_norm and ssm_c_norm, or where the file says so norms
  /// without weights.
  graph::ValueId mamba(graph::ValueId x, bool norms);
  /// ssm_out(norm(y * silu(z))) with y the selective scan of u by dt, b and c, where ssm_in x is z,
  /// then u, b and c, which are convolved, then dt; and ssm_norm, if the file has it, of each
  /// group.
  graph::ValueId mamba2(graph::ValueId x);
  /// Whether the file has "<name>.weight" for the layer.
  [[nodiscard]] bool has(const char* part) const { return weights_.has(name(part, ".weight")); }
  /// ffn_down(gate(ffn_gate x) * ffn_up x)
  graph::ValueId gated_feed_forward(graph::ValueId x, engine::Act gate, Bias bias);
  /// The same with the rows of ffn_gate in the first half of ffn_up.
  graph::ValueId fused_feed_forward(graph::ValueId x, engine::Act gate, Bias bias);
  /// ffn_down(act(ffn_up x))
  graph::ValueId plain_feed_forward(graph::ValueId x, engine::Act act, Bias bias);
  /// The experts chosen by ffn_gate_inp, each ffn_down_exps(gate(ffn_gate_exps x) * ffn_up_exps x),
  /// or ffn_down_exps(gate(ffn_up_exps x)) if not gated, plus the shared expert. Files may have
  /// gate and up as ffn_gate_up_exps, a bias of the choice as exp_probs_b, biases, and scales of
  /// products as "<name>.scale", one for each expert; where experts have a width of their own, x
  /// goes through ffn_latent_down and the result through ffn_latent_up.
  graph::ValueId experts(graph::ValueId x, engine::Act gate, bool gated, SharedExpert shared);
  /// post_ffw_norm_1(dense) + post_ffw_norm_2(experts of pre_ffw_norm_2(x)). Experts are chosen by
  /// ffn_gate_inp of the RMS norm of x with the weights ffn_gate_inp.scale / sqrt(hidden).
  graph::ValueId experts_beside(graph::ValueId dense, graph::ValueId x, engine::Act gate);
  /// x plus the result of a block, times the model's factor.
  graph::ValueId add(graph::ValueId x, graph::ValueId made);
  /// The layers' own embeddings, [T, n_layers * layer_input], from the embedding x:
  /// (rows of per_layer_token_embd * sqrt(layer_input) + norms of per_layer_model_proj x /
  /// sqrt(hidden)) / sqrt(2), with the norm per_layer_proj_norm for each layer's slice.
  graph::ValueId layer_inputs(graph::ValueId x);
  /// x + post_norm(proj(act(inp_gate x) * the layer's slice of inputs))
  graph::ValueId add_layer_input(graph::ValueId x, graph::ValueId inputs, engine::Act act);
  /// x times layer_output_scale, if the file has it.
  graph::ValueId scale_layer(graph::ValueId x);
  /// Ends a layer: x is the hidden state after it.
  void end_layer(graph::ValueId x) { graph_.tap(layer_ + 1, x); }
  /// The last norm and output for the rows that want logits, then the model's factor and cap.
  /// Without output.weight the embedding is tied.
  void head(graph::ValueId x, Bias bias, const char* norm = "output_norm");

  /// For a block that drafts: nextn.eh_proj of the norms nextn.enorm of a token's embedding and
  /// nextn.hnorm of the features that the caller gives. nextn.embed_tokens, without which the
  /// embedding is the model's. Offers tap 0.
  graph::ValueId draft_input();
  /// Offers tap 1. The norm nextn.shared_head_norm, without which it is the model's, then the head
  /// nextn.shared_head_head, without which it is the model's.
  void draft_head(graph::ValueId x, Bias bias, const char* norm);

  /// The parameters of the current layer.
  [[nodiscard]] const LayerParams& layer() const { return h_.layers[static_cast<size_t>(layer_)]; }
  [[nodiscard]] int64_t q_rows() const { return int64_t{spec().n_heads} * spec().k_dim; }
  [[nodiscard]] int64_t k_rows() const { return int64_t{spec().n_kv_heads} * spec().k_dim; }
  [[nodiscard]] int64_t v_rows() const { return int64_t{spec().n_kv_heads} * spec().v_dim; }

 private:
  [[nodiscard]] const graph::AttentionSpec& spec() const { return layer().attention; }
  /// The graph's index of the layer's rotary table; layers with equal parameters share a table.
  int32_t rope_table();
  [[nodiscard]] std::string name(const char* part, const char* suffix) const;
  graph::ValueId norm_of(graph::ValueId x, const std::string& name, int64_t size, float eps = 0.0F);
  graph::ValueId scaled(graph::ValueId x, float factor);
  /// Logits of rows with the last norm: output.weight or the embedding, unless it is `own`.
  void logits(graph::ValueId x, Bias bias, const std::string& own, int32_t site);
  [[nodiscard]] std::vector<float> query_factors() const;
  /// The norm of n heads, if the file has the tensor.
  graph::ValueId norm_of_each(graph::ValueId heads, const char* part, int32_t n);
  /// The activation of the feed-forward, with the layer's parameters.
  [[nodiscard]] engine::Activation activation(engine::Act kind) const {
    engine::Activation of = layer().activation;
    of.kind = kind;
    return of;
  }
  /// The same of a gate; above a limit of 0 of a swiglu that is cut.
  [[nodiscard]] engine::Activation gate_activation(engine::Act kind, float limit) const {
    engine::Activation of = activation(kind);
    if (limit > 0.0F) of = {.kind = engine::Act::kCutSwiglu, .limit = limit};
    return of;
  }
  /// Rows [first, first + rows) of "<part>.weight", which has `total` rows.
  graph::ValueId piece(graph::ValueId x, const char* part, int64_t total, int64_t first,
                       int64_t rows, graph::SiteKind kind, Bias bias);
  /// `choosing` is what ffn_gate_inp reads.
  graph::ValueId routed_experts(graph::ValueId x, graph::ValueId choosing, engine::Act gate,
                                bool gated);
  graph::ValueId shared_expert(graph::ValueId x, engine::Act gate, bool gated, bool weighted);
  /// The same as linear() for a product whose "<part>.bias" is no bias.
  graph::ValueId bare(graph::ValueId x, const char* part, int64_t rows, int64_t cols,
                      graph::SiteKind kind);
  /// Rows [first, first + k_dim) of each head's 2 k_dim of attn_q.
  graph::ValueId half_of_q(graph::ValueId x, int64_t first, graph::SiteKind kind, Bias bias);
  /// The convolution ssm_conv1d of x with `channels`, and silu.
  graph::ValueId convolved(graph::ValueId x, int64_t channels);
  std::vector<float> bias_values(const std::string& name, int64_t size, Bias bias);
  graph::ValueId product(graph::ValueId x, const std::string& weight, int64_t rows, int64_t cols,
                         const std::string& bias_name, Bias bias, int32_t site);

  const HParams& h_;
  Weights& weights_;
  graph::GraphBuilder& graph_;
  NormStyle norms_;
  int32_t layer_ = 0;
  std::vector<std::pair<RopeParams, int32_t>> tables_;
};

}  // namespace gen::model::arch
