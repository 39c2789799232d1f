// SPDX-License-Identifier: Apache-2.0
// Proves the tracing wrapper: it passes everything on, records what succeeds and nothing else, and
// numbers every tensor once.
#include "cache/tensor/tracing_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cache/tensor/tensor_kinds.h"
#include "support/counting_allocator.h"

namespace gen::cache {
namespace {

using engine::TracedOp;
using engine::TraceLog;

class TracingStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = find_tensor_kind("fp16")->create(2, 6, allocator_);
    ASSERT_TRUE(made.ok());
    real_ = std::move(made).value();
    store_ = std::make_unique<TracingStore>(real_, log_);
  }
  Status append(int32_t layer, int32_t seq) {
    const std::vector<float> x(static_cast<size_t>(2 * std::max(seq, 0) * 3), 1.5F);
    return store_->update(layer, x.data(), x.data(), {2, seq, 3});
  }
  /// name layer inputs>output, one after the other.
  [[nodiscard]] std::string recorded() const {
    std::string out;
    for (const TracedOp& op : log_->ops()) {
      out += std::string(out.empty() ? "" : " ") + op.name + std::to_string(op.layer) + ":";
      for (int64_t input : op.inputs) out += std::to_string(input) + ",";
      out.back() = '>';
      out += std::to_string(op.outputs.at(0));
    }
    return out;
  }

  test::CountingAllocator allocator_;
  std::shared_ptr<TensorProvider> real_;
  std::shared_ptr<TraceLog> log_ = std::make_shared<TraceLog>();
  std::unique_ptr<TracingStore> store_;
};

TEST_F(TracingStoreTest, RecordsAppendsAndReads) {
  ASSERT_TRUE(append(1, 2).ok());
  EXPECT_EQ(recorded(), "KVCacheAppendK1:1>3 KVCacheAppendV1:2>4");
  ASSERT_TRUE(append(1, 1).ok());
  std::vector<float> k(18);
  ASSERT_TRUE(store_->get(1, k.data(), k.data()).ok());
  EXPECT_EQ(k[17], 1.5F);
  EXPECT_EQ(recorded(),
            "KVCacheAppendK1:1>3 KVCacheAppendV1:2>4 "
            "KVCacheAppendK1:3,5>7 KVCacheAppendV1:4,6>8 "
            "KVCacheGetK1:7>9 KVCacheGetV1:8>10");
  ASSERT_TRUE(store_->get(1, nullptr, k.data()).ok());  // only what is read
  EXPECT_EQ(log_->ops().size(), 7u);
  EXPECT_STREQ(log_->ops()[6].name, "KVCacheGetV");
}

TEST_F(TracingStoreTest, RecordsNothingThatFailsOrFindsNothing) {
  EXPECT_EQ(append(2, 1).code(), Code::kOutOfRange);
  EXPECT_EQ(append(-1, 1).code(), Code::kOutOfRange);
  EXPECT_EQ(append(0, -1).code(), Code::kInvalidArgument);
  EXPECT_EQ(append(0, 7).code(), Code::kCacheFull);
  ASSERT_TRUE(append(0, 0).ok());
  allocator_.fail_at = allocator_.calls;
  EXPECT_EQ(append(0, 1).code(), Code::kOutOfMemory);
  float k[6];
  ASSERT_TRUE(store_->get(0, k, k).ok());
  ASSERT_TRUE(store_->get(7, k, k).ok());
  EXPECT_EQ(recorded(), "");
}

TEST_F(TracingStoreTest, ACutIsANewTensor) {
  ASSERT_TRUE(append(0, 4).ok());
  ASSERT_TRUE(store_->truncate(9).ok());  // nothing to cut
  ASSERT_TRUE(append(0, 1).ok());
  EXPECT_EQ(log_->ops()[2].inputs[0], log_->ops()[0].outputs[0]);
  ASSERT_TRUE(store_->truncate(2).ok());
  ASSERT_TRUE(append(0, 3).ok());  // as long as before, but not the same
  EXPECT_NE(log_->ops()[4].inputs[0], log_->ops()[2].outputs[0]);
  EXPECT_NE(log_->ops()[4].inputs[0], 0);
  ASSERT_TRUE(store_->reset().ok());
  ASSERT_TRUE(append(0, 1).ok());
  EXPECT_EQ(log_->ops()[6].inputs.size(), 1u);  // nothing was there
  // What goes past the wrapper is seen by its length.
  const std::vector<float> x(6, 2.0F);
  ASSERT_TRUE(real_->update(0, x.data(), x.data(), {2, 1, 3}).ok());
  ASSERT_TRUE(append(0, 1).ok());
  EXPECT_NE(log_->ops()[8].inputs[0], log_->ops()[6].outputs[0]);
  // Cut, and as long again past the wrapper: not what it was.
  const std::vector<float> more(2 * 3 * 3, 3.0F);
  const int64_t before = log_->ops()[8].outputs[0];
  ASSERT_TRUE(store_->truncate(1).ok());
  ASSERT_TRUE(real_->update(0, more.data(), more.data(), {2, 2, 3}).ok());
  ASSERT_TRUE(append(0, 1).ok());
  EXPECT_NE(log_->ops()[10].inputs[0], before);
  std::set<int64_t> outputs;
  for (const TracedOp& op : log_->ops()) outputs.insert(op.outputs[0]);
  EXPECT_EQ(outputs.size(), log_->ops().size());  // no number is used twice
}

// As many operations are recorded as were done, of the right kind, layer and shape, and each goes
// on from the tensor that the last one on its side left.
TEST_F(TracingStoreTest, RandomOperationsAreThoseDone) {
  std::mt19937 random(4);
  std::vector<std::string> done;        // name, layer and shape of the output
  std::map<std::string, int64_t> last;  // by side: the tensor that an append left, 0 after a cut
  size_t seen = 0;
  std::set<int64_t> made;
  int32_t lengths[2] = {0, 0};
  const auto name = [](const char* op, int32_t layer, int32_t seq) {
    return std::string(op) + std::to_string(layer) + ":" + std::to_string(seq);
  };
  for (int step = 0; step < 3000; ++step) {
    const auto layer = static_cast<int32_t>(random() % 3);  // one of them is none
    const auto seq = static_cast<int32_t>(random() % 4);
    const bool is_layer = layer < 2;
    if (random() % 8 == 0) allocator_.fail_at = allocator_.calls;
    switch (random() % 5) {
      case 0:
      case 1: {
        const Status status = append(layer, seq);
        if (status.ok() && seq > 0) {
          lengths[layer] += seq;
          done.push_back(name("KVCacheAppendK", layer, lengths[layer]));
          done.push_back(name("KVCacheAppendV", layer, lengths[layer]));
        } else if (seq > 0) {
          EXPECT_TRUE(!is_layer || lengths[layer] + seq > 6 || status.code() == Code::kOutOfMemory);
        }
        break;
      }
      case 2: {
        float k[36];
        float v[36];
        const bool with_k = random() % 2 == 0;
        const bool with_v = random() % 2 == 0;
        ASSERT_TRUE(store_->get(layer, with_k ? k : nullptr, with_v ? v : nullptr).ok());
        if (!is_layer || lengths[layer] == 0) break;
        if (with_k) done.push_back(name("KVCacheGetK", layer, lengths[layer]));
        if (with_v) done.push_back(name("KVCacheGetV", layer, lengths[layer]));
        break;
      }
      case 3: {
        ASSERT_TRUE(store_->truncate(seq).ok());
        for (int32_t i = 0; i < 2; ++i) {
          if (lengths[i] <= seq) continue;
          lengths[i] = seq;
          last[name("K", i, 0)] = last[name("V", i, 0)] = 0;
        }
        break;
      }
      default:
        if (random() % 4 != 0) break;
        ASSERT_TRUE(store_->reset().ok());
        lengths[0] = lengths[1] = 0;
        last.clear();
    }
    allocator_.fail_at = ~size_t{0};
    for (; seen < log_->ops().size(); ++seen) {
      const TracedOp& op = log_->ops()[seen];
      ASSERT_LT(seen, done.size());
      ASSERT_EQ(op.outputs.size(), 1u);
      const engine::TraceShape shape = log_->shape(op.outputs[0]);
      EXPECT_EQ(name(op.name, op.layer, shape.seq), done[seen]);
      EXPECT_EQ(shape.batch, 2);
      EXPECT_EQ(shape.dim, 3);
      EXPECT_TRUE(made.insert(op.outputs[0]).second);
      const std::string text = op.name;
      int64_t& held = last[name(text.ends_with("K") ? "K" : "V", op.layer, 0)];
      EXPECT_TRUE(held == 0 || op.inputs[0] == held);
      held = text.starts_with("KVCacheAppend") ? op.outputs[0] : op.inputs[0];
    }
    ASSERT_EQ(seen, done.size());
  }
  EXPECT_GT(done.size(), 1000u);
}

TEST_F(TracingStoreTest, PassesEverythingOn) {
  ASSERT_TRUE(append(0, 3).ok());
  ASSERT_TRUE(append(1, 3).ok());
  EXPECT_STREQ(store_->traits().kind, "tracing");
  EXPECT_TRUE(store_->traits().lossy);
  EXPECT_EQ(store_->seq_len(), 3);
  EXPECT_EQ(store_->layer_seq_len(1), 3);
  EXPECT_EQ(store_->kv_len(1), 3);
  EXPECT_EQ(store_->num_layers(), 2);
  EXPECT_EQ(store_->max_seq_len(), 6);
  EXPECT_EQ(store_->shape(1).dim, 3);
  EXPECT_EQ(store_->views()->view(1).k, real_->views()->view(1).k);
  EXPECT_EQ(store_->buffers()->full_buffer(1).shape.seq, 6);
  EXPECT_EQ(store_->buffers()->full_buffer(1).k, real_->views()->view(1).k);
  EXPECT_EQ(store_->memory().resident, allocator_.live_bytes);
  EXPECT_EQ(store_->copies(), nullptr);
  ASSERT_TRUE(store_->truncate(1).ok());
  EXPECT_EQ(real_->seq_len(), 1);
}

TEST_F(TracingStoreTest, WritesJsonAndDot) {
  ASSERT_TRUE(append(1, 2).ok());
  EXPECT_EQ(log_->op_json(1),
            "{\"name\":\"KVCacheAppendV\",\"inputs\":[2],\"outputs\":[4],\"attributes\":{\"layer\":"
            "1}}");
  EXPECT_EQ(log_->json(),
            "{\"ops\":[\n" + log_->op_json(0) + ",\n" + log_->op_json(1) +
                "\n],\"tensors\":[\n{\"id\":1,\"shape\":[2,2,3]},\n{\"id\":2,\"shape\":[2,2,3]},\n"
                "{\"id\":3,\"shape\":[2,2,3]},\n{\"id\":4,\"shape\":[2,2,3]}\n]}\n");
  const std::string dot = log_->dot();
  EXPECT_EQ(dot.find("digraph trace {\n"), 0u);
  EXPECT_NE(dot.find("t1 [shape=box,label=\"1: [2,2,3]\"];"), std::string::npos);
  EXPECT_NE(dot.find("op1 [label=\"KVCacheAppendV 1\"];\n  t2 -> op1;\n  op1 -> t4;\n}\n"),
            std::string::npos);
  EXPECT_EQ(TraceLog().json(), "{\"ops\":[\n],\"tensors\":[\n]}\n");
}

}  // namespace
}  // namespace gen::cache
