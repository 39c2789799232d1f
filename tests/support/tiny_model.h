// SPDX-License-Identifier: Apache-2.0
// TinyModel: a GGUF file of random weights for each architecture, and an independent forward pass
// over the same weights in double precision: no cache, no batches, no fusion, every position
// computed afresh. What a family has, its DenseStyle says; what that means is written here anew.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/arch/dense_decoder.h"
#include "support/gguf_writer.h"
#include "tensor/dtype.h"

namespace gen::test {

struct TinyModelSpec {
  std::string architecture = "llama";
  std::optional<model::arch::DenseStyle> style;  // of one that is not in the library's table
  DType type = DType::kF32;                      // of the matrices
  DType v_type = DType::kF32;                    // of attn_v and ffn_down; kF32 means as `type`
  int32_t layers = 2;
  int32_t hidden = 64;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 16;
  int32_t feed_forward = 96;
  int32_t vocab = 50;
  int32_t context = 128;
  bool biases = false;  // where the family may have them; some have them in any case
  bool tied = false;
  bool rms_norms = false;  // of families whose norms may be of either kind
  // attn_gate, of families that have such: with a row for each head, or none where it may be so.
  bool gate_by_head = false;
  bool no_gate = false;
  int32_t even = 0;                 // of the last tokens output is zeros, so their logits are equal
  std::vector<float> freq_factors;  // [head_dim / 2] or empty
  float rope_base = 10000.0F;
  float linear_factor = 1.0F;
  int32_t window = 0;
  int32_t chunk = 0;
  std::vector<uint32_t> local;  // layers that these are for, [layers], or empty: as the family says
  // Where layers differ, [layers], or empty: they do not.
  std::vector<uint32_t> layer_kv_heads;  // 0: the layer does not attend
  std::vector<uint32_t> layer_feed_forward;
  std::vector<uint32_t> shares;     // 1 + the layer whose keys and values it looks at; 0: its own
  std::vector<uint32_t> recurrent;  // 1: a layer that does not attend has a recurrence, see recur()
  float local_rope_base = 0.0F;     // of the layers that windows and chunks are for; 0: as all
  // Of families that have such factors and caps; 0: the file does not say.
  float embedding_factor = 1.7F;
  float residual_factor = 0.6F;
  float logit_scale = 2.5F;  // a divisor or a factor
  float score_cap = 1.5F;
  float logit_cap = 3.0F;
  float attention_scale = 0.0F;
  bool sequential = false;           // of families whose files may say that blocks are not parallel
  bool unrotated = false;            // of families whose files may say so
  bool fused_qkv = false;            // attn_qkv in place of three tensors
  std::vector<float> long_factors;   // [head_dim / 2] or empty, of families that have such
  std::vector<float> short_factors;  // used as long as original_context is not below context
  int32_t original_context = 0;      // 0: the file does not say
  // Of families that have such.
  int32_t layer_input = 24;        // 0: layers have no embeddings of their own
  int32_t shared_layers = 0;       // the last ones, which look at an earlier one's keys and values
  int32_t local_head_dim = 0;      // of layers with a window; 0: as all
  bool keys_as_values = false;     // layers without a window have no attn_v
  float query_temperature = 0.7F;  // by original_context
  int32_t experts = -1;            // below 0: 6 where the family must have some, else none
  int32_t experts_used = 2;
  int32_t expert_width = 64;
  int32_t shared_width = 96;        // of families that have a shared expert
  int32_t latent = 48;              // of families whose experts may have a width of their own
  int32_t dense_layers = 0;         // the first ones, which have no experts
  int32_t expert_step = 1;          // of the others the last of each so many has
  int32_t expert_groups = 0;        // 0: the file does not say; half of them are used
  DType router_type = DType::kF32;  // of what routers and the shared expert's gate are made of
  int32_t gating = 0;               // expert_gating_func; 0: the file does not say
  float expert_scale = 0.0F;        // 0: the file does not say
  bool choice_bias = false;         // exp_probs_b
  bool expert_biases = false;       // of the router and of all experts
  bool expert_scales = false;       // of the products of all experts
  // Limits of swiglus by layer, of families that have such, or empty.
  std::vector<float> expert_limits;
  std::vector<float> swiglu_limits;
  bool fused_experts = false;  // ffn_gate_up_exps in place of two
  // Of families with a recurrence.
  int32_t taps = 3;
  int32_t state_size = 16;
  int32_t inner = 64;
  int32_t state_heads = 4;
  int32_t state_groups = 2;
  bool fused_gates = false;     // ssm_ba in place of two, and heads of values grouped by keys
  int32_t attention_every = 2;  // where the family's blocks are told apart by their numbers
  bool part_norms = false;      // of what a Mamba-1 reads
  // Blocks behind the others, which draft; with tables, norms and heads of their own.
  int32_t draft_layers = 0;
  bool draft_tables = false;
  bool draft_norms = false;
  bool draft_heads = false;
  bool without_drafts = false;  // the file's keys name such blocks, and their tensors are left out
  uint32_t seed = 1;
};

class TinyModel {
 public:
  explicit TinyModel(const TinyModelSpec& spec);

  [[nodiscard]] const TinyModelSpec& spec() const { return spec_; }
  /// The file, to be changed before it is built.
  GgufWriter& writer() { return writer_; }
  [[nodiscard]] std::vector<std::byte> bytes() const { return writer_.build().bytes; }

  /// What a block has.
  [[nodiscard]] bool attends(int32_t index) const { return kv_heads(index) > 0; }
  [[nodiscard]] bool has_recurrence(int32_t index) const;
  [[nodiscard]] bool has_feed_forward(int32_t index) const { return feed_forward(index) > 0; }
  [[nodiscard]] bool has_experts(int32_t index) const {
    if (style_.experts.some_blocks && index % 2 == 0) return false;
    return spec_.experts > 0 && index >= spec_.dense_layers && (index + 1) % spec_.expert_step == 0;
  }

  /// Logits of every position, [tokens.size(), vocab], by the first `layers` layers; 0: all.
  [[nodiscard]] std::vector<double> logits(const std::vector<int32_t>& tokens,
                                           int32_t layers = 0) const;

  /// What a matrix was multiplied with in the calls of logits() so far, by the tensor's name.
  struct Inputs {
    std::vector<double> squares;  // [matrices, columns], summed over rows
    std::vector<int64_t> rows;    // [matrices]
  };
  [[nodiscard]] const std::map<std::string, Inputs>& inputs() const { return inputs_; }

  /// What a block that drafts, by default the first one, makes of tokens and of features
  /// [tokens.size(), hidden]: its logits, its hidden states, and these after its last norm; see
  /// tiny_model_draft.cpp.
  struct Drafted {
    std::vector<double> logits;
    std::vector<double> hidden;
    std::vector<double> normed;
  };
  [[nodiscard]] Drafted drafted(const std::vector<int32_t>& tokens,
                                const std::vector<float>& features, int32_t block = 0) const;

  /// The state of a layer's delta net, [heads, k_dim, v_dim], after the rows of the last logits().
  [[nodiscard]] const std::vector<double>& delta_state(int32_t layer) const {
    return delta_states_.at(layer);
  }

 private:
  friend class TinyAssistant;
  using Row = std::vector<double>;

  /// Of a norm of hidden rows, what the family has.
  void norm_tensors(const std::string& name);
  void matrix(const std::string& name, int32_t rows, int32_t cols, DType type, int32_t count = 0);
  void vector(const std::string& name, int32_t size, float around, int32_t count = 0);
  void expert_keys();
  void expert_tensors(int32_t index);
  float next();
  [[nodiscard]] const Row* find(const std::string& name) const;
  [[nodiscard]] Row product(const std::string& name, const Row& x) const;
  /// Matrix `e` of `count` reads x.
  void note(const std::string& tensor, size_t e, size_t count, const Row& x) const;
  /// Values [first, first + n) of a product.
  [[nodiscard]] Row part(const std::string& name, const Row& x, int32_t first, int32_t n) const;
  /// Of attn_q, in which each head's gate lies behind it.
  [[nodiscard]] Row half_of_q(int32_t index, const Row& x, bool gate) const;
  /// attn_q, attn_k or attn_v of x, whether they are one tensor or three.
  [[nodiscard]] Row input(int32_t index, const char* name, const Row& x) const;
  [[nodiscard]] Row norm(const std::string& name, const Row& x, double eps = 1e-5) const;
  /// The same before or after a half of a block, where the family has such a norm.
  [[nodiscard]] Row norm_before(int32_t index, const char* name, const Row& x) const;
  [[nodiscard]] Row norm_after(int32_t index, const char* name, const Row& x) const;
  void add(Row* x, const Row& made) const;
  /// Keys and values of a layer, by position.
  struct Kept {
    std::vector<Row> keys;
    std::vector<Row> values;
  };
  /// The hidden states after the first `layers` layers, and what each layer keeps.
  [[nodiscard]] std::vector<Row> run(const std::vector<int32_t>& tokens, int32_t layers,
                                     std::vector<Kept>* kept) const;

  [[nodiscard]] int32_t kv_heads(int32_t index) const;
  /// Of families whose blocks are one thing each: every third is a feed-forward.
  [[nodiscard]] bool has_feed_forward_alone(int32_t index) const {
    return style_.recurs == model::arch::Recurs::kAlone && index % 3 == 2;
  }
  [[nodiscard]] int32_t feed_forward(int32_t index) const;
  [[nodiscard]] int32_t head_dim(int32_t index) const;
  /// The layer whose keys and values it looks at; itself where they are its own.
  [[nodiscard]] int32_t shared_from(int32_t index) const;
  [[nodiscard]] bool shares(int32_t index) const { return shared_from(index) != index; }
  [[nodiscard]] bool has_window(int32_t index) const { return spec_.window > 0 && is_local(index); }
  [[nodiscard]] Row values(int32_t index, const Row& x) const;
  void add_layer_input(int32_t index, const std::vector<int32_t>& tokens,
                       const std::vector<Row>& embeddings, std::vector<Row>* hidden) const;
  [[nodiscard]] bool recurs(int32_t index) const;
  [[nodiscard]] bool one_norm(int32_t index) const;
  [[nodiscard]] engine::Activation activation(int32_t index) const;
  [[nodiscard]] bool is_local(int32_t index) const;
  void rotate(double* head, int32_t index, int32_t position) const;
  void turn_heads(int32_t index, const char* norm_name, int32_t position, Row* heads) const;
  void attend(int32_t index, std::vector<Kept>* kept, std::vector<Row>* hidden) const;
  /// x += out(h), h = a(na(x)) h + b(n(x)) v(n(x)), by position; tensors mix_*.
  void recur(int32_t index, std::vector<Row>* hidden) const;
  /// The family's recurrence: tiny_model_states.cpp.
  void recurrence_keys();
  void recurrence_tensors(int32_t index);
  /// `in`: what went into the block.
  void add_recurrence(int32_t index, const std::vector<Row>& in, std::vector<Row>* hidden) const;
  [[nodiscard]] std::vector<Row> recurrence(int32_t index, const std::vector<Row>& in) const;
  struct MambaRow;
  void mamba_tensors(int32_t index);
  [[nodiscard]] std::vector<MambaRow> mamba_rows(int32_t index, const std::vector<Row>& in) const;
  [[nodiscard]] std::vector<Row> mamba(int32_t index, const std::vector<Row>& in) const;
  [[nodiscard]] std::vector<Row> delta_net(int32_t index, const std::vector<Row>& in) const;
  [[nodiscard]] std::vector<Row> short_convolution(int32_t index, const std::vector<Row>& in) const;
  /// By position: sums over the last rows, the newest with the last of each channel's weights.
  [[nodiscard]] std::vector<Row> convolved(const std::string& name,
                                           const std::vector<Row>& in) const;
  /// `in`: what went into the block.
  void mix(int32_t index, const std::vector<Row>& in, std::vector<Row>* hidden) const;
  /// What experts make of x: chosen by sorting, one after another.
  /// `choosing` is what the router reads.
  [[nodiscard]] Row experts(int32_t index, const Row& x, const Row& choosing) const;
  /// "<name>.weight" x + "<name>.bias" of matrix `e` of a stack.
  [[nodiscard]] Row stacked(const std::string& name, int32_t e, const Row& x, size_t outputs) const;

  /// The logits of a row with the last norm.
  [[nodiscard]] Row scores(const std::string& head, const Row& x) const;
  /// The embedding of a token, from a table of this name.
  [[nodiscard]] Row embedded(const std::string& table, int32_t token) const;
  void keys();
  void block(int32_t index);
  void draft_tensors(int32_t index);
  /// Lists of layers may end before the blocks that draft, which have the last value.
  template <typename T>
  [[nodiscard]] static T of_layer(const std::vector<T>& each, int32_t index) {
    return static_cast<size_t>(index) < each.size() ? each[static_cast<size_t>(index)]
                                                    : each.back();
  }

  TinyModelSpec spec_;
  model::arch::DenseStyle style_;
  std::mt19937 random_;
  GgufWriter writer_;
  std::map<std::string, Row> tensors_;           // as decoded from what the file holds
  mutable std::map<int32_t, Row> delta_states_;  // by layer
  mutable std::map<std::string, Inputs> inputs_;
};

}  // namespace gen::test
