// SPDX-License-Identifier: Apache-2.0
// What gpu.sh runs on a machine with a device, a part at a time:
//   gpu_bench list             the names of the parts
//   gpu_bench PART RESULTS     one of them: a line of the table, a line of JSON at the end of
//   RESULTS gpu_bench why              why there is no device; succeeds where there is one
// Ends with 3 if the machine refuses the part, with 4 if what it computes is wrong.
#include <cstdio>
#include <cstring>

#include "bench/gpu_ops.h"
#include "engine/registry.h"

namespace gen::test {
namespace {

constexpr int64_t kWidth = 8192;
constexpr double kSeconds = 0.5;
constexpr size_t kCopyBytes = size_t{1} << 30;
constexpr int64_t kRows[] = {1, 8};

struct Part {
  std::string name;
  Result<GpuFigure> (*run)(GpuOps& ops, int64_t rows, const quant::Format* format);
  int64_t rows;
  const quant::Format* format;
};

std::vector<Part> parts() {
  std::vector<Part> all;
  all.push_back({"copy",
                 [](GpuOps& ops, int64_t, const quant::Format*) { return ops.copy(kCopyBytes); }, 1,
                 nullptr});
  for (const int64_t rows : kRows) {
    const std::string end = "/" + std::to_string(rows);
    all.push_back({"add" + end,
                   [](GpuOps& ops, int64_t n, const quant::Format*) { return ops.add(n); }, rows,
                   nullptr});
    all.push_back({"rms_norm" + end,
                   [](GpuOps& ops, int64_t n, const quant::Format*) { return ops.rms_norm(n); },
                   rows, nullptr});
    for (const quant::Format& format : quant::formats()) {
      all.push_back(
          {std::string("linear/") + dtype_name(format.type) + end,
           [](GpuOps& ops, int64_t n, const quant::Format* of) { return ops.linear(*of, n); }, rows,
           &format});
    }
  }
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

int run(const Part& part, const char* path) {
  const auto refused = [&](const Status& status) {
    std::printf("%-20s refused: %s\n", part.name.c_str(), status.message());
    return 3;
  };
  auto engine = engine::create_engine("cuda", {});
  if (!engine.ok()) return refused(engine.status());
  auto ops = GpuOps::create(std::move(engine).value(), kWidth, kSeconds);
  if (!ops.ok()) return refused(ops.status());
  const auto found = part.run(*ops.value(), part.rows, part.format);
  if (!found.ok()) return refused(found.status());
  const GpuFigure& figure = found.value();
  const bool wrong = !(figure.worst <= 1.0);
  std::printf("%-20s %12.2f us %10.1f GB/s  error %.3f of the bound%s\n", part.name.c_str(),
              figure.seconds * 1e6, figure.bytes / figure.seconds * 1e-9, figure.worst,
              wrong ? "  WRONG" : "");
  if (std::FILE* file = std::fopen(path, "a"); file != nullptr) {
    std::fprintf(file, "{\"part\":\"%s\",\"seconds\":%.9g,\"bytes\":%.0f,\"error\":%.4g}\n",
                 part.name.c_str(), figure.seconds, figure.bytes, wrong ? 1e9 : figure.worst);
    std::fclose(file);
  }
  return wrong ? 4 : 0;
}

}  // namespace
}  // namespace gen::test

int main(int argc, char** argv) {
  using gen::test::Part;
  if (argc == 2 && std::strcmp(argv[1], "why") == 0) return gen::test::why();
  for (const Part& part : gen::test::parts()) {
    if (argc == 2 && std::strcmp(argv[1], "list") == 0) std::puts(part.name.c_str());
    if (argc == 3 && part.name == argv[1]) return gen::test::run(part, argv[2]);
  }
  if (argc == 2 && std::strcmp(argv[1], "list") == 0) return 0;
  std::fputs("usage: gpu_bench list | why | PART RESULTS\n", stderr);
  return 2;
}
