// SPDX-License-Identifier: Apache-2.0
// Proves the decoders of the types of few bits: a block of each and the hash of 5,000
// random ones against what another program made of them (low_bit.golden), exactly. Random bytes
// reach every entry of the codebooks.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "quant/codec_cases.h"

namespace gen::quant {
namespace {

/// The blocks of the golden file: bytes of a xorshift generator, scales without infinities.
class RandomBlocks {
 public:
  explicit RandomBlocks(DType type) : type_(type), bytes_(dtype_info(type)->block_bytes) {}

  const std::vector<std::byte>& next() {
    for (std::byte& byte : bytes_) {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
      byte = static_cast<std::byte>((state_ >> 29) & 255);
    }
    const bool behind = type_ == DType::kIQ1_M || type_ == DType::kTQ1_0 || type_ == DType::kTQ2_0;
    if (type_ != DType::kNVFP4) bytes_[behind ? bytes_.size() - 1 : 1] &= std::byte{0xBF};
    return bytes_;
  }

 private:
  DType type_;
  std::vector<std::byte> bytes_;
  uint64_t state_ = 88172645463325252U;
};

std::map<std::string, DType> names() {
  std::map<std::string, DType> all;
  for (const DType type : test::kLowBitTypes) all[dtype_name(type)] = type;
  return all;
}

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(LowBit, BlocksAreWhatAnotherProgramMakesOfThem) {
  std::ifstream file(GEN_TEST_SOURCE_DIR "/tests/quant/low_bit.golden");
  ASSERT_TRUE(file.is_open());
  const auto types = names();
  size_t blocks = 0;
  size_t sums = 0;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    std::string kind;
    std::string what;
    words >> name >> kind >> what;
    ASSERT_TRUE(types.contains(name)) << name;
    const DType type = types.at(name);
    const size_t elements = dtype_info(type)->block_elements;
    RandomBlocks random(type);
    if (kind == "block") {
      ++blocks;
      ASSERT_EQ(random.next(), from_hex(what)) << name;
      const std::vector<float> y = decode(type, from_hex(what), elements);
      for (size_t i = 0; i < elements; ++i) {
        std::string value;
        ASSERT_TRUE(words >> value) << name << ' ' << i;
        EXPECT_EQ(y[i], std::stof(value)) << name << ' ' << i;
      }
      continue;
    }
    ++sums;
    uint64_t hash = 14695981039346656037U;
    for (int i = 0; i < std::stoi(what); ++i) {
      for (const float value : decode(type, random.next(), elements)) {
        for (int byte = 0; byte < 4; ++byte) {
          hash ^= (std::bit_cast<uint32_t>(value + 0.0F) >> (8 * byte)) & 255U;
          hash *= 1099511628211U;
        }
      }
    }
    uint64_t wanted = 0;
    words >> std::hex >> wanted;
    EXPECT_EQ(hash, wanted) << name;
  }
  EXPECT_EQ(blocks, types.size());
  EXPECT_EQ(sums, types.size());
}

TEST(LowBit, HostileBytesAreNumbersOrNot) {
  for (const DType type : test::kLowBitTypes) {
    const DTypeInfo& info = *dtype_info(type);
    // All ones: scales are NaN, indices the last ones. The buffers end where the block does.
    for (const std::byte fill : {std::byte{0x00}, std::byte{0xFF}, std::byte{0x7F}}) {
      const std::vector<std::byte> block(info.block_bytes, fill);
      BlockParts parts = {};
      find_format(type)->unpack(block.data(), parts);
      const Traits& traits = *find_traits(type);
      for (int i = 0; i < stored_block(traits); ++i) {
        ASSERT_LT(parts.codes[i], 1 << traits.bits) << info.name;
      }
      EXPECT_EQ(decode(type, block, info.block_elements).size(), info.block_elements);
    }
  }
}

TEST(Nvfp4, ScalesByHand) {
  std::vector<std::byte> block(36);
  block[0] = std::byte{0x38};  // 1
  block[1] = std::byte{0x01};  // the smallest, 2^-9
  block[2] = std::byte{0x7F};  // counts as 0
  block[3] = std::byte{0x7E};  // the largest, 448
  for (size_t run = 0; run < 4; ++run) block[4 + 8 * run] = std::byte{0xF1};
  const std::vector<float> y = decode(DType::kNVFP4, block, 64);
  EXPECT_EQ(y[0], 0.5F);
  EXPECT_EQ(y[8], -6.0F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_EQ(y[16], 0x1p-10F);
  EXPECT_EQ(y[24], -6 * 0x1p-9F);
  EXPECT_EQ(y[32], 0.0F);
  EXPECT_EQ(y[48], 224.0F);
  EXPECT_EQ(y[56], -2688.0F);
}

}  // namespace
}  // namespace gen::quant
