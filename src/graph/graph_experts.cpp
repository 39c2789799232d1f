// SPDX-License-Identifier: Apache-2.0
// Routers and the products of experts, see graph.h.
#include <utility>

#include "graph/graph.h"

namespace gen::graph {

using engine::Op;

namespace {

/// kFormat for invalid router parameters.
Status check_routing(const engine::Routing& of, int64_t logits) {
  if (of.n_experts < 1 || of.n_experts != logits || of.n_used < 1 || of.n_used > of.n_experts) {
    return error(Code::kFormat, "%d of %d experts are chosen by %lld logits", of.n_used,
                 of.n_experts, static_cast<long long>(logits));
  }
  const bool groups = of.n_groups >= 1 && of.n_experts % of.n_groups == 0 &&
                      of.n_groups_used >= 1 && of.n_groups_used <= of.n_groups;
  if (!groups || of.n_experts / of.n_groups * of.n_groups_used < of.n_used) {
    return error(Code::kFormat, "%d of %d experts are chosen from %d of %d groups", of.n_used,
                 of.n_experts, of.n_groups_used, of.n_groups);
  }
  return {};
}

}  // namespace

ValueId GraphBuilder::route(ValueId logits, const engine::Routing& routing,
                            std::span<const float> bias) {
  if (!usable(logits)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(logits.index)];
  if (Status status = check_routing(routing, input.cols); !status.ok()) {
    fail(std::move(status));
    return {};
  }
  if (!bias.empty() && std::cmp_not_equal(bias.size(), routing.n_experts)) {
    fail(error(Code::kFormat, "a bias of %zu values for %d experts", bias.size(),
               routing.n_experts));
    return {};
  }
  Node node = node_on(Op::kRoute, logits);
  node.cols = 2 * int64_t{routing.n_used};
  node.index = true;
  node.routing = routing;
  node.vector = keep(bias);
  return push(node);
}

/// Whether these are the routes of the rows of `of`.
bool GraphBuilder::usable_routes(ValueId routes, ValueId of) {
  if (!status_.ok()) return false;
  const bool there = routes.index >= 0 && static_cast<size_t>(routes.index) < graph_.nodes.size();
  if (!there || !graph_.nodes[static_cast<size_t>(routes.index)].index) {
    fail(error(Code::kInternal, "graph node %zu needs what a router makes", graph_.nodes.size()));
    return false;
  }
  const Node& router = graph_.nodes[static_cast<size_t>(routes.index)];
  const Node& rows = graph_.nodes[static_cast<size_t>(of.index)];
  if (rows.selected != router.selected ||
      (rows.slots != 1 && rows.slots != router.routing.n_used)) {
    fail(error(Code::kInternal, "%d rows for each row where %d experts are", rows.slots,
               router.routing.n_used));
    return false;
  }
  return true;
}

ValueId GraphBuilder::experts(ValueId x, ValueId routes, const engine::WeightSource& stack,
                              std::span<const float> bias, std::span<const float> scales,
                              int32_t site) {
  if (!usable(x, kAnySlots) || !usable_routes(routes, x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  const engine::Routing& routing = graph_.nodes[static_cast<size_t>(routes.index)].routing;
  if (stack.cols != input.cols || stack.rows <= 0 || stack.count != routing.n_experts) {
    fail(error(
        Code::kFormat, "%s: %lld matrices of %lld x %lld do not take rows of %lld to %d experts",
        stack.name, static_cast<long long>(stack.count), static_cast<long long>(stack.rows),
        static_cast<long long>(stack.cols), static_cast<long long>(input.cols), routing.n_experts));
    return {};
  }
  if (!bias.empty() && std::cmp_not_equal(bias.size(), stack.count * stack.rows)) {
    fail(error(Code::kFormat, "%s: bias of %zu values for %lld outputs of %lld experts", stack.name,
               bias.size(), static_cast<long long>(stack.rows),
               static_cast<long long>(stack.count)));
    return {};
  }
  if (!scales.empty() && std::cmp_not_equal(scales.size(), stack.count)) {
    fail(error(Code::kFormat, "%s: %zu scales for %lld experts", stack.name, scales.size(),
               static_cast<long long>(stack.count)));
    return {};
  }
  graph_.weights.push_back(stack);
  Node node;
  node.op = Op::kExperts;
  node.inputs = {x, routes};
  node.by_expert = true;
  node.cols = stack.rows;
  node.slots = routing.n_used;
  node.selected = input.selected;
  node.routing = routing;
  node.weight = static_cast<int32_t>(graph_.weights.size() - 1);
  node.site = site;
  node.vector = keep(bias);
  node.vector2 = keep(scales);
  return push(node);
}

ValueId GraphBuilder::combine(ValueId x, ValueId routes) {
  if (!usable(x, kAnySlots) || !usable_routes(routes, x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  const engine::Routing& routing = graph_.nodes[static_cast<size_t>(routes.index)].routing;
  if (input.slots != routing.n_used) {
    fail(error(Code::kInternal, "one row of %d experts is combined", routing.n_used));
    return {};
  }
  Node node;
  node.op = Op::kCombine;
  node.by_expert = input.by_expert;
  node.inputs = {x, routes};
  node.cols = input.cols;
  node.selected = input.selected;
  node.routing = routing;
  return push(node);
}

}  // namespace gen::graph
