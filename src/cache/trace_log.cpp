// SPDX-License-Identifier: Apache-2.0
// See trace_log.h.
#include "cache/trace_log.h"

#include <algorithm>

namespace gen::cache {
namespace {

/// Grows by doubling where reserve() alone would grow by what is asked.
template <typename T>
void reserve_more(std::vector<T>& list, size_t more) {
  if (list.capacity() - list.size() < more) {
    list.reserve(std::max(list.size() + more, 2 * list.capacity()));
  }
}

std::string shape_text(const TensorShape& shape) {
  return "[" + std::to_string(shape.batch) + "," + std::to_string(shape.seq) + "," +
         std::to_string(shape.dim) + "]";
}

}  // namespace

void TraceLog::reserve(size_t tensors, size_t ops) {
  reserve_more(tensors_, tensors);
  reserve_more(ops_, ops);
}

int64_t TraceLog::add_tensor(const TensorShape& shape) {
  tensors_.push_back(shape);
  return static_cast<int64_t>(tensors_.size());
}

std::string TraceLog::op_json(size_t index) const {
  const TracedOp& op = ops_[index];
  std::string inputs;
  for (int64_t input : op.inputs) {
    if (input != 0) inputs += (inputs.empty() ? "" : ",") + std::to_string(input);
  }
  return std::string("{\"name\":\"") + op.name + "\",\"inputs\":[" + inputs + "],\"outputs\":[" +
         std::to_string(op.output) + "],\"attributes\":{\"layer\":" + std::to_string(op.layer) +
         "}}";
}

std::string TraceLog::json() const {
  std::string out = "{\"ops\":[";
  for (size_t i = 0; i < ops_.size(); ++i) out += (i > 0 ? ",\n" : "\n") + op_json(i);
  out += "\n],\"tensors\":[";
  for (size_t i = 0; i < tensors_.size(); ++i) {
    out += (i > 0 ? ",\n" : "\n") + std::string("{\"id\":") + std::to_string(i + 1) +
           ",\"shape\":" + shape_text(tensors_[i]) + "}";
  }
  return out + "\n]}\n";
}

std::string TraceLog::dot() const {
  std::string out = "digraph trace {\n";
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::string id = std::to_string(i + 1);
    out += "  t" + id + " [shape=box,label=\"" + id + ": " + shape_text(tensors_[i]) + "\"];\n";
  }
  for (size_t i = 0; i < ops_.size(); ++i) {
    const std::string id = "op" + std::to_string(i);
    out += "  " + id + " [label=\"" + ops_[i].name + " " + std::to_string(ops_[i].layer) + "\"];\n";
    for (int64_t input : ops_[i].inputs) {
      if (input != 0) out += "  t" + std::to_string(input) + " -> " + id + ";\n";
    }
    out += "  " + id + " -> t" + std::to_string(ops_[i].output) + ";\n";
  }
  return out + "}\n";
}

}  // namespace gen::cache
