// SPDX-License-Identifier: Apache-2.0
// Chat templates: Jinja as transformers sets it up (trim_blocks, lstrip_blocks, loop controls,
// values that cannot be changed, tojson as json.dumps), rendered to a text that knows who wrote
// what.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "template/evaluator.h"

namespace gen::templates {

struct RenderOptions {
  std::optional<LocalTime> now;  // of strftime_now; without it the machine's clock
  Limits limits;
};

/// A template, compiled once. Threads: immutable; any number may render at once.
class Template {
 public:
  /// kFormat, naming the line, for what is no template; kUnsupported, naming it, for a tag, filter
  /// or test that is not known and that would be met in every rendering, and for too deep nesting.
  static Result<std::shared_ptr<const Template>> compile(std::string_view source);
  ~Template();
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  /// `variables` stay as they are; of a name that comes twice the last value counts. Errors:
  /// kInvalidArgument for what the template does not take, with the line (raise_exception: "the
  /// template says: …"); kOutOfRange beyond the limits; kUnsupported for an unknown filter or test
  /// that was met.
  [[nodiscard]] Result<Text> render(const Variables& variables,
                                    const RenderOptions& options = {}) const;

  /// Whether a variable of that name is read anywhere.
  [[nodiscard]] bool reads(std::string_view name) const noexcept;

 private:
  explicit Template(std::unique_ptr<const Program> program);
  std::unique_ptr<const Program> program_;
};

}  // namespace gen::templates
