// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a Lark file: definitions, and their bodies as nodes in postorder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/notation/lark_reader.h"

namespace gen::grammar {

struct LarkNode {
  enum class Kind : uint8_t {
    kString,
    kRange,  // place is the first string; min: the word of the second one
    kRegex,
    kName,    // of a rule or terminal
    kCommon,  // min: number of the common terminal
    kToken,
    kJson,       // %json
    kSubstring,  // %regex
    kNested,     // %lark; min: number of the nested file
    kSequence,
    kChoice,
    kBoth,  // the & of all operands
    kNot,
    kRepeat,
  };
  Kind kind = Kind::kSequence;
  bool in_terminal = false;  // nothing is ignored, and only regular constructs are allowed
  uint32_t place = 0;        // among the words
  uint32_t first = 0;        // of its operands
  uint32_t count = 0;
  uint32_t min = 0;
  uint32_t max = 0;
};

/// All nodes of a body, and its root.
struct LarkBody {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t whole = 0;
};

struct LarkDefinition {
  std::string_view name;
  uint32_t place = 0;
  bool terminal = false;
  bool lazy = false;
  bool has_suffix = false;
  bool has_stop = false;
  uint32_t suffix = 0;  // nodes of the body's range
  uint32_t stop = 0;
  LarkBody body;
};

struct LarkFile {
  std::vector<LarkNode> nodes;
  std::vector<uint32_t> parts;
  std::vector<LarkDefinition> definitions;
  std::vector<LarkBody> ignored;
  std::vector<std::unique_ptr<LarkFile>> nested;
  uint32_t end_place = 0;
  bool ignore_at_start = false;
  bool ignore_once = false;
};

/// kGrammar with line and column, naming refused constructs. Cost: linear. Recurses only for %lark
/// inside %lark, a few levels.
Result<std::unique_ptr<LarkFile>> parse_lark_file(std::string_view text,
                                                  const std::vector<LarkPlace>& places);

}  // namespace gen::grammar
