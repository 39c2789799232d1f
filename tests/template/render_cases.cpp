// SPDX-License-Identifier: Apache-2.0
// Renders templates for compare.py and random_templates.py.
//
// usage: render_cases [TEMPLATE] <CASES
// CASES is one JSON object of variables per line; its "now" is the time of strftime_now. Per line
// comes
// {"text": …, "segments": [[writer, bytes], …]} or {"error": …}; before them one line for the
// compilation, {} if it went well. Without TEMPLATE a case is {"template": …, "variables": {…}}.
#include <fstream>
#include <iostream>
#include <sstream>

#include "template/json.h"
#include "template/template.h"

namespace {

using namespace gen::templates;

std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      made += '\\';
      made += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      made += escaped;
    } else {
      made += c;
    }
  }
  return made + '"';
}

std::string render(const Template& compiled, const Dict& given) {
  Variables variables;
  RenderOptions options;
  for (const auto& [key, value] : given.entries) {
    if (key.view() == "now") {
      if (auto time = LocalTime::from_iso(value.view()); time.ok()) options.now = *time;
    } else {
      variables.emplace_back(std::string(key.view()), value);
    }
  }
  auto text = compiled.render(variables, options);
  if (!text.ok()) return "{\"error\": " + quoted(text.status().message()) + "}";
  std::string made = "{\"text\": " + quoted(text->view()) + ", \"segments\": [";
  bool first = true;
  text->runs(0, text->size(), [&](std::string_view run, Writer writer) {
    made += std::string(first ? "" : ", ") + "[" + (writer == Writer::kUser ? "1" : "0") + ", " +
            std::to_string(run.size()) + "]";
    first = false;
  });
  return made + "]}";
}

std::string render(const Template& compiled, const std::string& line) {
  Heap heap;
  auto given = read_json(line, &heap, Writer::kUser);
  if (!given.ok()) return "{\"error\": " + quoted(given.status().message()) + "}";
  return render(compiled, given->dict());
}

// A case with its own template.
std::string render_own(const std::string& line) {
  Heap heap;
  auto given = read_json(line, &heap, Writer::kUser);
  if (!given.ok()) return "{\"error\": " + quoted(given.status().message()) + "}";
  auto compiled = Template::compile(given->dict().find("template")->view());
  if (!compiled.ok()) return "{\"error\": " + quoted(compiled.status().message()) + "}";
  return render(**compiled, given->dict().find("variables")->dict());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) return 2;
  if (argc == 1) {
    for (std::string line; std::getline(std::cin, line);) std::cout << render_own(line) << "\n";
    return 0;
  }
  std::ifstream file(argv[1], std::ios::binary);
  std::stringstream source;
  source << file.rdbuf();
  auto compiled = Template::compile(source.str());
  if (!compiled.ok()) {
    std::cout << "{\"error\": " << quoted(compiled.status().message()) << "}\n";
    return 0;
  }
  std::cout << "{}\n";
  for (std::string line; std::getline(std::cin, line);)
    std::cout << render(**compiled, line) << "\n";
  return 0;
}
