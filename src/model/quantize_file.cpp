// SPDX-License-Identifier: Apache-2.0
// See quantize_file.h.
#include "model/quantize_file.h"

#include <filesystem>
#include <system_error>

#include "base/io_error.h"
#include "base/new_file.h"
#include "base/thread_pool.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/split_name.h"
#include "model/quantize.h"

namespace gen::model {
namespace {

/// The output must not be a part of the model, which would overwrite its only copy.
Status check_apart(const std::string& in, const std::string& out) {
  const auto same = [&](const std::string& part) {
    std::error_code ignored;
    return part == out || std::filesystem::equivalent(part, out, ignored);
  };
  bool found = same(in);
  if (const auto name = gguf::parse_split_name(in)) {
    for (int number = 1; number <= name->count && !found; ++number) {
      found = same(gguf::split_path(name->prefix, number, name->count));
    }
  }
  if (!found) return {};
  return error(Code::kInvalidArgument, "out '%.600s' is the file to read", out.c_str());
}

}  // namespace

Status quantize_file(const std::string& in, const std::string& out, const QuantRecipe& recipe,
                     const std::function<bool(double)>& progress) {
  GEN_TRY(check_apart(in, out));
  auto file = gguf::GgufFile::open(in);
  if (!file.ok()) return in_file(in, file.status());
  GEN_ASSIGN(const auto pool, ThreadPool::create(0));
  GEN_ASSIGN(NewFile made, NewFile::create(out));
  GEN_TRY(in_file(in, quantize(**file, recipe, *pool, progress, made)));
  GEN_TRY((*file)->check_unchanged());
  return made.finish();
}

}  // namespace gen::model
