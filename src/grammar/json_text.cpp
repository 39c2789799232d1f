// SPDX-License-Identifier: Apache-2.0
// See json_text.h.
#include "grammar/json_text.h"

#include <algorithm>

namespace gen::grammar {
namespace {

using In = JsonState::In;

constexpr uint64_t kSeed = 0x9AE16A3B2F90404FU;

}  // namespace

uint64_t JsonReader::finished(uint64_t hash) noexcept {
  hash = (hash ^ hash >> 32U) * 0xD6E8FEB86659FD93U;
  return hash ^ hash >> 32U;
}

void JsonText::shrink(const JsonState& to) noexcept {
  while (entries_.size() > to.n_entries) {
    // The newest is the first of its place.
    const Entry& last = entries_.back();
    places_[last.hash & (places_.size() - 1)] = last.next;
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
    uint32_t& place = places[entries_[i].hash & (places.size() - 1)];
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
    uint32_t& place = places_[entries_[i].hash & (places_.size() - 1)];
    entries_[i].next = place;
    place = i;
  }
}

bool JsonReader::same(const JsonText::Entry& entry, uint64_t hash) const noexcept {
  const uint32_t length = state_.n_bytes - state_.begin;
  if (entry.container != state_.container || entry.hash != hash || entry.length != length) {
    return false;
  }
  for (uint32_t i = 0; i < length; ++i) {
    if (byte_at(entry.begin + i) != byte_at(state_.begin + i)) return false;
  }
  return true;
}

bool JsonReader::has(uint64_t hash) const noexcept {
  for (uint32_t i = text_->first(hash); i != JsonState::kNone; i = text_->entry(i).next) {
    if (i < start_.n_entries && same(text_->entry(i), hash)) return true;
  }
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const JsonText::Entry& entry) { return same(entry, hash); });
}

bool JsonReader::read(uint8_t byte) {
  switch (state_.in) {
    case In::kNothing:
      read_between(byte);
      return true;
    case In::kString:
      return read_string(byte);
    case In::kEscape:
    case In::kHex:
      read_escape(byte);
      return true;
  }
  return false;
}

void JsonReader::read_between(uint8_t byte) {
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
    case ']':
      close();
      break;
    case ',':
      state_.expects_name = state_.object;
      break;
    default:
      break;
  }
}

bool JsonReader::read_string(uint8_t byte) {
  if (byte == '\\') {
    state_.in = In::kEscape;
  } else if (byte != '"') {
    put(byte);
  } else {
    state_.in = In::kNothing;
    if (!state_.name) return true;
    const uint64_t hash = finished(state_.hash);
    if (has(hash)) return false;
    entries_.push_back(
        {state_.container, state_.newest, state_.begin, state_.n_bytes - state_.begin, 0, hash});
    state_.newest = state_.n_entries++;
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
  if (!state_.name) return;
  state_.hash = (state_.hash ^ byte) * 0x9FB21C651E98DF25U;
  state_.hash ^= state_.hash >> 29U;
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
  containers_.push_back({state_.container, state_.newest, state_.object});
  state_.container = ++state_.n_containers;
  state_.newest = JsonState::kNone;
  state_.object = object;
  state_.expects_name = object;
}

void JsonReader::close() {
  if (state_.container == 0) return;
  const uint32_t index = state_.container - 1;
  const JsonText::Container& one = index < start_.n_containers
                                       ? text_->container(index)
                                       : containers_[index - start_.n_containers];
  state_.container = one.parent;
  state_.newest = one.newest;
  state_.object = one.object;
  state_.expects_name = false;
}

}  // namespace gen::grammar
