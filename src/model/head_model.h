// SPDX-License-Identifier: Apache-2.0
// Models of heads' graphs, which run where their target's last layer does.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "model/draft_head.h"
#include "model/model.h"

namespace gen::model {

/// `shared` are the addresses of sources that are the target's: it has made weights of them; null:
/// all are. The file must outlive the call, and is kept if weights read it; null: none of them
/// does. kUnsupported where the target has no such weight on that engine.
Result<std::shared_ptr<const Model>> compile_head(graph::Graph graph, const HeadTarget& target,
                                                  const std::shared_ptr<const gguf::GgufFile>& file,
                                                  const std::vector<uintptr_t>* shared);

}  // namespace gen::model
