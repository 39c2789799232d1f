// SPDX-License-Identifier: Apache-2.0
// The operations of an engine as plain argument structs. Letters: T rows (tokens) of this call, D
// model width, H query heads, G kv heads, K head dim, N outputs and C inputs of a product. Pointers
// are engine memory. A row's result depends on that row and its sequence only, bit for bit: never
// on T, on the split over threads, or on the rows beside it (one row, one result).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "engine/activation.h"
#include "engine/engine_ptr.h"
#include "engine/kv_layer.h"
#include "engine/op.h"
#include "engine/state_rows.h"
#include "engine/weight.h"

namespace gen::engine {

/// Input forms of products, as bits.
enum ActForm : uint32_t {
  kActF32 = 1u << 0,   // float32
  kActQ8 = 1u << 1,    // int8 in blocks of 32 with a binary16 scale and the block's sum
  kActQ8K = 1u << 2,   // int8 in blocks of 256 with a float32 scale and sums over 16
  kActBF16 = 1u << 3,  // bfloat16
};

/// Rows of float32, `stride` elements apart.
struct MatrixView {
  EnginePtr<float> data;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  friend bool operator==(const MatrixView&, const MatrixView&) = default;
};
struct ConstMatrixView {
  EnginePtr<const float> data;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  friend bool operator==(const ConstMatrixView&, const ConstMatrixView&) = default;
};

/// The input of a product: rows packed in every form of `forms`, in the engine's own layout. A row
/// takes Engine::activation_bytes(forms, C) bytes; rows are contiguous.
struct Activations {
  EnginePtr<std::byte> data;
  uint32_t forms = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  /// Rows hold bfloat16 only, from their first byte; `forms` still gives the row stride. Read only
  /// by products that ask for it (Weight::bf16_rows).
  bool bf16 = false;
  friend bool operator==(const Activations&, const Activations&) = default;
};

/// What one adapter adds at one site: scale * B (A x). B is stored transposed, [rank, columns].
struct LowRankPart {
  EnginePtr<const float> a;  // [rank, C], [E, rank, C] for experts, [V, rank] for the embedding
  EnginePtr<const float> b;  // [rank, columns of the site] or [E, rank, columns of the site]
  int32_t rank = 0;
  float scale = 1.0F;
};

/// The largest number of adapters per row.
inline constexpr int32_t kMaxMixed = 4;

/// What the adapters of a mix add at one site, in order.
struct LowRankMix {
  LowRankPart parts[kMaxMixed];
  int32_t n = 0;
};

/// A site is columns [first, first + cols) of a product. In gated products the first site is that
/// of the gate matrix, the second that of the up matrix. A x of the site begins at column `u`.
struct LowRankSite {
  int64_t first = 0;
  int64_t cols = 0;
  int32_t site = 0;  // index in a mix's row of the table
  int32_t u = 0;
};

/// Adapters of a product's rows, in engine memory.
struct LowRank {
  EnginePtr<const LowRankMix> table;  // [mixes][stride]; null: no row has an adapter
  int64_t stride = 0;
  EnginePtr<const int32_t> mixes;      // mix of each row of the batch; -1: none
  EnginePtr<const int32_t> rows;       // row t is rows[t] of the batch; null: row t
  EnginePtr<const LowRankSite> sites;  // [n_sites]
  int32_t n_sites = 0;
  friend bool operator==(const LowRank&, const LowRank&) = default;
};

/// y[t, :] = (decode(weight[ids[t], :]) (+ B u of adapters)) * scale; rows with an id below 0 are
/// not written.
struct EmbedArgs {
  const Weight* weight = nullptr;
  EnginePtr<const int32_t> ids;  // [T], checked by the caller
  float scale = 1.0F;
  MatrixView y;      // [T, D]
  LowRank low_rank;  // one site; A x is row ids[t] of A times the part's scale
  friend bool operator==(const EmbedArgs&, const EmbedArgs&) = default;
};

/// Packs rows into the forms of `y`.
struct PackArgs {
  ConstMatrixView x;  // [T, C]
  Activations y;
  friend bool operator==(const PackArgs&, const PackArgs&) = default;
};

/// y[t, d] = x[t, d] / sqrt(mean_d(x[t, :]^2) + eps) * w[d], as float32 rows, packed, or both.
struct RmsNormArgs {
  ConstMatrixView x;         // [T, D]
  EnginePtr<const float> w;  // [D]
  float eps = 0.0F;
  MatrixView y;        // data may be null
  Activations packed;  // data may be null
  friend bool operator==(const RmsNormArgs&, const RmsNormArgs&) = default;
};

/// y[t, d] = (x[t, d] - mean) / sqrt(variance + eps) * w[d] + b[d], as float32 rows, packed, or
/// both. Mean and variance are taken over the group of D / groups adjacent columns that d is in.
struct LayerNormArgs {
  ConstMatrixView x;         // [T, D]
  EnginePtr<const float> w;  // [D] or null: 1
  EnginePtr<const float> b;  // [D] or null: 0
  float eps = 0.0F;
  int32_t groups = 1;   // divides D
  bool centred = true;  // false: the mean counts as 0, which makes it an RMS norm
  MatrixView y;         // data may be null; may be x
  Activations packed;   // data may be null
  friend bool operator==(const LayerNormArgs&, const LayerNormArgs&) = default;
};

/// For each of T rows the numbers of its n_used experts, best first, followed by their float32
/// weights; all words of 32 bits.
struct Routes {
  EnginePtr<int32_t> data;
  int64_t rows = 0;
  int32_t n_used = 0;
  int64_t stride = 0;  // words
  friend bool operator==(const Routes&, const Routes&) = default;
};
struct ConstRoutes {
  EnginePtr<const int32_t> data;
  int64_t rows = 0;
  int32_t n_used = 0;
  int64_t stride = 0;
  friend bool operator==(const ConstRoutes&, const ConstRoutes&) = default;
};

/// u[t, site.u + r] = scale * sum_c A[r, c] * x[t, c] for all sites of the product that follows and
/// all adapters of row t's mix, one after another. Nothing is written for rows without adapters.
/// With routes, which are those of the experts that follow, u has S rows for each of T, x either
/// the same or T, and row t S + s uses the matrix A of row t's s-th expert.
struct AdapterInArgs {
  ConstMatrixView x;  // [T, C]
  LowRank low_rank;
  MatrixView u;        // [T, U] or [T S, U]
  ConstRoutes routes;  // [T], data may be null
  friend bool operator==(const AdapterInArgs&, const AdapterInArgs&) = default;
};

/// y[t, n] = act(sum_c x[t, c] * W[n, c] (+ B u of adapters) (+ bias[n])) (+ residual[t, n]); for
/// kGated weights y = act(gate) * up, with the first matrix the gate.
struct LinearArgs {
  const Weight* weight = nullptr;
  Activations x;                // [T, C]
  EnginePtr<const float> bias;  // [N] or null; two runs of [N], gate then up, for kGated
  Activation activation;
  ConstMatrixView residual;  // [T, N], data may be null, may be y
  MatrixView y;              // [T, N]
  bool bf16_y = false;       // rows of y are bfloat16 with the same stride; for Activations::bf16
  LowRank low_rank;
  ConstMatrixView u;  // what AdapterInArgs made, where low_rank has a table
  /// If set, a row's bits depend on the row alone, at some cost. If not, engines may let them
  /// depend on T (Weight::one_result_rows).
  bool deterministic = false;
  friend bool operator==(const LinearArgs&, const LinearArgs&) = default;
};

enum class RopeKind : int32_t {
  kNone = 0,
  kAdjacent = 1,  // pairs (2i, 2i + 1): llama files
  kHalves = 2,    // pairs (i, i + n/2): "neox", qwen files
};

/// Inverse frequencies are data, so every scaling rule (linear, YaRN, Llama-3 factors) is one table
/// made at load: angle of pair i at position p = p * inv_freq[i]; cos and sin are multiplied by
/// `magnitude`.
struct RopeTable {
  RopeKind kind = RopeKind::kNone;
  int32_t n_dims = 0;               // rotated elements of a head, even
  const float* inv_freq = nullptr;  // [n_dims / 2], host memory: for caches that turn keys
  float magnitude = 1.0F;
};

/// cs[t, i] = (cos, sin) of pair i at positions[t], computed once for all layers of a step.
struct RopeAnglesArgs {
  EnginePtr<const float> inv_freq;  // [n_dims / 2]
  float magnitude = 1.0F;
  EnginePtr<const int32_t> positions;  // [T]
  MatrixView cs;                       // [T, n_dims], cos and sin interleaved
  friend bool operator==(const RopeAnglesArgs&, const RopeAnglesArgs&) = default;
};

/// Normalises heads if asked, rotates q in place, and stores rotated k and v in the cache. One
/// operation, because the cache's key form decides what is stored. Without k and v nothing is
/// stored: the layer shares the cache of an earlier block, which has written it.
struct RopeAppendArgs {
  MatrixView q;       // [T, H * K], rotated in place or by the attention that follows
  ConstMatrixView k;  // [T, G * K], data may be null
  ConstMatrixView v;  // [T, G * Kv], data may be null where k's is
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  EnginePtr<const float> q_norm;  // [K] or null: RMS norm of each head before rotation
  EnginePtr<const float> k_norm;  // [K] or null
  float norm_eps = 0.0F;
  bool norm_last = false;  // norms come after rotation
  RopeKind rope = RopeKind::kNone;
  int32_t rope_dims = 0;
  ConstMatrixView cs;  // [T, rope_dims], see RopeAnglesArgs
  KvLayer layer;
  EnginePtr<const KvRows> sequences;  // [n_sequences]
  int32_t n_sequences = 0;
  friend bool operator==(const RopeAppendArgs&, const RopeAppendArgs&) = default;
};

/// out[t, h, :] = softmax_e(scale * q[t, h, :] . k[e, g, :]) v[e, g, :], g = h / (H / G), over the
/// entries e <= own entry (within the view's window and chunk). Processes fixed chunks of entries
/// and merges their partial results in order. With sinks the sum of a softmax has exp(sinks[h])
/// besides: an entry before all others, of this score and a value of zeros, that every row sees.
struct AttentionArgs {
  ConstMatrixView q;   // [T, H * K]
  MatrixView out;      // [T, H * Kv], data may be null
  Activations packed;  // data may be null
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  float scale = 1.0F;
  float soft_cap = 0.0F;         // scores become cap * tanh(score / cap); 0 is off
  EnginePtr<const float> sinks;  // [H] or null
  KvLayer layer;
  EnginePtr<const KvRows> sequences;  // [n_sequences]
  int32_t n_sequences = 0;
  /// An upper bound on the chunks that a row attends to; entries are then in order. 0: unknown. For
  /// engines that cannot read `sequences` on the host.
  int32_t max_chunks = 0;
  /// Results of many rows need not match the CPU engine bit for bit, since their inputs do not.
  bool any_bits = false;
  friend bool operator==(const AttentionArgs&, const AttentionArgs&) = default;
};

/// y[i, :] = x[rows[i], :]
struct SelectRowsArgs {
  ConstMatrixView x;
  EnginePtr<const int32_t> rows;  // as many as y has
  MatrixView y;
  friend bool operator==(const SelectRowsArgs&, const SelectRowsArgs&) = default;
};

/// y[i, :] is the mean of x[first[i], :] to x[last[i], :], summed in their order in double
/// precision, divided by their number and rounded once.
struct MeanRowsArgs {
  ConstMatrixView x;
  EnginePtr<const int32_t> first;  // as many as y has rows
  EnginePtr<const int32_t> last;
  MatrixView y;
  friend bool operator==(const MeanRowsArgs&, const MeanRowsArgs&) = default;
};

/// Parameters of one row of logits: a record in engine memory, which kernels read by row.
struct BestRow {
  /// The token mask: token t is allowed if bit t % 32 of mask[t / 32] is set. Tokens beyond
  /// `mask_words` are not allowed. Null: all tokens are.
  EnginePtr<const uint32_t> mask;
  /// Tokens that are excluded; their original logits go to `aside_logits`. May contain duplicates.
  EnginePtr<const int32_t> aside;  // [n_aside]
  EnginePtr<float> aside_logits;   // [n_aside]
  double temperature = 0.0;        // for the row's mass; 0: no mass is wanted
  double place = -1.0;             // in [0, 1): which slice is wanted; below 0: none
  int32_t mask_words = 0;
  int32_t n_aside = 0;
};

/// tokens[t, :] are the k tokens with the largest logits of row t in descending order, the lower
/// token first among equal logits; values[t, :] are these logits. Tokens that are aside or not
/// allowed count as -inf; logits of x that are aside may be overwritten with -inf.
/// If a logit of x is NaN or +inf, the first at token i, all of tokens[t, :] are -1 - i and all of
/// values[t, :] are that logit; aside_logits, mass and slice are not written.
/// mass[t, :] has one sum for each slice of the vocabulary (base/mass_slices.h): exp((logit -
/// values[t, 0]) / temperature) over the tokens that are allowed and not aside. It is not written
/// if all logits are -inf. slice[t, :] are the logits of the first slice at which the running sum
/// exceeds place times the total, -inf for tokens that are not allowed, aside or beyond V. It is
/// not written if there is no such slice.
struct BestArgs {
  MatrixView x;                   // [T, V]
  EnginePtr<const BestRow> rows;  // [T], or null: no row has parameters
  int32_t k = 1;                  // in [1, V]
  EnginePtr<int32_t> tokens;      // [T, k]
  EnginePtr<float> values;        // [T, k]
  EnginePtr<double> mass;         // [T, mass_slices(V)], or null: no row wants any
  EnginePtr<float> slice;         // [T, kMassSlice], or null: no row wants any
  friend bool operator==(const BestArgs&, const BestArgs&) = default;
};

/// y[t, :] = x[t, :] * factors[min(positions[t] / every, n_factors - 1)]; y may be x.
struct PositionScaleArgs {
  ConstMatrixView x;
  EnginePtr<const int32_t> positions;  // [T]
  EnginePtr<const float> factors;      // [n_factors]
  int32_t n_factors = 0;
  int32_t every = 1;
  MatrixView y;
  friend bool operator==(const PositionScaleArgs&, const PositionScaleArgs&) = default;
};

/// y[t, :] = a[t, :] + b[t, :]; y may be a or b.
struct AddArgs {
  ConstMatrixView a;
  ConstMatrixView b;
  MatrixView y;
  friend bool operator==(const AddArgs&, const AddArgs&) = default;
};

/// y[t, d] = act(gate[t, d / n]) * up[t, d], for products that were not fused and, with n above 1,
/// for gates of heads; n are the columns of up by those of gate. y may be up, and gate if n is 1.
struct GatedArgs {
  ConstMatrixView gate;
  ConstMatrixView up;
  MatrixView y;
  Activation activation;
  friend bool operator==(const GatedArgs&, const GatedArgs&) = default;
};

/// y[t, :] = act(x[t, :]); y may be x.
struct ActivateArgs {
  ConstMatrixView x;
  MatrixView y;
  Activation activation;
  friend bool operator==(const ActivateArgs&, const ActivateArgs&) = default;
};

/// h = a[t, :] * h + b[t, :] * x[t, :], y[t, :] = h, for each channel, in the order of a sequence's
/// rows: the gated linear recurrence of Griffin, minGRU and similar models. h is the sequence's
/// state in this layer. y may be a, b or x.
struct ScanArgs {
  ConstMatrixView a;  // [T, C]
  ConstMatrixView b;
  ConstMatrixView x;
  MatrixView y;
  StateLayer layer;                      // of C cells and 2 C inputs
  EnginePtr<const StateRows> sequences;  // [n_sequences]
  int32_t n_sequences = 0;
  friend bool operator==(const ScanArgs&, const ScanArgs&) = default;
};

/// The most rows of a convolution.
inline constexpr int32_t kMaxTaps = 64;

/// y[t, c] = act(sum_j w[j, c] * x[t - K + 1 + j, c] + b[c]), j ascending from the bias: a
/// convolution of each channel over the last K rows of its sequence. The state is the K - 1 rows
/// before, zeros at the beginning, [K - 1, C]; a kept row is x. y must not be x.
struct CausalConvArgs {
  ConstMatrixView x;                     // [T, C]
  EnginePtr<const float> w;              // [K, C]
  EnginePtr<const float> b;              // [C] or null: 0
  int32_t taps = 0;                      // K, up to kMaxTaps
  Act act = Act::kNone;                  // kNone or kSilu
  MatrixView y;                          // [T, C]
  StateLayer layer;                      // of (K - 1) C cells and C inputs
  EnginePtr<const StateRows> sequences;  // [n_sequences]
  int32_t n_sequences = 0;
  friend bool operator==(const CausalConvArgs&, const CausalConvArgs&) = default;
};

/// The heads of a delta net.
struct DeltaShape {
  int32_t k_heads = 0;  // G
  int32_t v_heads = 0;  // H, a multiple of G
  int32_t k_dim = 0;    // multiples of 16
  int32_t v_dim = 0;
  float eps = 0.0F;
  bool grouped = false;  // value head h has key head h / (H / G); else h mod G
  [[nodiscard]] int64_t k_cols() const noexcept { return int64_t{k_heads} * k_dim; }
  [[nodiscard]] int64_t v_cols() const noexcept { return int64_t{v_heads} * v_dim; }
  [[nodiscard]] int32_t k_head(int32_t h) const noexcept {
    return grouped ? h / (v_heads / k_heads) : h % k_heads;
  }
  friend bool operator==(const DeltaShape&, const DeltaShape&) = default;
};

/// The gated delta rule (Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024), row after row of
/// a sequence. Each value head h has a state S of [k_dim, v_dim], zeros at the beginning, and
///   q, k   of key head h mod G, or h / (H / G), divided by the root of their squares' sum plus
///   eps;
///          q also by the root of k_dim
///   decay  e^(a[h] ln(1 + e^(alpha[t, h] + dt[h])))
///   d      1 / (1 + e^-beta[t, h]) * (v - decay S^T k)
///   S      decay S + k d^T
///   y      S^T q
/// A kept row is k of all key heads, v of all heads, decays, and factors of d.
struct DeltaNetArgs {
  ConstMatrixView qkv;        // [T, 2 G k_dim + H v_dim]: q of all key heads, then k, then v
  ConstMatrixView alpha;      // [T, H]
  ConstMatrixView beta;       // [T, H]
  EnginePtr<const float> dt;  // [H]
  EnginePtr<const float> a;   // [H]
  DeltaShape shape;
  MatrixView y;                          // [T, H v_dim]
  StateLayer layer;                      // of H k_dim v_dim cells, and inputs as above
  EnginePtr<const StateRows> sequences;  // [n_sequences]
  int32_t n_sequences = 0;
  friend bool operator==(const DeltaNetArgs&, const DeltaNetArgs&) = default;
};

/// The largest N of SelectiveScanArgs.
inline constexpr int32_t kMaxStateSize = 256;

/// The selective recurrence of Mamba, in the order of a sequence's rows. Of H heads, each has P
/// channels with N numbers of state each, s[h, p, n], and reads b and c of group g = h / (H / G):
///   delta = softplus(dt[t, h] + dt_bias[h])
///   s[h, p, n] = s[h, p, n] * exp(delta * a) + b[t, g, n] * (delta * x[t, h, p])
///   y[t, h, p] = sum_n s[h, p, n] * c[t, g, n] + d[h] * x[t, h, p]
/// Heads of one channel (P = 1: Mamba-1) have a row of a with N numbers, others one number.
struct SelectiveScanArgs {
  ConstMatrixView x;                     // [T, H * P]
  ConstMatrixView dt;                    // [T, H]
  ConstMatrixView b;                     // [T, G * N]
  ConstMatrixView c;                     // [T, G * N]
  int32_t n_groups = 1;                  // G, divides H
  EnginePtr<const float> dt_bias;        // [H]
  EnginePtr<const float> a;              // [H, N] where P = 1, otherwise [H]
  EnginePtr<const float> d;              // [H]
  MatrixView y;                          // [T, H * P], may be x
  StateLayer layer;                      // of H P N cells, [H, P, N], and H P + H + G N inputs
  EnginePtr<const StateRows> sequences;  // [n_sequences]
  int32_t n_sequences = 0;
  friend bool operator==(const SelectiveScanArgs&, const SelectiveScanArgs&) = default;
};

/// How a router turns logits into the weights of experts.
enum class Gating : uint8_t {
  kSoftmax,        // softmax over all experts
  kSigmoid,        // 1 / (1 + e^-x) of each
  kSoftmaxChosen,  // experts are chosen by logits; weights are the softmax over the chosen
  kRootSoftplus,   // sqrt(ln(1 + e^x)) of each
};

/// How rows are routed to experts.
struct Routing {
  Gating gating = Gating::kSoftmax;
  int32_t n_experts = 0;  // E
  int32_t n_used = 0;     // experts per row, in [1, E]
  /// Groups of equal size. A group's score is the sum of its best two experts; only experts of the
  /// best groups are chosen.
  int32_t n_groups = 1;
  int32_t n_groups_used = 1;
  bool normalise = false;  // weights are divided by their sum, or by kLeastWeightSum
  float scale = 1.0F;      // then multiplied by this
  friend bool operator==(const Routing&, const Routing&) = default;
};
inline constexpr float kLeastWeightSum = 0x1p-14F;

/// p is the result of `gating` on the logits of row t. The chosen experts are those with the
/// largest p[e] + bias[e], or without bias and groups those with the largest logits; among equal
/// ones the lower comes first, and NaN counts as smallest. Their weights are p[e], normalised and
/// scaled as `routing` says. The chosen experts are distinct and in [0, E), whatever the logits.
struct RouteArgs {
  ConstMatrixView logits;       // [T, E]
  EnginePtr<const float> bias;  // [E] or null: of the choice alone
  Routing routing;
  Routes y;  // [T]
  friend bool operator==(const RouteArgs&, const RouteArgs&) = default;
};

/// y[t S + s, n] = act(sum_c x[c] * W_e[n, c] (* scales[e]) (+ bias[e, n])) with e the s-th of row
/// t's S experts and x either row t or row t S + s; for kGated weights y = act(gate) * up, as in
/// LinearArgs. A row's sums are those of LinearArgs with W_e alone.
struct ExpertsArgs {
  const Weight* weight = nullptr;  // of stacks
  Activations x;                   // [T, C] or [T * S, C]
  ConstRoutes routes;              // [T]
  EnginePtr<const float> bias;     // [E, N] or null; two runs of [E, N], gate then up, for kGated
  EnginePtr<const float> scales;   // [E] or null; two runs of [E], gate then up, for kGated
  Activation activation;
  MatrixView y;       // [T * S, N]
  LowRank low_rank;   // B u is added behind the scale
  ConstMatrixView u;  // [T * S, U], as in LinearArgs
  friend bool operator==(const ExpertsArgs&, const ExpertsArgs&) = default;
};

/// y[t, :] = sum_s weight s of row t * x[t S + s, :], s ascending, each product rounded.
struct CombineArgs {
  ConstMatrixView x;   // [T * S, D]
  ConstRoutes routes;  // [T]
  MatrixView y;        // [T, D]
  friend bool operator==(const CombineArgs&, const CombineArgs&) = default;
};

namespace detail {

template <typename First, typename... Args>
using VariantOf = std::variant<Args...>;

}  // namespace detail

/// One operation to run. As long as the weights live, equal values do the same work on the same
/// addresses. The alternatives are in the order of Op.
using OpArgs = detail::VariantOf<void
#define GEN_OP(name, ...) , name##Args
#include "engine/op_list.inc"
                                 >;

}  // namespace gen::engine
