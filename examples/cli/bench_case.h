// SPDX-License-Identifier: Apache-2.0
// One measurement of a bench: a prompt after `depth` tokens, then `batch` sequences decoded
// together.
#pragma once

#include <cstdint>
#include <vector>

#include "bench_profile.h"
#include "model_file.h"

namespace cli {

struct BenchCase {
  int32_t prompt = 128;
  int32_t tokens = 32;
  int32_t depth = 0;
  int32_t batch = 1;
  int32_t repeat = 5;
};

/// What one prefill, or one decode step, must read and compute.
struct Work {
  double weight_bytes = 0;
  double cache_bytes = 0;
  double operations = 0;  // with weights; without attention
};

struct Measurement {
  std::vector<double> prefill;  // tokens per second of each counted run
  std::vector<double> decode;   // of all sequences together
  Work prefill_work;
  Work decode_work;
  std::vector<ProfilePart> profiles;  // prefill and decode, if asked for
};

/// Whether caches of the model can be cut anywhere: false for models with recurrent layers.
bool can_be_cut(const Model& model, const ModelChoice& choice);
/// Throws a Failure if the model's context is too short.
void check_context(const Model& model, const BenchCase& bench);

/// Token ids of a prompt; speed does not depend on them.
std::vector<int32_t> made_up(int32_t n, int32_t vocab);

/// One uncounted run warms up and counts the work. The case must fit the context.
Measurement measure(const Model& model, const ModelChoice& choice, const BenchCase& bench,
                    bool with_profiles);
/// The work alone, of one run.
Measurement measure_work(const Model& model, const ModelChoice& choice, const BenchCase& bench);

}  // namespace cli
