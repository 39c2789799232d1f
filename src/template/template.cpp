// SPDX-License-Identifier: Apache-2.0
// See template.h.
#include "template/template.h"

#include <algorithm>

#include "template/parser.h"

namespace gen::templates {

Template::Template(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Template::~Template() = default;

Result<std::shared_ptr<const Template>> Template::compile(std::string_view source) {
  GEN_ASSIGN(auto program, parse(source));
  return std::shared_ptr<const Template>(new Template(std::move(program)));
}

Result<Text> Template::render(const Variables& variables, const RenderOptions& options) const {
  const LocalTime now = options.now ? *options.now : LocalTime::system();
  return Evaluator(*program_, variables, now, options.limits).run();
}

bool Template::reads(std::string_view name) const noexcept {
  return std::find(program_->names.begin(), program_->names.end(), name) != program_->names.end();
}

}  // namespace gen::templates
