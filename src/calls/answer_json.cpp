// SPDX-License-Identifier: Apache-2.0
// See answer_json.h.
#include "calls/answer_json.h"

#include "base/json_text.h"

namespace gen::calls {

std::string answer_json(const Answer& answer) {
  std::string out = "{\"text\":" + json_quote(answer.text) +
                    ",\"reasoning\":" + json_quote(answer.reasoning) + ",\"calls\":[";
  const char* comma = "";
  for (const Call& call : answer.calls) {
    out += comma;
    out += '{';
    if (!call.id.empty()) out += "\"id\":" + json_quote(call.id) + ",";
    out += "\"name\":" + json_quote(call.name) + ",\"arguments\":" + call.arguments + "}";
    comma = ",";
  }
  out += "],\"faults\":[";
  comma = "";
  for (const Fault& fault : answer.faults) {
    out += comma;
    out += "{\"at\":" + std::to_string(fault.at) + ",\"what\":" + json_quote(fault.what) + "}";
    comma = ",";
  }
  return out + "]}";
}

}  // namespace gen::calls
