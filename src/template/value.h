// SPDX-License-Identifier: Apache-2.0
// What a template computes with: JSON's values, undefined, and the objects its own statements make
// (namespaces, macros, loops). A Value is small and copied freely; what it points to lives in a
// Heap. Only namespaces, loops, generators, cyclers and joiners ever change, and none of them comes
// from outside a rendering. So many renderings may use values of one heap at once, and cycles cost
// nothing: a heap is freed as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "template/stack_bound.h"
#include "template/text.h"

namespace gen::templates {

enum class Kind : uint8_t {
  kMissing,  // an argument that was not given; templates never see it
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,  // beyond 64 bits: kept as it was written
  kFloat,
  kString,
  kSequence,
  kDict,
  kNamespace,
  kFunction,  // of the language: range, dict, …
  kMethod,    // of a value: text.upper
  kMacro,
  kLoop,
  kCycler,
  kJoiner,
  kSelf,   // the template, for its blocks
  kBlock,  // of it, to be called
};

struct Object {
  virtual ~Object() = default;
};
struct String;
struct Sequence;
struct Dict;
struct Namespace;
struct Method;
struct Macro;
struct Loop;
struct Cycler;
struct Joiner;
struct Builtin;
struct Comparison;

struct Value {
  Kind kind = Kind::kUndefined;
  Kind owner = Kind::kUndefined;  // of kUndefined: what has no attribute of that name
  bool by_user = false;           // of numbers: what it is printed as is the text of a user
  union {
    int64_t integer = 0;
    double number;
    bool truth;
    const std::string* name;  // of kUndefined; may be null
    const Object* object;
    const Builtin* builtin;
  };

  static Value of(bool truth) noexcept {
    Value v;
    v.kind = Kind::kBool;
    v.integer = 0;
    v.truth = truth;
    return v;
  }
  static Value of(int64_t integer) noexcept {
    Value v;
    v.kind = Kind::kInt;
    v.integer = integer;
    return v;
  }
  static Value of(double number) noexcept {
    Value v;
    v.kind = Kind::kFloat;
    v.number = number;
    return v;
  }
  static Value of(Kind kind, const Object* object) noexcept {
    Value v;
    v.kind = kind;
    v.object = object;
    return v;
  }
  static Value of(const Builtin* function) noexcept {
    Value v;
    v.kind = Kind::kFunction;
    v.builtin = function;
    return v;
  }
  static Value none() noexcept { return of(Kind::kNone, nullptr); }
  static Value missing() noexcept { return of(Kind::kMissing, nullptr); }
  static Value undefined(const std::string* name = nullptr,
                         Kind owner = Kind::kUndefined) noexcept {
    Value v;
    v.owner = owner;
    v.name = name;
    return v;
  }

  [[nodiscard]] bool is(Kind other) const noexcept { return kind == other; }
  [[nodiscard]] bool is_number() const noexcept {
    return kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool ||
           kind == Kind::kBigInt;
  }
  [[nodiscard]] const String& string() const noexcept;
  [[nodiscard]] const Text& text() const noexcept;
  [[nodiscard]] std::string_view view() const noexcept;
  [[nodiscard]] const Sequence& sequence() const noexcept;
  [[nodiscard]] const Dict& dict() const noexcept;
};

struct String final : Object {
  Text text;
  bool markup = false;  // made by `safe` or `escape`: what is added to it gets escaped
};

/// What Python tells apart though all are values in a row.
enum class Form : uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems, kGenerator };

/// What a range was made of, which its numbers do not tell.
struct RangeBounds final : Object {
  Value begin, end, step;  // integers
};

struct Sequence final : Object {
  Form form = Form::kList;
  std::vector<Value> values;
  const RangeBounds* bounds = nullptr;  // of a range
  bool grouped = false;      // by groupby: a tuple whose values are .grouper and .list, too
  mutable size_t taken = 0;  // of a generator: what is gone, as Python's gives each value once
};

/// Keys are texts, numbers, truth values, none and tuples of these; insertion order.
struct Dict final : Object {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string_view, size_t> index;  // of text keys, once there are many

  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  /// Null, too, for what takes more than `limits`, or than a million steps a key without any.
  [[nodiscard]] const Value* find(const Value& key, Comparison* limits = nullptr) const noexcept;
  /// Replaces the value of a key that is there. Nothing if finding it takes more than `limits`.
  void set(const Value& key, const Value& value, Comparison* limits = nullptr);
};

struct Namespace final : Object {
  struct Entry {
    std::string name;
    Value value;
    Writer writer = Writer::kTemplate;  // of the name
  };
  mutable std::vector<Entry> entries;
};

struct Cycler final : Object {
  std::vector<Value> values;
  mutable size_t at = 0;
};

struct Joiner final : Object {
  Value separator;
  mutable bool used = false;
};

inline const String& Value::string() const noexcept { return static_cast<const String&>(*object); }
inline const Text& Value::text() const noexcept { return string().text; }
inline std::string_view Value::view() const noexcept { return string().text.view(); }
inline const Sequence& Value::sequence() const noexcept {
  return static_cast<const Sequence&>(*object);
}
inline const Dict& Value::dict() const noexcept { return static_cast<const Dict&>(*object); }

/// Owns what values point to, up to a budget of bytes.
/// Threads: one at a time; what is in it may be read by many.
class Heap {
 public:
  static constexpr size_t kUnlimited = SIZE_MAX;
  explicit Heap(size_t budget = kUnlimited) : left_(budget) {}

  /// Takes `bytes` of the budget before they are spent.
  Status charge(size_t bytes) noexcept {
    if (bytes > left_) return spend_all();
    left_ -= bytes;
    return {};
  }
  /// The same for `count` things of `each` bytes.
  Status charge(size_t count, size_t each) noexcept {
    size_t bytes = 0;
    return __builtin_mul_overflow(count, each, &bytes) ? spend_all() : charge(bytes);
  }

  [[nodiscard]] bool spent() const noexcept { return left_ == 0; }

  /// An object, with what it takes itself off the budget.
  template <typename T>
  T* make() {
    left_ -= left_ == kUnlimited ? 0 : std::min(left_, sizeof(T) + 2 * sizeof(void*));
    auto made = std::make_unique<T>();
    T* const raw = made.get();
    objects_.push_back(std::move(made));
    return raw;
  }

  Result<Value> string(Text text, bool markup = false);
  Result<Value> string(std::string_view bytes, Writer writer) {
    return string(Text(bytes, writer));
  }
  Result<Value> sequence(Form form, std::vector<Value> values);
  Result<Value> range(const RangeBounds& bounds, std::vector<Value> values);
  Result<Value> tuple(const Value& first, const Value& second) {
    return sequence(Form::kTuple, {first, second});
  }
  /// A tuple whose parts are .grouper and .list, too.
  Result<Value> group(const Value& grouper, const Value& list);

 private:
  Status spend_all() noexcept {
    left_ = 0;
    return error(Code::kOutOfRange, "the template needs too much memory");
  }

  std::vector<std::unique_ptr<Object>> objects_;
  size_t left_;
};

/// As Python's bool().
bool truthy(const Value& value) noexcept;
/// What a comparison may take. Values may share parts, so that small ones can take forever.
struct Comparison {
  uint64_t steps = 1'000'000;  // values and runs of 64 bytes that may still be read
  int depth = 0;
  StackBound stack = StackBound::none();
  bool too_many = false;  // then the answer means nothing
  bool too_deep = false;

  [[nodiscard]] bool exceeded() const noexcept { return too_many || too_deep; }
  bool step(size_t bytes = 0) noexcept {
    const uint64_t cost = 1 + bytes / 64;
    too_many = too_many || cost > steps;
    if (!too_many) steps -= cost;
    return !too_many;
  }
};

/// As Python's ==. What takes more than `limits`, or than a million steps without any, is not
/// equal.
bool equal(const Value& left, const Value& right, Comparison* limits = nullptr) noexcept;
/// As Python's <. kInvalidArgument for what has no order.
Result<bool> less(const Value& left, const Value& right, Comparison* limits = nullptr);
/// Whether it can be a key. What takes more than `limits`, or than a million steps without any,
/// cannot.
bool hashable(const Value& value, Comparison* limits = nullptr) noexcept;
/// "str", "list", … as messages name it.
const char* type_name(const Value& value) noexcept;
/// Numbers and truth values as a double; others 0.
double as_double(const Value& value) noexcept;
/// What an undefined value has to say when it is used.
Status undefined_error(const Value& value);

}  // namespace gen::templates
