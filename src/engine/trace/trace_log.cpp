// SPDX-License-Identifier: Apache-2.0
// See trace_log.h.
#include "engine/trace/trace_log.h"

#include <algorithm>

namespace gen::engine {
namespace {

/// Grows by doubling; reserve() alone would allocate exactly what is asked for.
template <typename T>
void reserve_more(std::vector<T>& list, size_t more) {
  if (list.capacity() - list.size() < more) {
    list.reserve(std::max(list.size() + more, 2 * list.capacity()));
  }
}

std::string shape_text(const TraceShape& shape) {
  return "[" + std::to_string(shape.batch) + "," + std::to_string(shape.seq) + "," +
         std::to_string(shape.dim) + "]";
}

std::string list_text(const std::vector<int64_t>& list) {
  std::string out;
  for (int64_t tensor : list) out += (out.empty() ? "" : ",") + std::to_string(tensor);
  return out;
}

/// Escapes names read from files. They contain no control characters but may contain quotes.
std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

void TraceLog::reserve(size_t tensors, size_t ops) {
  reserve_more(tensors_, tensors);
  reserve_more(ops_, ops);
}

int64_t TraceLog::add_tensor(const TraceShape& shape) {
  tensors_.push_back(shape);
  return static_cast<int64_t>(tensors_.size());
}

std::string TraceLog::op_json(size_t index) const {
  const TracedOp& op = ops_[index];
  std::string attributes;
  if (op.layer >= 0) attributes = "\"layer\":" + std::to_string(op.layer);
  if (!op.weight.empty()) {
    attributes += attributes.empty() ? "" : ",";
    attributes += "\"weight\":\"" + escaped(op.weight) + "\"";
  }
  return std::string("{\"name\":\"") + op.name + "\",\"inputs\":[" + list_text(op.inputs) +
         "],\"outputs\":[" + list_text(op.outputs) + "],\"attributes\":{" + attributes + "}}";
}

std::string TraceLog::json() const {
  std::string out = incomplete_ ? "{\"incomplete\":true,\"ops\":[" : "{\"ops\":[";
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
  std::vector<bool> named(tensors_.size());
  for (const TracedOp& op : ops_) {
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (int64_t tensor : *list) named[static_cast<size_t>(tensor - 1)] = true;
    }
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!named[i]) continue;
    const std::string id = std::to_string(i + 1);
    out += "  t" + id + " [shape=box,label=\"" + id + ": " + shape_text(tensors_[i]) + "\"];\n";
  }
  for (size_t i = 0; i < ops_.size(); ++i) {
    const TracedOp& op = ops_[i];
    const std::string id = "op" + std::to_string(i);
    out += "  " + id + " [label=\"" + op.name;
    if (op.layer >= 0) out += " " + std::to_string(op.layer);
    if (!op.weight.empty()) out += "\\n" + escaped(op.weight);
    out += "\"];\n";
    for (int64_t input : op.inputs) out += "  t" + std::to_string(input) + " -> " + id + ";\n";
    for (int64_t output : op.outputs) out += "  " + id + " -> t" + std::to_string(output) + ";\n";
  }
  return out + "}\n";
}

}  // namespace gen::engine
