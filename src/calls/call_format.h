// SPDX-License-Identifier: Apache-2.0
// CallFormat: how a family of models writes reasoning, text and calls of tools. A plain
// description, from which the parser of answers (call_parser.h) and the grammar of calls
// (call_grammar.h) are made, and which is compared with what the family's template writes. One
// family per file in formats/; format_table.h lists them.
//
// An answer is a row of these, in any order: reasoning between its marks, text, sections with
// calls. Marks are written here as the template writes them, with the white space at their ends; a
// parser ignores that white space. Where a mark is a control token, its text is that of the
// vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gen::calls {

/// Two marks around something.
struct Marks {
  std::string open;
  std::string close;
  friend bool operator==(const Marks&, const Marks&) = default;
};

enum class Field : uint8_t {
  kText,         // a mark
  kName,         // of the function: letters, digits and _ . - only
  kIndexedName,  // functions.NAME:INDEX, which is also the call's id
  kId,           // of the call
  kArguments,    // in the format's syntax
  kObject,       // a JSON object with the keys of `keys`
};

/// A call is a row of parts.
struct Part {
  Field field = Field::kText;
  std::string text = {};  // of kText
  friend bool operator==(const Part&, const Part&) = default;
};

/// How the arguments of a call are written.
enum class Syntax : uint8_t {
  kJson,    // a JSON object
  kTagged,  // each with a mark before its name, before its value and behind it
  kDict,    // {name:value, …} with names without quotes and strings between marks of their own
  kPython,  // name=value, … as in Python; the parentheses are marks of the call
  kNested,  // <name>value</name>, objects as nested tags, the elements of arrays as <item>
};

struct ArgumentMarks {
  // kTagged: open NAME middle VALUE close. A line break at the end of `middle` and at the beginning
  // of `close` is not part of the value. Strings are raw, other values JSON.
  std::string open = {};
  std::string middle = {};
  std::string close = {};
  std::string text_middle = {};  // in the place of `middle` before strings; empty: the same
  std::vector<std::string> other_middles = {};  // as `middle`, where it depends on the value's type
  bool cdata = false;                           // a value may be <![CDATA[…]]>
  // kDict: before and behind a string.
  std::string quote = {};
  // kNested: before each tag.
  std::string lead = {};
  friend bool operator==(const ArgumentMarks&, const ArgumentMarks&) = default;
};

/// Members of a call that is a JSON object.
struct Keys {
  std::string name = "name";  // empty: the name is itself the key of the arguments
  std::string arguments = "arguments";
  std::string id = {};  // empty: none
  friend bool operator==(const Keys&, const Keys&) = default;
};

/// Answers that consist of messages, each with a header that says what its body is.
struct Messages {
  std::vector<std::string> starts;  // marks that begin a header; another one may stand inside it
  std::string header_end;
  std::vector<std::string> ends;       // marks that end a body
  std::string recipient = {};          // before the recipient in a header: "to="
  std::string name_lead = {};          // before the function's name in a recipient: "functions."
  std::vector<std::string> no_names;   // recipients that are no functions
  std::vector<std::string> reasoning;  // words of a header whose body is reasoning
  bool body_is_arguments = true;       // of a message with a recipient; else it holds sections
  bool names_are_text = false;         // headers with a recipient are none, where calls are text
  std::string call_header = {};        // a call's header as written, with NAME for the name
  std::string call_end = {};           // the mark behind its body
  std::string text_header = {};        // of a message of text, as written
  std::string reasoning_header = {};
  friend bool operator==(const Messages&, const Messages&) = default;
};

/// The form of ids that the library gives to calls without one.
enum class IdForm : uint8_t {
  kPlain,    // call_0, call_1, … of the conversation
  kNine,     // nine letters and digits, as Mistral's templates demand
  kIndexed,  // functions.NAME:INDEX
  kNumber,   // 0, 1, …
};

struct CallFormat {
  std::string name;
  /// A template that contains all of these is of this format, unless an earlier row of the table
  /// fits, too.
  std::vector<std::string> signs;
  std::vector<std::string> other_signs = {};  // or all of these; none if empty
  std::vector<Marks> reasoning = {};
  std::vector<Marks> wrappers = {};  // around text; they are not part of it. `close` may be empty
  Marks section = {};                // around calls; both may be empty
  std::vector<std::string> openings = {};  // other marks in the place of section.open
  std::string between = {};  // calls of a section; empty: a section has one call, unless `several`
  bool several = false;      // a section may have several calls, one right behind the other
  std::string after = {};    // a section, before the next one
  std::vector<Part> call = {};
  Syntax syntax = Syntax::kJson;
  ArgumentMarks marks = {};
  Keys keys = {};
  std::optional<Messages> messages = {};
  IdForm ids = IdForm::kPlain;
  bool parallel = true;  // an answer may have several calls

  /// Calls are JSON objects without marks around them.
  [[nodiscard]] bool bare() const noexcept {
    return !messages && section.open.empty() && call.size() == 1 && call[0].field == Field::kObject;
  }
  friend bool operator==(const CallFormat&, const CallFormat&) = default;
};

}  // namespace gen::calls
