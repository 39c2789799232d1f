// SPDX-License-Identifier: Apache-2.0
// See checksum.h. The constants and steps are those of the xxHash specification.
#include "base/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gen {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;

static_assert(std::endian::native == std::endian::little);

template <typename T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

uint64_t round(uint64_t lane, uint64_t word) noexcept {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

uint64_t merge(uint64_t hash, uint64_t lane) noexcept {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

void Checksum::take_stripe(const std::byte* stripe) noexcept {
  for (size_t i = 0; i < 4; ++i) lanes_[i] = round(lanes_[i], load<uint64_t>(stripe + 8 * i));
}

void Checksum::add(std::span<const std::byte> bytes) noexcept {
  const size_t held = total_ % kStripe;
  total_ += bytes.size();
  if (held > 0) {
    const size_t taken = std::min(bytes.size(), kStripe - held);
    if (taken > 0) std::memcpy(rest_ + held, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    if (held + taken < kStripe) return;
    take_stripe(rest_);
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) take_stripe(bytes.data());
  if (!bytes.empty()) std::memcpy(rest_, bytes.data(), bytes.size());
}

void Checksum::add_number(uint64_t number) noexcept { add(std::as_bytes(std::span(&number, 1))); }

uint64_t Checksum::value() const noexcept {
  uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  hash += total_;
  const std::byte* at = rest_;
  size_t left = total_ % kStripe;
  for (; left >= 8; at += 8, left -= 8) {
    hash = std::rotl(hash ^ round(0, load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left) {
    hash = std::rotl(hash ^ std::to_integer<uint64_t>(*at) * kPrime5, 11) * kPrime1;
  }
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace gen
