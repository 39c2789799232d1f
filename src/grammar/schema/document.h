// SPDX-License-Identifier: Apache-2.0
// A schema document: its draft, its resources ($id) and anchors, and what a reference leads to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/relax.h"

namespace gen::grammar {

enum class Draft : uint8_t { k4, k6, k7, k2019, k2020 };

/// The text of the schema document with this URI (without fragment), or nothing if it is not
/// known.
using SchemaResolver = std::function<std::optional<std::string>(const std::string& uri)>;

/// How messages call the root, whose pointer is empty.
inline constexpr const char* kRoot = "#";

class SchemaDocument {
 public:
  /// kGrammar if the text is no JSON, no schema, or of an unknown draft. What references lead to
  /// outside is asked of `resolver`. `relaxed`, which lives as long, gets what `relaxing` takes
  /// from it and from those; `building`, which may be null, as well.
  static Result<SchemaDocument> read(std::string_view text, SchemaResolver resolver = {},
                                     Relaxing relaxing = {},
                                     std::vector<std::string>* relaxed = nullptr,
                                     Building* building = nullptr);

  [[nodiscard]] const JsonValue& root() const noexcept { return *texts_[0]; }
  /// 2020-12 for what is not of a document.
  [[nodiscard]] Draft draft_of(const JsonValue* node) const;
  /// Where it stands, as a JSON pointer, behind URI and # in another document; empty for the root
  /// and for what is of none.
  [[nodiscard]] std::string pointer_of(const JsonValue* node) const;
  /// What `reference`, which stands in `from`, leads to; null if to nothing that is known. kGrammar
  /// if it leads to a document that is no schema.
  Result<const JsonValue*> resolve(const JsonValue* from, std::string_view reference);

  /// Gives a value that is kept, and all in it, their places in the order of schemas: what is made
  /// of a document does not depend on addresses.
  void number(JsonValue* value);

  /// Dynamic references lead to the anchor of the outermost resource that the way to them went
  /// through. That is what a scope keeps: a number, 0 before anything; the one behind a way on to
  /// `node`.
  uint32_t enter(uint32_t scope, const JsonValue* node);
  /// What a dynamic reference that would lead to `target` as a plain one leads to.
  [[nodiscard]] const JsonValue* dynamic_target(const JsonValue* target, const std::string& name,
                                                uint32_t scope) const;

 private:
  struct Place {
    std::shared_ptr<const std::string> base;  // URI
    const JsonValue* parent = nullptr;
    std::string name;  // in the parent
    Draft draft = Draft::k2020;
    const JsonValue* resource = nullptr;
  };
  using Scope = std::map<std::string, const JsonValue*>;  // by dynamic anchor

  Status add(std::string_view text, const std::string& uri, Draft draft, const JsonValue** out);
  Status find_dialect(const JsonValue& node, Draft* draft, bool* foreign,
                      std::vector<std::string>* left_out);
  Status identify(const JsonValue& node, Place* place);
  Status scan(const JsonValue& root, Place root_place);
  const JsonValue* member(const JsonValue& node, const std::string& name);
  const JsonValue* at_pointer(const JsonValue* node, std::string_view pointer);

  SchemaResolver resolver_;
  Relaxing relaxing_;
  std::vector<std::string>* relaxed_ = nullptr;
  Building* building_ = nullptr;
  std::vector<std::unique_ptr<const JsonValue>> texts_;
  std::vector<std::unique_ptr<const JsonValue>> texts_of_metaschemas_;
  std::unordered_map<const JsonValue*, Place> places_;
  std::unordered_map<std::string, const JsonValue*> resources_;
  std::unordered_map<std::string, const JsonValue*> anchors_;  // URI#name
  std::unordered_map<const JsonValue*, Scope> dynamic_;        // by resource
  std::vector<Scope> scopes_ = {Scope()};
  using Members = std::unordered_map<std::string_view, const JsonValue*>;
  std::unordered_map<const JsonValue*, Members> members_;  // of nodes with many
  uint32_t numbered_ = 0;
};

}  // namespace gen::grammar
