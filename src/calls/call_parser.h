// SPDX-License-Identifier: Apache-2.0
// CallParser: reads an answer as it comes and divides it into reasoning, text and calls. Never an
// error: what is no complete call is text, and a fault says why. The result does not depend on how
// the answer is cut into pieces. Cost: linear in the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_format.h"
#include "calls/tool.h"

namespace gen::calls {

struct Call {
  std::string id;  // as the model wrote it; empty: it wrote none
  std::string name;
  std::string arguments;  // a JSON object
  friend bool operator==(const Call&, const Call&) = default;
};

struct Fault {
  size_t at = 0;  // byte of the answer
  std::string what;
};

struct Answer {
  std::string text;
  std::string reasoning;
  std::vector<Call> calls;
  std::vector<Fault> faults;
};

enum class PieceKind : uint8_t {
  kText,
  kReasoning,
  kCallName,    // text: the name; a new call begins
  kArguments,   // text: more of the JSON of its arguments
  kCallEnd,     // the call is complete
  kCallBroken,  // it is none: forget it. Its bytes come as text or reasoning
};

struct Piece {
  PieceKind kind = PieceKind::kText;
  size_t call = 0;  // number of the call in Answer::calls; of kCall… and kArguments
  std::string text = {};
};

class CallParser {
 public:
  /// `opening` is what the prompt already wrote of the answer (usually nothing, or the mark that
  /// opens reasoning). `tools` may be null.
  CallParser(std::shared_ptr<const CallFormat> format, std::shared_ptr<const Tools> tools,
             std::string_view opening = {});
  ~CallParser();
  CallParser(CallParser&&) noexcept;
  CallParser& operator=(CallParser&&) noexcept;

  /// The next part of the answer. Control tokens come as their texts.
  void feed(std::string_view bytes, std::vector<Piece>* out);
  /// The answer ended. Nothing may be fed after it.
  void finish(std::vector<Piece>* out);
  /// What was read so far; complete after finish().
  [[nodiscard]] const Answer& answer() const noexcept;
  /// Whether a call has begun that has not ended.
  [[nodiscard]] bool in_call() const noexcept;
  [[nodiscard]] bool in_reasoning() const noexcept;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

/// A whole answer at once.
Answer parse_answer(const std::shared_ptr<const CallFormat>& format,
                    const std::shared_ptr<const Tools>& tools, std::string_view answer,
                    std::string_view opening = {});

}  // namespace gen::calls
