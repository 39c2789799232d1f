// SPDX-License-Identifier: Apache-2.0
// Proves the files of importance matrices: both forms give means, experts without rows ones; what
// sums write is what is read; every damage is refused with a line that names it, in bounded memory.
#include "model/importance_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "model/importance_sums.h"
#include "support/gguf_writer.h"

namespace gen::model {
namespace {

using test::GgufWriter;

constexpr const char* kQ = "blk.0.attn_q.weight";
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> raw(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

GgufWriter with_type(const char* type = "imatrix") {
  GgufWriter writer;
  writer.set_string("general.type", type);
  return writer;
}

void add(GgufWriter* writer, const std::string& name, const std::vector<float>& sums,
         const std::vector<float>& counts) {
  writer->tensor(name + ".in_sum2", 0, {sums.size() / counts.size(), counts.size()}, raw(sums));
  writer->tensor(name + ".counts", 0, {1, counts.size()}, raw(counts));
}

/// The older form.
class Entries {
 public:
  explicit Entries(int32_t count) { number(count); }
  Entries& number(int32_t value) {
    const auto* const from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
    return *this;
  }
  Entries& text(const std::string& text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  Entries& entry(const std::string& name, int32_t calls, const std::vector<float>& values) {
    number(static_cast<int32_t>(name.size())).text(name).number(calls);
    number(static_cast<int32_t>(values.size()));
    for (const std::byte byte : raw(values)) bytes_.push_back(byte);
    return *this;
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

void expect_refused(const std::vector<std::byte>& bytes, const std::string& part) {
  const auto read = parse_importance(bytes);
  ASSERT_FALSE(read.ok()) << part;
  EXPECT_EQ(read.status().code(), Code::kFormat) << read.status().message();
  EXPECT_NE(std::string(read.status().message()).find(part), std::string::npos)
      << read.status().message() << "\nlacks: " << part;
}

void expect_refused(const GgufWriter& writer, const std::string& part) {
  expect_refused(writer.build().bytes, part);
}

TEST(ImportanceFile, GivesTheMeanOfEachColumn) {
  GgufWriter writer = with_type();
  add(&writer, kQ, {8, 0, 2}, {4});
  add(&writer, "blk.0.ffn_up_exps.weight", {6, 3, 0, 0, 1, 5}, {3, 0, 2});
  writer.tensor("blk.0.attn_q.weight.in_sum", 0, {3}, raw({-1, 2, kNan}));  // of newer files
  const auto read = parse_importance(writer.build().bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read.value().find(kQ), (std::vector<float>{2, 0, 0.5F}));
  EXPECT_EQ(*read.value().find("blk.0.ffn_up_exps.weight"),
            (std::vector<float>{2, 1, 1, 1, 0.5F, 2.5F}));
  EXPECT_EQ(read.value().find("blk.0.attn_k.weight"), nullptr);
  EXPECT_EQ(read.value().all().size(), 2U);
}

TEST(ImportanceFile, ReadsTheOlderForm) {
  Entries entries(2);
  entries.entry(kQ, 4, {8, 0, 2}).entry("output.weight", 0, {3});
  for (const bool windows : {false, true}) {
    for (const bool text : {false, true}) {
      Entries all = entries;
      if (windows || text) all.number(7);
      if (text) all.number(4).text("text");
      const auto read = parse_importance(all.bytes());
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_EQ(*read.value().find(kQ), (std::vector<float>{2, 0, 0.5F}));
      EXPECT_EQ(*read.value().find("output.weight"), std::vector<float>{3});
    }
  }
}

TEST(ImportanceFile, RefusesDamagedGguf) {
  expect_refused(with_type("model"), "general.type is not \"imatrix\"");
  expect_refused(GgufWriter(), "general.type");
  expect_refused(with_type(), "is empty");
  struct Case {
    std::vector<float> sums;
    std::vector<float> counts;
    const char* part;
  };
  const std::vector<Case> cases = {
      {{1, kNan}, {1}, "tensor blk.0.attn_q.weight: value 1 is nan"},
      {{1, kInfinity}, {1}, "value 1 is inf"},
      {{-1, 2}, {1}, "value 0 is -1"},
      {{1, 2}, {kNan}, "count 0 is nan"},
      {{1, 2}, {-1}, "count 0 is -1"},
      {{1, 2}, {1, kInfinity}, "count 1 is inf"},
      {{1, 2}, {0.5F}, "count 0 is 0.5"},
  };
  for (const Case& each : cases) {
    GgufWriter writer = with_type();
    add(&writer, kQ, each.sums, each.counts);
    expect_refused(writer, each.part);
  }
  GgufWriter sizes = with_type();
  sizes.tensor(std::string(kQ) + ".in_sum2", 0, {3}, raw({1, 2, 3}));
  sizes.tensor(std::string(kQ) + ".counts", 0, {2}, raw({1, 2}));
  expect_refused(sizes, "3 sums for 2 counts");
  GgufWriter alone = with_type();
  alone.tensor(std::string(kQ) + ".in_sum2", 0, {1}, raw({1}));
  expect_refused(alone, "in_sum2 has no counts beside it");
  GgufWriter other = with_type();
  other.tensor(std::string(kQ) + ".counts", 0, {1}, raw({1}));
  expect_refused(other, "counts has no sums beside it");
  GgufWriter half = with_type();
  half.tensor(std::string(kQ) + ".in_sum2", 1, {2}, std::vector<std::byte>(4));
  half.tensor(std::string(kQ) + ".counts", 0, {1}, raw({1}));
  expect_refused(half, "in_sum2 has type F16, not F32");
  GgufWriter nameless = with_type();
  add(&nameless, "", {1}, {1});
  expect_refused(nameless, "without a name");
  GgufWriter twice = with_type();
  add(&twice, kQ, {1}, {1});
  add(&twice, kQ, {1}, {1});
  expect_refused(twice, "is there twice");
}

TEST(ImportanceFile, RefusesDamageInTheOlderForm) {
  expect_refused(std::vector<std::byte>(), "ends before the number of entries");
  expect_refused(Entries(0).bytes(), "is empty");
  expect_refused(Entries(-3).bytes(), "the number of entries is -3");
  expect_refused(Entries(std::numeric_limits<int32_t>::max()).entry(kQ, 1, {1}).bytes(),
                 "ends before a name");
  expect_refused(Entries(1).number(2000000000).text("blk").bytes(), "not an importance matrix");
  expect_refused(Entries(2).entry(kQ, 1, {1}).number(2000000000).text("blk").bytes(),
                 "within a name of 2000000000");
  expect_refused(Entries(1).number(-1).bytes(), "a name is -1");
  expect_refused(Entries(1).entry("", 1, {1}).bytes(), "entry 0 has no name");
  expect_refused(Entries(1).entry(std::string(65, 'a'), 1, {1}).bytes(), "no name of a tensor");
  expect_refused(Entries(1).entry("a\nb", 1, {1}).bytes(), "no name of a tensor");
  expect_refused(Entries(1).entry("\xFF", 1, {1}).bytes(), "no name of a tensor");
  expect_refused(Entries(1).entry(kQ, -2, {1}).bytes(), "a number of calls is -2");
  expect_refused(Entries(1).entry(kQ, 1, {}).bytes(), "0 values");
  expect_refused(Entries(1).number(1).text("a").number(1).number(2000000000).bytes(),
                 "tensor a: 2000000000 values in 0 bytes");
  expect_refused(Entries(1).number(1).text("a").number(1).number(-5).bytes(), "values is -5");
  expect_refused(Entries(1).entry(kQ, 1, {kNan}).bytes(), "value 0 is nan");
  expect_refused(Entries(1).entry(kQ, 0, {1, -1}).bytes(), "value 1 is -1");
  expect_refused(Entries(2).entry(kQ, 1, {1}).entry(kQ, 1, {1}).bytes(), "comes twice");
  expect_refused(Entries(1).entry(kQ, 1, {1}).text("ab").bytes(),
                 "ends before the number of windows");
  expect_refused(Entries(1).entry(kQ, 1, {1}).number(1).number(9).text("text").bytes(),
                 "the text's name of 9");
  expect_refused(Entries(1).entry(kQ, 1, {1}).number(1).number(0).text("rest").bytes(),
                 "4 bytes after its end");
}

TEST(ImportanceFile, NamesTheFile) {
  EXPECT_EQ(read_importance("/no/such").status().code(), Code::kIo);
  const std::string path = testing::TempDir() + "importance_file_test" + std::to_string(getpid());
  std::ofstream(path) << "Once upon a time";
  const Status status = read_importance(path).status();
  EXPECT_EQ(status.code(), Code::kFormat);
  EXPECT_EQ(status.message(), path + ": not an importance matrix");
  std::remove(path.c_str());
}

TEST(ImportanceSums, WritesWhatIsRead) {
  const std::vector<float> rows = {1, 2, 9, 3, 4, 9, 5, 6, 9};  // of two columns, three apart
  const std::vector<std::string> names = {"b", "a"};
  const std::vector<std::string> stack = {"experts"};
  const std::vector<std::string> long_name = {std::string(55, 'x'), std::string(56, 'x')};
  graph::ProductInput input;
  input.tensors = names;
  input.data = rows.data();
  input.rows = 3;
  input.cols = 2;
  input.stride = 3;
  ImportanceSums sums;
  ASSERT_TRUE(sums.observe(input).ok());
  input.rows = 1;
  ASSERT_TRUE(sums.observe(input).ok());
  // Another product of the tensor a.
  input.product = 5;
  input.tensors = input.tensors.subspan(1);
  ASSERT_TRUE(sums.observe(input).ok());

  const std::vector<int32_t> routes = {2, 0, -7, 0, 3, -7};  // of two experts, three apart
  input.product = 1;
  input.tensors = stack;
  input.matrices = 4;
  input.routes = routes.data();
  input.routed = 2;
  input.n_used = 2;
  input.route_stride = 3;
  input.rows = 2;
  ASSERT_TRUE(sums.observe(input).ok());
  // With a row for each expert of a row: 2, 0; the first row alone.
  input.routed = 1;
  ASSERT_TRUE(sums.observe(input).ok());

  const std::string path = testing::TempDir() + "importance_sums_test" + std::to_string(getpid());
  auto out = NewFile::create(path);
  ASSERT_TRUE(sums.write({"text", 3, 512}, *out).ok());
  ASSERT_TRUE(out->finish().ok());
  const auto read = read_importance(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read.value().find("b"), (std::vector<float>{36.0F / 4, 60.0F / 4}));
  EXPECT_EQ(*read.value().find("a"), (std::vector<float>{37.0F / 5, 64.0F / 5}));
  EXPECT_EQ(*read.value().find("experts"),
            (std::vector<float>{(1 + 9 + 9) / 3.0F, (4 + 16 + 16) / 3.0F, 1, 1, 1, 4, 9, 16}));
  const auto file = gguf::GgufFile::open(path).value();
  EXPECT_EQ(file->find_tensor("experts.in_sum2")->shape, (std::array<int64_t, 4>{2, 4, 1, 1}));
  EXPECT_EQ(file->find_tensor("experts.counts")->shape, (std::array<int64_t, 4>{1, 4, 1, 1}));
  std::remove(path.c_str());

  ImportanceSums other;
  input.tensors = long_name;
  const Status status = other.observe(input);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(std::string(status.message()).find("a name of 56 bytes"), std::string::npos);
}

TEST(ImportanceSums, RefuseWhatIsNotFinite) {
  const std::vector<std::string> names = {kQ};
  for (const float value : {kNan, kInfinity, 3e38F}) {
    const std::vector<float> row = {1, value};
    graph::ProductInput input;
    input.tensors = names;
    input.data = row.data();
    input.rows = 1;
    input.cols = input.stride = 2;
    ImportanceSums sums;
    ASSERT_TRUE(sums.observe(input).ok());
    const std::string path = testing::TempDir() + "importance_nan_test" + std::to_string(getpid());
    auto out = NewFile::create(path);
    const Status status = sums.write({}, *out);
    EXPECT_EQ(status.code(), Code::kModel) << status.message();
    EXPECT_NE(std::string(status.message())
                  .find("blk.0.attn_q.weight: the squares of its inputs in column 1"),
              std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace gen::model
