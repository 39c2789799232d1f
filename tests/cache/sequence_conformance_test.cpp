// SPDX-License-Identifier: Apache-2.0
// The contract that every store of many sequences keeps (sequence_store.h): random passes, except-
// lists, removals with and without shifts, prefix copies, moves and quotas agree with lists of
// positions in double precision that know nothing of cells. After each operation what every
// sequence sees is compared, mask and rows; calls that must fail are predicted and change nothing;
// every allocation may fail. Which cells are taken is proven by the vectors of
// causal_store_test.cpp. GEN_TRIALS sets the number of random operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cache/batch/causal_store.h"
#include "cache/batch/encoder_store.h"
#include "cache/batch/wrapper_store.h"
#include "support/counting_allocator.h"
#include "support/counting_new.h"

namespace gen::cache {
namespace {

constexpr int32_t kAll = INT32_MAX;
constexpr int32_t kLayers = 2;
constexpr int32_t kKeyHeads = 2;
constexpr int32_t kKeyDim = 3;
constexpr size_t kKey = 6;     // elements of a key row
constexpr size_t kValue = 32;  // and of a value row: the bits of its number as signs

/// A row of keys as written, and how far its position was shifted since.
struct Row {
  uint32_t number = 0;
  double keys[kLayers][kKey] = {};
  int32_t offset = 0;
};

struct Limits {
  DType type = DType::kF32;
  int32_t max_sequences = 3;
  int32_t capacity = 24;
  int32_t max_batch = 8;
};

/// What a kind should do, on lists.
class Model {
 public:
  virtual ~Model() = default;
  enum class Outcome { kOk, kFull, kUnsupported };

  virtual Outcome start(const std::vector<int32_t>& positions,
                        const std::vector<int32_t>& sequences, const std::vector<int32_t>& items,
                        bool commit) = 0;
  virtual Outcome copy(int32_t src, int32_t dst, int32_t length, bool commit) = 0;
  virtual Outcome remove(int32_t sequence, int32_t begin, int32_t end, bool commit) = 0;
  [[nodiscard]] virtual bool resumes(int32_t sequence, int32_t position) const = 0;
  /// Rows that a token sees.
  [[nodiscard]] virtual std::vector<const Row*> seen(int32_t sequence, int32_t position,
                                                     bool except) const = 0;
  virtual void set_quota(int32_t /*quota*/) {}
  /// Rows to be put in this pass: of each token, or of each item.
  std::vector<std::vector<std::shared_ptr<Row>>> fresh;

 protected:
  std::shared_ptr<Row> new_row() {
    auto row = std::make_shared<Row>();
    row->number = numbers_++;
    return row;
  }

 private:
  uint32_t numbers_ = 1;
};

class CausalModel final : public Model {
 public:
  CausalModel(int32_t window, int32_t memory, int32_t chunk, const Limits& limits)
      : window_(window), memory_(memory), chunk_(chunk), limits_(limits) {
    // Section 17.1 of the specification, 0 for no limit.
    if (memory_ != 0 && limits.max_sequences > 1) memory_ = std::max(memory_, window_ + 1);
    if (memory_ >= limits.capacity) memory_ = 0;
    cells_ = limits.max_sequences * (memory_ == 0 ? limits.capacity : memory_) +
             (memory_ == 0 ? 0 : limits.max_batch);
  }

  Outcome start(const std::vector<int32_t>& positions, const std::vector<int32_t>& sequences,
                const std::vector<int32_t>& /*items*/, bool commit) override {
    auto next = lists_;
    for (auto& [id, list] : next) {
      int32_t low = list.entries.rbegin()->first + 1;
      for (size_t i = 0; i < positions.size(); ++i) {
        if (sequences[i] != id) continue;
        const bool first = std::find(sequences.begin(), sequences.begin() + static_cast<long>(i),
                                     id) == sequences.begin() + static_cast<long>(i);
        low = first ? positions[i] : std::min(low, positions[i]);
      }
      if (memory_ == 0) continue;
      for (auto e = list.entries.begin(); e != list.entries.end();) {
        if (e->first >= low - memory_) break;
        list.dropped = e->first + 1;
        e = list.entries.erase(e);
      }
    }
    const auto used = static_cast<int32_t>(rows_of(next).size());
    std::set<int32_t> ids;
    for (const auto& one : next) ids.insert(one.first);
    ids.insert(sequences.begin(), sequences.end());
    if (static_cast<int32_t>(ids.size()) > limits_.max_sequences) return Outcome::kFull;
    if (used + static_cast<int32_t>(positions.size()) > cells_) return Outcome::kFull;
    std::vector<std::vector<std::shared_ptr<Row>>> rows;
    for (size_t i = 0; i < positions.size(); ++i) {
      auto row = commit ? new_row() : std::make_shared<Row>();
      next[sequences[i]].entries.emplace(positions[i], row);
      rows.push_back({row});
    }
    for (const int32_t id : sequences) {
      if (quota_ > 0 && static_cast<int32_t>(next[id].entries.size()) > quota_) {
        return Outcome::kFull;
      }
    }
    if (commit) {
      lists_ = std::move(next);
      fresh = std::move(rows);
    }
    return Outcome::kOk;
  }

  Outcome copy(int32_t src, int32_t dst, int32_t length, bool commit) override {
    if (src == dst) return remove(src, length, kAll, commit);
    auto next = lists_;
    next.erase(dst);
    const auto from = lists_.find(src);
    if (from != lists_.end()) {
      List prefix = from->second;
      prefix.entries.erase(prefix.entries.lower_bound(length), prefix.entries.end());
      if (!prefix.entries.empty()) next[dst] = prefix;
    }
    if (static_cast<int32_t>(next.size()) > limits_.max_sequences) return Outcome::kFull;
    if (commit) lists_ = std::move(next);
    return Outcome::kOk;
  }

  Outcome remove(int32_t sequence, int32_t begin, int32_t end, bool commit) override {
    const auto found = lists_.find(sequence);
    if (found == lists_.end() || begin == end) return Outcome::kOk;
    List kept;
    List later;
    kept.dropped = found->second.dropped;
    for (const auto& [position, row] : found->second.entries) {
      if (position < begin) kept.entries.emplace(position, row);
      if (position >= end && end != kAll) later.entries.emplace(position, row);
    }
    if (!later.entries.empty()) {
      const int32_t by = end - begin;
      kept.dropped -= std::max(0, std::min(kept.dropped, end) - begin);
      if (kept.dropped > first_seen(later.entries.rbegin()->first - by + 1)) {
        return Outcome::kUnsupported;
      }
      auto free = cells_ - static_cast<int32_t>(rows_of(lists_).size());
      for (const auto& [position, row] : later.entries) {
        std::shared_ptr<Row> own = row;
        if (shared(row.get(), sequence)) {
          if (--free < 0) return Outcome::kFull;
          own = std::make_shared<Row>(*row);
        }
        if (commit) own->offset -= by;
        kept.entries.emplace(position - by, own);
      }
    }
    if (!commit) return Outcome::kOk;
    if (kept.entries.empty()) {
      lists_.erase(found);
    } else {
      found->second = std::move(kept);
    }
    return Outcome::kOk;
  }

  [[nodiscard]] bool resumes(int32_t sequence, int32_t position) const override {
    if (memory_ == 0) return true;
    const auto found = lists_.find(sequence);
    if (found == lists_.end()) return false;
    return std::max(0, position - window_) >= found->second.entries.begin()->first &&
           position <= found->second.entries.rbegin()->first + 1;
  }

  [[nodiscard]] std::vector<const Row*> seen(int32_t sequence, int32_t position,
                                             bool except) const override {
    std::vector<const Row*> rows;
    for (const auto& [at, row] : lists_.at(sequence).entries) {
      const bool later = except && (chunk_ == 0 || at / chunk_ == position / chunk_);
      if (at >= first_seen(position) && (at <= position || later)) rows.push_back(row.get());
    }
    return rows;
  }
  void set_quota(int32_t quota) override { quota_ = quota; }

 private:
  struct List {
    std::multimap<int32_t, std::shared_ptr<Row>> entries;
    int32_t dropped = 0;  // what is below may have been dropped
  };
  using Lists = std::map<int32_t, List>;

  static std::set<const Row*> rows_of(const Lists& lists) {
    std::set<const Row*> rows;
    for (const auto& one : lists) {
      for (const auto& entry : one.second.entries) rows.insert(entry.second.get());
    }
    return rows;
  }
  [[nodiscard]] bool shared(const Row* row, int32_t but) const {
    for (const auto& [id, list] : lists_) {
      for (const auto& entry : list.entries) {
        if (id != but && entry.second.get() == row) return true;
      }
    }
    return false;
  }
  [[nodiscard]] int32_t first_seen(int32_t position) const {
    int32_t first = 0;
    if (window_ > 0) first = std::max(first, position - window_);
    if (chunk_ > 0) first = std::max(first, position / chunk_ * chunk_);
    return first;
  }

  int32_t window_;
  int32_t memory_;
  int32_t chunk_;
  Limits limits_;
  int32_t cells_ = 0;
  int32_t quota_ = 0;
  Lists lists_;
};

class EncoderModel final : public Model {
 public:
  explicit EncoderModel(const Limits& limits) : limits_(limits) {}

  Outcome start(const std::vector<int32_t>& positions, const std::vector<int32_t>& sequences,
                const std::vector<int32_t>& items, bool commit) override {
    std::set<int32_t> ids;
    for (const auto& link : links_) ids.insert(link.first.first);
    for (const int32_t token : items) ids.insert(sequences[static_cast<size_t>(token)]);
    if (static_cast<int32_t>(ids.size()) > limits_.max_sequences) return Outcome::kFull;
    if (!commit) return Outcome::kOk;
    fresh.clear();
    for (const int32_t token : items) {
      const auto i = static_cast<size_t>(token);
      auto item = std::make_shared<Item>();
      for (int32_t n = 0; n <= token % 3; ++n) item->push_back(new_row());
      fresh.push_back(*item);
      links_[{sequences[i], positions[i]}] = item;
    }
    return Outcome::kOk;
  }
  Outcome copy(int32_t src, int32_t dst, int32_t length, bool commit) override {
    Links next;
    std::set<int32_t> ids;
    for (const auto& [place, item] : links_) {
      if (place.first != dst) next[place] = item;
      if (place.first == src && place.second < length) next[{dst, place.second}] = item;
    }
    for (const auto& link : next) ids.insert(link.first.first);
    if (static_cast<int32_t>(ids.size()) > limits_.max_sequences) return Outcome::kFull;
    if (commit) links_ = std::move(next);
    return Outcome::kOk;
  }
  Outcome remove(int32_t sequence, int32_t begin, int32_t end, bool commit) override {
    Links next;
    for (const auto& [place, item] : links_) {
      const bool own = place.first == sequence;
      if (own && place.second >= begin && place.second < end) continue;
      next[{place.first, place.second - (own && place.second >= end ? end - begin : 0)}] = item;
    }
    if (commit) links_ = std::move(next);
    return Outcome::kOk;
  }
  [[nodiscard]] bool resumes(int32_t /*sequence*/, int32_t /*position*/) const override {
    return true;
  }
  [[nodiscard]] std::vector<const Row*> seen(int32_t sequence, int32_t position,
                                             bool except) const override {
    std::vector<const Row*> rows;
    std::set<const Item*> once;
    for (const auto& [place, item] : links_) {
      if (place.first != sequence || (place.second > position && !except)) continue;
      if (!once.insert(item.get()).second) continue;
      for (const auto& row : *item) rows.push_back(row.get());
    }
    return rows;
  }

 private:
  using Item = std::vector<std::shared_ptr<Row>>;
  using Links = std::map<std::pair<int32_t, int32_t>, std::shared_ptr<Item>>;

  Limits limits_;
  Links links_;
};

/// How far an element of a row may be from what was written: half a step of the type.
double bound(DType type, const double* row, size_t i) {
  double most = 0;
  for (size_t e = 0; e < kKey; ++e) most = std::max(most, std::fabs(row[e]));
  if (type == DType::kF32) return 0;
  if (type == DType::kF16) return std::fabs(row[i]) * 0x1p-11 + 0x1p-25;
  // The scale is rounded to binary16; the largest of Q4_0 lies at one end, the other end is one
  // step shorter.
  if (type == DType::kQ8_0) return most / 127 / 2 * 1.01 + most * 0x1p-10;
  return most / 8 * 1.01 + most * 0x1p-10;
}

struct Variant {
  std::string name;
  DType type = DType::kF32;
};

class SequenceConformance : public ::testing::TestWithParam<Variant> {
 protected:
  void make() {
    limits_.type = GetParam().type;
    models_.clear();
    const std::string name = GetParam().name;
    WrapperStore::Children children;
    const auto causal = [&](int32_t window, int32_t memory, int32_t chunk) {
      const auto limit = [](int32_t n) { return n == 0 ? kNoLimit : n; };
      children.push_back(
          std::make_shared<CausalStore>("test", CausalRules{limit(window), limit(memory), chunk}));
      models_.push_back(std::make_unique<CausalModel>(window, memory, chunk, limits_));
    };
    const bool all = name == "wrapper";
    if (all || name == "swa") causal(4, 4, 0);
    if (name == "causal" || all) causal(0, 0, 0);
    if (name == "swa_mem") causal(3, 7, 0);
    if (name == "chunked" || all) causal(0, 0, 5);
    if (name == "encoder" || all) {
      children.push_back(std::make_shared<EncoderStore>());
      models_.push_back(std::make_unique<EncoderModel>(limits_));
    }
    if (all) {
      store_ = WrapperStore::create(children).value();
    } else {
      store_ = children[0];
    }
    permuted_ = name == "chunked";
    ASSERT_TRUE(store_->configure({name == "causal" ? 4 : 1, permuted_, DType::kF32}).ok());
    ASSERT_TRUE(store_
                    ->set_shift([](int32_t, float* keys, int32_t dim, int32_t heads, int32_t n,
                                   const int32_t* offsets) -> Status {
                      for (int32_t i = 0; i < n * dim * heads; ++i) {
                        keys[i] += static_cast<float>(offsets[i / (dim * heads)]);
                      }
                      return {};
                    })
                    .ok());
    const Status status = store_->init(
        {limits_.type, limits_.max_sequences, limits_.capacity, limits_.max_batch}, allocator_);
    ASSERT_TRUE(status.ok()) << status.message();
    last_.clear();
    in_pass_ = false;
  }
  int32_t below(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }

  /// What all models say before any of them does it.
  template <typename Op>
  Model::Outcome all(Op op) {
    for (auto& model : models_) {
      const Model::Outcome outcome = op(*model, false);
      if (outcome != Model::Outcome::kOk) return outcome;
    }
    for (auto& model : models_) op(*model, true);
    return Model::Outcome::kOk;
  }
  static Code code_of(Model::Outcome outcome) {
    return outcome == Model::Outcome::kOk     ? Code::kOk
           : outcome == Model::Outcome::kFull ? Code::kCacheFull
                                              : Code::kUnsupported;
  }
  /// The call, again and again until no allocation of it fails, if failures are asked for.
  template <typename Call>
  Status attempt(Call call) {
    for (size_t fail = 0;; ++fail) {
      allocator_.fail_at = faults_ ? allocator_.calls + fail : ~size_t{0};
      test::fail_new_at = faults_ ? test::news + fail : ~size_t{0};
      Status status;
      bool threw = false;
      try {
        status = call();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      allocator_.fail_at = test::fail_new_at = ~size_t{0};
      if (!threw && status.code() != Code::kOutOfMemory) return status;
      if (!faults_) return status;
      ++failures_;
      expect_pass();
      expect_resumes();
    }
  }

  void pass() {
    std::vector<int32_t> positions;
    std::vector<int32_t> sequences;
    std::vector<int32_t> items;
    const int32_t n = 1 + below(below(3) == 0 ? limits_.max_batch : 3);
    const int32_t most = limits_.max_sequences + (below(8) == 0 ? 1 : 0);
    auto last = last_;
    for (int32_t i = 0; i < n; ++i) {
      const int32_t id = below(most) * 7;
      int32_t position = last.count(id) != 0 ? last[id] + 1 : 0;
      if (below(16) == 0) position += below(4);                  // a gap
      if (below(24) == 0) position = std::max(0, position - 2);  // again
      last[id] = std::max(position, last.count(id) != 0 ? last[id] : 0);
      positions.push_back(position);
      sequences.push_back(id);
      if (below(6) == 0) items.push_back(i);
    }
    const SequenceBatch batch = {positions, sequences, items, false};
    const Status status = attempt([&] { return store_->start_forward(batch); });
    const Model::Outcome outcome = all([&](Model& model, bool commit) {
      return model.start(positions, sequences, items, commit);
    });
    ASSERT_EQ(status.code(), code_of(outcome)) << status.message();
    if (!status.ok()) return;
    last_ = std::move(last);
    in_pass_ = true;
    except_.assign(positions.size(), false);
    positions_ = std::move(positions);
    sequences_ = std::move(sequences);
    written_ = 0;
    for (int32_t layer = 0; layer < kLayers; ++layer) write(layer);
    written_ = kLayers;
  }

  void write(int32_t layer) {
    ASSERT_TRUE(store_->set_layer(layer).ok());
    for (size_t type = 0; type < models_.size(); ++type) {
      if (models_.size() > 1) {
        ASSERT_TRUE(store_->layer_types()->set_layer_type(static_cast<int32_t>(type)).ok());
      }
      auto& fresh = models_[type]->fresh;
      const bool encoder = dynamic_cast<EncoderModel*>(models_[type].get()) != nullptr;
      // A causal pass is one put; an encoder's one for each item.
      std::vector<std::vector<Row*>> puts(encoder ? fresh.size() : 1);
      for (size_t i = 0; i < fresh.size(); ++i) {
        for (auto& row : fresh[i]) puts[encoder ? i : 0].push_back(row.get());
      }
      for (const auto& rows : puts) {
        std::vector<float> k;
        std::vector<float> v;
        for (Row* row : rows) {
          for (double& key : row->keys[layer]) {
            k.push_back(static_cast<float>(below(2001) - 1000) / 64);
            key = static_cast<double>(k.back());
          }
          const uint32_t bits = row->number * kLayers + static_cast<uint32_t>(layer);
          for (uint32_t b = 0; b < kValue; ++b) v.push_back((bits >> b & 1U) != 0 ? 1.0F : -1.0F);
        }
        const Status status = attempt([&] {
          return store_->put({k.data(), kKeyHeads, kKeyDim}, {v.data(), 1, kValue},
                             static_cast<int32_t>(rows.size()));
        });
        ASSERT_TRUE(status.ok()) << status.message();
      }
    }
  }

  void expect_pass() {
    for (int32_t layer = 0; in_pass_ && written_ == kLayers && layer < kLayers; ++layer) {
      ASSERT_TRUE(store_->set_layer(layer).ok());
      for (size_t type = 0; type < models_.size(); ++type) {
        if (models_.size() > 1) {
          ASSERT_TRUE(store_->layer_types()->set_layer_type(static_cast<int32_t>(type)).ok());
        }
        SCOPED_TRACE("type " + std::to_string(type));
        expect_layer(*models_[type], layer);
      }
    }
  }
  void expect_layer(const Model& model, int32_t layer) {
    const auto shape = store_->shape();
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    const auto length = static_cast<size_t>(shape.value().k[2]);
    const bool masked = shape.value().mask[0] > 0;
    std::vector<float> k(length * kKey);
    std::vector<float> v(length * kValue);
    std::vector<float> mask(length * positions_.size(), 0.0F);
    ASSERT_TRUE(store_->get(k.data(), v.data(), masked ? mask.data() : nullptr).ok());
    for (size_t i = 0; i < positions_.size(); ++i) {
      std::map<uint32_t, const Row*> want;
      for (const Row* row : model.seen(sequences_[i], positions_[i], except_[i])) {
        want[row->number] = row;
      }
      size_t found = 0;
      for (size_t cell = 0; cell < length; ++cell) {
        if (mask[i * length + cell] != 0.0F) {
          ASSERT_EQ(mask[i * length + cell], -INFINITY);
          continue;
        }
        uint32_t number = 0;
        for (size_t b = 0; b < kValue; ++b) {
          const float x = v[permuted_ ? b * length + cell : cell * kValue + b];
          ASSERT_GT(std::fabs(x), 0.5F);
          if (x > 0) number |= 1U << b;
        }
        ASSERT_EQ(number % kLayers, static_cast<uint32_t>(layer));
        const auto row = want.find(number / kLayers);
        ASSERT_NE(row, want.end()) << "token " << i << " sees row " << number / kLayers;
        ++found;
        for (size_t e = 0; e < kKey; ++e) {
          const double* keys = row->second->keys[layer];
          ASSERT_NEAR(
              k[cell * kKey + e], keys[e] + row->second->offset,
              bound(limits_.type, keys, e) * (1 + 1e-6) + std::fabs(row->second->offset) * 0x1p-22)
              << "row " << number / kLayers;
        }
      }
      ASSERT_EQ(found, want.size()) << "token " << i;
    }
  }
  void expect_resumes() {
    for (int32_t s = 0; s <= limits_.max_sequences; ++s) {
      const int32_t last = last_.count(s * 7) != 0 ? last_[s * 7] : 0;
      for (int32_t p = std::max(0, last - 12); p < last + 3; ++p) {
        const bool want = std::all_of(models_.begin(), models_.end(),
                                      [&](const auto& m) { return m->resumes(s * 7, p); });
        ASSERT_EQ(store_->can_resume(s * 7, p).value(), want) << s << ' ' << p;
      }
    }
  }
  void step() {
    const int32_t id = below(limits_.max_sequences) * 7;
    const int32_t last = last_.count(id) != 0 ? last_[id] : -1;
    if (last > 100) {  // encoders are never full
      remove(id, below(60), kAll);
      return;
    }
    switch (below(12)) {
      case 0: {  // to the end
        const int32_t begin = std::max(0, below(4) == 0 ? below(last + 2) : last - below(4));
        remove(id, begin, kAll);
        break;
      }
      case 1: {  // a gap is closed
        const int32_t begin = below(std::max(last, 1));
        remove(id, begin, begin + below(4));
        break;
      }
      case 2: {
        const int32_t other = below(limits_.max_sequences + (below(4) == 0 ? 1 : 0)) * 7;
        copy(id, other, below(last + 3));
        break;
      }
      case 3:
        if (in_pass_ && written_ == kLayers) except();
        break;
      case 4: {
        const Status status = attempt([&] { return store_->compact(below(6)).status(); });
        ASSERT_TRUE(status.ok()) << status.message();
        in_pass_ = false;
        break;
      }
      case 5: {
        const int32_t quota = below(2) == 0 ? 0 : 6 + below(12);
        ASSERT_TRUE(store_->set_quota(quota).ok());
        for (auto& model : models_) model->set_quota(quota);
        break;
      }
      default:
        pass();
    }
  }
  void remove(int32_t id, int32_t begin, int32_t end) {
    const Status status = attempt([&] { return store_->remove(id, begin, end); });
    const Model::Outcome outcome =
        all([&](Model& model, bool commit) { return model.remove(id, begin, end, commit); });
    ASSERT_EQ(status.code(), code_of(outcome)) << status.message();
    if (!status.ok()) return;
    in_pass_ = false;
    if (last_.count(id) == 0 || begin > last_[id]) return;
    last_[id] = last_[id] >= end ? last_[id] - (end - begin) : begin - 1;
    if (last_[id] < 0) last_.erase(id);
  }
  void copy(int32_t src, int32_t dst, int32_t length) {
    const Status status = attempt([&] { return store_->copy_prefix(src, dst, length); });
    const Model::Outcome outcome =
        all([&](Model& model, bool commit) { return model.copy(src, dst, length, commit); });
    ASSERT_EQ(status.code(), code_of(outcome)) << status.message();
    if (!status.ok()) return;
    in_pass_ = false;
    const int32_t last = last_.count(src) != 0 ? std::min(last_[src], length - 1) : -1;
    last_[dst] = last;
    if (last < 0) last_.erase(dst);
  }
  void except() {
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < static_cast<int32_t>(positions_.size()); ++i) {
      if (below(3) == 0) tokens.push_back(i);
    }
    for (size_t type = 0; type < models_.size(); ++type) {
      const Status status = attempt([&]() -> Status {
        if (models_.size() > 1) GEN_TRY(store_->layer_types()->set_layer_type(static_cast<int32_t>(type)));
        return store_->set_causal(tokens);
      });
      ASSERT_TRUE(status.ok()) << status.message();
      written_ = 0;  // the types differ meanwhile
    }
    written_ = kLayers;
    except_.assign(positions_.size(), false);
    for (const int32_t token : tokens) except_[static_cast<size_t>(token)] = true;
  }

  test::CountingAllocator allocator_;
  std::mt19937 random_{17};
  Limits limits_;
  std::shared_ptr<SequenceStore> store_;
  std::vector<std::unique_ptr<Model>> models_;
  bool permuted_ = false;
  bool faults_ = false;
  size_t failures_ = 0;
  std::map<int32_t, int32_t> last_;  // position of each sequence
  bool in_pass_ = false;
  int32_t written_ = 0;  // layers of the pass
  std::vector<int32_t> positions_;
  std::vector<int32_t> sequences_;
  std::vector<bool> except_;
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, SequenceConformance,
    ::testing::Values(Variant{"causal", DType::kF32}, Variant{"causal", DType::kQ4_0},
                      Variant{"swa", DType::kF32}, Variant{"swa", DType::kQ8_0},
                      Variant{"swa_mem", DType::kF32}, Variant{"chunked", DType::kF16},
                      Variant{"encoder", DType::kF32}, Variant{"wrapper", DType::kF32}),
    [](const auto& row) { return row.param.name + "_" + dtype_name(row.param.type); });

/// Ten thousand, or as many as GEN_TRIALS says.
uint64_t trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10000;
}

TEST_P(SequenceConformance, RandomOperationsAgreeWithLists) {
  make();
  for (uint64_t i = 0; i < trials() && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    step();
    if (HasFatalFailure()) break;
    expect_pass();
    expect_resumes();
    if (i % 64 == 0) {
      ASSERT_EQ(store_->memory().resident, allocator_.live_bytes);
    }
  }
  store_->close();
  EXPECT_EQ(allocator_.live_bytes, 0u);
}

TEST_P(SequenceConformance, EveryAllocationMayFail) {
  make();
  faults_ = true;
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    step();
    if (HasFatalFailure()) break;
    expect_pass();
  }
  EXPECT_GT(failures_, 100u);
  store_.reset();
  EXPECT_EQ(allocator_.live_bytes, 0u);
}

}  // namespace
}  // namespace gen::cache
