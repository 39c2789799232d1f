// SPDX-License-Identifier: Apache-2.0
// Arguments as name=value, … of Python, see argument_reader.h.
#include <optional>
#include <unordered_set>

#include "calls/arguments/argument_reader.h"
#include "calls/arguments/literal_reader.h"
#include "calls/arguments/mark_reader.h"
#include "calls/arguments/text_writer.h"

namespace gen::calls {
namespace {

class PythonReader final : public ArgumentReader {
 public:
  explicit PythonReader(std::string_view end) : end_({std::string(end)}) {}

  State take(char byte, std::string* json) override {
    switch (mode_) {
      case Mode::kFirst:
      case Mode::kNext:
        return next(byte, json);
      case Mode::kEnd:
        return end(byte, json);
      case Mode::kName:
        return name(byte, json);
      case Mode::kValue:
        return value(byte, json);
    }
    return bad("no arguments");
  }

 private:
  enum class Mode : uint8_t { kFirst, kNext, kName, kValue, kEnd };

  State end(char byte, std::string* json) {
    switch (end_.take(byte)) {
      case MarkReader::kMore:
        return State::kMore;
      case MarkReader::kNone:
        return bad("',' or the end of the call is expected");
      default:
        *json += names_.empty() ? "{}" : "}";
        return State::kDone;
    }
  }

  // A name, or the end; behind a value a comma first.
  State next(char byte, std::string* json) {
    if (is_blank(byte)) return State::kMore;
    if (mode_ == Mode::kNext && byte == ',' && !comma_) {
      comma_ = true;
      return State::kMore;
    }
    if (MarkReader probe = end_; probe.take(byte) != MarkReader::kNone) {
      mode_ = Mode::kEnd;
      return end(byte, json);
    }
    if (mode_ == Mode::kNext && !comma_) return bad("',' or the end of the call is expected");
    name_.clear();
    writer_ = {};
    named_ = false;
    mode_ = Mode::kName;
    return name(byte, json);
  }

  State name(char byte, std::string* json) {
    if (is_blank(byte)) {
      named_ = true;
      return State::kMore;
    }
    if (byte != '=') {
      const bool wrong = std::string_view("()[]{},\"'").find(byte) != std::string_view::npos;
      if (named_ || wrong) return bad("a name and '=' are expected");
      return writer_.put(byte, &name_) ? State::kMore : bad("not UTF-8");
    }
    if (name_.empty()) return bad("a name and '=' are expected");
    if (!writer_.whole()) return bad("not UTF-8");
    if (!names_.insert(name_).second) return bad("a name comes twice");
    *json += (names_.size() == 1 ? "{\"" : ", \"") + name_ + "\": ";
    literal_.emplace();
    mode_ = Mode::kValue;
    return State::kMore;
  }

  State value(char byte, std::string* json) {
    const LiteralReader::State state = literal_->take(byte, json);
    if (state == LiteralReader::State::kMore) return State::kMore;
    if (state == LiteralReader::State::kBad) return bad(literal_->fault());
    mode_ = Mode::kNext;
    comma_ = false;
    return state == LiteralReader::State::kDone ? State::kMore : next(byte, json);
  }

  MarkReader end_;
  Mode mode_ = Mode::kFirst;
  bool comma_ = false;
  bool named_ = false;  // the name is complete, only '=' can follow
  std::string name_;
  TextWriter writer_;
  std::unordered_set<std::string> names_;
  std::optional<LiteralReader> literal_;
};

}  // namespace

std::unique_ptr<ArgumentReader> make_python_reader(std::string_view end) {
  return std::make_unique<PythonReader>(end);
}

}  // namespace gen::calls
