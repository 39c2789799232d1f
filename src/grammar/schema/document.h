// SPDX-License-Identifier: Apache-2.0
// A schema document: its draft, its resources ($id) and anchors, and what a reference leads to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/relax.h"
#include "grammar/schema/schema.h"

namespace gen::grammar {

enum class Draft : uint8_t { k4, k6, k7, k2019, k2020 };

class SchemaDocument {
 public:
  /// kGrammar if the text is no JSON, no schema, or of an unknown draft, and so for the documents of
  /// `options`, which must be of the same draft. `relaxed` gets what options take from it.
  static Result<SchemaDocument> read(std::string_view text, const SchemaOptions& options,
                                     std::vector<std::string>* relaxed);

  [[nodiscard]] Draft draft() const noexcept { return draft_; }
  [[nodiscard]] const JsonValue& root() const noexcept { return *root_; }
  /// Where it stands, as a JSON pointer, behind the URI of another document; empty for the root and
  /// for what is of no document.
  [[nodiscard]] std::string pointer_of(const JsonValue* node) const;
  /// What `reference`, which stands in `from`, leads to; null if to nothing in the document.
  [[nodiscard]] const JsonValue* resolve(const JsonValue* from, std::string_view reference) const;
  /// The only schema with this $dynamicAnchor ($recursiveAnchor, if it is empty); null for none or
  /// several. What dynamic references lead to is then known without following the instance.
  [[nodiscard]] size_t dynamic_anchors(std::string_view name) const;

 private:
  struct Place {
    std::string base;  // URI
    const JsonValue* parent = nullptr;
    std::string name;  // in the parent
  };
  void scan(const JsonValue& node, const JsonValue* parent, std::string name, std::string base);

  Status add(const SchemaText& document, const Relaxing& relaxing,
             std::vector<std::string>* relaxed);

  std::unique_ptr<const JsonValue> root_;
  std::vector<std::unique_ptr<const JsonValue>> others_;
  Draft draft_ = Draft::k2020;
  std::unordered_map<const JsonValue*, Place> places_;
  std::unordered_map<std::string, const JsonValue*> resources_;
  std::unordered_map<std::string, const JsonValue*> anchors_;  // URI#name
  std::unordered_map<std::string, size_t> dynamic_;
};

}  // namespace gen::grammar
