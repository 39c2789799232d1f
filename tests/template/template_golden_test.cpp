// SPDX-License-Identifier: Apache-2.0
// Every rendering of the golden files is Jinja2's, and what Jinja2 refuses is refused; see
// make_goldens.py and random_templates.py.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "template/json.h"
#include "template/template.h"

namespace gen::templates {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Rows of a golden file; a template is its text, or a file's name in `folder`.
void compare(const std::string& name, const std::string& folder, size_t least) {
  std::istringstream rows(read(std::string(GEN_TEST_SOURCE_DIR) + "/tests/template/" + name));
  Heap heap;
  Variables variables;
  RenderOptions options;
  size_t count = 0;
  for (std::string line; std::getline(rows, line); ++count) {
    auto row = read_json(line, &heap, Writer::kUser);
    ASSERT_TRUE(row.ok()) << row.status().message();
    const Dict& dict = row->dict();
    if (const Value* given = dict.find("variables")) {
      variables.clear();
      for (const auto& [key, value] : given->dict().entries) {
        if (key.view() != "now") variables.emplace_back(std::string(key.view()), value);
      }
      auto now = LocalTime::from_iso(given->dict().find("now")->view());
      ASSERT_TRUE(now.ok());
      options.now = *now;
    }
    std::string source(dict.find("template")->view());
    const std::string shown = source + " (row " + std::to_string(count + 1) + ")";
    if (!folder.empty()) source = read(folder + "/" + source);
    const Value& expected = *dict.find("text");
    auto compiled = Template::compile(source);
    if (expected.is(Kind::kNone)) {
      if (!compiled.ok()) continue;
      EXPECT_FALSE((*compiled)->render(variables, options).ok()) << shown;
      continue;
    }
    if (!compiled.ok()) {
      ADD_FAILURE() << shown << ": " << compiled.status().message();
      continue;
    }
    auto text = (*compiled)->render(variables, options);
    if (!text.ok()) {
      ADD_FAILURE() << shown << ": " << text.status().message();
      continue;
    }
    EXPECT_EQ(text->view(), expected.view()) << shown;
  }
  EXPECT_GE(count, least);
}

TEST(TemplateGolden, Constructs) { compare("cases.golden", "", 500); }

// Programs of random_templates.py.
TEST(TemplateGolden, RandomPrograms) { compare("random.golden", "", 120); }

TEST(TemplateGolden, Conversations) {
  compare("chat.golden", std::string(GEN_TEST_SOURCE_DIR) + "/tests/template/chat", 80);
}

}  // namespace
}  // namespace gen::templates
