// SPDX-License-Identifier: Apache-2.0
// ObjectReader: a call that is one JSON object, {"name": …, "arguments": {…}}, byte by byte. The
// arguments are passed on as soon as the name is known. Other members are ignored.
#pragma once

#include <cstdint>
#include <string>

#include "calls/arguments/json_scanner.h"
#include "calls/call_format.h"

namespace gen::calls {

class ObjectReader {
 public:
  using State = ArgumentReader::State;

  explicit ObjectReader(const Keys& keys) : keys_(keys) {}

  /// Appends to `json` more of the arguments. At kDone name() is not empty and all that was
  /// appended is one object.
  State take(char byte, std::string* json);
  [[nodiscard]] const char* fault() const noexcept { return fault_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }

 private:
  enum class Role : uint8_t { kNone, kName, kArguments, kId };

  State bad(const char* fault) noexcept {
    fault_ = fault;
    return State::kBad;
  }
  [[nodiscard]] Role role_of(const std::string& key) const noexcept;
  State end_scalar();
  void pass_on(std::string* json);

  const Keys& keys_;
  JsonScanner scanner_;
  Role role_ = Role::kNone;
  bool in_object_ = false;  // inside the arguments
  bool has_arguments_ = false;
  std::string value_;      // of the scalar that is being read, as written
  std::string arguments_;  // read, but not passed on
  std::string name_;
  std::string id_;
  const char* fault_ = "";
};

}  // namespace gen::calls
