// SPDX-License-Identifier: Apache-2.0
// A model's computation as plain data: nodes in the order they were named, each of which makes one
// value of T rows. An architecture file sees only GraphBuilder: no memory, threads or devices.
// fusion.h turns nodes into instructions; execution_plan.h compiles and runs them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/layer_shape.h"
#include "cache/state/state_shape.h"
#include "engine/op.h"
#include "engine/ops.h"
#include "engine/weight.h"

namespace gen::graph {

/// The value of a node; -1 for none.
struct ValueId {
  int32_t index = -1;
  [[nodiscard]] bool valid() const noexcept { return index >= 0; }
  friend bool operator==(ValueId, ValueId) = default;
};

/// What an adapter may add to, a product or the embedding: layer * kSitesPerLayer + kind.
enum class SiteKind : int32_t {
  kQ,
  kK,
  kV,
  kAttnOut,
  kGate,
  kUp,
  kDown,
  kLogits,
  kAttnGate,
  kMixerIn,  // of a recurrent block
  kMixerOut,
  kAlpha,
  kBeta,
  kMixerParts,  // what a recurrence's step, input and output are made of
  kMixerStep,
  kSharedGate,  // of the expert of all rows
  kSharedUp,
  kSharedDown,
  kLatentDown,  // to the width of the experts, and back
  kLatentUp,
  kInputGate,  // of a layer's own embeddings
  kInputProj,
  kLayerInputs,  // of all layers; beside kLogits
  kRouter,
  kSharedRouter,  // of the expert of all rows
  kExpertGates,   // stacks
  kExpertUps,
  kExpertDowns,
  kEmbedding,  // of tokens; beside kLogits
};
inline constexpr int32_t kSitesPerLayer = 32;
constexpr int32_t site_id(int32_t layer, SiteKind kind) noexcept {
  return layer * kSitesPerLayer + static_cast<int32_t>(kind);
}

/// The source of the keys and values that a block attends to.
enum class CacheUse : uint8_t {
  kOwn,     // a cache layer of its own, which the block writes
  kShared,  // the cache layer of an earlier block
  kGiven,   // a layer of a cache that is another graph's and that this graph only reads
  kStep,    // the rows of the step, and no cache (encoders)
};

/// How a block attends, stated only here. cache_layers.h derives the shapes of caches from it.
struct AttentionSpec {
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  int32_t rope = -1;   // table from GraphBuilder::rope_table, -1 for none
  int32_t window = 0;  // visible entries, the row itself included; 0 means all
  int32_t chunk = 0;   // positions p with p / chunk as the row's are visible; 0 means all
  float scale = 1.0F;
  float soft_cap = 0.0F;
  bool norm_last = false;  // norms of q's and k's heads come after rotation
  bool causal = true;      // false: rows also see those after them in the step
  bool v_in_k = false;     // values are the first v_dim elements of keys and are not kept
  CacheUse use = CacheUse::kOwn;
  /// kShared: the block whose cache layer it is. kGiven: the layer's number.
  int32_t shared = -1;
};

/// The parameters of a selective scan, see engine::SelectiveScanArgs.
struct SelectiveParams {
  int32_t n_groups = 1;
  std::span<const float> dt_bias;  // [H]
  std::span<const float> a;        // [H], or [H, N] for heads of one channel
  std::span<const float> d;        // [H]
};

/// The source of the row index of an embedding.
enum class Lookup : uint8_t {
  kTokens,     // the row's token; 0 where the caller gives the embedding
  kPositions,  // the row's position
  kConstant,   // the same index for all rows
};

/// A rotary table, computed in double precision and rounded once; owned by graph and plan.
struct RopeSpec {
  engine::RopeKind kind = engine::RopeKind::kNone;
  int32_t n_dims = 0;
  std::vector<float> inv_freq;  // [n_dims / 2]
  float magnitude = 1.0F;
};

/// Values that a node reads, -1 for none. The operation defines their meaning.
struct NodeInputs : std::array<int32_t, engine::kMaxInputs> {
  NodeInputs(std::initializer_list<ValueId> given = {}) {
    fill(-1);
    std::transform(given.begin(), given.end(), begin(), [](ValueId x) { return x.index; });
  }
};

/// One operation. Fields that it does not use keep their defaults.
struct Node {
  engine::Op op = engine::Op::kEmbed;
  NodeInputs inputs;
  int64_t cols = 0;        // width of the value
  int32_t slots = 1;       // its rows per row of the step
  bool index = false;      // it consists of 32-bit words, from a router
  bool selected = false;   // one row for each row that wants logits
  bool by_expert = false;  // experts' products and what their rows go through until they are summed
  int32_t weight = -1;     // index into Graph::weights
  int32_t vector = -1;     // index into Graph::vectors: norm weight, bias, norm of q, sinks
  int32_t vector2 = -1;    // bias of a norm, norm of k, scales of experts
  int32_t block = -1;      // block of the model; -1 before the first block
  int32_t engine = 0;      // the engine that runs it, see split_engines()
  int32_t layer = -1;      // cache layer, state layer, or the layer of a tap
  int32_t site = -1;
  Lookup lookup = Lookup::kTokens;  // of an embedding
  int64_t first = 0;                // of a slice's columns
  float factor = 1.0F;              // scale of an embedding, eps of a norm
  int32_t groups = 1;               // of a norm in groups, and of a selective scan
  bool uncentred = false;           // of such a norm: the mean counts as 0
  int32_t n_factors = 0;            // of a scale by position, for `every` positions each
  int32_t every = 1;
  int32_t taps = 0;  // of a convolution
  engine::DeltaShape delta;
  engine::Activation activation;
  engine::Routing routing;  // of a router, and of the nodes that read its value
  AttentionSpec attention;
};

/// Weights are borrowed: they and their names must outlive compile().
struct Graph {
  std::vector<Node> nodes;
  std::vector<engine::WeightSource> weights;
  std::vector<std::vector<float>> vectors;
  std::vector<RopeSpec> ropes;
  std::vector<cache::StateShape> states;  // of each state layer
  std::vector<cache::StateFacts> facts;   // of the same
  std::vector<cache::LayerShape> given;   // layers of the caches that it reads; see read_cache()
  int32_t n_taps = 0;                     // layer borders offered, [0, n_taps)
  int64_t hidden = 0;                     // D
  int64_t vocab = 0;                      // rows of the embedding
  int64_t logits = 0;                     // V, or the width of a row's other result
  bool scores = true;                     // the result is logits, from which best tokens are chosen
  int32_t last_hidden = -1;               // the value that heads read, of all rows; -1: not named
  int64_t features = 0;                   // width of the rows that the caller gives; 0: none
};

/// Names the operations of a model one after another. The first error is kept and reported by
/// finish(), so an architecture reads as a plain list. Values made after an error are invalid.
class GraphBuilder {
 public:
  /// Operations from here on belong to this block of the model. Blocks ascend; operations after the
  /// last block may be named as one more. Plans on several engines are cut between blocks.
  void begin_block(int32_t block) { block_ = block; }
  /// y[t, :] = table[index, :] * scale. A graph begins with one by tokens, or with only_features().
  /// Its table has the size of the vocabulary, and a caller may give its rows in place of tokens.
  /// The tables of others have at least as many rows, those by position at least as many as the
  /// context.
  /// `site` names it for adapters, as that of linear().
  ValueId embed(const engine::WeightSource& table, float scale = 1.0F,
                Lookup lookup = Lookup::kTokens, int32_t site = -1);
  /// y[t, :] = table[row, :] * scale, the same for all rows.
  ValueId embed_row(engine::WeightSource table, int64_t row, float scale = 1.0F);
  /// Rows of `cols` numbers that the caller gives beside the tokens (Batch::features). Once.
  ValueId features(int64_t cols);
  /// The same at the beginning of a graph that has no embedding: its tokens, of a vocabulary of
  /// `vocab`, are checked and not used, and its hidden states have `cols` columns.
  ValueId only_features(int64_t cols, int64_t vocab);
  /// The columns of a, then those of b. Each is the value of an operation other than a product, or
  /// of features(), and has no other reader.
  ValueId join(ValueId a, ValueId b);
  /// Columns [first, first + cols) of x, without a copy.
  ValueId slice(ValueId x, int64_t first, int64_t cols);
  /// `weight` is [D], copied.
  ValueId rms_norm(ValueId x, std::span<const float> weight, float eps);
  /// `weight` and `bias` are [D] or empty, copied; each of `groups` parts of a row has a mean and a
  /// variance of its own.
  ValueId layer_norm(ValueId x, std::span<const float> weight, std::span<const float> bias,
                     float eps, int32_t groups = 1);
  /// The RMS norm of each of `groups` parts of a row; `weight` is [D] or empty, copied.
  ValueId rms_norm_in_groups(ValueId x, std::span<const float> weight, float eps, int32_t groups);
  /// y[t, :] = x[t, :] * factors[position / every], the last one from where they end.
  ValueId position_scale(ValueId x, std::span<const float> factors, int32_t every);
  /// `bias` is [weight.rows] or empty, copied. `site` names the product for adapters; one whose
  /// weight has a scale, which its sums and no bias are multiplied by, takes none.
  ValueId linear(ValueId x, const engine::WeightSource& weight, std::span<const float> bias,
                 int32_t site);
  /// An operation on rows of equal width: kGated (gate, up), kActivate (x), kAdd (a, b). A gate may
  /// have fewer columns, each for an equal run of those of up.
  ValueId apply(engine::Op op, std::initializer_list<ValueId> inputs,
                engine::Activation activation = {});
  ValueId add(ValueId a, ValueId b) { return apply(engine::Op::kAdd, {a, b}); }
  /// Assigns experts and their weights to each row of logits [T, E]: a value that only experts()
  /// and combine() read. `bias` is [E] or empty, copied, and affects only the choice.
  ValueId route(ValueId logits, const engine::Routing& routing, std::span<const float> bias = {});
  /// Products of each row with the matrices of its experts: the value has n_used rows for each row
  /// of `routes`, in the order of rank. x has one row for each of its rows, or is such a value
  /// itself. Such values have one reader: experts(), combine(), or apply(). `bias` is
  /// [E, stack.rows] or empty, `scales`, of sums and no bias, [E] or empty; both are copied. `site`
  /// is that of linear(); what adapters add is not scaled.
  ValueId experts(ValueId x, ValueId routes, const engine::WeightSource& stack,
                  std::span<const float> bias = {}, std::span<const float> scales = {},
                  int32_t site = -1);
  /// The sum of each row's n_used rows of x by their weights.
  ValueId combine(ValueId x, ValueId routes);
  /// The caches of batches are another graph's, of these layers, which blocks with kGiven read.
  /// Each row sees all entries, as the row behind the last one would, and none is added: so no
  /// block may keep keys and values of its own. Before the first block with attention. The angles
  /// that they point to must outlive finish().
  void read_cache(std::span<const cache::LayerShape> layers);
  /// Keeps a rotary table for the layers that name it.
  int32_t rope_table(RopeSpec spec);
  /// Normalises heads (q_norm, k_norm: [k_dim] or empty), rotates, stores k and v in the block's
  /// cache layer; the value is the rotated q. Blocks ascend; those without attention are not named
  /// and have no cache layer. A block that shares the layer of another gives no k and no v, and has
  /// that block's geometry except for the number of heads; so does one that reads a given layer.
  /// Without values of its own (v_in_k) a block gives no v. The given q must have no other use.
  ValueId rope_append(ValueId q, ValueId k, ValueId v, int32_t block, const AttentionSpec& spec,
                      std::span<const float> q_norm = {}, std::span<const float> k_norm = {},
                      float norm_eps = 0.0F);
  /// Attends to the keys and values that rope_append stored or shares; the value is [T, n_heads *
  /// v_dim]. `sinks` is [n_heads] or empty, copied, see engine::AttentionArgs.
  ValueId attention(ValueId q, int32_t block, std::span<const float> sinks = {});
  /// h = a[t] h + b[t] x[t], row after row of a sequence, see engine::ScanArgs: the value is h
  /// after each row. h is a state layer of its own, zeros at the beginning.
  ValueId scan(ValueId a, ValueId b, ValueId x);
  /// y[t, c] = act(sum_j w[c, j] * x[t - K + 1 + j, c] + bias[c]), see engine::CausalConvArgs. `w`
  /// is [C, K] as files have it, `bias` [C] or empty, both copied; act is kNone or kSilu. The rows
  /// before are a state layer of its own.
  ValueId causal_conv(ValueId x, std::span<const float> w, std::span<const float> bias,
                      engine::Act act);
  /// The gated delta rule, see engine::DeltaNetArgs. `dt` and `a` are [v_heads], copied. The heads'
  /// states are a state layer of its own.
  ValueId delta_net(ValueId qkv, ValueId alpha, ValueId beta, std::span<const float> dt,
                    std::span<const float> a, const engine::DeltaShape& shape);
  /// The recurrence of Mamba, row after row of a sequence, see engine::SelectiveScanArgs: x is
  /// [T, H * P], dt [T, H], b and c [T, G * N]. The state, a layer of its own, is zeros at the
  /// beginning. What `params` points at is copied.
  ValueId selective_scan(ValueId x, ValueId dt, ValueId b, ValueId c,
                         const SelectiveParams& params);
  /// From here on, only the rows that want logits are computed.
  ValueId select_rows(ValueId x);
  /// For each row that wants a result: the mean of x over the rows of its sequence up to and
  /// including it. All of them must be in one step.
  ValueId mean_rows(ValueId x);
  /// Names the hidden state after the final norm, which heads read, and offers it as kNormedTap.
  /// Once, of all rows.
  void last_hidden(ValueId x);
  /// Offers x as the hidden state after `layer` (0: the embedding). Ascending from 0.
  void tap(int32_t layer, ValueId x);
  /// x, one row for each selected row, is the result. Once, last.
  void logits(ValueId x);
  /// The same for a result other than logits.
  void result(ValueId x);

  /// The graph, or the first error: kFormat for shapes that do not fit (naming the weight),
  /// kInternal for an invalid graph.
  Result<Graph> finish();

 private:
  static constexpr int32_t kAnySlots = INT32_MAX;

  bool usable(ValueId x, int32_t max_slots = 1);
  bool usable_routes(ValueId routes, ValueId of);
  Status check_attention(ValueId q, ValueId k, ValueId v, int32_t block,
                         const AttentionSpec& spec) const;
  Result<int32_t> cache_layer_of(int32_t block, const AttentionSpec& spec);
  [[nodiscard]] Result<int32_t> given_layer_of(int32_t block, const AttentionSpec& spec) const;
  /// A node that reads x and has the same width.
  [[nodiscard]] Node node_on(engine::Op op, ValueId x) const;
  ValueId push(Node node);
  int32_t keep(std::span<const float> vector);
  void fail(Status status);
  /// A node with a state layer of its own that reads all rows of `inputs`. See StateFacts and
  /// StateShape, whose cells are the product of `dims`.
  Node recurrent_node(engine::Op op, const NodeInputs& inputs, int64_t cols, const char* kind,
                      const std::array<int64_t, 3>& dims, int64_t state_inputs);

  Graph graph_;
  int32_t block_ = -1;           // the current block
  int32_t last_block_ = -1;      // the last block with attention
  std::vector<int32_t> stores_;  // the node that writes a cache layer, by its number
  Status status_;
};

}  // namespace gen::graph
