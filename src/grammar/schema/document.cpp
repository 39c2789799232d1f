// SPDX-License-Identifier: Apache-2.0
// Schema documents, see document.h.
#include "grammar/schema/document.h"

#include <algorithm>
#include <utility>

#include "grammar/schema/subschemas.h"
#include "grammar/schema/vocabularies.h"
#include "grammar/base/text_error.h"

namespace gen::grammar {
namespace {

constexpr size_t kMaxMetaschemas = 8;  // each the metaschema of the previous one
constexpr size_t kManyMembers = 32;
constexpr size_t kLongestUri = 2048;  // of a resource

size_t scheme_length(std::string_view uri) {
  const size_t colon = uri.find(':');
  if (colon == std::string_view::npos || colon == 0) return 0;
  const bool fine = uri.substr(0, colon).find_first_not_of(
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") ==
                    std::string_view::npos;
  return fine ? colon : 0;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool last = end == path.size();
    if (part == "..") {
      if (kept.size() > 1) kept.pop_back();
      if (last) kept.emplace_back();
    } else if (part == ".") {
      if (last) kept.emplace_back();
    } else {
      kept.push_back(part);
    }
    begin = end + 1;
  }
  std::string made;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i > 0) made += '/';
    made += kept[i];
  }
  return made;
}

// RFC 3986, section 5.2; without fragments.
std::string resolve_uri(std::string_view base, std::string_view reference) {
  if (reference.empty()) return std::string(base);
  if (scheme_length(reference) > 0) return std::string(reference);
  const size_t scheme = scheme_length(base);
  const size_t scheme_end = scheme > 0 ? scheme + 1 : 0;
  if (reference.substr(0, 2) == "//") {
    return std::string(base.substr(0, scheme_end)) + std::string(reference);
  }
  size_t path = scheme_end;
  if (base.substr(path, 2) == "//") path = std::min(base.find('/', path + 2), base.size());
  const std::string head(base.substr(0, path));
  std::string_view rest = base.substr(path);
  rest = rest.substr(0, std::min(rest.find('?'), rest.size()));
  if (reference[0] == '?') return head + std::string(rest) + std::string(reference);
  if (reference[0] == '/') return head + without_dots(reference);
  const size_t slash = rest.rfind('/');
  std::string merged(slash == std::string_view::npos ? "" : rest.substr(0, slash + 1));
  if (merged.empty() && path > scheme_end) merged = "/";
  merged += reference;
  return head + without_dots(merged);
}

std::pair<std::string_view, std::string_view> split(std::string_view uri) {
  const size_t hash = uri.find('#');
  if (hash == std::string_view::npos) return {uri, {}};
  return {uri.substr(0, hash), uri.substr(hash + 1)};
}

std::string without_fragment(std::string_view uri) { return std::string(split(uri).first); }

std::string decoded(std::string_view text) {
  const auto hex = [](char c) {
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
  };
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      made += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      made += text[i];
    }
  }
  return made;
}

const std::string* text_of(const JsonValue& node, std::string_view name) {
  const JsonValue* found = node.find(name);
  return found != nullptr && found->is(JsonType::kString) ? &found->text : nullptr;
}

// The draft of a metaschema published at json-schema.org; nothing for others.
Result<std::optional<Draft>> draft_named(const std::string& uri) {
  using Named = std::optional<Draft>;
  std::string_view name = uri;
  const auto cut = [&](std::string_view begin, std::string_view end) {
    if (!name.starts_with(begin) || !name.substr(begin.size()).ends_with(end)) return false;
    name = name.substr(begin.size(), name.size() - begin.size() - end.size());
    return true;
  };
  (void)cut("", "#");
  if (!cut("http://json-schema.org/", "schema") && !cut("https://json-schema.org/", "schema")) {
    return Named();
  }
  (void)cut("", "hyper-");
  if (name == "draft-04/") return Named(Draft::k4);
  if (name == "draft-06/") return Named(Draft::k6);
  if (name == "draft-07/") return Named(Draft::k7);
  if (name == "draft/2019-09/") return Named(Draft::k2019);
  if (name == "draft/2020-12/" || name.empty()) return Named(Draft::k2020);
  if (name == "draft-03/" || name == "draft-02/" || name == "draft-01/") {
    return error(Code::kGrammar, "/$schema: the draft %.60s is older than draft 4",
                 quoted(uri).c_str());
  }
  return Named();
}

}  // namespace

Status SchemaDocument::add(std::string_view text, const std::string& uri, Draft draft,
                           const JsonValue** out) {
  GEN_ASSIGN(JsonValue read, read_json(text, building_));
  const bool is_first = texts_.empty();
  std::vector<std::string> told;
  bool foreign = false;
  Relaxing without;
  GEN_TRY(find_dialect(read, &draft, &foreign, &without.ignored));
  if (!without.ignored.empty()) {
    std::vector<std::string> untold;  // not reported: the metaschema removes them
    relax(&read, without, &untold);
  }
  relax(&read, relaxing_, &told);
  if (foreign) told.emplace_back("/$schema: not known, read as 2020-12");
  for (std::string& line : told) {
    if (relaxed_ != nullptr) relaxed_->push_back(is_first ? std::move(line) : uri + "#" + line);
  }
  number(&read);
  texts_.push_back(std::make_unique<JsonValue>(std::move(read)));
  const JsonValue& node = *texts_.back();
  if (!without.ignored.empty()) left_out_[&node] = std::move(without.ignored);
  if (!node.is_boolean() && !node.is(JsonType::kObject)) {
    return error(Code::kGrammar, "#: a schema is an object or a boolean");
  }
  Location location;
  location.base = std::make_shared<const std::string>(uri);
  if (!is_first) location.name = uri + "#";
  location.draft = draft;
  location.resource = &node;
  resources_.try_emplace(uri, &node);
  GEN_TRY(scan(node, std::move(location)));
  *out = &node;
  return {};
}

void SchemaDocument::number(JsonValue* value) {
  std::vector<JsonValue*> open = {value};
  while (!open.empty()) {
    JsonValue* const now = open.back();
    open.pop_back();
    now->order = ++numbered_;
    const auto first = static_cast<std::ptrdiff_t>(open.size());
    for (JsonValue& item : now->items) open.push_back(&item);
    for (auto& [name, member] : now->members) open.push_back(&member);
    std::reverse(open.begin() + first, open.end());
  }
}

Result<SchemaDocument> SchemaDocument::read(std::string_view text, SchemaResolver resolver,
                                            Relaxing relaxing, std::vector<std::string>* relaxed,
                                            Building* building) {
  SchemaDocument made;
  made.resolver_ = std::move(resolver);
  made.relaxing_ = std::move(relaxing);
  made.relaxed_ = relaxed;
  made.building_ = building;
  const JsonValue* root = nullptr;
  GEN_TRY(made.add(text, "", Draft::k2020, &root));
  return made;
}

// For a document: the draft or metaschema that $schema names, and the keywords that the latter's
// vocabularies omit. Without $schema nothing changes.
Status SchemaDocument::find_dialect(const JsonValue& node, Draft* draft, bool* foreign,
                                    std::vector<std::string>* left_out) {
  const std::string* uri = text_of(node, "$schema");
  *foreign = false;
  for (size_t depth = 0; uri != nullptr; ++depth) {
    GEN_ASSIGN(const std::optional<Draft> named, draft_named(*uri));
    if (named) {
      *draft = *named;
      return {};
    }
    const std::string document = without_fragment(*uri);
    const std::optional<std::string> text =
        resolver_ && depth < kMaxMetaschemas ? resolver_(document) : std::nullopt;
    if (!text) {
      *foreign = true;
      return {};
    }
    auto read = read_json(*text, building_);
    if (!read.ok()) {
      return error(Code::kGrammar, "/$schema: %.200s: %.300s", document.c_str(),
                   read.status().message());
    }
    texts_of_metaschemas_.push_back(std::make_unique<const JsonValue>(std::move(*read)));
    const JsonValue& meta = *texts_of_metaschemas_.back();
    if (const JsonValue* list = meta.find("$vocabulary"); list != nullptr && depth == 0) {
      const std::string_view unknown = leave_out(*list, left_out);
      if (!unknown.empty()) {
        return error(Code::kGrammar, "/$schema: the vocabulary %.200s is not known",
                     quoted(std::string(unknown)).c_str());
      }
    }
    uri = text_of(meta, "$schema");
  }
  return {};
}

// Records the identifiers of a schema node; `location` becomes that of its children.
Status SchemaDocument::identify(const JsonValue& node, Location* location) {
  const bool whole = location->parent == nullptr;
  const auto id_of = [&] { return text_of(node, location->draft == Draft::k4 ? "id" : "$id"); };
  // A nested resource may have another draft.
  if (!whole && (text_of(node, "$id") != nullptr || id_of() != nullptr)) {
    if (const std::string* schema = text_of(node, "$schema")) {
      const auto named = draft_named(*schema);
      if (named.ok() && named.value()) location->draft = *named.value();
    }
  }
  const std::string* id = id_of();
  if (location->draft <= Draft::k7 && node.find("$ref") != nullptr) id = nullptr;
  if (id != nullptr) {
    const auto [uri, fragment] = split(*id);
    if (!uri.empty()) {
      const bool fits = uri.size() <= kLongestUri;
      std::string base = fits ? resolve_uri(*location->base, uri) : "";
      if (!fits || base.size() > kLongestUri) {
        return error(Code::kGrammar, "%.300s/%s: a URI of more than %zu bytes",
                     pointer_of(&node).c_str(), location->draft == Draft::k4 ? "id" : "$id",
                     kLongestUri);
      }
      location->base = std::make_shared<const std::string>(std::move(base));
      location->resource = &node;
      resources_.try_emplace(*location->base, &node);
    }
    if (!fragment.empty() && location->draft <= Draft::k7) {
      anchors_.try_emplace(*location->base + "#" + std::string(fragment), &node);
    }
  }
  if (location->draft < Draft::k2019) return {};
  for (const char* key : {"$anchor", "$dynamicAnchor"}) {
    if (const std::string* anchor = text_of(node, key)) {
      anchors_.try_emplace(*location->base + "#" + *anchor, &node);
    }
  }
  if (location->draft == Draft::k2019) {
    const JsonValue* recursive = node.find("$recursiveAnchor");
    if (recursive != nullptr && recursive->is(JsonType::kTrue) && location->resource == &node) {
      dynamic_[&node].emplace("", &node);
    }
  } else if (const std::string* anchor = text_of(node, "$dynamicAnchor")) {
    dynamic_[location->resource].emplace(*anchor, &node);
  }
  return {};
}

Status SchemaDocument::scan(const JsonValue& root, Location root_location) {
  struct Open {
    const JsonValue* node;
    Location location;
    bool is_schema;
  };
  std::vector<Open> open;  // the next one is last; no recursion
  open.push_back({&root, std::move(root_location), true});
  while (!open.empty()) {
    if (!goes_on(building_, 1)) return building_->status();
    Open now = std::move(open.back());
    open.pop_back();
    const JsonValue& node = *now.node;
    Location inside = now.location;
    locations_[&node] = now.location;
    if (node.is(JsonType::kObject) && now.is_schema) GEN_TRY(identify(node, &inside));
    locations_[&node] = {inside.base,  now.location.parent, std::move(now.location.name),
                         inside.draft, inside.resource,     now.is_schema};
    inside.parent = &node;
    const auto first = static_cast<std::ptrdiff_t>(open.size());
    for (size_t i = 0; i < node.items.size(); ++i) {
      inside.name = std::to_string(i);
      open.push_back({&node.items[i], inside, false});
    }
    for (const auto& [key, value] : node.members) {
      inside.name = key;
      const Holds what = now.is_schema ? holds(key, value) : Holds::kValue;
      if (what == Holds::kValue || what == Holds::kSchema) {
        open.push_back({&value, inside, what == Holds::kSchema});
        continue;
      }
      locations_[&value] = inside;
      Location below = inside;
      below.parent = &value;
      for (size_t i = 0; i < value.items.size(); ++i) {
        below.name = std::to_string(i);
        open.push_back({&value.items[i], below, what == Holds::kList});
      }
      for (const auto& [name, one] : value.members) {
        below.name = name;
        open.push_back({&one, below, what == Holds::kMap});
      }
    }
    std::reverse(open.begin() + first, open.end());
  }
  return {};
}

std::string SchemaDocument::pointer_of(const JsonValue* node) const {
  std::string pointer;
  for (auto location = locations_.find(node); location != locations_.end();
       location = locations_.find(location->second.parent)) {
    if (location->second.parent == nullptr) return pointer.insert(0, location->second.name);
    std::string name = "/";
    for (const char c : location->second.name) {
      if (c == kIgnoredMark) continue;
      if (c == '~') {
        name += "~0";
      } else if (c == '/') {
        name += "~1";
      } else {
        name += c;
      }
    }
    pointer.insert(0, name);
  }
  return pointer;
}

// Like find(), with a table if there are many members.
const JsonValue* SchemaDocument::member(const JsonValue& node, const std::string& name) {
  if (node.members.size() < kManyMembers) return node.find(name);
  Members& table = members_[&node];
  if (table.empty()) {
    for (const auto& [known, value] : node.members) table.emplace(known, &value);
  }
  const auto found = table.find(name);
  return found != table.end() ? found->second : nullptr;
}

const JsonValue* SchemaDocument::at_pointer(const JsonValue* node, std::string_view pointer) {
  while (!pointer.empty() && node != nullptr) {
    const size_t end = std::min(pointer.find('/', 1), pointer.size());
    std::string name;
    for (size_t i = 1; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end) {
        name += pointer[++i] == '1' ? '/' : '~';
      } else {
        name += pointer[i];
      }
    }
    pointer.remove_prefix(end);
    if (node->is(JsonType::kArray)) {
      const bool digits = !name.empty() && name.size() < 9 &&
                          name.find_first_not_of("0123456789") == std::string::npos;
      const size_t index = digits ? std::stoul(name) : node->items.size();
      node = index < node->items.size() ? &node->items[index] : nullptr;
    } else {
      const JsonValue* found = member(*node, name);
      node = found != nullptr ? found : member(*node, kIgnoredMark + name);
    }
  }
  return node;
}

// Below a name that is no keyword, values are schemas only where references lead, so that add()
// has not relaxed them.
Status SchemaDocument::relax_reached(const JsonValue& node) {
  const auto location = locations_.find(&node);
  if (location == locations_.end() || location->second.is_schema) return {};
  location->second.is_schema = true;
  const JsonValue* root = &node;
  for (auto at = location; at->second.parent != nullptr; at = locations_.find(root)) {
    root = at->second.parent;
    const std::string& name = at->second.name;
    const auto parent = locations_.find(root);
    if ((name == "enum" || name == "const") && parent->second.is_schema) return {};
  }
  auto* const value = const_cast<JsonValue*>(&node);  // a part of a text, which is not const
  Relaxing without;
  if (const auto left_out = left_out_.find(root); left_out != left_out_.end()) {
    without.ignored = left_out->second;
  }
  std::vector<std::string> told;
  const size_t n_schemas = relax(value, without, &told);
  told.clear();  // not reported, as in add()
  if (!goes_on(building_, n_schemas + relax(value, relaxing_, &told))) return building_->status();
  const std::string pointer = pointer_of(&node);
  for (const std::string& line : told) {
    const auto [place, added] = told_.insert(pointer + line);
    if (added && relaxed_ != nullptr) relaxed_->push_back(*place);
  }
  return {};
}

Result<const JsonValue*> SchemaDocument::resolve(const JsonValue* from,
                                                 std::string_view reference) {
  const auto location = locations_.find(from);
  const std::string base = location != locations_.end() ? *location->second.base : "";
  const auto [uri, raw] = split(reference);
  const std::string target = resolve_uri(base, uri);
  const std::string fragment = decoded(raw);
  const auto resource = resources_.find(target);
  const JsonValue* node = resource != resources_.end() ? resource->second : nullptr;
  if (node == nullptr && resolver_) {
    if (const std::optional<std::string> text = resolver_(target)) {
      const Status read = add(*text, target, draft_of(from), &node);
      if (!read.ok()) {
        return error(Code::kGrammar, "%.200s: %.300s", target.c_str(), read.message());
      }
    }
  }
  if (fragment.empty() || node == nullptr) return node;
  if (fragment[0] == '/') {
    node = at_pointer(node, fragment);
    if (node != nullptr) GEN_TRY(relax_reached(*node));
    return node;
  }
  const auto found = locations_.find(node);
  const auto anchor = anchors_.find(*found->second.base + "#" + fragment);
  return anchor != anchors_.end() ? anchor->second : nullptr;
}

Draft SchemaDocument::draft_of(const JsonValue* node) const {
  const auto location = locations_.find(node);
  return location != locations_.end() ? location->second.draft : Draft::k2020;
}

uint32_t SchemaDocument::enter(uint32_t scope, const JsonValue* node) {
  if (dynamic_.empty()) return 0;
  const auto location = locations_.find(node);
  if (location == locations_.end()) return scope;
  const auto anchors = dynamic_.find(location->second.resource);
  if (anchors == dynamic_.end()) return scope;
  Scope made = scopes_[scope];
  made.insert(anchors->second.begin(), anchors->second.end());  // outer anchors take precedence
  const auto known = std::find(scopes_.begin(), scopes_.end(), made);
  if (known != scopes_.end()) return static_cast<uint32_t>(known - scopes_.begin());
  scopes_.push_back(std::move(made));
  return static_cast<uint32_t>(scopes_.size() - 1);
}

const JsonValue* SchemaDocument::dynamic_target(const JsonValue* target, const std::string& name,
                                                uint32_t scope) const {
  const auto location = locations_.find(target);
  if (location == locations_.end()) return target;
  const auto own = dynamic_.find(location->second.resource);
  if (own == dynamic_.end()) return target;
  const auto anchor = own->second.find(name);
  if (anchor == own->second.end() || anchor->second != target) return target;
  const auto outer = scopes_[scope].find(name);
  return outer != scopes_[scope].end() ? outer->second : target;
}

}  // namespace gen::grammar
