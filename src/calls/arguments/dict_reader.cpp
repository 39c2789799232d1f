// SPDX-License-Identifier: Apache-2.0
// Arguments as {name:value, …}, see argument_reader.h.
#include "calls/arguments/argument_reader.h"
#include "calls/arguments/literal_reader.h"
#include "calls/arguments/mark_reader.h"

namespace gen::calls {
namespace {

class DictReader final : public ArgumentReader {
 public:
  explicit DictReader(const ArgumentMarks& marks) : literal_(marks.quote) {}

  State take(char byte, std::string* json) override {
    if (!begun_) {
      if (is_blank(byte)) return State::kMore;
      if (byte != '{') return bad("'{' is expected");
      begun_ = true;
    }
    switch (literal_.take(byte, json)) {
      case LiteralReader::State::kMore:
        return State::kMore;
      case LiteralReader::State::kDone:
        return State::kDone;
      default:
        return bad(literal_.fault());
    }
  }

 private:
  LiteralReader literal_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<ArgumentReader> make_dict_reader(const ArgumentMarks& marks) {
  return std::make_unique<DictReader>(marks);
}

}  // namespace gen::calls
