// SPDX-License-Identifier: Apache-2.0
// What drafts bring beside what they should bring: generation with a drafter that knows the answer
// with probability p, in turns with plain generation, and the formula E / (V(k+1) / V(1) + k c) by
// times that are measured in the same process. Texts are compared before anything is counted. Every
// line is written as soon as it is known.
//   draft_bench MODEL [--p 0.6,0.8,0.9] [--k 2,4,8] [--sessions 1,4,16] [--tokens 96] [--pairs 7]
//                     [--policy always] [--rows 9] [--threads 2] [--prompt 64] [--cold 1]
//                     [--seconds N]
//                     [--head FILE|own]
//                     [--text FILE|random --tokenizer GGUF --drafter suffix|lookup]
// With --head the drafts are made by a head, of a file or of the model's own, and then replaced by
// those of the drafter that knows: its cost is a real head's. There is a line for each p, k and
// number of sessions; --rows 0 leaves the passes' times out. A p below 0 is no drafter on either
// side, which tells how far pairs differ by themselves. With a text the model says what stands in
// it behind the prompt, as recorded draws, each session from another place, and the drafter is one
// of the lookups; "random" is a text in which nothing repeats. With
// --cold each pair has new generators, which have measured nothing yet. After --seconds no further
// pair of a line begins; each line has at least one. Times are of the wall and of the process'
// CPUs, which other load on the machine disturbs less; c is microseconds without a head, and with
// one what a draft token of it took of a pass over one row.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bench/forced_head.h"
#include "engine/memory/host_memory.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/draft/suffix_lookup.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "model/open_model.h"

namespace gen::generate {
namespace {

using Tokens = std::vector<int32_t>;

struct Settings {
  const char* model = nullptr;
  std::vector<double> p = {0.8};
  std::vector<int32_t> k = {4};
  std::vector<int32_t> sessions = {1};
  int32_t threads = 2;
  int32_t tokens = 96;
  int32_t prompt = 64;
  int32_t rows = 9;
  int pairs = 7;
  double seconds = 1e9;
  bool cold = false;
  std::string policy = "always";
  std::string text;
  std::string tokenizer;
  std::string drafter = "suffix";
  std::string head;
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
  }

  void run() {
    std::printf("%s, %d threads, %s, policy %s%s, prompt %d, %d tokens, %d pairs\n",
                settings_.model, settings_.threads,
                !settings_.head.empty()  ? "a head that is told"
                : settings_.text.empty() ? "a drafter that knows"
                                         : settings_.text.c_str(),
                settings_.policy.c_str(), settings_.cold ? ", cold" : "", settings_.prompt,
                settings_.tokens, settings_.pairs);
    if (settings_.rows > 0) pass_costs();
    std::printf("%5s %3s %8s %5s %9s %9s %6s %-18s %-18s\n", "p", "k", "sessions", "pairs",
                "tokens/s", "tok/pass", "right", "speed-up, wall", "CPU");
    for (const int32_t sessions : settings_.sessions) {
      for (const double p : settings_.p) {
        for (const int32_t k : settings_.k) measure(p, k, sessions);
      }
    }
  }

 private:
  std::shared_ptr<Drafter> drafter(double p, int32_t k, int32_t sessions) {
    if (!text_.empty() && settings_.drafter == "lookup") {
      return std::make_shared<NgramLookup>(3, k);
    }
    if (!text_.empty()) return std::make_shared<SuffixLookup>(SuffixLookup::Options{.most = k});
    if (p < 0) return nullptr;
    KnowingDrafter::Options knows;
    knows.p = p;
    knows.rows = k;
    knows.vocab = vocab_;
    auto made = std::make_shared<KnowingDrafter>(knows);
    for (int32_t id = 0; id < sessions; ++id) {
      Tokens whole = prompt(id);
      const Tokens& said = told_[static_cast<size_t>(id)];
      whole.insert(whole.end(), said.begin(), said.end());
      made->learn(std::move(whole));
    }
    if (!settings_.head.empty()) return forced(std::move(made), k);
    return made;
  }

  std::shared_ptr<Drafter> forced(std::shared_ptr<KnowingDrafter> knows, int32_t k) {
    if (head_ == nullptr) {
      head_ = settings_.head == "own"
                  ? need(model_.loaded->model->draft_head())
                  : need(model::load_draft_head(need(gguf::GgufFile::open(settings_.head)),
                                                need(model_.loaded->model->head_target()), false,
                                                true));
    }
    if (head_ == nullptr) need(error(Code::kUnsupported, "no head"));
    HeadDrafter::Options of;
    of.most = k;
    of.vocab = vocab_;
    of.context = settings_.prompt + settings_.tokens + 64;
    of.memory = &engine::system_memory();
    forced_ = std::make_shared<ForcedHead>(need(HeadDrafter::create(head_, of)), std::move(knows));
    return forced_;
  }

  [[noreturn]] static void changed() {
    std::fprintf(stderr, "draft_bench: drafts have changed the text\n");
    std::exit(1);
  }

  void measure(double p, int32_t k, int32_t sessions) {
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < sessions; ++id) ids.push_back(id);
    if (told_.size() < ids.size()) told_ = tell(*plain_, ids);
    const auto guesses = drafter(p, k, sessions);
    auto drafted = make(guesses);
    std::vector<double> walls;
    std::vector<double> cpus;
    std::vector<double> speeds;
    const std::vector<Tokens> want(told_.begin(), told_.begin() + sessions);
    const Seconds begin = now();
    for (int pair = settings_.cold ? 0 : -1; pair < settings_.pairs; ++pair) {
      if (!walls.empty() && since(begin).wall > settings_.seconds) break;
      if (settings_.cold) {
        begun_.clear();
        plain_ = make(nullptr);
        drafted = make(guesses);
      }
      Seconds without;
      Seconds with;
      // Each way comes first in every second pair: what comes first finds colder caches.
      const bool plain_first = pair % 2 == 0;
      if (plain_first && tell(*plain_, ids, &without) != want) changed();
      if (tell(*drafted, ids, &with) != want) changed();
      if (!plain_first && tell(*plain_, ids, &without) != want) changed();
      if (pair < 0) {
        if (forced_ != nullptr) forced_->seconds = static_cast<double>(forced_->drafted = 0);
        continue;
      }
      walls.push_back(without.wall / with.wall);
      cpus.push_back(without.cpu / with.cpu);
      speeds.push_back(sessions * settings_.tokens / without.wall);
    }
    const DraftUse& use = drafted->draft_use();
    const auto n = [](const std::atomic<int64_t>& value) {
      return static_cast<double>(value.load());
    };
    const auto range = [](const std::vector<double>& values) {
      std::printf(" %5.2f (%4.2f-%5.2f)", median(values),
                  *std::min_element(values.begin(), values.end()),
                  *std::max_element(values.begin(), values.end()));
    };
    const double a_pass = n(use.tokens) / n(use.passes);
    std::printf("%5s %3d %8d %5zu %9.2f %9.3f %6.3f",
                text_.empty() ? std::to_string(p).substr(0, 4).c_str() : "text", k, sessions,
                walls.size(), median(speeds), a_pass,
                n(use.accepted) / std::max(1.0, n(use.drafted)));
    range(walls);
    range(cpus);
    if (text_.empty() && p >= 0 && sessions == 1 && static_cast<size_t>(k) < costs_.size()) {
      double expected = 0;
      for (int32_t i = 0; i <= k; ++i) expected += std::pow(p, i);
      double cost = costs_[static_cast<size_t>(k)];
      if (forced_ != nullptr && forced_->drafted > 0) {
        const double c = forced_->seconds / static_cast<double>(forced_->drafted) / one_;
        std::printf("  c %.3f", c);
        cost += k * c;
      }
      const double formula = expected / cost;
      std::printf("  E %.3f, by the formula %.2f, of it %.3f", expected, formula,
                  median(walls) / formula);
    }
    std::printf("\n%20s", "by position");
    for (size_t i = 0; i < use.tried.size() && use.tried[i] > 0; ++i) {
      std::printf(" %.2f", n(use.right[i]) / n(use.tried[i]));
    }
    std::printf("\n");
    (void)std::fflush(stdout);
  }

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
    if (settings_.text == "random") {
      for (int32_t i = 0; i < 1 << 16; ++i) {
        text_.push_back(3 + static_cast<int32_t>(uniform_double(1, 1, static_cast<uint64_t>(i)) *
                                                 (vocab_ - 3)));
      }
      return;
    }
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

  /// Where a session's part of the text begins.
  [[nodiscard]] size_t place(int32_t id) const {
    const auto part = static_cast<size_t>(settings_.prompt + settings_.tokens);
    return static_cast<size_t>(id) * 997 % (text_.size() - part + 1);
  }

  [[nodiscard]] Tokens prompt(int32_t id) const {
    if (!text_.empty()) {
      const auto at = text_.begin() + static_cast<std::ptrdiff_t>(place(id));
      return {at, at + settings_.prompt};
    }
    Tokens tokens;
    for (int32_t i = 0; i < settings_.prompt; ++i) {
      tokens.push_back(3 + (id * 131 + i * 7919) % (vocab_ - 3));
    }
    return tokens;
  }

  [[nodiscard]] CallParams params(int32_t id) const {
    CallParams params;
    params.sampling.temperature = 0;
    params.stops.max_new_tokens = settings_.tokens;
    params.stops.ignore_eos = true;
    if (text_.empty()) return params;
    const size_t begin = place(id) + static_cast<size_t>(settings_.prompt);
    params.edit_logits = [this, begin](std::span<float> logits, std::span<const int32_t>,
                                       size_t said) {
      logits[static_cast<size_t>(text_[begin + said])] = 1e30F;
      return Status();
    };
    return params;
  }

  /// What sessions say together, driven from this thread; times without the prompts.
  std::vector<Tokens> tell(const Generator& generator, const std::vector<int32_t>& ids,
                           Seconds* took = nullptr) {
    std::vector<std::shared_ptr<Session>> sessions;
    std::vector<std::unique_ptr<Generation>> calls;
    auto& begun = begun_[&generator];
    for (const int32_t id : ids) {
      if (begun.size() == static_cast<size_t>(id)) {
        const Tokens tokens = prompt(id);
        begun.push_back(need(generator.new_session()));
        need(begun.back()->append({.text = {}, .tokens = tokens}));
      }
      sessions.push_back(need(begun[static_cast<size_t>(id)]->fork()));
      calls.push_back(need(sessions.back()->open({}, params(id))));
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

  /// V(rows) / V(1) for 1 to --rows rows behind the prompt.
  void pass_costs() {
    const Tokens tokens = prompt(0);
    const auto cache = need(plain_->make_cache(settings_.prompt + settings_.rows));
    const model::Model& model = *model_.loaded->model;
    const auto state = need(model.new_sequence_state());
    std::vector<int32_t> best(static_cast<size_t>(settings_.rows + settings_.prompt));
    std::vector<float> logits(best.size());
    const auto pass = [&](int32_t rows) {
      std::vector<int32_t> row_tokens;
      std::vector<int32_t> positions;
      for (int32_t i = 0; i < rows; ++i) {
        row_tokens.push_back(tokens[static_cast<size_t>(i % settings_.prompt)]);
        positions.push_back(cache->length() + i);
      }
      const std::vector<uint8_t> wants(static_cast<size_t>(rows), graph::kWantsBest);
      graph::BatchSequence sequence;
      sequence.cache = cache.get();
      sequence.plan = need(cache->plan(rows));
      sequence.n_rows = rows;
      if (state != nullptr) {
        sequence.state = state.get();
        const bool first = cache->length() == 0;
        sequence.state_plan =
            need(state->plan(rows, first ? cache::Keep::kAll : cache::Keep::kSome, first ? 0 : 1));
      }
      graph::Batch batch;
      batch.tokens = row_tokens;
      batch.positions = positions;
      batch.wants = wants;
      batch.sequences = {&sequence, 1};
      batch.best.tokens = best.data();
      batch.best.logits = logits.data();
      batch.best.rows = static_cast<size_t>(rows);
      const Seconds begin = now();
      need(model.forward(batch));
      const Seconds took = since(begin);
      if (cache->length() == 0) {
        cache->commit(sequence.plan);
        if (state != nullptr) state->commit(sequence.state_plan, {rows});
      } else if (state != nullptr) {
        state->drop(sequence.state_plan);
      }
      return took;
    };
    (void)pass(settings_.prompt);
    const auto most = static_cast<size_t>(settings_.rows);
    std::vector<std::vector<double>> wall(most);
    std::vector<std::vector<double>> cpu(most);
    std::vector<double> one;
    for (int run = 0; run <= 3 * settings_.pairs; ++run) {
      Seconds few;
      for (size_t i = 0; i < most; ++i) {
        const Seconds took = pass(static_cast<int32_t>(i) + 1);
        if (i == 0) few = took;
        if (run == 0) continue;
        wall[i].push_back(took.wall / few.wall);
        cpu[i].push_back(took.cpu / few.cpu);
        if (i == 0) one.push_back(took.wall);
      }
    }
    one_ = median(one);
    std::printf("V(1) %.2f ms; rows, V(rows) / V(1) by wall and CPU:\n", median(one) * 1e3);
    for (size_t i = 0; i < most; ++i) {
      costs_.push_back(median(wall[i]));
      std::printf("%3zu %6.3f %6.3f\n", i + 1, costs_.back(), median(cpu[i]));
    }
    (void)std::fflush(stdout);
  }

  Settings settings_;
  model::OpenModel model_;
  int32_t vocab_ = 0;
  Tokens text_;
  std::vector<Tokens> told_;
  std::vector<double> costs_;  // V(rows) / V(1)
  double one_ = 0;             // V(1), seconds
  std::shared_ptr<const model::DraftHead> head_;
  std::shared_ptr<ForcedHead> forced_;  // of the last line
  std::shared_ptr<const Generator> plain_;
  /// Sessions with their prompts, to be forked.
  std::map<const Generator*, std::vector<std::shared_ptr<Session>>> begun_;
};

}  // namespace
}  // namespace gen::generate

namespace {

template <typename T>
std::vector<T> numbers(const char* text) {
  std::vector<T> out;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    const double value = std::strtod(text, &end);
    if (end == text) return {};
    out.push_back(static_cast<T>(value));
  }
  return out;
}

}  // namespace

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
      settings.p = numbers<double>(value);
    else if (name == "--k")
      settings.k = numbers<int32_t>(value);
    else if (name == "--sessions")
      settings.sessions = numbers<int32_t>(value);
    else if (name == "--threads")
      settings.threads = std::atoi(value);
    else if (name == "--tokens")
      settings.tokens = std::atoi(value);
    else if (name == "--prompt")
      settings.prompt = std::atoi(value);
    else if (name == "--rows")
      settings.rows = std::atoi(value);
    else if (name == "--seconds")
      settings.seconds = std::atof(value);
    else if (name == "--pairs")
      settings.pairs = std::atoi(value);
    else if (name == "--cold")
      settings.cold = std::atoi(value) != 0;
    else if (name == "--policy")
      settings.policy = value;
    else if (name == "--text")
      settings.text = value;
    else if (name == "--drafter")
      settings.drafter = value;
    else if (name == "--head")
      settings.head = value;
    else if (name == "--tokenizer")
      settings.tokenizer = value;
    else
      return std::fprintf(stderr, "draft_bench: unknown option %s\n", name.c_str()), 2;
  }
  if (settings.model == nullptr) return std::fprintf(stderr, "draft_bench: no model\n"), 2;
  gen::generate::Bench(settings).run();
  return 0;
}
