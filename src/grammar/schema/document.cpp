// SPDX-License-Identifier: Apache-2.0
// Schema documents, see document.h.
#include "grammar/schema/document.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/text_error.h"

namespace gen::grammar {
namespace {

// Members that hold values and not schemas.
constexpr std::array<std::string_view, 5> kValues = {"enum", "const", "default", "examples",
                                                     "example"};

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

std::string decoded(std::string_view text) {
  const auto hex = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
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

const JsonValue* at_pointer(const JsonValue* node, std::string_view pointer) {
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
      const JsonValue* found = node->find(name);
      node = found != nullptr ? found : node->find(kIgnoredMark + name);
    }
  }
  return node;
}

const std::string* text_of(const JsonValue& node, std::string_view name) {
  const JsonValue* found = node.find(name);
  return found != nullptr && found->is(JsonType::kString) ? &found->text : nullptr;
}

// `*found` stays as it is where the schema does not say.
Status draft_of(const JsonValue& node, Draft* found) {
  const std::string* uri = text_of(node, "$schema");
  if (uri == nullptr) return {};
  const auto names = [&](const char* part) { return uri->find(part) != std::string::npos; };
  if (names("draft-04")) {
    *found = Draft::k4;
  } else if (names("draft-06")) {
    *found = Draft::k6;
  } else if (names("draft-07")) {
    *found = Draft::k7;
  } else if (names("2019-09")) {
    *found = Draft::k2019;
  } else if (names("draft-03") || names("draft-02") || names("draft-01")) {
    return error(Code::kGrammar, "/$schema: the draft %.60s is older than draft 4",
                 quoted(*uri).c_str());
  }
  return {};
}

}  // namespace

Result<SchemaDocument> SchemaDocument::read(std::string_view text, const SchemaOptions& options,
                                            std::vector<std::string>* relaxed) {
  SchemaDocument made;
  GEN_ASSIGN(JsonValue root, read_json(text));
  const Relaxing relaxing = {options.ignored, options.one_of_as_any_of};
  relax(&root, relaxing, relaxed);
  made.root_ = std::make_unique<const JsonValue>(std::move(root));
  const JsonValue& node = *made.root_;
  if (!node.is_boolean() && !node.is(JsonType::kObject)) {
    return error(Code::kGrammar, "a schema is an object or a boolean");
  }
  GEN_TRY(draft_of(node, &made.draft_));
  made.scan(node, nullptr, "", "");
  for (const SchemaText& document : options.documents) {
    GEN_TRY(made.add(document, relaxing, relaxed));
  }
  return made;
}

Status SchemaDocument::add(const SchemaText& document, const Relaxing& relaxing,
                           std::vector<std::string>* relaxed) {
  const std::string uri(split(document.uri).first);
  auto read = read_json(document.text);
  if (!read.ok()) return error(Code::kGrammar, "%.200s: %s", uri.c_str(), read.status().message());
  JsonValue node = std::move(read).value();
  if (!node.is_boolean() && !node.is(JsonType::kObject)) {
    return error(Code::kGrammar, "%.200s: a schema is an object or a boolean", uri.c_str());
  }
  Draft draft = draft_;
  GEN_TRY(draft_of(node, &draft));
  if (draft != draft_) {
    return error(Code::kGrammar, "%.200s: of another draft than the schema", uri.c_str());
  }
  std::vector<std::string> told;
  relax(&node, relaxing, &told);
  for (const std::string& line : told) relaxed->push_back(uri + "#" + line);
  others_.push_back(std::make_unique<const JsonValue>(std::move(node)));
  scan(*others_.back(), nullptr, uri + "#", uri);
  return {};
}

void SchemaDocument::scan(const JsonValue& node, const JsonValue* parent, std::string name,
                          std::string base) {
  if (node.is(JsonType::kObject)) {
    const bool ref_alone = draft_ <= Draft::k7 && node.find("$ref") != nullptr;
    const std::string* id = ref_alone ? nullptr : text_of(node, draft_ == Draft::k4 ? "id" : "$id");
    if (id != nullptr) {
      const auto [uri, fragment] = split(*id);
      if (!uri.empty()) base = resolve_uri(base, uri);
      if (!fragment.empty() && draft_ <= Draft::k7) {
        anchors_.try_emplace(base + "#" + std::string(fragment), &node);
      }
      if (!uri.empty()) resources_.try_emplace(base, &node);
    }
    if (parent == nullptr) {
      resources_.try_emplace(base, &node);
      // A document is also known by the URI that it was given under.
      if (!name.empty()) resources_.try_emplace(name.substr(0, name.size() - 1), &node);
    }
    if (draft_ >= Draft::k2019) {
      for (const char* key : {"$anchor", "$dynamicAnchor"}) {
        if (const std::string* anchor = text_of(node, key)) {
          anchors_.try_emplace(base + "#" + *anchor, &node);
        }
      }
      if (const std::string* anchor = text_of(node, "$dynamicAnchor")) ++dynamic_[*anchor];
      const JsonValue* recursive = node.find("$recursiveAnchor");
      if (recursive != nullptr && recursive->is(JsonType::kTrue)) ++dynamic_[""];
    }
    for (const auto& [key, value] : node.members) {
      if (std::find(kValues.begin(), kValues.end(), key) != kValues.end() &&
          !(value.is(JsonType::kObject) && name == "properties")) {
        continue;
      }
      scan(value, &node, key, base);
    }
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    scan(node.items[i], &node, std::to_string(i), base);
  }
  places_[&node] = {std::move(base), parent, std::move(name)};
}

std::string SchemaDocument::pointer_of(const JsonValue* node) const {
  std::string pointer;
  for (auto place = places_.find(node); place != places_.end();
       place = places_.find(place->second.parent)) {
    if (place->second.parent == nullptr) return pointer.insert(0, place->second.name);
    std::string name = "/";
    for (const char c : place->second.name) {
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

const JsonValue* SchemaDocument::resolve(const JsonValue* from, std::string_view reference) const {
  const auto place = places_.find(from);
  const std::string base = place != places_.end() ? place->second.base : "";
  const auto [uri, raw] = split(reference);
  const std::string target = resolve_uri(base, uri);
  const std::string fragment = decoded(raw);
  auto resource = resources_.find(target);
  // The root is also known without the URI that it gives itself.
  const JsonValue* node = resource != resources_.end() ? resource->second : nullptr;
  if (node == nullptr && target.empty()) node = root_.get();
  if (fragment.empty()) return node;
  if (fragment[0] == '/') return node != nullptr ? at_pointer(node, fragment) : nullptr;
  const auto anchor = anchors_.find(target + "#" + fragment);
  return anchor != anchors_.end() ? anchor->second : nullptr;
}

size_t SchemaDocument::dynamic_anchors(std::string_view name) const {
  const auto found = dynamic_.find(std::string(name));
  return found != dynamic_.end() ? found->second : 0;
}

}  // namespace gen::grammar
