// SPDX-License-Identifier: Apache-2.0
// Readers of a call's arguments, byte by byte, in any of the syntaxes. What they read is written as
// JSON as soon as it is certain, so that arguments can be shown while they arrive.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "calls/call_format.h"
#include "calls/tool.h"

namespace gen::calls {

/// Nested arrays, objects and tags in arguments.
inline constexpr size_t kMaxArgumentDepth = 256;

class ArgumentReader {
 public:
  enum class State : uint8_t {
    kMore,  // the byte belongs to the arguments
    kDone,  // the arguments, and their end if there is one, ended with this byte
    kBad,   // the byte does not fit; fault() says why. What was read stays as it was
  };
  virtual ~ArgumentReader() = default;
  /// Appends to `json` what is certain by now. All that was appended at kDone is one JSON object,
  /// valid by RFC 8259, without duplicate names (of those the first counts, and later ones are
  /// kBad).
  virtual State take(char byte, std::string* json) = 0;
  /// One phrase, static text.
  [[nodiscard]] const char* fault() const noexcept { return fault_; }

 protected:
  State bad(const char* fault) noexcept {
    fault_ = fault;
    return State::kBad;
  }

 private:
  const char* fault_ = "";
};

/// `end` is the mark behind the arguments, without white space at its ends. Readers of kTagged,
/// kNested and kPython take it as their last bytes; those of kJson and kDict end at a bracket
/// and do not read it. `tool` says which arguments are strings; null if it is not known: then a
/// raw value that is JSON, but no string, is that JSON, and any other a string. It and `format`
/// outlive the reader.
std::unique_ptr<ArgumentReader> make_argument_reader(const CallFormat& format, const Tool* tool,
                                                     std::string_view end);

/// Of one file each.
std::unique_ptr<ArgumentReader> make_json_reader();
std::unique_ptr<ArgumentReader> make_tagged_reader(const ArgumentMarks& marks, const Tool* tool,
                                                   std::string_view end);
std::unique_ptr<ArgumentReader> make_dict_reader(const ArgumentMarks& marks);
std::unique_ptr<ArgumentReader> make_python_reader(std::string_view end);
std::unique_ptr<ArgumentReader> make_nested_reader(const ArgumentMarks& marks, const Tool* tool,
                                                   std::string_view end);

}  // namespace gen::calls
