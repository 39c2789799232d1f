// SPDX-License-Identifier: Apache-2.0
// See json_text.h.
#include "grammar/json/json_text.h"

#include <algorithm>

namespace gen::grammar {
namespace {

using In = JsonState::In;

constexpr uint64_t kSeed = 0x9AE16A3B2F90404FU;

uint64_t step(uint64_t hash, uint8_t byte) noexcept {
  hash = (hash ^ byte) * 0x9FB21C651E98DF25U;
  return hash ^ hash >> 29U;
}

}  // namespace

uint64_t JsonReader::finished(uint64_t hash) noexcept {
  hash = (hash ^ hash >> 32U) * 0xD6E8FEB86659FD93U;
  return hash ^ hash >> 32U;
}

void JsonText::shrink(const JsonState& to) noexcept {
  while (entries_.size() > to.n_entries) {
    // The newest is the first in its bucket.
    const Entry& last = entries_.back();
    places_[last.hash & (places_.size() - 1)] = last.next;
    entries_.pop_back();
  }
  if (containers_.size() > to.n_containers)
    containers_.erase(containers_.begin() + to.n_containers, containers_.end());
  if (bytes_.size() > to.n_bytes) bytes_.erase(to.n_bytes);
  if (raw_.size() > to.n_raw) raw_.erase(to.n_raw);
}

void JsonText::make_room(size_t entries) {
  if (entries <= places_.size()) return;
  std::vector<uint32_t> places(std::max<size_t>(16, 2 * places_.size()), JsonState::kNone);
  while (places.size() < entries) places.resize(2 * places.size(), JsonState::kNone);
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    uint32_t& place = places[entries_[i].hash & (places.size() - 1)];
    entries_[i].next = place;
    place = i;
  }
  places_ = std::move(places);
}

void JsonText::append(std::span<const Container> containers, std::span<const Entry> entries,
                      std::string_view bytes, std::string_view raw) {
  // Operations that can fail come first.
  make_room(entries_.size() + entries.size());
  containers_.insert(containers_.end(), containers.begin(), containers.end());
  bytes_.append(bytes);
  raw_.append(raw);
  const auto from = static_cast<uint32_t>(entries_.size());
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  for (uint32_t i = from; i < entries_.size(); ++i) {
    uint32_t& place = places_[entries_[i].hash & (places_.size() - 1)];
    entries_[i].next = place;
    place = i;
  }
}

void JsonReader::go_back(const JsonState& to) {
  state_ = to;
  entries_.erase(entries_.begin() + (to.n_entries - start_.n_entries), entries_.end());
  containers_.erase(containers_.begin() + (to.n_containers - start_.n_containers),
                    containers_.end());
  bytes_.resize(to.n_bytes - start_.n_bytes);
  raw_.resize(to.n_raw - start_.n_raw);
}

int JsonReader::read(uint8_t byte) {
  if ((rules_.items || rules_.within) && byte >= kFirstSignal) return kRefused;
  if (state_.off) return byte;
  const bool watched = state_.n_watched > 0;
  int read = byte;
  switch (state_.in) {
    case In::kNothing:
      read = read_between(byte);
      break;
    case In::kString:
      if (!read_string(byte)) return kRefused;
      break;
    case In::kEscape:
    case In::kHex:
      read_escape(byte);
      break;
  }
  if (watched) {
    raw_.push_back(static_cast<char>(byte));
    ++state_.n_raw;
  }
  // For a number the first byte is enough: nothing in it is examined.
  const bool ends = state_.container == 0 && state_.in == In::kNothing && byte > ' ';
  state_.off = rules_.within && ends;
  return read;
}

int JsonReader::read_between(uint8_t byte) {
  const bool ends = byte == ',' || byte == ']';
  if (state_.watched && !ends && state_.item == JsonState::kNone && byte > ' ') {
    state_.item = state_.n_raw;
  }
  int read = byte;
  switch (byte) {
    case '"':
      state_.in = In::kString;
      state_.name = state_.object && state_.expects_name;
      state_.begin = state_.n_bytes;
      state_.hash = kSeed;
      break;
    case '{':
    case '[':
      open(byte == '{');
      break;
    case '}':
      close();
      break;
    case ']':
      if (state_.watched) read = end_item(byte);
      close();
      break;
    case ',':
      if (state_.watched) read = end_item(byte);
      state_.expects_name = state_.object;
      break;
    default:
      break;
  }
  return read;
}

// Of the item that begins there, as far as it has been read.
void JsonReader::write_form(uint32_t item) {
  const std::string_view before = text_->raw().substr(0, start_.n_raw);
  item_.clear();
  if (item < before.size()) item_ = before.substr(item);
  item_ += std::string_view(raw_).substr(std::max(item, start_.n_raw) - start_.n_raw);
  canonical_.write(item_, &form_);
}

std::string_view JsonReader::bytes_of(const JsonText::Entry& entry) const noexcept {
  return entry.begin < start_.n_bytes
             ? text_->bytes().substr(entry.begin, entry.length)
             : std::string_view(bytes_).substr(entry.begin - start_.n_bytes, entry.length);
}

uint32_t JsonReader::rival(uint32_t from) {
  if (state_.n_watched != 1) return from;
  bool watched = state_.watched;
  uint32_t item = state_.item;
  uint32_t newest = state_.newest;
  for (uint32_t at = state_.container; !watched && at != 0;) {
    const JsonText::Container& one = container(at - 1);
    watched = one.watched;
    item = one.item;
    newest = one.newest;
    at = one.parent;
  }
  const bool string = state_.watched && state_.in == In::kString && state_.high == 0;
  if (item == JsonState::kNone || (state_.watched && !string)) return from;
  write_form(item);
  const std::string_view form = form_;
  if (form.empty() || (!string && canonical_.n_parts() == 0 && canonical_.items().empty())) {
    return from;
  }
  const auto may_become = [&](std::string_view other) {
    if (other[0] != form[0]) return false;
    if (string) {
      return other.substr(JsonCanonical::kBeforeString)
          .starts_with(form.substr(JsonCanonical::kBeforeString));
    }
    if (form[0] == '[') return other.starts_with(canonical_.items());
    for (size_t i = 0; i < canonical_.n_parts(); ++i) {
      if (other.find(canonical_.part(i)) == std::string_view::npos) return false;
    }
    return true;
  };
  uint32_t i = from == kNewest ? newest : from;
  while (i != JsonState::kNone && !may_become(bytes_of(entry(i)))) i = entry(i).before;
  return i;
}

int JsonReader::compare(uint32_t one, uint32_t other) const noexcept {
  const JsonText::Entry& a = entry(one);
  const JsonText::Entry& b = entry(other);
  for (uint32_t i = 0; i < std::min(a.length, b.length); ++i) {
    const int apart = byte_at(a.begin + i) - byte_at(b.begin + i);
    if (apart != 0) return apart;
  }
  return a.length < b.length ? -1 : a.length > b.length ? 1 : 0;
}

// A comma after an item, or the end of its array.
int JsonReader::end_item(uint8_t byte) {
  const auto end = [&] { return state_.again ? kEndAgain : kEndApart; };
  if (state_.item == JsonState::kNone) return byte == ']' ? end() : byte;
  write_form(state_.item);
  state_.item = JsonState::kNone;
  uint64_t hash = kSeed;
  for (const char c : form_) hash = step(hash, static_cast<uint8_t>(c));
  hash = finished(hash);
  const auto length = static_cast<uint32_t>(form_.size());
  if (has(
          hash, [this](uint32_t i) { return form_[i]; }, length)) {
    state_.again = true;
    return byte == ',' ? kCommaAgain : kEndAgain;
  }
  if (byte == ']') return end();
  const uint32_t begin = state_.n_bytes;
  bytes_ += form_;
  state_.n_bytes += length;
  add(hash, begin);
  ++state_.n_here;
  ++state_.n_held;
  return byte;
}

void JsonReader::add(uint64_t hash, uint32_t begin) {
  entries_.push_back({state_.container, state_.newest, begin, state_.n_bytes - begin, 0, hash});
  state_.newest = state_.n_entries++;
}

JsonReader::NumberRead JsonReader::number() const noexcept {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (state_.in != In::kNothing) return {};
  NumberRead read;
  read.begin = state_.n_raw;
  bool exponent = false;
  bool any = false;  // whether the mantissa has a non-zero digit
  uint32_t n_digits = 0;
  for (; read.begin > 0; --read.begin) {
    const char c = raw_at(read.begin - 1);
    if (c == 'e' || c == 'E') {
      exponent = true;
      read.n_exponent = n_digits;
      any = false;
    } else if (is_digit(c)) {
      any |= c != '0';
      ++n_digits;
    } else if (c == '.') {
      read.whole = false;
    } else if (c != '+' && c != '-') {
      break;
    }
  }
  if (read.begin == state_.n_raw) return {};
  const char first = raw_at(read.begin);
  if (!is_digit(first) && first != '-') return {};  // the end of a word
  read.whole = read.whole && !exponent;
  read.kind = exponent ? (any ? Number::kOtherWithExponent : Number::kZeroWithExponent)
                       : (any ? Number::kOther : Number::kZero);
  return read;
}

bool JsonReader::read_string(uint8_t byte) {
  if (byte == '\\') {
    state_.in = In::kEscape;
  } else if (byte != '"') {
    put(byte);
  } else {
    if (state_.name && name_is_taken()) return false;
    state_.in = In::kNothing;
    if (!state_.name) return true;
    add(finished(state_.hash), state_.begin);
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
  state_.hex =
      static_cast<uint16_t>(unsigned{state_.hex} << 4U | (static_cast<unsigned>(digit) & 15U));
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
  if (!state_.name) return;
  state_.hash = step(state_.hash, byte);
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

void JsonReader::open(bool object) {
  containers_.push_back({state_.container, state_.newest, state_.item, state_.n_here, state_.object,
                         state_.watched, state_.again});
  state_.container = ++state_.n_containers;
  state_.newest = JsonState::kNone;
  state_.item = JsonState::kNone;
  state_.n_here = 0;
  state_.object = object;
  state_.watched = false;
  state_.expects_name = object;
}

void JsonReader::close() {
  if (state_.container == 0) return;
  const uint32_t index = state_.container - 1;
  const JsonText::Container& one = container(index);
  if (state_.watched) {
    --state_.n_watched;
    state_.n_held -= state_.n_here;
  }
  state_.container = one.parent;
  state_.newest = one.newest;
  state_.item = one.item;
  state_.n_here = one.n_here;
  state_.object = one.object;
  state_.watched = one.watched;
  state_.again = one.again;
  state_.expects_name = false;
}

}  // namespace gen::grammar
