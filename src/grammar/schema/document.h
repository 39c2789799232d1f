// SPDX-License-Identifier: Apache-2.0
// A schema document: its draft, its resources ($id) and anchors, and the targets of references.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/relax.h"

namespace gen::grammar {

enum class Draft : uint8_t { k4, k6, k7, k2019, k2020 };

/// The text of the schema document with this URI (without fragment), or nothing if it is unknown.
using SchemaResolver = std::function<std::optional<std::string>(const std::string& uri)>;

/// The name of the root in messages, because its pointer is empty.
inline constexpr const char* kRoot = "#";

class SchemaDocument {
 public:
  /// kGrammar if the text is not JSON, not a schema, or of an unknown draft. `resolver` is asked
  /// for documents that references point to. `relaxed`, which must outlive this object, receives
  /// the keywords that `relaxing` removes from this document and from those; the same holds for
  /// `building`, which may be null.
  static Result<SchemaDocument> read(std::string_view text, SchemaResolver resolver = {},
                                     Relaxing relaxing = {},
                                     std::vector<std::string>* relaxed = nullptr,
                                     Building* building = nullptr);

  [[nodiscard]] const JsonValue& root() const noexcept { return *texts_[0]; }
  /// 2020-12 for nodes that belong to no document.
  [[nodiscard]] Draft draft_of(const JsonValue* node) const;
  /// The JSON pointer of a node, after URI and # in another document; empty for the root and for
  /// nodes of no document.
  [[nodiscard]] std::string pointer_of(const JsonValue* node) const;
  /// The target of `reference`, which occurs in `from`; null if it is unknown. kGrammar if it
  /// points to a document that is not a schema.
  Result<const JsonValue*> resolve(const JsonValue* from, std::string_view reference);

  /// Numbers a value and everything in it in the order of schemas, so that results do not depend on
  /// addresses. The value must stay alive.
  void number(JsonValue* value);

  /// A dynamic reference resolves to the anchor of the outermost resource on the path to it. A
  /// scope records that path as a number, 0 at the start; this returns the scope after entering
  /// `node`.
  uint32_t enter(uint32_t scope, const JsonValue* node);
  /// The target of a dynamic reference whose target as a plain reference is `target`.
  [[nodiscard]] const JsonValue* dynamic_target(const JsonValue* target, const std::string& name,
                                                uint32_t scope) const;

 private:
  struct Location {
    std::shared_ptr<const std::string> base;  // URI
    const JsonValue* parent = nullptr;
    std::string name;  // in the parent
    Draft draft = Draft::k2020;
    const JsonValue* resource = nullptr;
    bool is_schema = false;
  };
  using Scope = std::map<std::string, const JsonValue*>;  // by dynamic anchor

  Status add(std::string_view text, const std::string& uri, Draft draft, const JsonValue** out);
  Status find_dialect(const JsonValue& node, Draft* draft, bool* foreign,
                      std::vector<std::string>* left_out);
  Status identify(const JsonValue& node, Location* location);
  Status scan(const JsonValue& root, Location root_location);
  const JsonValue* member(const JsonValue& node, const std::string& name);
  const JsonValue* at_pointer(const JsonValue* node, std::string_view pointer);
  Status relax_reached(const JsonValue& node);

  SchemaResolver resolver_;
  Relaxing relaxing_;
  std::vector<std::string>* relaxed_ = nullptr;
  Building* building_ = nullptr;
  std::vector<std::unique_ptr<JsonValue>> texts_;
  std::vector<std::unique_ptr<const JsonValue>> texts_of_metaschemas_;
  std::unordered_map<const JsonValue*, Location> locations_;
  std::unordered_map<std::string, const JsonValue*> resources_;
  std::unordered_map<std::string, const JsonValue*> anchors_;  // URI#name
  std::unordered_map<const JsonValue*, Scope> dynamic_;        // by resource
  std::vector<Scope> scopes_ = {Scope()};
  std::unordered_map<const JsonValue*, std::vector<std::string>> left_out_;  // by root
  std::set<std::string> told_;                                               // of relax_reached()
  using Members = std::unordered_map<std::string, const JsonValue*>;
  std::unordered_map<const JsonValue*, Members> members_;  // of nodes with many
  uint32_t numbered_ = 0;
};

}  // namespace gen::grammar
