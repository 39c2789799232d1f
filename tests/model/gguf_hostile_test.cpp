// SPDX-License-Identifier: Apache-2.0
// Hostile GGUF files: each row breaks one thing in a good file and says which code and which words
// must come back. All of it runs under a limit on memory, since a small file that makes the reader
// allocate gigabytes is an attack too.
#include "model/gguf/gguf_file.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>

#include "support/gguf_writer.h"

namespace {

std::atomic<size_t> live_bytes{0};
std::atomic<size_t> peak_bytes{0};

void* counted_allocate(size_t bytes) {
  void* at = std::malloc(bytes > 0 ? bytes : 1);
  if (at == nullptr) throw std::bad_alloc();
  const size_t now = live_bytes.fetch_add(malloc_usable_size(at)) + malloc_usable_size(at);
  size_t peak = peak_bytes.load();
  while (peak < now && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
  return at;
}

void counted_release(void* at) noexcept {
  if (at != nullptr) live_bytes.fetch_sub(malloc_usable_size(at));
  std::free(at);
}

}  // namespace

void* operator new(size_t bytes) { return counted_allocate(bytes); }
void* operator new[](size_t bytes) { return counted_allocate(bytes); }
void operator delete(void* at) noexcept { counted_release(at); }
void operator delete[](void* at) noexcept { counted_release(at); }
void operator delete(void* at, size_t) noexcept { counted_release(at); }
void operator delete[](void* at, size_t) noexcept { counted_release(at); }

namespace gen::gguf {
namespace {

using test::GgufImage;
using test::GgufWriter;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ8_0 = 8;
constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

std::vector<std::byte> zeros(size_t n) { return std::vector<std::byte>(n); }

/// Small, with at least one field of each kind.
GgufWriter good_writer() {
  GgufWriter writer;
  writer.set_string("name", "a model")
      .set<uint32_t>("general.alignment", 32)
      .set<bool>("flag", true)
      .set<uint64_t>("wide", 1)
      .set_array<float>("scores", {1.0F, 2.0F})
      .set_array<bool>("flags", {true, false})
      .set_strings("words", {"one", "two", "three"})
      .tensor("a", kF32, {4, 2, 1, 1}, zeros(32))
      .tensor("b", kQ8_0, {64, 2}, zeros(4 * 34))
      .tensor("c", kF32, {8}, zeros(32));
  return writer;
}

struct Row {
  const char* name;
  std::function<void(GgufImage&)> damage;
  Code code;
  const char* says;
};

template <typename T>
std::function<void(GgufImage&)> poke(const char* mark, T value) {
  return [=](GgufImage& image) { image.poke(mark, value); };
}

std::function<void(GgufImage&)> cut(const char* mark, size_t keep = 0) {
  return [=](GgufImage& image) { image.cut(mark, keep); };
}

/// Instead of the good file, that of another writer.
std::function<void(GgufImage&)> instead(const std::function<void(GgufWriter&)>& fill) {
  return [=](GgufImage& image) {
    GgufWriter writer;
    fill(writer);
    image = writer.build();
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      // Header.
      {"empty", [](GgufImage& i) { i.bytes.clear(); }, Code::kFormat, "magic"},
      {"three bytes", cut("version", size_t(-1)), Code::kFormat, "magic"},
      {"other magic", poke<uint32_t>("magic", 0x46554746), Code::kFormat, "magic"},
      {"older ggml magic", poke<uint32_t>("magic", 0x67676A74), Code::kFormat, "magic"},
      {"ends before version", cut("version"), Code::kFormat, "version"},
      {"ends in version", cut("version", 2), Code::kFormat, "version"},
      {"version 0", poke<uint32_t>("version", 0), Code::kUnsupported, "version 0 outside [2, 3]"},
      {"version 1", poke<uint32_t>("version", 1), Code::kUnsupported, "version 1 outside [2, 3]"},
      {"version 4", poke<uint32_t>("version", 4), Code::kUnsupported, "version 4"},
      {"big-endian", poke<uint32_t>("version", 0x03000000), Code::kUnsupported, "big-endian"},
      {"ends in tensor count", cut("tensor_count", 7), Code::kFormat, "header takes 24"},
      {"ends in metadata count", cut("metadata_count", 7), Code::kFormat, "header takes 24"},
      {"ends after header", cut("name.key_length"), Code::kFormat, "tensor count 3"},
      {"huge tensor count", poke("tensor_count", kHuge), Code::kFormat, "tensor count"},
      {"negative tensor count", poke<int64_t>("tensor_count", -3), Code::kFormat, "tensor count"},
      {"tensor count beyond file", poke<uint64_t>("tensor_count", 100), Code::kFormat,
       "tensor count 100 above"},
      {"one tensor too many", poke<uint64_t>("tensor_count", 4), Code::kFormat, "tensor"},
      {"huge metadata count", poke("metadata_count", kHuge), Code::kFormat, "metadata count"},
      {"negative metadata count", poke<int64_t>("metadata_count", -1), Code::kFormat,
       "metadata count"},
      {"metadata count that wraps", poke<uint64_t>("metadata_count", (kHuge / 14) + 2),
       Code::kFormat, "metadata count"},
      {"one entry too many", poke<uint64_t>("metadata_count", 8), Code::kFormat,
       "tensor 0: name length"},
      {"one entry too few", poke<uint64_t>("metadata_count", 6), Code::kFormat, "tensor"},
      // Keys.
      {"huge key length", poke("name.key_length", kHuge), Code::kFormat, "key length"},
      {"negative key length", poke<int64_t>("name.key_length", -4), Code::kFormat, "key length"},
      {"key beyond file", poke<uint64_t>("words.key_length", 60000), Code::kFormat,
       "key length 60000"},
      {"key above limit", poke<uint64_t>("name.key_length", 65536), Code::kFormat,
       "key length 65536 outside [1, 65535]"},
      {"empty key", poke<uint64_t>("name.key_length", 0), Code::kFormat, "key length 0"},
      {"NUL in key", poke<char>("name.key", '\0'), Code::kFormat, "key is not UTF-8"},
      {"newline in key", poke<char>("name.key", '\n'), Code::kFormat, "control"},
      {"malformed UTF-8 in key", poke<uint8_t>("name.key", 0xFF), Code::kFormat, "key is not"},
      {"key twice", poke<uint32_t>("flag.key", 0x656D616E), Code::kFormat, "'name' is there twice"},
      // Values.
      {"value type 13", poke<uint32_t>("wide.type", 13), Code::kFormat,
       "'wide': type 13 outside [0, 12]"},
      {"negative value type", poke<int32_t>("wide.type", -1), Code::kFormat, "'wide': type"},
      {"bool of 2", poke<uint8_t>("flag.value", 2), Code::kFormat, "'flag': bool of value 2"},
      {"bool of 255 in array", poke<uint8_t>("flags.value", 255), Code::kFormat, "'flags': bool"},
      {"huge string", poke("name.value", kHuge), Code::kFormat, "'name': string length"},
      {"negative string length", poke<int64_t>("name.value", -8), Code::kFormat, "string length"},
      {"string beyond file", poke<uint64_t>("name.value", 100000), Code::kFormat,
       "'name': string length 100000"},
      {"array type 13", poke<uint32_t>("scores.array_type", 13), Code::kFormat,
       "'scores': array type 13"},
      {"array of arrays", poke<uint32_t>("scores.array_type", 9), Code::kUnsupported,
       "'scores': arrays of arrays"},
      {"huge array", poke("scores.array_length", kHuge), Code::kFormat, "'scores': array length"},
      {"array length that wraps to 0", poke<uint64_t>("scores.array_length", uint64_t{1} << 62),
       Code::kFormat, "'scores': array length"},
      {"array beyond file", poke<uint64_t>("scores.array_length", 5000), Code::kFormat,
       "'scores': array length 5000"},
      {"array of u64 for f32", poke<uint32_t>("scores.array_type", 10), Code::kFormat, "metadata"},
      {"huge array of strings", poke("words.array_length", kHuge), Code::kFormat,
       "'words': array length"},
      {"strings beyond file", poke<uint64_t>("words.array_length", uint64_t{1} << 40),
       Code::kFormat, "'words': array length"},
      {"huge string in array", poke("words.value", kHuge), Code::kFormat, "'words': string length"},
      {"ends in key", cut("words.key", 2), Code::kFormat, "key length 5, but 2 bytes are left"},
      {"ends in array length",
       [](GgufImage& i) { i.poke<uint64_t>("tensor_count", 0).cut("words.array_length", 3); },
       Code::kFormat, "'words': array length"},
      {"ends in value type",
       [](GgufImage& i) { i.poke<uint64_t>("tensor_count", 0).cut("words.type", 1); },
       Code::kFormat, "'words': type"},
      {"ends in array type",
       [](GgufImage& i) { i.poke<uint64_t>("tensor_count", 0).cut("words.array_type", 1); },
       Code::kFormat, "'words': array type"},
      {"ends in value",
       [](GgufImage& i) {
         i.poke<uint64_t>("tensor_count", 0).poke<uint64_t>("metadata_count", 4);
         i.cut("wide.value", 7);
       },
       Code::kFormat, "'wide': value needs 8 bytes, but 7"},
      {"ends in string of array",
       [](GgufImage& i) { i.poke<uint64_t>("tensor_count", 0).cut("a.name_length", size_t(-1)); },
       Code::kFormat, "'words': string length 5"},
      // Alignment.
      {"alignment 0", poke<uint32_t>("general.alignment.value", 0), Code::kFormat,
       "'general.alignment': 0 is not a power of two"},
      {"alignment 33", poke<uint32_t>("general.alignment.value", 33), Code::kFormat,
       "'general.alignment': 33"},
      {"alignment 4", poke<uint32_t>("general.alignment.value", 4), Code::kFormat,
       "'general.alignment': 4"},
      {"alignment 2^31", poke<uint32_t>("general.alignment.value", 1U << 31), Code::kFormat,
       "'general.alignment': 2147483648"},
      {"alignment of 64 for 32", poke<uint32_t>("general.alignment.value", 64), Code::kFormat,
       "tensor 'b': offset 32 is no multiple of the alignment 64"},
      {"alignment as f32", poke<uint32_t>("general.alignment.type", 6), Code::kFormat,
       "'general.alignment': u32 wanted, f32 found"},
      {"negative alignment",
       instead([](GgufWriter& w) { w.set<int32_t>("general.alignment", -32); }), Code::kFormat,
       "'general.alignment': -32 does not fit u32"},
      // Tensor infos.
      {"huge tensor name", poke("a.name_length", kHuge), Code::kFormat, "tensor 0: name length"},
      {"tensor name above limit", poke<uint64_t>("a.name_length", 65), Code::kFormat,
       "name length 65 outside [1, 64]"},
      {"empty tensor name", poke<uint64_t>("b.name_length", 0), Code::kFormat,
       "tensor 1: name length 0"},
      {"NUL in tensor name", poke<char>("c.name", '\0'), Code::kFormat, "tensor 2: name is not"},
      {"malformed UTF-8 in tensor name", poke<uint8_t>("c.name", 0xC0), Code::kFormat,
       "tensor 2: name is not"},
      {"tensor name twice", poke<char>("c.name", 'a'), Code::kFormat,
       "tensor 'a': its name is there twice"},
      {"no dimensions", poke<uint32_t>("a.n_dims", 0), Code::kFormat,
       "tensor 'a': number of dimensions 0"},
      {"five dimensions", poke<uint32_t>("a.n_dims", 5), Code::kFormat,
       "tensor 'a': number of dimensions 5"},
      {"negative number of dimensions", poke<int32_t>("a.n_dims", -1), Code::kFormat,
       "tensor 'a': number of dimensions"},
      {"dimension 0", poke<uint64_t>("a.dim1", 0), Code::kFormat, "tensor 'a': dimension 1 is 0"},
      {"negative dimension", poke<int64_t>("a.dim0", -4), Code::kFormat, "tensor 'a': dimension 0"},
      {"smallest negative dimension", poke<int64_t>("a.dim0", std::numeric_limits<int64_t>::min()),
       Code::kFormat, "tensor 'a': dimension 0"},
      {"dimensions that overflow",
       [](GgufImage& i) {
         i.poke<uint64_t>("a.dim0", uint64_t{1} << 32).poke<uint64_t>("a.dim1", uint64_t{1} << 32);
       },
       Code::kFormat, "tensor 'a': dimensions up to 1"},
      {"dimensions that wrap to 8",
       [](GgufImage& i) {
         i.poke<uint64_t>("a.dim0", (uint64_t{1} << 61) + 1).poke<uint64_t>("a.dim1", 8);
       },
       Code::kFormat, "tensor 'a': dimensions"},
      {"size in bytes that overflows", poke<uint64_t>("c.dim0", uint64_t{1} << 62), Code::kFormat,
       "tensor 'c': size in bytes"},
      {"size in bytes that wraps by rows",
       [](GgufImage& i) {
         i.poke<uint64_t>("a.dim0", 4).poke<uint64_t>("a.dim1", uint64_t{1} << 60);
       },
       Code::kFormat, "tensor 'a': size in bytes"},
      {"row that is no whole block", poke<uint64_t>("b.dim0", 48), Code::kFormat,
       "tensor 'b': row length 48 is no multiple of 32"},
      {"removed tensor type", poke<uint32_t>("a.type", 4), Code::kUnsupported,
       "tensor 'a': type 4 (Q4_2, or MXFP4 of ollama's first files) is not supported"},
      {"later tensor type", poke<uint32_t>("a.type", 200), Code::kUnsupported,
       "tensor 'a': type 200 is not supported"},
      {"first type of ik_llama.cpp", poke<uint32_t>("a.type", 133), Code::kUnsupported,
       "tensor 'a': type 133 (Q6_0) is made for ik_llama.cpp"},
      {"type of ik_llama.cpp without a known name", poke<uint32_t>("a.type", 142),
       Code::kUnsupported, "tensor 'a': type 142 is made for ik_llama.cpp"},
      {"last type of ik_llama.cpp", poke<uint32_t>("a.type", 158), Code::kUnsupported,
       "tensor 'a': type 158 (IQ1_KT) is made for ik_llama.cpp"},
      {"type before those", poke<uint32_t>("a.type", 132), Code::kUnsupported,
       "tensor 'a': type 132 is not supported"},
      {"repacked type of ik_llama.cpp", poke<uint32_t>("a.type", 339), Code::kUnsupported,
       "tensor 'a': type 339 (IQ4_K_R4) is made for ik_llama.cpp"},
      {"huge tensor type", poke<uint32_t>("a.type", 0xFFFFFFFF), Code::kFormat,
       "tensor 'a': type 4294967295 outside"},
      {"ends in tensor name", cut("c.name"), Code::kFormat, "tensor"},
      {"ends in dimensions", cut("c.dim0", 5), Code::kFormat, "tensor 2: the file ends in its"},
      {"ends in type", cut("c.type", 2), Code::kFormat, "tensor 2: the file ends in its type"},
      {"ends in offset", cut("c.offset", 4), Code::kFormat,
       "tensor 2: the file ends in its offset"},
      // Tensor data.
      {"no data section", cut("infos_end"), Code::kFormat, "tensor 'a': offset 0"},
      {"data section missing bytes", cut("c.data", 31), Code::kFormat,
       "tensor 'c': offset 192 and size 32 reach beyond"},
      {"type of larger size", poke<uint32_t>("c.type", 28), Code::kFormat,
       "tensor 'c': offset 192 and size 64"},
      {"offset beyond file", poke<uint64_t>("c.offset", 1U << 20), Code::kFormat,
       "tensor 'c': offset 1048576"},
      {"huge offset", poke<uint64_t>("c.offset", kHuge - 31), Code::kFormat, "tensor 'c': offset"},
      {"negative offset", poke<int64_t>("c.offset", -64), Code::kFormat, "tensor 'c': offset"},
      {"offset and size that wrap", poke<uint64_t>("b.offset", kHuge - 127), Code::kFormat,
       "tensor 'b': offset"},
      {"unaligned offset", poke<uint64_t>("b.offset", 33), Code::kFormat,
       "tensor 'b': offset 33 is no multiple of the alignment 32"},
      {"same data", poke<uint64_t>("c.offset", 0), Code::kFormat, "overlaps"},
      {"overlap inside", poke<uint64_t>("c.offset", 64), Code::kFormat,
       "tensor 'c': its data overlaps that of tensor 'b'"},
      {"overlap by growth", poke<uint64_t>("a.dim1", 3), Code::kFormat,
       "tensor 'b': its data overlaps that of tensor 'a'"},
      // Splits, of which one is not enough.
      {"split in memory", instead([](GgufWriter& w) {
         w.set<uint16_t>("split.no", 0).set<uint16_t>("split.count", 2);
       }),
       Code::kFormat, "'split.count': 2, but a model in memory must be whole"},
      {"split count of 2^32 - 1",
       instead([](GgufWriter& w) { w.set<uint32_t>("split.count", 0xFFFFFFFF); }), Code::kFormat,
       "'split.count': 4294967295 outside"},
      {"split number beyond count", instead([](GgufWriter& w) {
         w.set<uint16_t>("split.no", 2).set<uint16_t>("split.count", 2);
       }),
       Code::kFormat, "'split.no': 2 outside [0, 2)"},
      {"split number as string", instead([](GgufWriter& w) { w.set_string("split.no", "1"); }),
       Code::kFormat, "'split.no': u32 wanted, string found"},
  };
  return kRows;
}

/// Parses a copy that ends where the bytes end, so that the address sanitizer sees every overrun.
Result<std::shared_ptr<const GgufFile>> parse_exactly(const std::vector<std::byte>& bytes,
                                                      size_t* allocated) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const size_t before = live_bytes.load();
  peak_bytes.store(before);
  auto result = GgufFile::parse({copy.get(), bytes.size()});
  *allocated = peak_bytes.load() - before;
  if (result.ok()) {
    for (const TensorInfo& tensor : result.value()->tensors()) {
      EXPECT_GE(tensor.data.data(), copy.get());
      EXPECT_LE(tensor.data.data() + tensor.data.size(), copy.get() + bytes.size());
    }
  }
  return result;
}

TEST(GgufHostile, GoodFileIsGood) {
  size_t allocated = 0;
  const auto file = parse_exactly(good_writer().build().bytes, &allocated);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value()->tensors().size(), 3U);
}

TEST(GgufHostile, EveryRowFailsAndNamesTheField) {
  ASSERT_GE(rows().size(), 60U);
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    GgufImage image = good_writer().build();
    row.damage(image);
    size_t allocated = 0;
    const auto file = parse_exactly(image.bytes, &allocated);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), row.code) << file.status().message();
    const std::string message = file.status().message();
    EXPECT_NE(message.find(row.says), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LE(allocated, 4 * image.bytes.size() + 8192);
  }
}

TEST(GgufHostile, EveryTruncationFails) {
  const std::vector<std::byte> good = good_writer().build().bytes;
  for (size_t size = 0; size < good.size(); ++size) {
    SCOPED_TRACE(size);
    size_t allocated = 0;
    const auto file =
        parse_exactly({good.begin(), good.begin() + static_cast<ptrdiff_t>(size)}, &allocated);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), Code::kFormat) << file.status().message();
  }
}

// Whatever one changed byte does, the reader must stay within the file and its memory, and what it
// lets through must be readable in full.
TEST(GgufHostile, EveryChangedByteIsSurvived) {
  const std::vector<std::byte> good = good_writer().build().bytes;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::vector<std::byte> bad = good;
      bad[at] ^= static_cast<std::byte>(change);
      size_t allocated = 0;
      const auto file = parse_exactly(bad, &allocated);
      EXPECT_LE(allocated, 4 * bad.size() + 8192);
      if (!file.ok()) continue;
      for (const Value& value : file.value()->metadata().entries()) {
        EXPECT_EQ(file.value()->metadata().find(value.key()), &value);
        EXPECT_LE(value.text(1000).size(), 16 * bad.size());
      }
    }
  }
}

/// Files that were made for ollama's own engine, and are translated.
std::vector<GgufWriter> ollamas_writers() {
  GgufWriter gptoss;
  gptoss.set_string("general.architecture", "gptoss")
      .set<uint32_t>("gptoss.block_count", 1)
      .set_string("tokenizer.ggml.pre", "default")
      .tensor("blk.0.attn_out.weight", kF32, {4}, zeros(16))
      .tensor("blk.0.attn_sinks", kF32, {4}, zeros(16))
      .tensor("blk.0.ffn_gate_exps.weight", kF32, {2, 4}, zeros(32));
  GgufWriter gemma3;
  gemma3.set_string("general.architecture", "gemma3")
      .set<uint32_t>("gemma3.context_length", 131072)
      .set<float>("gemma3.rope.global.freq_base", 1e6F)
      .set_strings("tokenizer.ggml.tokens", {"a", "b", "", "c"})
      .set_array<float>("tokenizer.ggml.scores", {0, 1, 2, 3})
      .tensor("token_embd.weight", kF32, {2, 3}, zeros(24))
      .tensor("mm.x", kF32, {1}, zeros(4));
  GgufWriter qwen35;
  qwen35.set_string("general.architecture", "qwen35")
      .set<uint32_t>("qwen35.block_count", 3)
      .set_array<int32_t>("qwen35.mrope_sections", {1, 2, 3})
      .set_array<uint32_t>("qwen35.attention.head_count_kv", {0, 0, 2})
      .tensor("blk.0.ssm_dt", kF32, {4}, zeros(16))
      .tensor("mtp.fc.weight", kF32, {4}, zeros(16))
      .tensor("mtp.layers.0.attn_norm.weight", kF32, {4}, zeros(16));
  return {gptoss, gemma3, qwen35};
}

TEST(GgufHostile, EveryChangedByteOfATranslatedFileIsSurvived) {
  for (const GgufWriter& writer : ollamas_writers()) {
    const std::vector<std::byte> good = writer.build().bytes;
    const auto translated = GgufFile::parse(good);
    ASSERT_TRUE(translated.ok()) << translated.status().message();
    EXPECT_FALSE(translated.value()->metadata().has("gptoss.block_count"));
    for (size_t at = 0; at < good.size(); ++at) {
      for (const int change : {0x01, 0x02, 0x80, 0xFF}) {
        std::vector<std::byte> bad = good;
        bad[at] ^= static_cast<std::byte>(change);
        const size_t before = live_bytes.load();
        peak_bytes.store(before);
        const auto file = GgufFile::parse(bad);
        EXPECT_LE(peak_bytes.load() - before, 16 * bad.size() + 16384);
        if (!file.ok()) continue;
        uint64_t sum = 0;
        for (const TensorInfo& tensor : file.value()->tensors()) {
          EXPECT_LE(tensor.name.size(), 64U);
          EXPECT_EQ(file.value()->find_tensor(tensor.name), &tensor);
          for (const std::byte byte : tensor.data) sum += static_cast<uint64_t>(byte);
        }
        EXPECT_LT(sum, kHuge);
        for (const Value& value : file.value()->metadata().entries()) {
          EXPECT_EQ(file.value()->metadata().find(value.key()), &value);
          EXPECT_LE(value.text(1000).size(), 16 * bad.size());
        }
      }
    }
  }
}

TEST(GgufHostile, TranslationCostsLittle) {
  GgufWriter writer;
  writer.set_string("general.architecture", "gptoss");
  for (int i = 0; i < 60000; ++i) {
    std::string key = "gptoss.";
    for (int rest = i; rest > 0 || key.size() == 7; rest /= 90)
      key += static_cast<char>('#' + rest % 90);
    writer.set<uint8_t>(key, 1);
  }
  for (int i = 0; i < 20000; ++i) {
    writer.tensor(std::to_string(i) + ".attn_sinks", 24, {1}, zeros(1));
  }
  const std::vector<std::byte> bytes = writer.build().bytes;
  const size_t before = live_bytes.load();
  peak_bytes.store(before);
  ASSERT_TRUE(GgufFile::parse(bytes).ok());
  EXPECT_LE(peak_bytes.load() - before, 12 * bytes.size());
}

struct Trap {
  std::byte* page;
  size_t page_bytes;
  std::byte* length;  // is changed when the page is touched
};
Trap trap;

/// The first touch of the page: somebody else writes to the file just now.
void change_file(int /*signal*/) {
  ::mprotect(trap.page, trap.page_bytes, PROT_READ | PROT_WRITE);
  const uint64_t much = 0x2000000;
  std::memcpy(trap.length, &much, sizeof much);
}

// A length that is changed after it was checked, while what follows is: it must not be used.
TEST(GgufHostile, WhatChangesWhileItIsReadIsNotTrusted) {
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  GgufWriter writer = good_writer();
  writer.set_string("long", std::string(2 * page_bytes, 'x')).set_string("last", "end");
  const std::vector<std::byte> image = writer.build().bytes;
  const auto place = [&](std::string_view text) {
    const auto* begin = reinterpret_cast<const char*>(image.data());
    return std::string_view(begin, image.size()).find(text);
  };
  const size_t size = (image.size() + page_bytes - 1) / page_bytes * page_bytes;
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* at = static_cast<std::byte*>(mapped);
  std::memcpy(at, image.data(), image.size());
  const size_t word = place("two");
  const size_t last = place("last");
  ASSERT_LT(word / page_bytes, last / page_bytes);
  trap = {at + last / page_bytes * page_bytes, page_bytes, at + word - sizeof(uint64_t)};
  struct sigaction ours {};
  struct sigaction before {};
  ours.sa_handler = change_file;
  ASSERT_EQ(::sigaction(SIGSEGV, &ours, &before), 0);
  ASSERT_EQ(::mprotect(trap.page, page_bytes, PROT_NONE), 0);
  const auto file = GgufFile::parse({at, image.size()});
  ::sigaction(SIGSEGV, &before, nullptr);
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), Code::kFormat) << file.status().message();
  ::munmap(mapped, size);
}

// The smallest entries and tensors cost the most for their bytes.
TEST(GgufHostile, ManySmallThingsCostLittle) {
  GgufWriter writer;
  for (int i = 0; i < 60000; ++i) {
    std::string key;
    for (int rest = i; rest > 0 || key.empty(); rest /= 90)
      key += static_cast<char>('#' + rest % 90);
    writer.set<uint8_t>(key, 1);
  }
  const std::vector<std::byte> entries = writer.build().bytes;
  size_t allocated = 0;
  ASSERT_TRUE(parse_exactly(entries, &allocated).ok());
  EXPECT_LE(allocated, 4 * entries.size());

  GgufWriter tensors;
  tensors.alignment(8).set<uint32_t>("general.alignment", 8);
  for (int i = 0; i < 20000; ++i) tensors.tensor(std::to_string(i), 24, {1}, zeros(1));
  const std::vector<std::byte> infos = tensors.build().bytes;
  ASSERT_TRUE(parse_exactly(infos, &allocated).ok());
  EXPECT_LE(allocated, 4 * infos.size());
}

}  // namespace
}  // namespace gen::gguf
