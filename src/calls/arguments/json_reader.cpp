// SPDX-License-Identifier: Apache-2.0
// Arguments that are a JSON object.
#include <memory>

#include "calls/arguments/argument_reader.h"
#include "calls/arguments/json_scanner.h"

namespace gen::calls {
namespace {

class JsonReader final : public ArgumentReader {
 public:
  State take(char byte, std::string* json) override {
    const bool begins = scanner_.depth() == 0;
    const State state = scanner_.take(byte);
    if (state == State::kBad) return bad(scanner_.fault());
    if (begins && byte == '[') return bad("the arguments are no object");
    if (scanner_.in_string()) {
      append_string_byte(byte, json);
    } else if (!begins || scanner_.depth() > 0) {
      *json += byte;
    }
    return state;
  }

 private:
  JsonScanner scanner_;
};

}  // namespace

std::unique_ptr<ArgumentReader> make_json_reader() { return std::make_unique<JsonReader>(); }

}  // namespace gen::calls
