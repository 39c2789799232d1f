// SPDX-License-Identifier: Apache-2.0
// Hostile templates, hostile conversations and the corpus on threads with small stacks: what nests
// too deep for the stack is refused, and what real templates do fits into 64 kB.
#include <gtest/gtest.h>
#include <pthread.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/sanitized.h"
#include "template/json.h"
#include "template/template.h"

namespace gen::templates {
namespace {

std::string repeated(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::vector<std::string> hostile_templates() {
  std::vector<std::string> made;
  for (const char* const open : {"(", "[", "{1:", "-", "not ", "x[", "x(", "x|d(", "x is in(",
                                 "1 if ", "x(y=", "x(*", "(1,", "x[1:"}) {
    for (const size_t count : {20U, 40U, 80U, 95U, 50'000U})
      made.push_back("{{" + repeated(open, count));
  }
  for (const size_t count : {20U, 40U, 80U, 95U}) {
    made.push_back("{{ " + repeated("(", count) + "1" + repeated(")", count) + " }}");
    made.push_back("{{ " + repeated("x|d(", count) + "1" + repeated(")", count) + " }}");
    made.push_back("{{ " + repeated("[", count) + "1" + repeated("]", count) + "|tojson|length }}");
    made.push_back("{{ " + repeated("[", count) + "1" + repeated("]", count) + "|pprint|length }}");
    made.push_back("{{ " + repeated("(", count) + "1" + repeated(",)", count) + " }}");
    made.push_back(repeated("{% if 1 %}", count) + repeated("{% endif %}", count));
    made.push_back(repeated("{% for a in [1] %}", count) + repeated("{% endfor %}", count));
    made.push_back(repeated("{% set a %}", count) + "x" + repeated("{% endset %}", count));
    made.push_back(repeated("{% filter upper %}", count) + repeated("{% endfilter %}", count));
    made.push_back(repeated("{% with a = 1 %}", count) + repeated("{% endwith %}", count));
    made.push_back(repeated("{% macro m() %}", count) + repeated("{% endmacro %}", count));
    made.push_back("{% set " + repeated("(", count) + "a");
  }
  made.push_back(repeated("{% if 1 %}", 50'000));
  for (const char* const body :
       {"{{ m() }}", "{{ [m()]|join }}", "{% if true %}{{ m() }}{% endif %}",
        "{% call m() %}{% endcall %}", "{% set x %}{{ m() }}{% endset %}",
        "{% filter upper %}{{ m() }}{% endfilter %}",
        "{% for a in [1] %}{% with b = m() %}{{ b }}{% endwith %}{% endfor %}",
        "{{ ((1 + (m()|length)) * 2) ~ 'a' }}", "{{ '%s' % m() }}",
        "{{ 3.25|round(2) }}{{ '%.300f' % 1e300 }}{{ m() }}{{ '{:99.9f}'.format(1.5) }}"}) {
    made.push_back("{% macro m() %}" + std::string(body) + "{% endmacro %}{{ m() }}");
  }
  made.push_back("{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}");
  for (const char* const use :
       {"n.l == n.m", "n.l < n.m", "n.l", "n.l|tojson", "n.l|pprint", "{n.l: 1}", "n.l in {n.m: 1}",
        "[n.l, n.m]|sort", "[n.l, n.m]|unique|list", "n.l|string|length", "dict([(n.l, 1)])"}) {
    for (const char* const of : {"[n.@]", "(n.@,)", "{'k': n.@}"}) {
      for (const char* const count : {"60", "99", "190", "900"}) {
        std::string made_of = of;
        std::string other = of;
        made_of.replace(made_of.find('@'), 1, "l");
        other.replace(other.find('@'), 1, "m");
        made.push_back("{% set n = namespace(l=1, m=1) %}{% for i in range(" + std::string(count) +
                       ") %}{% set n.l = " + made_of + " %}{% set n.m = " + other +
                       " %}{% endfor %}{{ " + use + " }}");
      }
    }
  }
  return made;
}

struct Job {
  std::vector<std::string> failures;
};

void* hostile(void*) {
  for (const std::string& source : hostile_templates()) {
    auto compiled = Template::compile(source);
    if (compiled.ok()) (void)(*compiled)->render({});
  }
  Heap heap;
  for (const char* const open : {"[", "{\"a\":"}) {
    (void)read_json(repeated(open, 50'000), &heap, Writer::kUser);
    (void)read_json(repeated(open, 99), &heap, Writer::kUser);
  }
  return nullptr;
}

// Every conversation of the corpus, as the golden test renders it.
void* corpus(void* job) {
  auto& failures = static_cast<Job*>(job)->failures;
  const std::string folder = std::string(GEN_TEST_SOURCE_DIR) + "/tests/template/";
  std::ifstream rows(folder + "chat.golden", std::ios::binary);
  Heap heap;
  Variables variables;
  RenderOptions options;
  for (std::string line; std::getline(rows, line);) {
    auto row = read_json(line, &heap, Writer::kUser);
    if (!row.ok()) {
      failures.push_back(line.substr(0, 80) + ": " + row.status().message());
      continue;
    }
    if (const Value* given = row->dict().find("variables")) {
      variables.clear();
      for (const auto& [key, value] : given->dict().entries) {
        variables.emplace_back(std::string(key.view()), value);
      }
      auto now = LocalTime::from_iso(given->dict().find("now")->view());
      if (now.ok()) options.now = *now;
    }
    const std::string name(row->dict().find("template")->view());
    std::stringstream source;
    source << std::ifstream(folder + "chat/" + name, std::ios::binary).rdbuf();
    auto compiled = Template::compile(source.str());
    const Value& expected = *row->dict().find("text");
    if (!compiled.ok()) {
      failures.push_back(name + ": " + compiled.status().message());
      continue;
    }
    auto text = (*compiled)->render(variables, options);
    if (expected.is(Kind::kNone)) continue;
    if (!text.ok() || text->view() != expected.view()) {
      failures.push_back(name + ": " + (text.ok() ? "another text" : text.status().message()));
    }
  }
  return nullptr;
}

void run_on(size_t stack, void* (*what)(void*)) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, stack), 0);
  pthread_t thread{};
  Job job;
  ASSERT_EQ(pthread_create(&thread, &attributes, what, &job), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  for (const std::string& failure : job.failures) ADD_FAILURE() << failure;
}

TEST(TemplateStack, HostileTemplatesAreRefused) {
  if (gen::test::kSanitized) GTEST_SKIP() << "sanitizers take more stack";
  for (const size_t kilobytes : {64U, 128U, 256U}) run_on(kilobytes << 10, hostile);
}

TEST(TemplateStack, RealTemplatesFit) {
  if (gen::test::kSanitized) GTEST_SKIP() << "sanitizers take more stack";
  run_on(64 << 10, corpus);
}

}  // namespace
}  // namespace gen::templates
