// SPDX-License-Identifier: Apache-2.0
// See lora.h.
#include "lora.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace server {
namespace {

using nlohmann::json;

constexpr size_t kShownName = 64;  // bytes of a client's name in a message

bool has_adapter(const Dialect& dialect, const std::string& name) {
  return std::find(dialect.adapters.begin(), dialect.adapters.end(), name) !=
         dialect.adapters.end();
}

/// The name of the adapter that an entry's "id" or "name" stands for.
std::string name_in(Fields& entry, const std::string& where, const Dialect& dialect) {
  const auto last = static_cast<int64_t>(dialect.adapters.size()) - 1;
  const auto id = entry.integer("id", 0, last);
  auto name = entry.text("name");
  if (id.has_value() == name.has_value()) {
    throw bad_request(where, "'" + where + "' must have either 'id' or 'name'");
  }
  if (id) return dialect.adapters[static_cast<size_t>(*id)];
  if (!has_adapter(dialect, *name)) {
    const std::string path = entry.path("name");
    throw bad_request(path, "'" + path + "' is '" + name->substr(0, kShownName) +
                                "', and no adapter has that name");
  }
  return *std::move(name);
}

float scale_in(Fields& entry) {
  const double given = entry.number("scale").value_or(1);
  const auto scale = static_cast<float>(given);
  if (!std::isfinite(scale)) {
    const std::string path = entry.path("scale");
    throw bad_request(path, "'" + path + "' is " + json(given).dump() + ", too large");
  }
  return scale;
}

std::vector<AdapterUse> uses_in(const json& list, const Dialect& dialect) {
  constexpr const char* kName = "lora";
  if (!list.is_array()) {
    throw bad_request(kName, "'lora' must be an array, not " + kind_of(list));
  }
  if (!list.empty() && dialect.adapters.empty()) {
    throw bad_request(kName, "'lora' has adapters, and the server has none");
  }
  std::vector<AdapterUse> uses;
  size_t active = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = item(kName, i);
    Fields entry(list[i], where);
    AdapterUse use{name_in(entry, where, dialect), scale_in(entry)};
    entry.refuse_rest();
    const auto same = [&](const AdapterUse& other) { return other.name == use.name; };
    if (std::any_of(uses.begin(), uses.end(), same)) {
      throw bad_request(where, "'" + where + "' is the adapter '" + use.name.substr(0, kShownName) +
                                   "' for the second time");
    }
    if (use.scale != 0) ++active;
    uses.push_back(std::move(use));
  }
  if (active > dialect.max_adapters) {
    throw bad_request(kName, "'lora' has " + std::to_string(active) +
                                 " adapters with a scale other than 0, above " +
                                 std::to_string(dialect.max_adapters));
  }
  std::erase_if(uses, [](const AdapterUse& use) { return use.scale == 0; });
  return uses;
}

}  // namespace

void read_model(Fields& fields, const Dialect& dialect, Request& request) {
  request.model = fields.text("model").value_or(dialect.model);
  if (request.model != dialect.model) {
    if (!has_adapter(dialect, request.model)) {
      const std::string others =
          dialect.adapters.empty() ? "" : ", and /v1/models lists its adapters";
      throw not_found("model",
                      "no model '" + request.model.substr(0, kShownName) + "'; there is '" +
                          dialect.model + "'" + others,
                      "model_not_found");
    }
    request.adapters = {{request.model, 1}};
  }
  const json* lora = fields.find("lora");
  if (lora == nullptr) return;
  request.adapters = uses_in(*lora, dialect);
  request.own_mix = !request.adapters.empty();
}

}  // namespace server
