// SPDX-License-Identifier: Apache-2.0
// CallReader: reads one call with marks, part by part and byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "calls/arguments/argument_reader.h"
#include "calls/arguments/object_reader.h"
#include "calls/call_format.h"
#include "calls/call_parser.h"
#include "calls/tool.h"

namespace gen::calls {

class CallReader {
 public:
  enum class State : uint8_t {
    kMore,  // the byte belongs to the call
    kDone,  // the call is complete
    kBad,   // it is none; fault() says why
  };

  /// `tools` may be null; both outlive it.
  CallReader(const CallFormat& format, const Tools* tools) : format_(format), tools_(tools) {}

  /// Begins a call, behind its first mark if `behind_mark`.
  void begin(bool behind_mark);
  /// Begins the arguments of a call whose name a message's header said.
  void begin_body(const std::string& name);
  State take(char byte);
  /// Behind kDone and kBad: how many of the last bytes do not belong to the call.
  [[nodiscard]] size_t back() const noexcept { return back_; }
  /// Behind kDone: the last mark is missing.
  [[nodiscard]] bool unclosed() const noexcept { return back_ > 0; }
  /// Whether the call would be complete if the answer ended here.
  [[nodiscard]] bool may_end() const noexcept;
  [[nodiscard]] const char* fault() const noexcept { return fault_; }

  /// The last byte of take() made the name known.
  [[nodiscard]] bool name_found() const noexcept { return name_found_; }
  /// What the last byte added to the arguments.
  [[nodiscard]] const std::string& more() const noexcept { return more_; }
  [[nodiscard]] Call& call() noexcept { return call_; }

 private:
  enum class Next : uint8_t { kMore, kDone, kBad, kAgain };  // kAgain: the byte is the next part's

  void clear();
  Next begin_part(size_t part);
  Next bad(const char* fault, size_t back) noexcept;
  Next take_text(char byte);
  Next take_word(char byte);
  Next take_object(char byte);
  Next take_arguments(char byte);
  void found_name(std::string name, std::string id);

  const CallFormat& format_;
  const Tools* const tools_;
  bool in_body_ = false;
  size_t part_ = 0;
  std::string word_;
  bool named_ = false;
  bool name_found_ = false;
  Call call_;
  std::string more_;
  const Tool* tool_ = nullptr;
  std::optional<ObjectReader> object_;
  std::unique_ptr<ArgumentReader> arguments_;
  size_t back_ = 0;
  const char* fault_ = "";
};

}  // namespace gen::calls
