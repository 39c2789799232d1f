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

CustomAttention::Rows CustomAttention::rows() const noexcept {
  engine::EnginePtr<float> next = memory_.data().as<float>();
  const auto take = [&](int32_t heads, int32_t dim) {
    const int64_t cols = int64_t{heads} * dim;
    const engine::MatrixView view = {next, batch_.rows(), cols, cols};
    next = next + view.rows * cols;
    return view;
  };
  Rows rows;
  rows.q = take(spec_.n_heads, spec_.k_dim);
  rows.k = take(spec_.n_kv_heads, spec_.k_dim);
  rows.v = take(spec_.n_kv_heads, spec_.v_dim);
  rows.out = take(spec_.n_heads, spec_.v_dim);
  return rows;
}

Status CustomAttention::prepare() {
  if (stream_ != nullptr) return {};
  const Rows shapes = rows();
  const int64_t cols = shapes.q.cols + shapes.k.cols + shapes.v.cols + shapes.out.cols;
  GEN_ASSIGN(memory_,
             engine_.memory().allocate(static_cast<size_t>(batch_.rows() * cols) * sizeof(float)));
  GEN_ASSIGN(auto stream, engine_.new_stream());
  GEN_TRY(block_.fill(batch_, {}, false, false, engine_, *stream));
  stream_ = std::move(stream);
  return {};
}

Status CustomAttention::upload(const engine::MatrixView& to, const float* from) {
  const auto bytes = static_cast<size_t>(to.rows * to.cols) * sizeof(float);
  return engine_.upload(*stream_, to.data.as<std::byte>(), from, bytes);
}

Status CustomAttention::append(int32_t layer, const Rows& rows) {
  for (const graph::StepBlock::Group& group : block_.groups()) {
    engine::RopeAppendArgs args;
    args.q = rows.q;
    args.k = {rows.k.data, rows.k.rows, rows.k.cols, rows.k.stride};
    args.v = {rows.v.data, rows.v.rows, rows.v.cols, rows.v.stride};
    args.n_heads = spec_.n_heads;
    args.n_kv_heads = spec_.n_kv_heads;
    args.k_dim = spec_.k_dim;
    args.v_dim = spec_.v_dim;
    args.layer = group.layers[static_cast<size_t>(layer)];
    args.sequences = block_.sequences(group, args.layer.part);
    args.n_sequences = group.n;
    GEN_TRY(engine_.run(*stream_, args));
  }
  return {};
}

Status CustomAttention::attend(int32_t layer, const Rows& rows, float scale) {
  engine::OpCost cost;
  std::vector<engine::AttentionArgs> calls;
  for (const graph::StepBlock::Group& group : block_.groups()) {
    engine::AttentionArgs args;
    args.q = {rows.q.data, rows.q.rows, rows.q.cols, rows.q.stride};
    args.out = rows.out;
    args.n_heads = spec_.n_heads;
    args.n_kv_heads = spec_.n_kv_heads;
    args.k_dim = spec_.k_dim;
    args.v_dim = spec_.v_dim;
    args.scale = scale;
    args.layer = group.layers[static_cast<size_t>(layer)];
    args.sequences = block_.sequences(group, args.layer.part);
    args.n_sequences = group.n;
    const engine::OpCost own = engine::op_cost(args, block_.host_sequences(group, args.layer.part));
    cost.bytes += own.bytes;
    cost.products += own.products;
    calls.push_back(args);
  }
  if (batch_.tracer != nullptr) trace_attention(batch_, spec_, layer, cost);
  return step([&]() -> Status {
    for (const engine::AttentionArgs& args : calls) GEN_TRY(engine_.run(*stream_, args));
    return {};
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
  GEN_TRY(prepare());
  for (const graph::BatchSequence& sequence : batch_.sequences) {
    GEN_TRY(sequence.cache->stage(layer, sequence.plan));
  }
  const Rows rows = this->rows();
  GEN_TRY(upload(rows.q, q));
  GEN_TRY(upload(rows.k, k));
  GEN_TRY(upload(rows.v, v));
  if (batch_.tracer != nullptr) trace_append(batch_, spec_, layer);
  GEN_TRY(step([&] { return append(layer, rows); }));
  GEN_TRY(attend(layer, rows, scale));
  GEN_TRY(engine_.download(*stream_, out, rows.out.data.as<const std::byte>(),
                           static_cast<size_t>(rows.out.rows * rows.out.cols) * sizeof(float)));
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
