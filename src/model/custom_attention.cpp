// SPDX-License-Identifier: Apache-2.0
// See custom_attention.h.
#include "model/custom_attention.h"

#include "model/custom_trace.h"

namespace gen::model {

template <typename Work>
Status CustomAttention::step(Work&& work) {
  if (batch_.tracer == nullptr) return work();
  return engine::run_traced(*batch_.tracer, [&]() -> Status {
    GEN_TRY(work());
    return engine_.finish(*stream_);
  });
}

Status CustomAttention::run(int32_t layer, const float* q, const float* k, const float* v,
                            float scale, float* out) {
  if (layer < 0 || static_cast<size_t>(layer) >= seen_.size()) {
    return error(Code::kOutOfRange, "layer %d of %zu that keep keys and values", layer,
                 seen_.size());
  }
  uint8_t& seen = seen_[static_cast<size_t>(layer)];
  if (seen != 0) return error(Code::kInvalidArgument, "layer %d has been run", layer);
  if (stream_ == nullptr) {
    GEN_ASSIGN(stream_, engine_.new_stream());
  }
  rows_.clear();
  for (const graph::BatchSequence& sequence : batch_.sequences) {
    engine::SequenceRows rows;
    rows.first_row = sequence.first_row;
    rows.n_rows = sequence.n_rows;
    rows.first_entry = sequence.plan.start;
    GEN_ASSIGN(rows.view, sequence.cache->view(layer, sequence.plan));
    rows_.push_back(rows);
  }
  const int64_t t = batch_.rows();
  const int64_t q_cols = int64_t{spec_.n_heads} * spec_.k_dim;
  const int64_t k_cols = int64_t{spec_.n_kv_heads} * spec_.k_dim;
  const int64_t v_cols = int64_t{spec_.n_kv_heads} * spec_.v_dim;
  const int64_t out_cols = int64_t{spec_.n_heads} * spec_.v_dim;
  queries_.assign(q, q + t * q_cols);

  engine::RopeAppendArgs append;
  append.q = {queries_.data(), t, q_cols, q_cols};
  append.k = {k, t, k_cols, k_cols};
  append.v = {v, t, v_cols, v_cols};
  append.n_heads = spec_.n_heads;
  append.n_kv_heads = spec_.n_kv_heads;
  append.k_dim = spec_.k_dim;
  append.v_dim = spec_.v_dim;
  append.sequences = rows_;
  if (batch_.tracer != nullptr) trace_append(batch_, spec_, layer);
  GEN_TRY(step([&] { return engine_.run(*stream_, append); }));

  engine::AttentionArgs attention;
  attention.q = {queries_.data(), t, q_cols, q_cols};
  attention.out = {out, t, out_cols, out_cols};
  attention.n_heads = spec_.n_heads;
  attention.n_kv_heads = spec_.n_kv_heads;
  attention.k_dim = spec_.k_dim;
  attention.v_dim = spec_.v_dim;
  attention.scale = scale;
  attention.sequences = rows_;
  if (batch_.tracer != nullptr) trace_attention(batch_, spec_, layer, attention);
  GEN_TRY(step([&] { return engine_.run(*stream_, attention); }));
  GEN_TRY(engine_.finish(*stream_));
  seen = 1;
  return {};
}

Status CustomAttention::check_all_run() const {
  for (size_t layer = 0; layer < seen_.size(); ++layer) {
    if (seen_[layer] == 0) {
      return error(Code::kModel, "layer %zu of %zu was given no keys and values", layer,
                   seen_.size());
    }
  }
  return {};
}

}  // namespace gen::model
