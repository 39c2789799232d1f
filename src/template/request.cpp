// SPDX-License-Identifier: Apache-2.0
// See request.h.
#include "template/request.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "template/json.h"
#include "template/roles.h"

namespace gen::templates {
namespace {

void quote(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(byte));
      out->append(escaped);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

Status wants(const Value& value, Kind kind, const char* name, const char* what) {
  if (value.is(kind)) return {};
  return error(Code::kInvalidArgument, "%s is not %s", name, what);
}

/// The messages. Roles that templates know count as written by the template.
Result<Value> messages_of(const Value& given, Heap* heap) {
  GEN_TRY(wants(given, Kind::kSequence, "messages", "an array"));
  std::vector<Value> rows;
  for (const Value& message : given.sequence().values) {
    GEN_TRY(wants(message, Kind::kDict, "a message", "an object"));
    auto* const row = heap->make<Dict>();
    for (const auto& [key, value] : message.dict().entries) {
      Value role = value;
      if (key.view() == "role" && value.is(Kind::kString) && is_known_role(value.view())) {
        GEN_ASSIGN(role, heap->string(value.view(), Writer::kTemplate));
      }
      row->set(key, role);
    }
    rows.push_back(Value::of(Kind::kDict, row));
  }
  return heap->sequence(Form::kList, std::move(rows));
}

struct Request {
  Variables variables;
  RenderOptions options;
};

Status take_token(std::string_view text, const char* name, Heap* heap, Request* to) {
  GEN_ASSIGN(const Value word, heap->string(text, Writer::kTemplate));
  to->variables.emplace_back(name, word);
  return {};
}

Status take_variables(const Value& given, Request* to) {
  GEN_TRY(wants(given, Kind::kDict, "variables", "an object"));
  for (const auto& [key, value] : given.dict().entries) {
    for (const char* const own : {"messages", "tools", "add_generation_prompt"}) {
      if (key.view() == own) {
        return error(Code::kInvalidArgument, "%s cannot be a variable too", own);
      }
    }
    to->variables.emplace_back(std::string(key.view()), value);
  }
  return {};
}

Status take_member(std::string_view name, const Value& value, Heap* heap, Request* to) {
  if (name == "messages") {
    GEN_ASSIGN(const Value messages, messages_of(value, heap));
    to->variables.emplace_back("messages", messages);
    return {};
  }
  if (name == "tools") {
    if (!value.is(Kind::kNone)) GEN_TRY(wants(value, Kind::kSequence, "tools", "an array"));
    to->variables.emplace_back("tools", value);
    return {};
  }
  if (name == "add_generation_prompt") {
    GEN_TRY(wants(value, Kind::kBool, "add_generation_prompt", "true or false"));
    to->variables.emplace_back("add_generation_prompt", value);
    return {};
  }
  for (const char* const token : {"bos_token", "eos_token"}) {
    if (name != token) continue;
    if (value.is(Kind::kNone)) {
      to->variables.emplace_back(token, value);
      return {};
    }
    GEN_TRY(wants(value, Kind::kString, token, "a string"));
    return take_token(value.view(), token, heap, to);
  }
  if (name == "variables") return take_variables(value, to);
  if (name == "now") {
    GEN_TRY(wants(value, Kind::kString, "now", "a string"));
    GEN_ASSIGN(to->options.now, LocalTime::from_iso(value.view()));
    return {};
  }
  return error(Code::kInvalidArgument,
               "unknown member '%.64s': there are messages, tools, add_generation_prompt, "
               "bos_token, eos_token, variables and now",
               std::string(name).c_str());
}

}  // namespace

Result<std::string> render_request(const Template& compiled, std::string_view request,
                                   const RequestDefaults& defaults) {
  Heap heap;
  GEN_ASSIGN(const Value given, read_json(request, &heap, Writer::kUser));
  GEN_TRY(wants(given, Kind::kDict, "the request", "an object"));
  if (given.dict().find("messages") == nullptr) {
    return error(Code::kInvalidArgument, "the request has no messages");
  }
  Request made;
  made.variables = {{"add_generation_prompt", Value::of(false)}};
  if (!defaults.bos_token.empty()) {
    GEN_TRY(take_token(defaults.bos_token, "bos_token", &heap, &made));
  }
  if (!defaults.eos_token.empty()) {
    GEN_TRY(take_token(defaults.eos_token, "eos_token", &heap, &made));
  }
  for (const auto& [key, value] : given.dict().entries) {
    GEN_TRY(take_member(key.view(), value, &heap, &made));
  }
  GEN_ASSIGN(const Text text, compiled.render(made.variables, made.options));
  std::string json = "{\"text\": ";
  quote(text.view(), &json);
  json += ", \"segments\": [";
  const char* before = "";
  text.runs(0, text.size(), [&](std::string_view run, Writer writer) {
    json += before;
    before = ", ";
    json += "{\"text\": ";
    quote(run, &json);
    json += writer == Writer::kTemplate ? ", \"special\": true}" : ", \"special\": false}";
  });
  return json + "]}";
}

}  // namespace gen::templates
