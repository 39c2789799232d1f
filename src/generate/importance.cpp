// SPDX-License-Identifier: Apache-2.0
// See importance.h.
#include "generate/importance.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/new_file.h"
#include "base/to_size.h"
#include "cache/sequence/layer_memories.h"
#include "cache/sequence/registry.h"
#include "generate/forward.h"
#include "model/importance_sums.h"

namespace gen::generate {
namespace {

constexpr int32_t kUsualWindow = 512;

Status run_window(const model::Model& model, engine::EngineMemory& memory,
                  std::span<const int32_t> tokens, model::ImportanceSums* sums) {
  GEN_ASSIGN(auto cache,
             cache::make_in_memories(
                 model.layer_shapes(), model::memories_of_layers(model, memory),
                 [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& in) {
                   return cache::make_cache("fp32", layers, static_cast<int32_t>(tokens.size()),
                                            in);
                 }));
  GEN_ASSIGN(TrialSequence sequence,
             try_sequence(model, cache::CacheTrial(std::move(cache)), nullptr));
  return forward_observed(model, tokens, *sums, sequence);
}

}  // namespace

Status write_importance(const model::Model& model, engine::EngineMemory& memory,
                        const ImportanceRun& run, const std::string& out,
                        const std::function<bool(double)>& progress) {
  const model::ModelTraits& traits = model.traits();
  GEN_TRY(check_tokens(run.tokens, traits.vocab_size));
  const int32_t width = run.window == 0 ? std::min(kUsualWindow, traits.max_seq_len) : run.window;
  const size_t before = run.bos >= 0 ? 1 : 0;
  if (traits.max_seq_len <= static_cast<int32_t>(before)) {
    return error(Code::kOutOfRange, "a context of %d has no token that others precede",
                 traits.max_seq_len);
  }
  if (width <= static_cast<int32_t>(before) || width > traits.max_seq_len) {
    return error(Code::kOutOfRange, "a window of %d tokens outside [%zu, %d]", width, before + 1,
                 traits.max_seq_len);
  }
  GEN_ASSIGN(const auto observed, model.observable());
  GEN_ASSIGN(NewFile made, NewFile::create(out));
  model::ImportanceSums sums;
  model::ImportanceText text{run.dataset, 0, static_cast<uint32_t>(width)};
  const size_t fresh = to_size(width) - before;
  std::vector<int32_t> window;
  for (size_t begin = 0; begin < run.tokens.size(); begin += fresh, ++text.windows) {
    const auto part = run.tokens.subspan(begin, std::min(fresh, run.tokens.size() - begin));
    window.assign(before, run.bos);
    window.insert(window.end(), part.begin(), part.end());
    GEN_TRY(run_window(*observed, memory, window, &sums));
    const double share =
        static_cast<double>(begin + part.size()) / static_cast<double>(run.tokens.size());
    if (progress && !progress(share)) {
      return {Code::kCancelled, "cancelled while the text was evaluated"};
    }
  }
  GEN_TRY(sums.write(text, made));
  return made.finish();
}

}  // namespace gen::generate
