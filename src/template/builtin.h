// SPDX-License-Identifier: Apache-2.0
// Filters, tests, functions and methods: one row each, found by name when a template is compiled.
// To add one: a function beside its neighbours and its row in that file's table.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "template/value.h"

namespace gen::templates {

class Evaluator;

/// A named argument; one from **arguments has `key`, which keeps the writer of the name.
struct NamedArg {
  std::string_view name;
  Value value;
  Value key = Value::missing();  // a text; kMissing: the template wrote the name

  [[nodiscard]] Result<Value> name_as_text(Heap* heap) const {
    return key.is(Kind::kMissing) ? heap->string(name, Writer::kTemplate) : Result<Value>(key);
  }
};

struct Args {
  std::vector<Value> values;
  std::vector<NamedArg> named;
};

/// The arguments that a function gets: parameters by index (kMissing: not given). The first one of
/// a filter, a test or a method is the value it is applied to.
struct Call {
  Evaluator& evaluator;
  std::span<const Value> params;
  const Args& args;  // all of them, for those that take any number

  const Value& operator[](size_t i) const noexcept { return params[i]; }
  [[nodiscard]] bool given(size_t i) const noexcept { return !params[i].is(Kind::kMissing); }
};

inline constexpr size_t kMaxParams = 6;

/// Names of parameters, stored in place: the elements of an initializer_list would be constructed
/// while the library is loaded.
class ParamNames {
 public:
  constexpr ParamNames(std::initializer_list<std::string_view> names) : size_(names.size()) {
    size_t i = 0;
    for (const std::string_view name : names) names_[i++] = name;
  }
  [[nodiscard]] constexpr size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr const std::string_view* begin() const noexcept { return names_; }
  [[nodiscard]] constexpr const std::string_view* end() const noexcept { return names_ + size_; }

 private:
  std::string_view names_[kMaxParams];
  size_t size_;
};

struct Builtin {
  std::string_view name;
  Result<Value> (*run)(const Call&);
  uint8_t required = 0;    // of the parameters
  bool any = false;        // more arguments than parameters, and any names
  ParamNames params = {};  // without the value it is applied to
};

/// Null if none has that name.
const Builtin* find_filter(std::string_view name) noexcept;
const Builtin* find_test(std::string_view name) noexcept;
const Builtin* find_function(std::string_view name) noexcept;
const Builtin* find_text_method(std::string_view name) noexcept;
const Builtin* find_dict_method(std::string_view name) noexcept;
const Builtin* find_sequence_method(std::string_view name) noexcept;
/// Whether a method of that name would change its object, which templates must not.
bool changes_its_object(const Value& object, std::string_view name) noexcept;

}  // namespace gen::templates
