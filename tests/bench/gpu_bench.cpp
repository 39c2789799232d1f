// SPDX-License-Identifier: Apache-2.0
// What gpu.sh runs on a machine with a device, a part at a time:
//   gpu_bench list            the names of the parts
//   gpu_bench PART RESULTS    one of them: a line of the table, a line of JSON more in RESULTS
//   gpu_bench small RESULTS   each kind once, too small to time: for tools that look for mistakes
//   gpu_bench why             why there is no device; succeeds where there is one
//   GEN_GPU_READ_RATE         environment variable: bytes a second, of which the table tells the
//   share
// Ends with 3 if the machine refuses the part, with 4 if what it computes is wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "bench/gpu_layer.h"
#include "engine/backend/registry.h"

namespace gen::test {
namespace {

constexpr int64_t kWidth = 8192;
constexpr double kSeconds = 0.5;
constexpr size_t kCopyBytes = size_t{1} << 30;
constexpr int64_t kRows[] = {1, 8};
constexpr int64_t kManyRows[] = {64, 512};

struct Part {
  std::string name;
  std::function<Result<GpuFigure>(GpuOps& ops)> run;
  const char* megakernel = nullptr;  // of GEN_MEGAKERNEL, in place of the caller's
  const char* pairs = nullptr;       // of GEN_PAIRS
};

/// Layers of decode with a kernel for each operation and for pairs of them (cuda/ops/pairs.h).
void add_layers(std::vector<Part>* all, const char* prefix, const LayerShape& shape, int32_t n,
                const std::vector<int32_t>& texts) {
  for (const DType type : {DType::kBF16, DType::kQ8_0}) {
    for (const int32_t text : texts) {
      for (const bool pairs : {false, true}) {
        all->push_back(
            {std::string(prefix) + "layers/" + dtype_name(type) + "/" + std::to_string(text) +
                 (pairs ? "/pairs" : "/apart"),
             [=](GpuOps& ops) { return ops.layers(*quant::find_format(type), shape, n, text); },
             "off", pairs ? "on" : "off"});
      }
    }
  }
}

/// A list of one row as a graph and as one kernel.
void add_steps(std::vector<Part>* all, const char* prefix, int32_t layers) {
  for (const DType type : {DType::kBF16, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    for (const bool kernel : {false, true}) {
      all->push_back(
          {std::string(prefix) + "step/" + dtype_name(type) + (kernel ? "/kernel" : "/graph"),
           [type, layers](GpuOps& ops) { return ops.step(*quant::find_format(type), layers); },
           kernel ? "on" : "off"});
    }
  }
}

/// Products for few rows are judged by bytes, of each format; for many by multiplications, of the
/// formats that are looked at most. F16 and BF16 for many rows are cuBLASLt's where the machine has
/// it, and with "deterministic" so where that has our own kernel's bits.
void add_products(std::vector<Part>* all) {
  const auto add = [&](const quant::Format& format, int64_t rows, bool deterministic,
                       bool bf16 = false) {
    all->push_back({std::string("linear/") + dtype_name(format.type) + "/" + std::to_string(rows) +
                        (deterministic ? "/deterministic"
                         : bf16        ? "/bf16"
                                       : ""),
                    [&format, rows, deterministic, bf16](GpuOps& ops) {
                      return ops.linear(format, rows, deterministic, bf16);
                    }});
  };
  for (const int64_t rows : kRows) {
    for (const quant::Format& format : quant::formats()) add(format, rows, false);
  }
  for (const DType type : {DType::kBF16, DType::kF16, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    for (const int64_t rows : kManyRows) add(*quant::find_format(type), rows, false);
  }
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for (const int64_t rows : {kRows[0], kRows[1], kManyRows[0], kManyRows[1]}) {
      add(*quant::find_format(type), rows, true);
    }
  }
  // From how many rows on it pays to make bfloat16 of weights.
  for (const DType type : {DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    for (const int64_t rows : {128, 256}) add(*quant::find_format(type), rows, false);
    for (const int64_t rows : {128, 256, 512}) add(*quant::find_format(type), rows, false, true);
  }
  add(*quant::find_format(DType::kBF16), 512, false, true);
}

/// Of attention on tensor cores.
constexpr std::pair<const char*, engine::KvFormat> kTensorCaches[] = {
    {"F16", engine::KvFormat::kF16}, {"F32", engine::KvFormat::kF32}};

std::vector<Part> parts() {
  std::vector<Part> all;
  all.push_back({"copy", [](GpuOps& ops) { return ops.copy(kCopyBytes); }});
  for (const int64_t rows : kRows) {
    const std::string end = "/" + std::to_string(rows);
    all.push_back({"add" + end, [rows](GpuOps& ops) { return ops.add(rows); }});
    all.push_back({"rms_norm" + end, [rows](GpuOps& ops) { return ops.rms_norm(rows); }});
  }
  all.push_back({"rms_norm/1024", [](GpuOps& ops) { return ops.rms_norm(1024); }});
  add_products(&all);
  // Of a model with 8 B weights, at 8192 tokens; prefill is of a step's rows.
  for (const int32_t n : {1, 8, 32}) {
    all.push_back({"attention/8k/" + std::to_string(n),
                   [n](GpuOps& ops) { return ops.attention(n, 1, 8192, 32, 8, 128); }});
  }
  all.push_back(
      {"attention/prefill", [](GpuOps& ops) { return ops.attention(1, 512, 2048, 32, 8, 128); }});
  for (const auto& [end, format] : kTensorCaches) {
    all.push_back({std::string("attention/prefill/tensor/") + end, [format = format](GpuOps& ops) {
                     return ops.attention(1, 512, 2048, 32, 8, 128, true, format);
                   }});
  }
  all.push_back({"capture", [](GpuOps& ops) { return ops.capture(512); }});
  add_steps(&all, "", 16);
  add_layers(&all, "", {}, 22, {32, 1024});  // of a model with 1.1 B weights
  return all;
}

int why() {
  const auto row = engine::engine_row("cuda");
  const char* reason = row.ok() ? row.value()->why_not() : row.status().message();
  if (reason == nullptr) {
    const auto text = row.value()->describe(0);
    std::printf("%s\n", text.ok() ? text.value().c_str() : text.status().message());
    return 0;
  }
  std::printf("no device: %s\n", reason);
  return 3;
}

std::vector<Part> small_parts() {
  std::vector<Part> all;
  all.push_back({"small/copy", [](GpuOps& ops) { return ops.copy(1000); }});
  all.push_back({"small/rms_norm", [](GpuOps& ops) { return ops.rms_norm(3); }});
  for (const quant::Format& format : quant::formats()) {
    for (const int64_t rows : {1, 20}) {
      all.push_back(
          {std::string("small/linear/") + dtype_name(format.type) + "/" + std::to_string(rows),
           [&format, rows](GpuOps& ops) { return ops.linear(format, rows); }});
    }
    if (quant::find_traits(format.type) == nullptr) continue;
    all.push_back({std::string("small/linear/") + dtype_name(format.type) + "/bf16",
                   [&format](GpuOps& ops) { return ops.linear(format, 20, false, true); }});
  }
  all.push_back(
      {"small/attention", [](GpuOps& ops) { return ops.attention(2, 1, 700, 8, 2, 64); }});
  all.push_back({"small/prefill", [](GpuOps& ops) { return ops.attention(1, 40, 300, 8, 2, 64); }});
  // Rows enough that they do not have a block each.
  for (const auto& [end, format] : kTensorCaches) {
    all.push_back({std::string("small/prefill/tensor/") + end, [format = format](GpuOps& ops) {
                     return ops.attention(1, 140, 300, 8, 2, 64, true, format);
                   }});
  }
  all.push_back({"small/capture", [](GpuOps& ops) { return ops.capture(16); }});
  // Its blocks hand results on through memory: what only weak memory shows is looked for here.
  add_steps(&all, "small/", 4);
  add_layers(&all, "small/", {512, 8, 2, 64, 512}, 2, {20, 300});
  return all;
}

int run(const Part& part, const char* path, int64_t width = kWidth, double max_seconds = kSeconds) {
  const auto refused = [&](const Status& status) {
    std::printf("%-30s refused: %s\n", part.name.c_str(), status.message());
    return 3;
  };
  if (part.megakernel != nullptr) setenv("GEN_MEGAKERNEL", part.megakernel, 1);
  if (part.pairs != nullptr) setenv("GEN_PAIRS", part.pairs, 1);
  auto engine = engine::create_engine("cuda", {});
  if (part.megakernel != nullptr) unsetenv("GEN_MEGAKERNEL");
  if (part.pairs != nullptr) unsetenv("GEN_PAIRS");
  if (!engine.ok()) return refused(engine.status());
  auto ops = GpuOps::create(std::move(engine).value(), width, max_seconds);
  if (!ops.ok()) return refused(ops.status());
  const auto found = part.run(*ops.value());
  if (!found.ok()) return refused(found.status());
  const GpuFigure& figure = found.value();
  const bool wrong = !(figure.worst <= 1.0);
  const double rate = figure.bytes / figure.seconds;
  const char* const most = std::getenv("GEN_GPU_READ_RATE");
  std::printf("%-30s %12.2f us %9.1f GB/s", part.name.c_str(), figure.seconds * 1e6, rate * 1e-9);
  if (most != nullptr) std::printf(" %4.0f %%", 100.0 * rate / std::atof(most));
  std::printf(" %8.1f Tops/s  error %.3f of the bound%s\n",
              figure.products / figure.seconds * 1e-12, figure.worst, wrong ? "  WRONG" : "");
  if (std::FILE* file = std::fopen(path, "a"); file != nullptr) {
    std::fprintf(
        file,
        "{\"part\":\"%s\",\"seconds\":%.9g,\"bytes\":%.0f,\"products\":%.0f,\"error\":%.4g}\n",
        part.name.c_str(), figure.seconds, figure.bytes, figure.products,
        wrong ? 1e9 : figure.worst);
    std::fclose(file);
  }
  return wrong ? 4 : 0;
}

}  // namespace
}  // namespace gen::test

int main(int argc, char** argv) {
  using gen::test::Part;
  if (argc == 2 && std::strcmp(argv[1], "why") == 0) return gen::test::why();
  if (argc == 3 && std::strcmp(argv[1], "small") == 0) {
    int worst = 0;
    for (const Part& part : gen::test::small_parts()) {
      const int status = gen::test::run(part, argv[2], 512, 0.0);
      worst = status > worst ? status : worst;
    }
    return worst;
  }
  for (const Part& part : gen::test::parts()) {
    if (argc == 2 && std::strcmp(argv[1], "list") == 0) std::puts(part.name.c_str());
    if (argc == 3 && part.name == argv[1]) return gen::test::run(part, argv[2]);
  }
  if (argc == 2 && std::strcmp(argv[1], "list") == 0) return 0;
  std::fputs("usage: gpu_bench list | why | small RESULTS | PART RESULTS\n", stderr);
  return 2;
}
