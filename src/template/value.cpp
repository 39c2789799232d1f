// SPDX-License-Identifier: Apache-2.0
// Equality, order and truth of values, see value.h.
#include "template/value.h"

#include <cstdlib>
#include <limits>

namespace gen::templates {
namespace {

constexpr size_t kIndexedFrom = 12;  // entries; a linear search is faster below
constexpr int kDeepestValue = 200;
constexpr int kDeepestKey = 32;  // key comparison does not check the stack

}  // namespace

const Value* Dict::find(std::string_view key) const noexcept {
  if (!index.empty()) {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [name, value] : entries) {
    if (name.is(Kind::kString) && name.view() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key, Comparison* limits) const noexcept {
  if (key.is(Kind::kString)) {
    const bool within = limits == nullptr || limits->step(key.view().size());
    return within ? find(key.view()) : nullptr;
  }
  for (const auto& [name, value] : entries) {
    if (equal(name, key, limits)) return &value;
    if (limits != nullptr && limits->exceeded()) break;
  }
  return nullptr;
}

void Dict::set(const Value& key, const Value& value, Comparison* limits) {
  if (const Value* held = find(key, limits)) {
    *const_cast<Value*>(held) = value;
    return;
  }
  if (limits != nullptr && limits->exceeded()) return;
  entries.emplace_back(key, value);
  if (entries.size() < kIndexedFrom) return;
  for (size_t i = index.empty() ? 0 : entries.size() - 1; i < entries.size(); ++i) {
    if (entries[i].first.is(Kind::kString)) index.emplace(entries[i].first.view(), i);
  }
}

Result<Value> Heap::string(Text text, bool markup) {
  GEN_TRY(charge(sizeof(String) + text.size()));
  String* const made = make<String>();
  made->text = std::move(text);
  made->markup = markup;
  return Value::of(Kind::kString, made);
}

Result<Value> Heap::sequence(Form form, std::vector<Value> values) {
  GEN_TRY(charge(sizeof(Sequence) + values.size() * sizeof(Value)));
  Sequence* const made = make<Sequence>();
  made->form = form;
  made->values = std::move(values);
  return Value::of(Kind::kSequence, made);
}

Result<Value> Heap::group(const Value& grouper, const Value& list) {
  GEN_TRY(charge(sizeof(Sequence) + 2 * sizeof(Value)));
  Sequence* const made = make<Sequence>();
  made->form = Form::kTuple;
  made->values = {grouper, list};
  made->grouped = true;
  return Value::of(Kind::kSequence, made);
}

Result<Value> Heap::range(const RangeBounds& bounds, std::vector<Value> values) {
  GEN_TRY(charge(sizeof(RangeBounds) + sizeof(Sequence) + values.size() * sizeof(Value)));
  RangeBounds* const kept = make<RangeBounds>();
  *kept = bounds;
  Sequence* const made = make<Sequence>();
  made->form = Form::kRange;
  made->values = std::move(values);
  made->bounds = kept;
  return Value::of(Kind::kSequence, made);
}

bool truthy(const Value& value) noexcept {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.truth;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.number != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kSequence:
      return value.sequence().form == Form::kGenerator || !value.sequence().values.empty();
    case Kind::kDict:
      return !value.dict().entries.empty();
    default:
      return true;
  }
}

double as_double(const Value& value) noexcept {
  switch (value.kind) {
    case Kind::kBool:
      return value.truth ? 1 : 0;
    case Kind::kInt:
      return static_cast<double>(value.integer);
    case Kind::kFloat:
      return value.number;
    case Kind::kBigInt:
      // Read in place: a whole text has a zero behind it, and digits are the same in any locale.
      return std::strtod(value.view().data(), nullptr);
    default:
      return 0;
  }
}

namespace {

// Of integers, of which one is beyond 64 bits. They have no zeros in front.
bool big_below(const Value& left, const Value& right) noexcept {
  if (!left.is(Kind::kBigInt)) return right.view().front() != '-';
  const bool negative = left.view().front() == '-';
  if (!right.is(Kind::kBigInt)) return negative;
  std::string_view a = left.view();
  std::string_view b = right.view();
  if (negative != (b.front() == '-')) return negative;
  if (negative) std::swap(a, b);
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

bool equal_within(const Value& left, const Value& right, Comparison& limits) noexcept {
  if (!limits.step()) return false;
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::kBigInt) && right.is(Kind::kBigInt)) return left.view() == right.view();
    const bool whole = !left.is(Kind::kFloat) && !right.is(Kind::kFloat);
    if (whole && (left.is(Kind::kBigInt) || right.is(Kind::kBigInt))) return false;
    if (!whole) return as_double(left) == as_double(right);
    const int64_t a = left.is(Kind::kBool) ? left.truth : left.integer;
    const int64_t b = right.is(Kind::kBool) ? right.truth : right.integer;
    return a == b;
  }
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      return left.view().size() == right.view().size() && limits.step(left.view().size()) &&
             left.view() == right.view();
    case Kind::kSequence: {
      const Sequence& a = left.sequence();
      const Sequence& b = right.sequence();
      if (&a == &b) return true;
      if (a.form != b.form || a.form == Form::kGenerator || a.form == Form::kValues) return false;
      if (a.values.size() != b.values.size()) return false;
      limits.too_deep |= limits.depth >= kDeepestValue || limits.stack.near_end();
      if (limits.too_deep) return false;
      ++limits.depth;
      bool same = true;
      for (size_t i = 0; same && i < a.values.size(); ++i) {
        same = equal_within(a.values[i], b.values[i], limits);
      }
      --limits.depth;
      return same;
    }
    case Kind::kDict: {
      const Dict& a = left.dict();
      const Dict& b = right.dict();
      if (&a == &b) return true;
      if (a.entries.size() != b.entries.size()) return false;
      limits.too_deep |= limits.depth >= kDeepestValue || limits.stack.near_end();
      if (limits.too_deep) return false;
      ++limits.depth;
      bool same = true;
      for (size_t i = 0; same && i < a.entries.size(); ++i) {
        const Value* const other = b.find(a.entries[i].first, &limits);
        same = other != nullptr && equal_within(a.entries[i].second, *other, limits);
      }
      --limits.depth;
      return same;
    }
    default:
      return left.object == right.object;
  }
}

Result<bool> less_within(const Value& left, const Value& right, Comparison& limits) {
  if (left.is(Kind::kUndefined)) return undefined_error(left);
  if (right.is(Kind::kUndefined)) return undefined_error(right);
  if (!limits.step()) return false;
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::kInt) && right.is(Kind::kInt)) return left.integer < right.integer;
    const bool whole = !left.is(Kind::kFloat) && !right.is(Kind::kFloat);
    const bool big = left.is(Kind::kBigInt) || right.is(Kind::kBigInt);
    if (whole && big) return big_below(left, right);
    return as_double(left) < as_double(right);
  }
  if (left.is(Kind::kString) && right.is(Kind::kString)) {
    return limits.step(std::min(left.view().size(), right.view().size())) &&
           left.view() < right.view();
  }
  if (left.is(Kind::kSequence) && right.is(Kind::kSequence)) {
    const Sequence& a = left.sequence();
    const Sequence& b = right.sequence();
    if (a.form == b.form && (a.form == Form::kList || a.form == Form::kTuple)) {
      limits.too_deep |= limits.depth >= kDeepestValue || limits.stack.near_end();
      if (limits.too_deep) return false;
      ++limits.depth;
      size_t i = 0;
      const size_t both = std::min(a.values.size(), b.values.size());
      while (i < both && equal_within(a.values[i], b.values[i], limits)) ++i;
      Result<bool> below = a.values.size() < b.values.size();
      if (i < both) below = less_within(a.values[i], b.values[i], limits);
      --limits.depth;
      return below;
    }
  }
  return error(Code::kInvalidArgument, "%s and %s have no order", type_name(left),
               type_name(right));
}

}  // namespace

bool equal(const Value& left, const Value& right, Comparison* limits) noexcept {
  Comparison own;
  Comparison& used = limits != nullptr ? *limits : own;
  return equal_within(left, right, used) && !used.exceeded();
}

Result<bool> less(const Value& left, const Value& right, Comparison* limits) {
  Comparison own;
  return less_within(left, right, limits != nullptr ? *limits : own);
}

namespace {

bool hashable_within(const Value& value, Comparison& limits) noexcept {
  if (value.is(Kind::kDict) || !limits.step()) return false;
  if (!value.is(Kind::kSequence)) return true;
  const Sequence& sequence = value.sequence();
  if (sequence.form != Form::kTuple) return sequence.form == Form::kRange;
  if (limits.depth >= kDeepestKey) return false;
  ++limits.depth;
  bool all = true;
  for (size_t i = 0; all && i < sequence.values.size(); ++i) {
    all = hashable_within(sequence.values[i], limits);
  }
  --limits.depth;
  return all;
}

}  // namespace

bool hashable(const Value& value, Comparison* limits) noexcept {
  Comparison own;
  return hashable_within(value, limits != nullptr ? *limits : own);
}

const char* type_name(const Value& value) noexcept {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kSequence:
      break;
    case Kind::kLoop:
      return "loop";
    case Kind::kCycler:
      return "cycler";
    case Kind::kJoiner:
      return "joiner";
    case Kind::kSelf:
      return "template";
    case Kind::kBlock:
      return "block";
    default:
      return "function";
  }
  switch (value.sequence().form) {
    case Form::kList:
      return "list";
    case Form::kTuple:
      return "tuple";
    case Form::kRange:
      return "range";
    case Form::kGenerator:
      return "generator";
    default:
      return "dict view";
  }
}

Status undefined_error(const Value& value) {
  const char* const name = value.name == nullptr ? "a value" : value.name->c_str();
  if (value.owner == Kind::kUndefined) {
    return error(Code::kInvalidArgument, "'%.80s' is undefined", name);
  }
  if (value.owner == Kind::kSequence && value.name == nullptr) {
    return error(Code::kInvalidArgument, "a list has no such element");
  }
  Value owner;
  owner.kind = value.owner == Kind::kSequence ? Kind::kUndefined : value.owner;
  return error(Code::kInvalidArgument, "%s has no '%.80s'",
               value.owner == Kind::kSequence ? "list" : type_name(owner), name);
}

}  // namespace gen::templates
