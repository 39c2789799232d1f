// SPDX-License-Identifier: Apache-2.0
// TinyAssistant: a file of random weights that drafts for a TinyModel of gemma4
// (general.architecture "gemma4-assistant"), and a forward pass of it in double precision over the
// keys and values that the model's own has in double precision.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/gguf_writer.h"
#include "support/tiny_model.h"

namespace gen::test {

struct TinyAssistantSpec {
  int32_t hidden = 48;
  int32_t heads = 2;
  int32_t feed_forward = 80;
  DType type = DType::kF32;                    // of the matrices
  std::vector<uint32_t> local = {1, 1, 1, 0};  // layers with a window
  bool centroids = false;                      // tensors of another way to the best tokens
  uint32_t seed = 7;
  // What tests have wrong.
  std::string without = {};                            // a key or a tensor that is left out
  std::string misshapen = {};                          // a tensor with another column
  std::string extra = {};                              // one more tensor
  std::map<std::string, uint32_t> other = {};          // keys with another value
  float rope_base = 0.0F;                              // 0: the model's
  std::vector<float> freq_factors = {};                // empty: the model's
  std::map<std::string, std::vector<float>> set = {};  // tensors with values of their own
};

class TinyAssistant {
 public:
  TinyAssistant(const TinyModel& target, TinyAssistantSpec spec);

  [[nodiscard]] std::vector<std::byte> bytes() const { return writer_.build().bytes; }
  [[nodiscard]] const std::vector<std::string>& tensors() const { return names_; }

  struct Drafted {
    std::vector<double> logits;
    std::vector<double> state;
  };
  /// What it makes of a token behind a text, with these features.
  [[nodiscard]] Drafted drafted(const std::vector<int32_t>& text, int32_t token,
                                const std::vector<float>& features) const;

 private:
  using Row = std::vector<double>;
  void keys();
  void tensor(const std::string& name, std::vector<int32_t> shape, bool norm = false);
  /// The model's last layer with keys and values of its own that has a window, or has none.
  [[nodiscard]] int32_t read_by(size_t layer) const;
  [[nodiscard]] const Row& find(const std::string& name) const { return values_.at(name); }
  [[nodiscard]] Row product(const std::string& name, const Row& x) const;
  [[nodiscard]] Row norm(const std::string& name, const Row& x) const;
  [[nodiscard]] Row attend(size_t layer, const TinyModel::Kept& kept, const Row& x,
                           int32_t position) const;

  const TinyModel& target_;
  TinyAssistantSpec spec_;
  std::mt19937 random_;
  GgufWriter writer_;
  std::vector<std::string> names_;
  std::map<std::string, Row> values_;
};

}  // namespace gen::test
