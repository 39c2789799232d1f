// SPDX-License-Identifier: Apache-2.0
// Arguments between marks, see argument_reader.h.
#include <unordered_set>
#include <vector>

#include "calls/arguments/argument_reader.h"
#include "calls/arguments/mark_reader.h"
#include "calls/arguments/value_writer.h"

namespace gen::calls {
namespace {

constexpr std::string_view kCdata = "<![CDATA[";
constexpr std::string_view kCdataEnd = "]]>";

// The second one comes before strings.
std::vector<std::string> middles_of(const ArgumentMarks& marks) {
  std::vector<std::string> all = {marks.middle, marks.text_middle};
  all.insert(all.end(), marks.other_middles.begin(), marks.other_middles.end());
  return all;
}

class TaggedReader final : public ArgumentReader {
 public:
  TaggedReader(const ArgumentMarks& marks, const Tool* tool, std::string_view end)
      : tool_(tool),
        next_({marks.open, std::string(end)}),
        middles_(middles_of(marks)),
        middle_begin_(mark_of(marks.middle).substr(0, 1)),
        close_(mark_of(marks.close)),
        close_behind_cdata_({marks.close}),
        cdata_(marks.cdata),
        says_text_(!marks.text_middle.empty()),
        line_behind_(marks.middle.ends_with('\n')),
        line_before_(marks.close.starts_with('\n')) {}

  State take(char byte, std::string* json) override {
    switch (mode_) {
      case Mode::kNext:
        return next(byte, json);
      case Mode::kName:
        return name(byte);
      case Mode::kMiddle:
        return middle(byte, json);
      case Mode::kBegin:
        return begin(byte, json);
      case Mode::kValue:
        return value(byte, json);
      case Mode::kClosed:
        return closed(byte, json);
      case Mode::kInCdata:
        return cdata(byte, json);
      case Mode::kBehindCdata:
        return behind_cdata(byte, json);
    }
    return bad("no arguments");
  }

 private:
  enum class Mode : uint8_t {
    kNext,         // an argument or the end
    kName,         //
    kMiddle,       // the mark behind the name
    kBegin,        // of a value: a line break and <![CDATA[
    kValue,        //
    kClosed,       // behind the mark that closes it, if what follows agrees
    kInCdata,      //
    kBehindCdata,  //
  };
  enum Next { kOpen, kEnd };

  State begin_name() {
    mode_ = Mode::kName;
    name_.clear();
    writer_ = {};
    return State::kMore;
  }

  State finish(std::string* json) {
    *json += names_.empty() ? "{}" : "}";
    return State::kDone;
  }

  State next(char byte, std::string* json) {
    switch (next_.take(byte)) {
      case MarkReader::kMore:
        return State::kMore;
      case kOpen:
        return begin_name();
      case kEnd:
        return finish(json);
      default:
        return bad("neither an argument nor the end of the call");
    }
  }

  State name(char byte) {
    if (std::string_view(&byte, 1) == middle_begin_) {
      mode_ = Mode::kMiddle;
      middles_.restart();
      if (middles_.take(byte) != MarkReader::kMore) return begin_value(ValueKind::kUnknown);
      return State::kMore;
    }
    // White space is none of the name: at its ends it may come from the layout.
    if (is_blank(byte)) {
      spaces_ += name_.empty() ? "" : std::string(1, byte);
      return State::kMore;
    }
    const bool valid = writer_.put(spaces_, &name_) && writer_.put(byte, &name_);
    spaces_.clear();
    return valid ? State::kMore : bad("not UTF-8");
  }

  State middle(char byte, std::string* json) {
    (void)json;
    const int mark = middles_.take(byte);
    if (mark == MarkReader::kMore) return State::kMore;
    if (mark == MarkReader::kNone) return bad("no value behind the name of an argument");
    return begin_value(mark == 1 ? ValueKind::kText : ValueKind::kOther);
  }

  // `said` counts only where the marks differ.
  State begin_value(ValueKind said) {
    spaces_.clear();
    if (name_.empty()) return bad("an argument without a name");
    if (!writer_.whole()) return bad("not UTF-8");
    if (!names_.insert(name_).second) return bad("a name comes twice");
    kind_ = says_text_ ? said : kind_of_name();
    value_.begin(kind_);
    opened_ = false;
    held_.clear();
    mode_ = Mode::kBegin;
    return State::kMore;
  }

  // The tool knows names as they are, name_ is JSON already; they differ for odd ones only.
  ValueKind kind_of_name() const {
    return tool_ == nullptr ? ValueKind::kUnknown : tool_->kind_of(name_);
  }

  State begin(char byte, std::string* json) {
    if (!opened_) {
      opened_ = true;
      *json += (names_.size() == 1 ? "{\"" : ", \"") + name_ + "\": ";
    }
    held_ += byte;
    std::string_view rest = held_;
    if (line_behind_ && rest == "\r") return State::kMore;
    if (line_behind_ && rest.starts_with('\r'))
      rest.remove_prefix(rest.starts_with("\r\n") ? 1 : 0);
    if (line_behind_ && rest.starts_with('\n')) rest.remove_prefix(1);
    if (cdata_ && rest == kCdata) {
      held_.clear();
      mode_ = Mode::kInCdata;
      return State::kMore;
    }
    if (rest.empty() || (cdata_ && kCdata.starts_with(rest))) return State::kMore;
    return refeed(std::string(rest), json);
  }

  // Bytes that were held back are the value's after all.
  State refeed(const std::string& bytes, std::string* json) {
    held_.clear();
    mode_ = Mode::kValue;
    for (const char byte : bytes) {
      if (const State state = take(byte, json); state != State::kMore) return state;
    }
    return State::kMore;
  }

  State put(std::string_view bytes, std::string* json) {
    for (const char byte : bytes) {
      if (!value_.put(byte, json)) return bad("not UTF-8");
    }
    return State::kMore;
  }

  State value(char byte, std::string* json) {
    held_ += byte;
    while (!held_.empty()) {
      std::string_view rest = held_;
      if (line_before_ && rest == "\r") return State::kMore;
      if (line_before_ && rest.starts_with("\r\n")) rest.remove_prefix(1);
      if (line_before_ && rest.starts_with('\n')) rest.remove_prefix(1);
      if (rest == close_) {
        mode_ = Mode::kClosed;
        next_.restart();
        behind_.clear();
        return State::kMore;
      }
      if (std::string_view(close_).starts_with(rest)) return State::kMore;
      if (put(held_.substr(0, 1), json) == State::kBad) return State::kBad;
      held_.erase(0, 1);
    }
    return State::kMore;
  }

  // The mark may be text of the value: it closes it only before another argument or the end.
  State closed(char byte, std::string* json) {
    behind_ += byte;
    const int mark = next_.take(byte);
    if (mark == MarkReader::kMore) return State::kMore;
    if (mark == MarkReader::kNone) {
      if (put(held_, json) == State::kBad) return State::kBad;
      std::string rest;
      rest.swap(behind_);
      // A line break before a mark that closes is none of the value, so it is held back, too.
      size_t spaces = next_.spaces();
      while (spaces > 0 && (rest[spaces - 1] == '\n' || rest[spaces - 1] == '\r') &&
             next_.spaces() - spaces < 2) {
        --spaces;
      }
      if (put(std::string_view(rest).substr(0, spaces), json) == State::kBad) return State::kBad;
      return refeed(rest.substr(spaces), json);
    }
    if (!value_.end(json)) return bad("not UTF-8");
    next_.restart();
    return mark == kOpen ? begin_name() : finish(json);
  }

  State cdata(char byte, std::string* json) {
    held_ += byte;
    if (held_ == kCdataEnd) {
      mode_ = Mode::kBehindCdata;
      close_behind_cdata_.restart();
      return State::kMore;
    }
    while (!kCdataEnd.starts_with(held_)) {
      if (put(held_.substr(0, 1), json) == State::kBad) return State::kBad;
      held_.erase(0, 1);
    }
    return State::kMore;
  }

  State behind_cdata(char byte, std::string* json) {
    const int mark = close_behind_cdata_.take(byte);
    if (mark == MarkReader::kMore) return State::kMore;
    if (mark == MarkReader::kNone) return bad("an argument goes on behind its CDATA");
    if (!value_.end(json)) return bad("not UTF-8");
    next_.restart();
    mode_ = Mode::kNext;
    return State::kMore;
  }

  const Tool* tool_;
  MarkReader next_;
  MarkReader middles_;
  std::string middle_begin_;
  std::string close_;
  MarkReader close_behind_cdata_;
  bool cdata_;
  bool says_text_;
  bool line_behind_;
  bool line_before_;
  Mode mode_ = Mode::kNext;
  std::string name_;  // as JSON, without quotes
  std::string spaces_;
  TextWriter writer_;
  std::unordered_set<std::string> names_;
  ValueKind kind_ = ValueKind::kUnknown;
  ValueWriter value_;
  bool opened_ = false;
  std::string held_;    // what may be the mark that closes
  std::string behind_;  // what came behind it
};

}  // namespace

std::unique_ptr<ArgumentReader> make_tagged_reader(const ArgumentMarks& marks, const Tool* tool,
                                                   std::string_view end) {
  return std::make_unique<TaggedReader>(marks, tool, end);
}

}  // namespace gen::calls
