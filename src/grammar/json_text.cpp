// SPDX-License-Identifier: Apache-2.0
// See json_text.h.
#include "grammar/json_text.h"

#include <algorithm>

namespace gen::grammar {
namespace {

using In = JsonState::In;

constexpr int64_t kFarExponent = int64_t{1} << 60U;
constexpr JsonHash kSeed = {0x9AE16A3B2F90404FU, 0xC3A5C85C97CB3127U};

uint64_t mixed(uint64_t x) noexcept {
  x ^= x >> 32U;
  x *= 0xD6E8FEB86659FD93U;
  x ^= x >> 29U;
  x *= 0xA0761D6478BD642FU;
  return x ^ (x >> 32U);
}

void add_to(JsonHash* hash, uint64_t word) noexcept {
  hash->a = (hash->a ^ word) * 0x9FB21C651E98DF25U;
  hash->a ^= hash->a >> 29U;
  hash->b = (hash->b + word + 1) * 0xE7037ED1A0B428DBU;
  hash->b ^= hash->b >> 31U;
}

JsonHash of_words(uint64_t kind, uint64_t first, uint64_t second) noexcept {
  JsonHash hash = kSeed;
  add_to(&hash, kind);
  add_to(&hash, first);
  add_to(&hash, second);
  return JsonReader::finished(hash);
}

enum : uint64_t { kString = 1, kNumber, kArray, kObject, kMember, kWord };

}  // namespace

JsonHash JsonReader::finished(JsonHash hash) noexcept {
  return {mixed(hash.a ^ (hash.b >> 7U)), mixed(hash.b + 0x2545F4914F6CDD1DU * hash.a)};
}

void JsonText::shrink(const JsonState& to) noexcept {
  while (entries_.size() > to.n_entries) {
    // The newest is the first of its place.
    const Entry& last = entries_.back();
    places_[last.hash.a & (places_.size() - 1)] = last.next;
    entries_.pop_back();
  }
  if (containers_.size() > to.n_containers)
    containers_.erase(containers_.begin() + to.n_containers, containers_.end());
  if (bytes_.size() > to.n_bytes) bytes_.erase(to.n_bytes);
}

void JsonText::make_room(size_t entries) {
  if (entries <= places_.size()) return;
  std::vector<uint32_t> places(std::max<size_t>(16, 2 * places_.size()), JsonState::kNone);
  while (places.size() < entries) places.resize(2 * places.size(), JsonState::kNone);
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    uint32_t& place = places[entries_[i].hash.a & (places.size() - 1)];
    entries_[i].next = place;
    place = i;
  }
  places_ = std::move(places);
}

void JsonText::append(std::span<const Container> containers, std::span<const Entry> entries,
                      std::string_view bytes) {
  // What can fail comes first.
  make_room(entries_.size() + entries.size());
  containers_.insert(containers_.end(), containers.begin(), containers.end());
  bytes_.append(bytes);
  const auto from = static_cast<uint32_t>(entries_.size());
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  for (uint32_t i = from; i < entries_.size(); ++i) {
    uint32_t& place = places_[entries_[i].hash.a & (places_.size() - 1)];
    entries_[i].next = place;
    place = i;
  }
}

bool JsonReader::same(const JsonText::Entry& entry, const JsonHash& hash,
                      bool name) const noexcept {
  if (entry.container != state_.container || entry.hash != hash) return false;
  if (!name) return true;
  const uint32_t length = state_.n_bytes - state_.begin;
  if (entry.length != length) return false;
  for (uint32_t i = 0; i < length; ++i) {
    if (byte_at(entry.begin + i) != byte_at(state_.begin + i)) return false;
  }
  return true;
}

bool JsonReader::has(const JsonHash& hash, bool name) const noexcept {
  for (uint32_t i = text_->first(hash); i != JsonState::kNone; i = text_->entry(i).next) {
    if (i < start_.n_entries && same(text_->entry(i), hash, name)) return true;
  }
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const JsonText::Entry& entry) { return same(entry, hash, name); });
}

bool JsonReader::item_is_taken() const noexcept {
  if (state_.object || state_.container == 0) return false;
  if (state_.in == In::kNumber) return has(number_hash(), false);
  return state_.in == In::kNothing && state_.has_item && has(state_.item, false);
}

void JsonReader::add(const JsonHash& hash) {
  const uint32_t length = state_.kept ? state_.n_bytes - state_.begin : 0;
  entries_.push_back({state_.container, state_.newest, state_.begin, length, 0, hash});
  state_.newest = state_.n_entries++;
}

int JsonReader::read(uint8_t byte) {
  switch (state_.in) {
    case In::kNothing:
      return read_between(byte);
    case In::kString:
      return read_string(byte) ? byte : kRefused;
    case In::kEscape:
    case In::kHex:
      read_escape(byte);
      return byte;
    case In::kNumber: {
      const bool goes_on = (byte >= '0' && byte <= '9') || byte == '.' || byte == 'e' ||
                           byte == 'E' || byte == '+' || byte == '-';
      if (goes_on) {
        read_number(byte);
        return byte;
      }
      state_.in = In::kNothing;
      end_value(number_hash());
      return read_between(byte);
    }
    case In::kWord:
      if (--state_.left == 0) state_.in = In::kNothing;
      return byte;
  }
  return kRefused;
}

int JsonReader::read_between(uint8_t byte) {
  switch (byte) {
    case '"':
      state_.in = In::kString;
      state_.name = state_.object && state_.expects_name;
      state_.kept = state_.name || (rules_.items && !state_.object && state_.container != 0);
      state_.begin = state_.n_bytes;
      state_.hash = kSeed;
      return byte;
    case '{':
    case '[':
      open(byte == '{');
      return byte;
    case '}':
      close();
      return byte;
    case ']':
      return end_item(byte);
    case ',':
      if (state_.object) {
        state_.expects_name = true;
        return byte;
      }
      return end_item(byte);
    case ':':
      state_.expects_name = false;
      return byte;
    case kCommaAgain:
    case kEndAgain:
      return rules_.items ? kRefused : byte;
    default:
      break;
  }
  if (!rules_.items) return byte;
  if (byte == '-' || (byte >= '0' && byte <= '9')) {
    state_.in = In::kNumber;
    state_.number = {};
    state_.number.digits = kSeed;
    state_.kept = !state_.object && state_.container != 0;
    state_.begin = state_.n_bytes;
    read_number(byte);
  } else if (byte == 't' || byte == 'f' || byte == 'n') {
    state_.in = In::kWord;
    state_.left = byte == 'f' ? 4 : 3;
    state_.kept = false;
    end_value(of_words(kWord, byte, 0));
  }
  return byte;
}

bool JsonReader::read_string(uint8_t byte) {
  if (byte == '\\') {
    state_.in = In::kEscape;
  } else if (byte != '"') {
    put(byte);
  } else {
    state_.in = In::kNothing;
    const JsonHash hash = finished(state_.hash);
    if (!state_.name) {
      if (rules_.items) end_value(of_words(kString, hash.a, hash.b));
      return true;
    }
    if (has(hash, true)) return false;
    add(hash);
    state_.member = hash;
    state_.name = false;
    state_.expects_name = false;
  }
  return true;
}

void JsonReader::read_escape(uint8_t byte) {
  if (state_.in == In::kEscape) {
    state_.in = In::kString;
    switch (byte) {
      case 'u':
        state_.in = In::kHex;
        state_.left = 4;
        state_.hex = 0;
        return;
      case 'b':
        return put('\b');
      case 'f':
        return put('\f');
      case 'n':
        return put('\n');
      case 'r':
        return put('\r');
      case 't':
        return put('\t');
      default:
        return put(byte);
    }
  }
  const int digit = byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10;
  state_.hex = static_cast<uint16_t>(state_.hex << 4U | (static_cast<unsigned>(digit) & 15U));
  if (--state_.left > 0) return;
  state_.in = In::kString;
  if (state_.hex >= 0xD800 && state_.hex < 0xDC00) {
    state_.high = state_.hex;
  } else if (state_.high != 0) {
    const uint32_t low = state_.hex & 0x3FFU;
    put_character(0x10000U + ((state_.high & 0x3FFU) << 10U | low));
    state_.high = 0;
  } else {
    put_character(state_.hex);
  }
}

void JsonReader::put(uint8_t byte) {
  add_to(&state_.hash, byte);
  if (!state_.kept) return;
  bytes_.push_back(static_cast<char>(byte));
  ++state_.n_bytes;
}

void JsonReader::put_character(uint32_t character) {
  const auto tail = [&](unsigned shift) {
    put(static_cast<uint8_t>(0x80U | ((character >> shift) & 0x3FU)));
  };
  if (character < 0x80) return put(static_cast<uint8_t>(character));
  if (character < 0x800) {
    put(static_cast<uint8_t>(0xC0U | character >> 6U));
  } else {
    if (character < 0x10000) {
      put(static_cast<uint8_t>(0xE0U | character >> 12U));
    } else {
      put(static_cast<uint8_t>(0xF0U | character >> 18U));
      tail(12);
    }
    tail(6);
  }
  tail(0);
}

void JsonReader::read_number(uint8_t byte) {
  JsonState::Number& number = state_.number;
  if (state_.kept) {
    bytes_.push_back(static_cast<char>(byte));
    ++state_.n_bytes;
  }
  if (number.in_exponent) {
    if (byte == '-') number.minus = true;
    if (byte < '0' || byte > '9') return;
    if (number.exponent < kFarExponent / 16) number.exponent = 10 * number.exponent + (byte - '0');
    return;
  }
  if (byte == '-') {
    number.negative = true;
  } else if (byte == '.') {
    number.point = true;
  } else if (byte == 'e' || byte == 'E') {
    number.in_exponent = true;
  } else {
    if (number.point) ++number.scale;
    if (byte == '0') {
      if (number.any) ++number.n_zeros;
      return;
    }
    for (; number.n_zeros > 0; --number.n_zeros) add_to(&number.digits, '0');
    add_to(&number.digits, byte);
    number.any = true;
  }
}

// A sign, digits that begin and end with another than zero, and a power of ten.
JsonHash JsonReader::number_hash() const noexcept {
  const JsonState::Number& number = state_.number;
  if (!number.any) return of_words(kNumber, 0, 0);
  const int64_t exponent = (number.minus ? -number.exponent : number.exponent) - number.scale +
                           static_cast<int64_t>(number.n_zeros);
  JsonHash hash = number.digits;
  add_to(&hash, static_cast<uint64_t>(exponent));
  add_to(&hash, number.negative ? 2 : 1);
  hash = finished(hash);
  return of_words(kNumber, hash.a, hash.b);
}

void JsonReader::open(bool object) {
  containers_.push_back(
      {state_.container, state_.newest, state_.object, state_.member, state_.all});
  state_.container = ++state_.n_containers;
  state_.newest = JsonState::kNone;
  state_.object = object;
  state_.expects_name = object;
  state_.has_item = false;
  state_.all = object ? JsonHash() : kSeed;
}

void JsonReader::close() {
  if (state_.container == 0) return;
  const uint32_t index = state_.container - 1;
  const JsonText::Container& one = index < start_.n_containers
                                       ? text_->container(index)
                                       : containers_[index - start_.n_containers];
  const JsonHash value = of_words(state_.object ? kObject : kArray, state_.all.a, state_.all.b);
  state_.container = one.parent;
  state_.newest = one.newest;
  state_.object = one.object;
  state_.member = one.member;
  state_.all = one.all;
  state_.expects_name = false;
  state_.kept = false;
  end_value(value);
}

// The members of an object are added up, whatever their order.
void JsonReader::end_value(const JsonHash& hash) {
  if (!rules_.items || state_.container == 0) return;
  if (!state_.object) {
    state_.item = hash;
    state_.has_item = true;
    return;
  }
  JsonHash member = kSeed;
  for (const uint64_t word : {state_.member.a, state_.member.b, hash.a, hash.b}) {
    add_to(&member, word);
  }
  member = of_words(kMember, finished(member).a, finished(member).b);
  state_.all.a += member.a;
  state_.all.b += member.b;
}

// A comma behind an item, or the end of its array.
int JsonReader::end_item(uint8_t byte) {
  int read = byte;
  if (rules_.items && state_.has_item) {
    const bool again = has(state_.item, false);
    if (again) read = byte == ',' ? kCommaAgain : kEndAgain;
    if (byte == ',' && !again) add(state_.item);
    state_.has_item = false;
    add_to(&state_.all, state_.item.a);
    add_to(&state_.all, state_.item.b);
  }
  if (byte == ']') close();
  return read;
}

}  // namespace gen::grammar
