// SPDX-License-Identifier: Apache-2.0
// The contract that every tensor store keeps (tensor_provider.h): random appends, cuts, resets,
// reads and clones agree with a list of positions in double precision, failing calls change
// nothing, memory figures are the allocator's, and every allocation may fail. What a lossy store
// may be off by comes from its format's formula, summed over the times an element was rounded.
// GEN_TRIALS sets the number of random operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "cache/tensor/device_store.h"
#include "cache/tensor/paged_store.h"
#include "cache/tensor/tensor_kinds.h"
#include "cache/tensor/tensor_store.h"
#include "cache/tensor/tiered_store.h"
#include "engine/backend/registry.h"
#include "support/counting_allocator.h"
#include "tensor/half.h"
#include "support/failing_file_ops.h"

namespace gen::cache {
namespace {

constexpr int32_t kLayers = 3;
constexpr int32_t kMost = 40;  // positions
constexpr int32_t kRow = 48;   // batch * dim, all that a pool allows

enum class Loss { kNone, kHalf, kFp8, kQ4, kQ3 };

struct Variant {
  std::string name;
  Loss loss = Loss::kNone;
  bool own_memory = true;  // and not a pool's
  bool one_lane = false;   // batch 1 and dim kRow only
  std::unique_ptr<TensorProvider> (*make)(const Variant& variant, Allocator& allocator);
};

std::unique_ptr<TensorProvider> make_kind(const Variant& variant, Allocator& allocator) {
  auto made = find_tensor_kind(variant.name)->create(kLayers, kMost, allocator);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

template <DType kType>
std::unique_ptr<TensorProvider> make_paged(const Variant&, Allocator& allocator) {
  auto pool = TensorPool::create({kLayers, 7, kRow, kType}, 1, allocator);
  EXPECT_TRUE(pool.ok());
  auto made = PagedStore::create(std::move(pool).value(), kLayers);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

template <DType kType>
std::unique_ptr<TensorProvider> make_tensor(const Variant&, Allocator& allocator) {
  const TensorTraits& traits = kType == DType::kF32 ? kTensorFp32Traits : kTensorFp16Traits;
  auto made = TensorStore::create(kType, kLayers, kMost, allocator, &traits);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

/// A device's memory, which is the host's.
class DeviceMemory final : public engine::GpuAllocator {
 public:
  explicit DeviceMemory(Allocator& behind) : behind_(behind) {}
  Status allocate(size_t bytes, void** out) override {
    GEN_TRY(behind_.allocate(bytes, kBufferAlign, out));
    taken_[*out] = bytes;
    return {};
  }
  void release(void* at) noexcept override {
    const auto found = taken_.find(at);
    behind_.release(at, found->second);
    taken_.erase(found);
  }
  Status copy_up(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
  Status copy_down(void* to, const void* from, size_t bytes) override {
    return copy_up(to, from, bytes);
  }
  Status copy_across(void* to, const void* from, size_t bytes) override {
    return copy_up(to, from, bytes);
  }
  Status append(const engine::CountedAppend& append, void* stream) override {
    return engine::append_on_device(-1, append, stream);
  }

 private:
  Allocator& behind_;
  std::map<void*, size_t> taken_;
};

/// Takes its memory anew if there was none: what fails is one allocation.
template <DType kType, bool kFixed>
std::unique_ptr<TensorProvider> make_device(const Variant&, Allocator& allocator) {
  const auto memory = std::make_shared<DeviceMemory>(allocator);
  for (int tries = 0; tries < 2; ++tries) {
    auto made = kFixed ? DeviceStore::create_fixed(kType, kLayers, kMost, kRow, memory)
                       : DeviceStore::create(kType, kLayers, kMost, memory);
    if (made.ok()) return std::move(made).value();
    EXPECT_EQ(made.status().code(), Code::kOutOfMemory);
  }
  ADD_FAILURE() << "no memory for a store";
  return nullptr;
}

/// Files that nobody waits for.
test::FailingFiles& files() {
  static test::FailingFiles made;
  return made;
}

std::unique_ptr<TensorProvider> make_tiered(const Variant& variant, Allocator& allocator) {
  TierOptions options;
  options.num_layers = kLayers;
  options.max_seq_len = kMost;
  options.warm = variant.loss == Loss::kNone ? "fp32" : "fp16";
  options.files = &files();
  auto made = TieredStore::create(options, allocator);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

/// What happens to tiers shows in nothing else.
void move_tiers(TensorProvider& store, std::mt19937& random) {
  auto* const tiered = dynamic_cast<TieredStore*>(&store);
  if (tiered == nullptr) return;
  const auto layer = static_cast<int32_t>(random() % kLayers);
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      ASSERT_TRUE(tiered->demote(layer).ok());
      break;
    case 3:
      ASSERT_TRUE(tiered->promote(layer).ok());
      break;
    case 4:
      ASSERT_TRUE(tiered->manage().ok());
      break;
    case 5: {
      const int32_t all[] = {layer, 0, 1, 2, -1, kLayers};
      EXPECT_TRUE(tiered->prefetch(all).ok());
      break;
    }
    default:
      break;
  }
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const TensorKind& kind : tensor_kinds()) {
    const std::string name = kind.traits.kind;
    const Loss loss = name == "fp32"   ? Loss::kNone
                      : name == "fp16" ? Loss::kHalf
                      : name == "fp8"  ? Loss::kFp8
                      : name == "q4"   ? Loss::kQ4
                                       : Loss::kQ3;
    all.push_back({name, loss, true, false, make_kind});
  }
  all.push_back({"paged", Loss::kNone, false, false, make_paged<DType::kF32>});
  all.push_back({"paged_fp16", Loss::kHalf, false, false, make_paged<DType::kF16>});
  all.push_back({"tensor", Loss::kNone, true, false, make_tensor<DType::kF32>});
  all.push_back({"tensor_fp16", Loss::kHalf, true, false, make_tensor<DType::kF16>});
  all.push_back({"device", Loss::kNone, true, false, make_device<DType::kF32, false>});
  all.push_back({"device_fp16", Loss::kHalf, true, false, make_device<DType::kF16, false>});
  all.push_back({"gpu", Loss::kNone, true, true, make_device<DType::kF32, true>});
  all.push_back({"gpu_fp16", Loss::kHalf, true, true, make_device<DType::kF16, true>});
  all.push_back({"tiered", Loss::kNone, true, false, make_tiered});
  all.push_back({"tiered_fp16", Loss::kHalf, true, false, make_tiered});
  return all;
}

/// An element as written, and by how much what is kept of it may differ.
struct Element {
  double value = 0;
  double off = 0;
};

/// How far elements that are encoded together may be from what they were written as.
void bound(Loss loss, const Element* x, size_t n, double* bounds) {
  constexpr double kSlack = 1 + 0x1p-18;  // of the float32 arithmetic of the codecs
  double most = 0;
  double least = std::numeric_limits<double>::infinity();
  double highest = -least;
  double weights = 0;
  for (size_t i = 0; i < n; ++i) {
    most = std::max(most, std::fabs(x[i].value) + x[i].off);
    least = std::min(least, x[i].value - x[i].off);
    highest = std::max(highest, x[i].value + x[i].off);
    weights += std::sqrt(std::fabs(x[i].value) + x[i].off) + 1e-4;
  }
  for (size_t i = 0; i < n; ++i) {
    const double size = std::fabs(x[i].value) + x[i].off;
    double step = 0;
    switch (loss) {
      case Loss::kNone:
        break;
      case Loss::kHalf:  // half a last place, normal or not
        step = std::max(size * 0x1p-11, 0x1p-25);
        break;
      case Loss::kFp8:
        step = std::max(size / 16, most / 448 / 1024) * kSlack;
        break;
      case Loss::kQ4:
        step = most / 14 * kSlack;
        break;
      case Loss::kQ3: {
        // The weighted sum of squares is at most that of even spacing, and no element leaves the
        // range of its group; then the centroid is rounded to binary16.
        const double own = std::sqrt(std::max(0.0, std::fabs(x[i].value) - x[i].off)) + 1e-4;
        const double by_weight = (highest - least) / 14 * std::sqrt(weights / own);
        const double by_range =
            std::max(highest - x[i].value + x[i].off, x[i].value + x[i].off - least);
        step = std::min(by_weight, by_range) * kSlack + most * 0x1p-10 + 0x1p-24;
        break;
      }
    }
    bounds[i] = x[i].off + step;
  }
}

/// Keys or values of one lane of a layer.
class Lane {
 public:
  Lane(Loss loss, size_t dim)
      : loss_(loss), group_(loss == Loss::kQ4 || loss == Loss::kQ3 ? 128 : dim), dim_(dim) {}

  void append(const float* x, size_t n) {
    for (size_t i = 0; i < n; ++i) elements_.push_back({static_cast<double>(x[i]), 0});
  }
  void truncate(size_t positions) {
    const size_t keep = positions * dim_;
    const size_t start = keep / group_ * group_;
    const size_t end = std::min(start + group_, kMost * dim_);
    // A group that was complete is opened again with what it decodes to.
    if (keep % group_ != 0 && end <= elements_.size()) {
      std::vector<double> bounds(end - start);
      bound(loss_, &elements_[start], end - start, bounds.data());
      for (size_t i = start; i < keep; ++i) elements_[i].off = bounds[i - start];
    }
    elements_.resize(keep);
  }
  void expect(const float* got) const {
    std::vector<double> bounds(group_);
    for (size_t start = 0; start < elements_.size(); start += group_) {
      const size_t n = std::min(group_, elements_.size() - start);
      bound(loss_, &elements_[start], n, bounds.data());
      for (size_t i = 0; i < n; ++i) {
        ASSERT_LE(std::fabs(static_cast<double>(got[start + i]) - elements_[start + i].value),
                  bounds[i])
            << "element " << start + i << " is " << got[start + i];
      }
    }
  }

 private:
  Loss loss_;
  size_t group_;
  size_t dim_;
  std::vector<Element> elements_;
};

/// A whole store as the specification describes it.
struct Model {
  struct Layer {
    int32_t length = 0;
    std::vector<Lane> lanes;  // of keys, then of values
  };
  Loss loss = Loss::kNone;
  int32_t batch = 0;
  int32_t dim = 0;
  int32_t agreed = 0;
  Layer layers[kLayers];

  [[nodiscard]] bool empty() const {
    return std::all_of(std::begin(layers), std::end(layers),
                       [](const Layer& layer) { return layer.length == 0; });
  }
  void agree() {
    const int32_t first = layers[0].length;
    if (std::all_of(std::begin(layers), std::end(layers),
                    [first](const Layer& layer) { return layer.length == first; })) {
      agreed = first;
    }
  }
  void append(int32_t index, const float* k, const float* v, int32_t seq) {
    Layer& layer = layers[index];
    if (layer.length == 0) {
      layer.lanes.assign(static_cast<size_t>(2 * batch), Lane(loss, static_cast<size_t>(dim)));
    }
    const auto count = static_cast<size_t>(seq * dim);
    for (size_t b = 0; b < static_cast<size_t>(batch); ++b) {
      layer.lanes[b].append(k + b * count, count);
      layer.lanes[static_cast<size_t>(batch) + b].append(v + b * count, count);
    }
    layer.length += seq;
    agree();
  }
  void truncate(int32_t n) {
    const int32_t keep = std::max(n, 0);
    for (Layer& layer : layers) {
      if (layer.length <= keep) continue;
      for (Lane& lane : layer.lanes) lane.truncate(static_cast<size_t>(keep));
      layer.length = keep;
    }
    agreed = std::min(agreed, keep);
    agree();
  }
};

class TensorConformance : public ::testing::TestWithParam<Variant> {
 protected:
  std::unique_ptr<TensorProvider> make() { return GetParam().make(GetParam(), allocator_); }

  std::vector<float> draw(size_t n) {
    const int exponent = static_cast<int>(random_() % 12) - 8;
    std::vector<float> x(n);
    for (float& value : x) {
      value = static_cast<float>(std::ldexp(static_cast<double>(random_()) / 0x1p31 - 1, exponent));
    }
    return x;
  }

  /// Appends to both, with the shape that the model has, or a new one while it is empty.
  Status append(TensorProvider& store, Model& model, int32_t layer, int32_t seq) {
    if (model.empty()) {
      constexpr int32_t kBatches[] = {1, 2, 3, 8};
      model.batch = GetParam().one_lane ? 1 : kBatches[random_() % 4];
      model.dim = kRow / model.batch;
    }
    const auto count = static_cast<size_t>(model.batch * seq * model.dim);
    const std::vector<float> k = draw(count);
    const std::vector<float> v = draw(count);
    const Status status = store.update(layer, k.data(), v.data(), {model.batch, seq, model.dim});
    if (status.ok() && seq > 0) model.append(layer, k.data(), v.data(), seq);
    return status;
  }

  static std::vector<std::byte> save(const TensorProvider& store) {
    const auto contents = [&store](StateWriter& to) { return store.save(to); };
    const auto size = state_size(contents);
    EXPECT_TRUE(size.ok());
    std::vector<std::byte> state(size.value());
    EXPECT_TRUE(save_state(StateKind::kTensors, contents, state).ok());
    return state;
  }
  static Status restore(TensorProvider& store, std::span<const std::byte> state) {
    GEN_ASSIGN(StateReader reader, StateReader::open(state));
    return store.restore(reader);
  }
  /// Not only within the bounds that a formula gives, but bit for bit.
  static void expect_same(const TensorProvider& a, const TensorProvider& b) {
    ASSERT_EQ(a.seq_len(), b.seq_len());
    for (int32_t i = 0; i < kLayers; ++i) {
      const TensorShape shape = a.shape(i);
      ASSERT_EQ(shape.batch, b.shape(i).batch);
      ASSERT_EQ(shape.seq, b.shape(i).seq);
      ASSERT_EQ(shape.dim, b.shape(i).dim);
      const auto half = static_cast<size_t>(shape.batch * shape.seq * shape.dim);
      std::vector<float> x(2 * half);
      std::vector<float> y(2 * half);
      ASSERT_TRUE(a.get(i, x.data(), x.data() + half).ok());
      ASSERT_TRUE(b.get(i, y.data(), y.data() + half).ok());
      ASSERT_TRUE(x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
    }
  }

  /// A row in place is what get() makes of it.
  static void expect_view_row(const TensorSpan& span, const std::byte* row, int32_t dim,
                              const float* want) {
    for (int32_t d = 0; d < dim; ++d) {
      float shown = 0;
      if (span.type == DType::kF32) {
        std::memcpy(&shown, row + static_cast<size_t>(d) * sizeof(float), sizeof(shown));
      } else {
        uint16_t bits = 0;
        std::memcpy(&bits, row + static_cast<size_t>(d) * sizeof(bits), sizeof(bits));
        shown = f16_to_f32(bits);
      }
      ASSERT_EQ(shown, want[d]) << "element " << d;
    }
  }

  static void expect_lengths(const TensorProvider& store, const Model& model) {
    ASSERT_EQ(store.seq_len(), model.agreed);
    for (int32_t i = 0; i < kLayers; ++i) {
      ASSERT_EQ(store.layer_seq_len(i), model.layers[i].length);
      ASSERT_EQ(store.kv_len(i), model.layers[i].length);
    }
  }
  static void expect_layer(const TensorProvider& store, const Model& model, int32_t index) {
    const Model::Layer& layer = model.layers[index];
    const TensorShape shape = store.shape(index);
    ASSERT_EQ(shape.seq, layer.length);
    ASSERT_EQ(shape.batch, layer.length > 0 ? model.batch : 0);
    ASSERT_EQ(shape.dim, layer.length > 0 ? model.dim : 0);
    const auto half = static_cast<size_t>(kRow * layer.length);
    const auto count = static_cast<size_t>(layer.length * model.dim);
    std::vector<float> got(2 * half, 77.0F);
    ASSERT_TRUE(store.get(index, got.data(), got.data() + half).ok());
    if (layer.length == 0) return;
    for (size_t lane = 0; lane < layer.lanes.size(); ++lane) {
      layer.lanes[lane].expect(got.data() + lane * count);
    }
    if (store.views() == nullptr) return;
    const TensorSpan span = store.views()->view(index);
    if (store.buffers() != nullptr) {  // the same rows, and room for all others
      const TensorSpan full = store.buffers()->full_buffer(index);
      const size_t element = full.type == DType::kF32 ? 4 : 2;
      ASSERT_EQ(full.k, span.k);
      ASSERT_EQ(full.v, span.v);
      ASSERT_EQ(full.type, span.type);
      ASSERT_EQ(full.shape.batch, model.batch);
      ASSERT_EQ(full.shape.seq, kMost);
      ASSERT_EQ(full.shape.dim, model.dim);
      ASSERT_EQ(full.seq_stride, static_cast<size_t>(model.dim) * element);
      ASSERT_EQ(full.batch_stride, kMost * full.seq_stride);
    }
    for (size_t b = 0; b < static_cast<size_t>(model.batch); ++b) {
      for (size_t p = 0; p < static_cast<size_t>(layer.length); ++p) {
        const size_t row = b * span.batch_stride + p * span.seq_stride;
        const float* want = got.data() + b * count + p * static_cast<size_t>(model.dim);
        expect_view_row(span, span.k + row, model.dim, want);
        expect_view_row(span, span.v + row, model.dim, want + half);
      }
    }
  }
  static void expect_all(const TensorProvider& store, const Model& model) {
    expect_lengths(store, model);
    for (int32_t i = 0; i < kLayers; ++i) expect_layer(store, model, i);
  }

  test::CountingAllocator allocator_;
  std::mt19937 random_{11};
};

INSTANTIATE_TEST_SUITE_P(Variants, TensorConformance, ::testing::ValuesIn(variants()),
                         [](const auto& row) { return row.param.name; });

/// Ten thousand, or as many as GEN_TRIALS says.
uint64_t trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10000;
}

TEST_P(TensorConformance, CapabilitiesAreWhatTraitsSay) {
  const auto store = make();
  EXPECT_EQ(store->views() != nullptr, store->traits().can_view);
  EXPECT_EQ(store->buffers() != nullptr, store->traits().has_full_buffer);
  EXPECT_EQ(store->copies() != nullptr, store->traits().can_clone);
}

TEST_P(TensorConformance, RandomOperationsAgreeWithAList) {
  auto store = make();
  Model model;
  model.loss = GetParam().loss;
  for (uint64_t step = 0; step < trials() && !HasFatalFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const auto layer = static_cast<int32_t>(random_() % kLayers);
    const auto pick = random_() % 32;
    if (pick < 14) {  // the usual: one position, or a few
      const auto seq = static_cast<int32_t>(pick < 8 ? 1 : random_() % 12);
      const int32_t length = model.layers[layer].length;
      const Status status = append(*store, model, layer, seq);
      ASSERT_EQ(status.code(),
                length + seq <= kMost || !GetParam().own_memory ? Code::kOk : Code::kCacheFull);
      if (model.layers[layer].length > kMost) {  // where there is no limit of the store's own
        ASSERT_TRUE(store->truncate(kMost).ok());
        model.truncate(kMost);
      }
    } else if (pick < 17) {  // a pass: all layers to the same length
      const int32_t length = model.layers[0].length;
      ASSERT_TRUE(store->truncate(length).ok());
      model.truncate(length);
      for (int32_t i = 0; i < kLayers && !model.empty(); ++i) {
        ASSERT_TRUE(append(*store, model, i, length - model.layers[i].length).ok());
      }
    } else if (pick < 22) {
      const auto n = static_cast<int32_t>(random_() % (kMost + 3)) - 1;
      ASSERT_TRUE(store->truncate(n).ok());
      model.truncate(n);
    } else if (pick == 22) {
      ASSERT_TRUE(store->reset().ok());
      model.truncate(0);
    } else if (pick == 23) {
      auto copy = store->copies()->clone();
      ASSERT_TRUE(copy.ok());
      if (random_() % 2 == 0) std::swap(store, *copy);
      // What happens to one is nothing to the other.
      Model other = model;
      ASSERT_TRUE((*copy)->truncate(kMost / 2).ok());
      other.truncate(kMost / 2);
      for (int32_t i = 0; i < kLayers; ++i) {
        ASSERT_TRUE(append(**copy, other, i, 3).ok());
      }
      expect_all(**copy, other);
      expect_all(*store, model);
    } else if (pick == 25) {  // what was saved goes on as if it had not been
      const std::vector<std::byte> state = save(*store);
      auto other = make();
      ASSERT_TRUE(restore(*other, state).ok());
      expect_same(*other, *store);
      ASSERT_EQ(save(*other), state);
      if (random_() % 2 == 0) std::swap(store, other);
    } else if (pick == 24) {  // calls that fail
      const float x[3] = {0, 0, 0};
      ASSERT_EQ(store->update(kLayers, x, x, {1, 1, 1}).code(), Code::kOutOfRange);
      ASSERT_EQ(store->update(-1, x, x, {1, 1, 1}).code(), Code::kOutOfRange);
      ASSERT_EQ(store->update(layer, x, x, {1, 1, 0}).code(), Code::kInvalidArgument);
      if (model.layers[layer].length > 0) {
        ASSERT_EQ(store->update(layer, x, x, {model.batch, 1, model.dim + 1}).code(),
                  Code::kInvalidArgument);
      }
    } else {
      expect_layer(*store, model, layer);
    }
    expect_lengths(*store, model);
    move_tiers(*store, random_);
    if (GetParam().own_memory && step % 64 == 0) {
      if (auto* tiered = dynamic_cast<TieredStore*>(store.get())) tiered->finish_prefetch();
      ASSERT_EQ(store->memory().resident, allocator_.live_bytes);
    }
  }
  expect_all(*store, model);
  store.reset();
  EXPECT_EQ(allocator_.live_bytes, 0u);
  EXPECT_EQ(allocator_.live_blocks, 0u);
}

TEST_P(TensorConformance, EveryAllocationMayFail) {
  // The same script with the first allocation failing, the second, and so on; each failure must
  // leave the store as it was, and the call must succeed when it is made again.
  for (size_t fail = 0;; ++fail) {
    random_.seed(5);
    allocator_.fail_at = allocator_.calls + fail;
    auto store = make();
    Model model;
    model.loss = GetParam().loss;
    int failures = 0;
    const auto check = [&](const Status& status) {
      if (status.ok()) return true;
      EXPECT_EQ(status.code(), Code::kOutOfMemory);
      expect_all(*store, model);
      ++failures;
      return false;
    };
    for (int32_t i = 0; i < kLayers; ++i) {
      while (!check(append(*store, model, i, 9))) ASSERT_LE(failures, 1);
    }
    auto copy = store->copies()->clone();
    if (!check(copy.status())) copy = store->copies()->clone();
    ASSERT_TRUE(copy.ok());
    Model other = model;
    expect_all(**copy, other);
    while (!check(append(*store, model, 1, 20))) ASSERT_LE(failures, 1);
    expect_all(*store, model);
    expect_all(**copy, other);
    if (allocator_.calls <= allocator_.fail_at) break;
    ASSERT_LT(fail, 100u);
  }
  EXPECT_EQ(allocator_.live_bytes, 0u);
}

TEST_P(TensorConformance, RestoringMayFail) {
  auto store = make();
  Model model;
  model.loss = GetParam().loss;
  for (int32_t i = 0; i < kLayers; ++i) ASSERT_TRUE(append(*store, model, i, 9 + 2 * i).ok());
  const std::vector<std::byte> state = save(*store);
  // Every allocation in turn; after each failure the store is as empty as before.
  for (size_t fail = 0;; ++fail) {
    auto other = make();
    allocator_.fail_at = allocator_.calls + fail;
    const Status status = restore(*other, state);
    allocator_.fail_at = ~size_t{0};
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::kOutOfMemory);
      EXPECT_EQ(other->seq_len(), 0);
      for (int32_t i = 0; i < kLayers; ++i) EXPECT_EQ(other->layer_seq_len(i), 0);
      ASSERT_TRUE(restore(*other, state).ok());
    }
    expect_same(*other, *store);
    expect_all(*other, model);
    if (status.ok()) break;
    ASSERT_LT(fail, 100u);
  }
  // A store that took a part of a state takes other shapes, too.
  auto third = make();
  allocator_.fail_at = allocator_.calls + 1;
  static_cast<void>(restore(*third, state));
  allocator_.fail_at = ~size_t{0};
  ASSERT_TRUE(third->reset().ok());
  Model fresh;
  fresh.loss = GetParam().loss;
  for (int32_t i = 0; i < kLayers; ++i) ASSERT_TRUE(append(*third, fresh, i, 30).ok());
  expect_all(*third, fresh);
}

TEST_P(TensorConformance, DamagedStatesChangeNothing) {
  auto store = make();
  Model model;
  model.loss = GetParam().loss;
  for (int32_t i = 0; i < kLayers; ++i) ASSERT_TRUE(append(*store, model, i, 9).ok());
  const std::vector<std::byte> state = save(*store);
  auto other = make();
  const auto expect_refused = [&](const std::vector<std::byte>& bytes, Code code) {
    const Status status = restore(*other, bytes);
    ASSERT_FALSE(status.ok());
    ASSERT_TRUE(code == Code::kOk || status.code() == code) << status.message();
    ASSERT_NE(status.message()[0], 0);
    for (int32_t i = 0; i < kLayers; ++i) ASSERT_EQ(other->layer_seq_len(i), 0);
  };
  for (size_t length = 0; length < state.size(); length += 1 + length / 64) {
    expect_refused({state.begin(), state.begin() + static_cast<std::ptrdiff_t>(length)},
                   Code::kFormat);
  }
  for (size_t at = 0; at < state.size(); at += 1 + at / 64) {
    std::vector<std::byte> bytes = state;
    bytes[at] ^= std::byte{0x10};
    expect_refused(bytes, Code::kFormat);
  }
  // The numbers of the headers, each 0, one more and the largest, under a checksum that is right:
  // behind the frame of 24 bytes the section of the store, 16 bytes of name and size before it.
  const size_t header = 24 + 16;
  const size_t layer = header + 24 + 16;
  for (const size_t at : {header + 8, header + 12, header + 16, layer, layer + 4, layer + 8}) {
    int32_t old = 0;
    std::memcpy(&old, state.data() + at, sizeof(old));
    for (const int32_t value : {0, -1, old + 1, INT32_MAX, INT32_MIN}) {
      if (value == old) continue;
      std::vector<std::byte> bytes = state;
      std::memcpy(bytes.data() + at, &value, sizeof(value));
      const uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
      std::memcpy(bytes.data() + bytes.size() - 8, &sum, sizeof(sum));
      SCOPED_TRACE("number at " + std::to_string(at) + " is " + std::to_string(value));
      expect_refused(bytes, Code::kOk);
    }
  }
  ASSERT_TRUE(restore(*other, state).ok());
  expect_same(*other, *store);
}

TEST_P(TensorConformance, ResetKeepsWhatItHolds) {
  auto store = make();
  Model model;
  model.loss = GetParam().loss;
  for (int32_t i = 0; i < kLayers; ++i) ASSERT_TRUE(append(*store, model, i, kMost).ok());
  const size_t calls = allocator_.calls;
  ASSERT_TRUE(store->reset().ok());
  const Model before = model;
  model.truncate(0);
  expect_all(*store, model);
  // The same shape again takes nothing more from the allocator.
  std::vector<float> x = draw(static_cast<size_t>(kRow * kMost));
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {before.batch, kMost, before.dim}).ok());
  EXPECT_EQ(allocator_.calls, calls);
}

TEST_P(TensorConformance, AnEmptyUpdateDoesNothing) {
  auto store = make();
  const size_t calls = allocator_.calls;
  ASSERT_TRUE(store->update(1, nullptr, nullptr, {2, 0, kRow / 2}).ok());
  EXPECT_EQ(store->shape(1).batch, 0);
  EXPECT_EQ(store->layer_seq_len(1), 0);
  EXPECT_EQ(allocator_.calls, calls);
}

}  // namespace
}  // namespace gen::cache
