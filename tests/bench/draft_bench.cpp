// SPDX-License-Identifier: Apache-2.0
// What drafts bring beside what they should bring: generation with a drafter that knows the answer
// with probability p, in turns with plain generation, and the formula E / (V(k+1) / V(1) + k c) by
// times that are measured in between. Texts are compared before anything is counted.
//   draft_bench MODEL [--p 0.8] [--k 4] [--threads 2] [--sessions 1] [--tokens 48] [--pairs 7]
//                     [--policy always] [--text FILE --tokenizer GGUF [--prompt 512]]
// With a text the model says what stands in it behind the prompt, as recorded draws, and the
// drafter is the suffix lookup. Times are of the wall and of the process' CPUs, which other load on
// the machine disturbs less.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "generate/generation.h"
#include "generate/generator.h"
#include "generate/knowing_drafter.h"
#include "generate/session.h"
#include "generate/speculative/suffix_lookup.h"
#include "model/open_model.h"

namespace gen::generate {
namespace {

using Tokens = std::vector<int32_t>;

struct Settings {
  const char* model = nullptr;
  double p = 0.8;
  int32_t k = 4;
  int32_t threads = 2;
  int32_t sessions = 1;
  int32_t tokens = 48;
  int32_t prompt = 64;
  int pairs = 7;
  std::string policy = "always";
  std::string text;
  std::string tokenizer;
};

void need(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "draft_bench: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

template <typename T>
T need(Result<T> result) {
  need(result.status());
  return std::move(result).value();
}

struct Seconds {
  double wall = 0;
  double cpu = 0;
};

Seconds now() {
  const auto read = [](clockid_t clock) {
    timespec at{};
    clock_gettime(clock, &at);
    return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
  };
  return {read(CLOCK_MONOTONIC), read(CLOCK_PROCESS_CPUTIME_ID)};
}

Seconds since(const Seconds& begin) {
  const Seconds end = now();
  return {end.wall - begin.wall, end.cpu - begin.cpu};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    model::OpenOptions options;
    options.threads = settings.threads;
    need(model::open_model(need(gguf::GgufFile::open(settings.model)), options, &model_));
    vocab_ = model_.loaded->model->traits().vocab_size;
    if (!settings.text.empty()) read_text();
    plain_ = make(nullptr);
    for (int32_t id = 0; id < settings.sessions; ++id) told_.push_back(tell(*plain_, {id}).front());
    if (settings.text.empty()) {
      KnowingDrafter::Options knows;
      knows.p = settings.p;
      knows.rows = settings.k;
      knows.vocab = vocab_;
      const auto drafter = std::make_shared<KnowingDrafter>(knows);
      for (int32_t id = 0; id < settings.sessions; ++id) {
        Tokens whole = prompt(id);
        const Tokens& said = told_[static_cast<size_t>(id)];
        whole.insert(whole.end(), said.begin(), said.end());
        drafter->learn(std::move(whole));
      }
      drafted_ = make(drafter);
    } else {
      drafted_ = make(std::make_shared<SuffixLookup>(SuffixLookup::Options{.most = settings.k}));
    }
  }

  void run() {
    const std::vector<double> costs = pass_costs();
    std::vector<double> walls;
    std::vector<double> cpus;
    std::vector<double> speeds;
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < settings_.sessions; ++id) ids.push_back(id);
    for (int pair = -1; pair < settings_.pairs; ++pair) {
      Seconds without;
      Seconds with;
      const auto expected = tell(*plain_, ids, &without);
      if (tell(*drafted_, ids, &with) != expected || expected != told_) {
        std::fprintf(stderr, "draft_bench: drafts have changed the text\n");
        std::exit(1);
      }
      if (pair < 0) continue;
      walls.push_back(without.wall / with.wall);
      cpus.push_back(without.cpu / with.cpu);
      speeds.push_back(settings_.sessions * settings_.tokens / without.wall);
    }
    const DraftUse& use = drafted_->draft_use();
    const auto n = [](const std::atomic<int64_t>& value) {
      return static_cast<double>(value.load());
    };
    std::printf("%s, %d threads, %d sessions, %s, k %d, policy %s\n", settings_.model,
                settings_.threads, settings_.sessions,
                settings_.text.empty() ? ("p " + std::to_string(settings_.p)).c_str()
                                       : settings_.text.c_str(),
                settings_.k, settings_.policy.c_str());
    std::printf("plain %.2f tokens/s; tokens a pass %.2f; right %.3f of %.0f guesses\n",
                median(speeds), n(use.tokens) / n(use.passes),
                n(use.accepted) / std::max(1.0, n(use.drafted)), n(use.drafted));
    std::printf("speed-up: wall %.2f (%.2f to %.2f), CPU %.2f (%.2f to %.2f)\n", median(walls),
                *std::min_element(walls.begin(), walls.end()),
                *std::max_element(walls.begin(), walls.end()), median(cpus),
                *std::min_element(cpus.begin(), cpus.end()),
                *std::max_element(cpus.begin(), cpus.end()));
    std::printf("V(%d)/V(1): wall %.3f, CPU %.3f; V(1) %.2f ms\n", settings_.k + 1, costs[0],
                costs[1], costs[2] * 1e3);
    if (!settings_.text.empty() || settings_.sessions > 1) return;
    double expected = 0;
    for (int32_t i = 0; i <= settings_.k; ++i) expected += std::pow(settings_.p, i);
    std::printf("E %.3f; by the formula: wall %.2f, CPU %.2f\n", expected, expected / costs[0],
                expected / costs[1]);
  }

 private:
  std::shared_ptr<const Generator> make(std::shared_ptr<Drafter> drafter) {
    GeneratorOptions options;
    options.max_seq_len = settings_.prompt + settings_.tokens + 64;
    options.drafter = std::move(drafter);
    options.draft_policy.kind = settings_.policy == "auto"       ? DraftPolicy::Kind::kAuto
                                : settings_.policy == "adaptive" ? DraftPolicy::Kind::kAdaptive
                                                                 : DraftPolicy::Kind::kAlways;
    const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(),
                                                    model_.loaded->model.get());
    return need(Generator::create(model, nullptr, options));
  }

  void read_text() {
    std::ifstream in(settings_.text, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    model::OpenOptions options;
    options.threads = 1;
    model::OpenModel other;
    need(model::open_model(need(gguf::GgufFile::open(settings_.tokenizer)), options, &other));
    need(other.loaded->tokenizer->encode(bytes, 0, &text_));
    if (text_.size() < static_cast<size_t>(settings_.prompt + settings_.tokens)) {
      need(error(Code::kInvalidArgument, "the text has %zu tokens", text_.size()));
    }
  }

  [[nodiscard]] Tokens prompt(int32_t id) const {
    if (!text_.empty()) return {text_.begin(), text_.begin() + settings_.prompt};
    Tokens tokens;
    for (int32_t i = 0; i < settings_.prompt; ++i) {
      tokens.push_back(3 + (id * 131 + i * 7919) % (vocab_ - 3));
    }
    return tokens;
  }

  [[nodiscard]] CallParams params() const {
    CallParams params;
    params.sampling.temperature = 0;
    params.stops.max_new_tokens = settings_.tokens;
    params.stops.ignore_eos = true;
    if (text_.empty()) return params;
    params.edit_logits = [this](std::span<float> logits, std::span<const int32_t>, size_t said) {
      logits[static_cast<size_t>(text_[static_cast<size_t>(settings_.prompt) + said])] = 1e30F;
      return Status();
    };
    return params;
  }

  /// What sessions say together, driven from this thread; times without the prompts.
  std::vector<Tokens> tell(const Generator& generator, const std::vector<int32_t>& ids,
                           Seconds* took = nullptr) {
    std::vector<std::shared_ptr<Session>> sessions;
    std::vector<std::unique_ptr<Generation>> calls;
    for (const int32_t id : ids) {
      const Tokens tokens = prompt(id);
      sessions.push_back(need(generator.new_session()));
      need(sessions.back()->append({.text = {}, .tokens = tokens}));
      calls.push_back(need(sessions.back()->open({}, params())));
    }
    const Seconds begin = now();
    for (size_t left = calls.size(); left > 0;) {
      for (const auto& call : calls) {
        if (call->ended()) continue;
        (void)call->poll();
        if (call->ended()) --left;
      }
    }
    if (took != nullptr) *took = since(begin);
    std::vector<Tokens> said;
    for (const auto& call : calls) {
      need(call->result().status);
      said.push_back(call->result().tokens);
    }
    return said;
  }

  /// V(k + 1) / V(1) by wall and CPU, and V(1).
  std::vector<double> pass_costs() {
    const auto session = need(plain_->new_session());
    const Tokens tokens = prompt(0);
    need(session->append({.text = {}, .tokens = tokens}));
    const auto cache = need(plain_->make_cache(settings_.prompt + 64));
    const model::Model& model = *model_.loaded->model;
    const auto time = [&](int32_t rows) {
      const std::vector<int32_t> row_tokens(tokens.begin(), tokens.begin() + rows);
      std::vector<int32_t> positions;
      for (int32_t i = 0; i < rows; ++i) positions.push_back(i);
      const std::vector<uint8_t> wants(static_cast<size_t>(rows), graph::kWantsBest);
      std::vector<int32_t> best(static_cast<size_t>(rows));
      std::vector<float> logits(static_cast<size_t>(rows));
      graph::BatchSequence sequence;
      sequence.cache = cache.get();
      sequence.plan = need(cache->plan(rows));
      sequence.n_rows = rows;
      graph::Batch batch;
      batch.tokens = row_tokens;
      batch.positions = positions;
      batch.wants = wants;
      batch.sequences = {&sequence, 1};
      batch.best.tokens = best.data();
      batch.best.logits = logits.data();
      batch.best.rows = best.size();
      const Seconds begin = now();
      need(model.forward(batch));
      return since(begin);
    };
    std::vector<double> wall;
    std::vector<double> cpu;
    std::vector<double> one;
    for (int run = 0; run < 6 * settings_.pairs; ++run) {
      const Seconds few = time(1);
      const Seconds many = time(std::min(settings_.k + 1, settings_.prompt));
      if (run == 0) continue;
      wall.push_back(many.wall / few.wall);
      cpu.push_back(many.cpu / few.cpu);
      one.push_back(few.wall);
    }
    return {median(wall), median(cpu), median(one)};
  }

  Settings settings_;
  model::OpenModel model_;
  int32_t vocab_ = 0;
  Tokens text_;
  std::vector<Tokens> told_;
  std::shared_ptr<const Generator> plain_;
  std::shared_ptr<const Generator> drafted_;
};

}  // namespace
}  // namespace gen::generate

int main(int argc, char** argv) {
  gen::generate::Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      settings.model = argv[i];
      continue;
    }
    if (++i == argc)
      return std::fprintf(stderr, "draft_bench: %s needs a value\n", name.c_str()), 2;
    const char* const value = argv[i];
    if (name == "--p")
      settings.p = std::atof(value);
    else if (name == "--k")
      settings.k = std::atoi(value);
    else if (name == "--threads")
      settings.threads = std::atoi(value);
    else if (name == "--sessions")
      settings.sessions = std::atoi(value);
    else if (name == "--tokens")
      settings.tokens = std::atoi(value);
    else if (name == "--prompt")
      settings.prompt = std::atoi(value);
    else if (name == "--pairs")
      settings.pairs = std::atoi(value);
    else if (name == "--policy")
      settings.policy = value;
    else if (name == "--text")
      settings.text = value;
    else if (name == "--tokenizer")
      settings.tokenizer = value;
    else
      return std::fprintf(stderr, "draft_bench: unknown option %s\n", name.c_str()), 2;
  }
  if (settings.model == nullptr) return std::fprintf(stderr, "draft_bench: no model\n"), 2;
  gen::generate::Bench(settings).run();
  return 0;
}
