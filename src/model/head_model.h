// SPDX-License-Identifier: Apache-2.0
// Models of heads' graphs, which run where their target's last layer does, or where the layers are
// whose keys and values they read.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "model/draft_head.h"
#include "model/model.h"

namespace gen::model {

/// The embedding of tokens; null without one.
const engine::WeightSource* embedding_of(const graph::Graph& graph);
/// `shared` are the addresses of sources that are the target's: it has made weights of them; null:
/// all are. The file must outlive the call, and is kept if weights read it; null: none of them
/// does. kUnsupported where the target has no such weight on that engine. A graph that reads the
/// target's caches runs where these layers are; kUnsupported if they are on several engines.
Result<std::shared_ptr<const Model>> compile_head(graph::Graph graph, const HeadTarget& target,
                                                  const std::shared_ptr<const gguf::GgufFile>& file,
                                                  const std::vector<uintptr_t>* shared);

}  // namespace gen::model
