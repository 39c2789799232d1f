// SPDX-License-Identifier: Apache-2.0
// See inspect_tensors.h.
#include "inspect_tensors.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf_types.h"
#include "inspect_beside.h"
#include "text_format.h"

namespace cli {
namespace {

using nlohmann::ordered_json;

/// "blk.12.attn_q.weight" apart: what is before the number, the number, what is behind it.
struct LayerName {
  std::string stem;
  int64_t layer = -1;  // -1: of no layer
  std::string role;
};

LayerName layer_name(const std::string& name) {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    uint32_t layer = 0;
    const char* const end = name.data() + name.size();
    const auto [past, failure] = std::from_chars(&name[dot] + 1, end, layer);
    if (failure != std::errc() || past == end || *past != '.') continue;
    const std::string_view rest(past + 1, end);
    if (rest == "weight" || rest == "bias") continue;  // "mm.0.weight" is of no layer
    return {name.substr(0, dot), layer, std::string(past + 1, end)};
  }
  return {"", -1, name};
}

constexpr const char* kHead = "a head, needed only to draft";

/// Why a tensor that the library knows is not needed by the model.
std::string why_unused(const std::string& name, int64_t layers) {
  const auto begins = [&](std::initializer_list<std::string_view> stems) {
    return std::any_of(stems.begin(), stems.end(),
                       [&](std::string_view stem) { return name.starts_with(stem); });
  };
  const LayerName place = layer_name(name);
  if (begins({"v.",
              "a.",
              "s.",
              "mm.",
              "clip.",
              "vision.",
              "vision_",
              "visual.",
              "audio.",
              "audio_",
              "resampler.",
              "multi_modal_projector.",
              "model.vision",
              "model.visual",
              "model.audio",
              "model.multi_modal_projector.",
              "model.embed_vision.",
              "model.embed_audio.",
              "model.image_newline",
              "image_newline"})) {
    return "pictures and sound, which are not supported";
  }
  if ((place.stem == "blk" && place.layer >= layers) || begins({"eagle.", "mtp.", "nextn."}) ||
      name.find(".nextn.") != std::string::npos) {
    return kHead;
  }
  if (name.ends_with(".input_scale")) return "for inputs of 4 bits, which are not used";
  return "not needed by this architecture";
}

struct Sum {
  uint64_t tensors = 0;
  uint64_t weights = 0;
  uint64_t bytes = 0;
  size_t order = 0;  // by when it was first added to
};
/// A file may have as many of them as tensors.
using Sums = std::map<std::string, Sum>;

void add(Sums* sums, const std::string& key, const GgufHead::Tensor& tensor) {
  Sum& sum = sums->try_emplace(key, Sum{.order = sums->size()}).first->second;
  sum.tensors += 1;
  sum.weights += tensor.elements;
  sum.bytes += tensor.bytes;
}

ordered_json as_json(const Sum& sum) {
  return {{"tensors", sum.tensors}, {"weights", sum.weights}, {"bytes", sum.bytes}};
}

/// Sorted by `before`, and those alike as they came.
template <class Before>
ordered_json listed(const Sums& sums, Before before) {
  std::vector<const Sums::value_type*> rows;
  for (const auto& row : sums) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    if (before(a->second, b->second)) return true;
    return !before(b->second, a->second) && a->second.order < b->second.order;
  });
  ordered_json::object_t made;  // keys differ
  for (const auto* row : rows) made.emplace_back(row->first, as_json(row->second));
  return made;
}

std::string tensors_text(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " tensor" : " tensors");
}

/// "0-3, 6, 8-9"
std::string ranges(const std::vector<int64_t>& layers) {
  std::string out;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") + std::to_string(layers[i]);
    if (last > i) out += "-" + std::to_string(layers[last]);
    i = last + 1;
  }
  return out;
}

/// Words from column `from` on, at most 100 columns wide.
void print_words(const std::vector<std::string>& words, size_t from) {
  constexpr size_t kWidth = 100;
  size_t at = from;
  for (const std::string& word : words) {
    if (at > from && at + 1 + word.size() > kWidth) {
      std::cout << "\n" << std::string(from, ' ');
      at = from;
    }
    if (at > from) std::cout << " ";
    std::cout << word;
    at += word.size() + 1;
  }
  std::cout << "\n";
}

/// A layer's tensors by type.
struct TypeRow {
  uint64_t bytes = 0;
  std::vector<std::string> roles;
};
using Layer = std::map<std::string, TypeRow>;

void print_layers(const std::string& stem, const std::vector<int64_t>& numbers,
                  const Layer& layer) {
  uint64_t bytes = 0;
  for (const auto& [type, row] : layer) bytes += row.bytes;
  const std::string label = "  " + printable(stem) + " " + ranges(numbers);
  std::cout << label << (numbers.size() > 1 ? " (" + std::to_string(numbers.size()) + ")" : "")
            << ": " << size_text(bytes) << (numbers.size() > 1 ? " each" : "") << "\n";
  std::vector<std::pair<std::string, TypeRow>> rows(layer.begin(), layer.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  for (const auto& [type, row] : rows) {
    std::cout << format("    %-10s %10s  ", type.c_str(), size_text(row.bytes).c_str());
    print_words(row.roles, 28);
  }
}

}  // namespace

void describe_tensors(const GgufHead& head, const ordered_json& loaded, bool head_drafts,
                      ordered_json* out) {
  std::set<std::string> unused;
  if (loaded.contains("unused_tensors")) {
    unused = loaded["unused_tensors"].get<std::set<std::string>>();
  }
  const int64_t layers = loaded.is_object() ? loaded.value("num_layers", int64_t{0}) : 0;
  ordered_json list = ordered_json::array();
  Sums types;
  Sums reasons;
  Sums drafting;
  for (const GgufHead::Tensor& tensor : head.tensors) {
    const std::string type = gguf_type_name(tensor.type);
    ordered_json one;
    one["name"] = tensor.name;
    one["type"] = type;
    one["type_id"] = tensor.type;
    one["shape"] = tensor.dims;
    one["weights"] = tensor.elements;
    one["bytes"] = tensor.bytes;
    if (const int64_t layer = layer_name(tensor.name).layer; layer >= 0) one["layer"] = layer;
    if (!head.is_there(tensor)) one["there"] = false;
    if (unused.contains(tensor.name)) {
      const std::string why = why_unused(tensor.name, layers);
      if (head_drafts && why == kHead) {
        one["drafts"] = true;
        add(&drafting, "head", tensor);
      } else {
        one["unused"] = why;
        add(&reasons, why, tensor);
      }
    }
    list.push_back(std::move(one));
    add(&types, type, tensor);
  }
  (*out)["types"] = listed(types, [](const Sum& a, const Sum& b) { return a.bytes > b.bytes; });
  if (!drafting.empty()) (*out)["head"] = as_json(drafting["head"]);
  if (loaded.is_object())
    (*out)["unused"] = listed(reasons, [](const Sum&, const Sum&) { return false; });
  (*out)["tensors"] = std::move(list);
}

ordered_json describe_missing(const GgufHead& head) {
  if (head.is_whole()) return nullptr;
  ordered_json out;
  uint64_t needed = 0;
  uint64_t tensors = 0;
  for (const GgufHead::Part& part : head.parts) {
    if (__builtin_add_overflow(needed, part.needed, &needed)) needed = UINT64_MAX;
    tensors += part.tensors;
    if (part.size == 0) out["parts"].push_back(part.path);
  }
  out["ends_at"] = head.size();
  out["needed"] = needed;
  out["tensors"] = tensors;
  out["listed"] = head.tensors.size();
  uint64_t whole = 0;
  for (const GgufHead::Tensor& tensor : head.tensors) {
    if (head.is_there(tensor)) {
      ++whole;
    } else if (!out.contains("first")) {
      out["first"] = tensor.name;
    }
  }
  out["whole"] = whole;
  return out;
}

void print_tensors(const ordered_json& described) {
  // Of each layer, in the order of the file.
  std::vector<std::string> stems;
  std::map<std::string, std::map<int64_t, Layer>> layers;
  std::vector<const ordered_json*> others;
  uint64_t bytes = 0;
  uint64_t weights = 0;
  const ordered_json& tensors = described["tensors"];
  for (const ordered_json& tensor : tensors) {
    LayerName name = layer_name(tensor["name"].get<std::string>());
    const auto size = tensor["bytes"].get<uint64_t>();
    bytes += size;
    weights += tensor["weights"].get<uint64_t>();
    if (name.layer < 0) {
      others.push_back(&tensor);
      continue;
    }
    if (!layers.contains(name.stem)) stems.push_back(name.stem);
    TypeRow& row = layers[name.stem][name.layer][tensor["type"].get<std::string>()];
    row.bytes += size;
    if (name.role.ends_with(".weight")) name.role.resize(name.role.size() - 7);
    row.roles.push_back(printable(name.role));
  }
  std::cout << "tensors: " << tensors.size() << ", " << size_text(bytes);
  if (described.value("type", "") != kImportanceType) {
    std::cout << ", " << count_text(weights) << " weights";
  }
  std::cout << "\n";
  for (const auto& [type, sum] : described["types"].items()) {
    const auto size = sum["bytes"].get<uint64_t>();
    std::cout << format(
        "  %-12s %10s %6s  %5llu tensor%s\n", type.c_str(), size_text(size).c_str(),
        percent(static_cast<double>(size) / static_cast<double>(std::max(bytes, size))).c_str(),
        static_cast<unsigned long long>(sum["tensors"].get<uint64_t>()),
        sum["tensors"].get<uint64_t>() == 1 ? "" : "s");
  }
  if (!layers.empty()) std::cout << "layers:\n";
  for (const std::string& stem : stems) {
    // Equal ones together, at the place of the first.
    std::vector<std::pair<const Layer*, std::vector<int64_t>>> runs;
    std::map<std::string, size_t> known;
    for (auto& [number, layer] : layers[stem]) {
      std::string key;
      for (auto& [type, row] : layer) {
        std::sort(row.roles.begin(), row.roles.end());
        key += type + ":" + std::to_string(row.bytes) + ":";
        for (const std::string& role : row.roles) key += role + " ";
      }
      const auto [at, fresh] = known.emplace(std::move(key), runs.size());
      if (fresh) runs.push_back({&layer, {}});
      runs[at->second].second.push_back(number);
    }
    for (const auto& [layer, numbers] : runs) print_layers(stem, numbers, *layer);
  }
  if (!others.empty()) std::cout << "other tensors:\n";
  for (const ordered_json* tensor : others) {
    std::string shape;
    for (const ordered_json& dim : (*tensor)["shape"]) {
      shape += (shape.empty() ? "" : " x ") + std::to_string(dim.get<uint64_t>());
    }
    std::cout << format("  %-10s %10s  %s  %s\n", (*tensor)["type"].get<std::string>().c_str(),
                        size_text((*tensor)["bytes"].get<uint64_t>()).c_str(),
                        printable((*tensor)["name"].get<std::string>()).c_str(), shape.c_str());
  }
  if (described.contains("head")) {
    const ordered_json& sum = described["head"];
    std::cout << "a head that drafts: " << tensors_text(sum["tensors"].get<uint64_t>()) << ", "
              << size_text(sum["bytes"].get<uint64_t>()) << "\n";
  }
  if (described.contains("unused") && !described["unused"].empty()) {
    std::cout << "unused:\n";
    for (const auto& [why, sum] : described["unused"].items()) {
      std::cout << "  " << tensors_text(sum["tensors"].get<uint64_t>()) << ", "
                << size_text(sum["bytes"].get<uint64_t>()) << ": " << why << "\n";
    }
  }
}

}  // namespace cli
