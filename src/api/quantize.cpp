// SPDX-License-Identifier: Apache-2.0
// gen_model_quantize of model.h.
#include <generate/model.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "api/boundary.h"
#include "api/host_call.h"
#include "base/new_file.h"
#include "base/thread_pool.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/split_name.h"
#include "model/quantize.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::in_file;
using gen::api::not_null;

/// The output may be no part of the model: a mistake there would cost the only copy of it.
Status check_apart(const std::string& in, const std::string& out) {
  const auto same = [&](const std::string& part) {
    std::error_code ignored;
    return part == out || std::filesystem::equivalent(part, out, ignored);
  };
  bool found = same(in);
  if (const auto name = gen::gguf::parse_split_name(in)) {
    for (int number = 1; number <= name->count && !found; ++number) {
      found = same(gen::gguf::split_path(name->prefix, number, name->count));
    }
  }
  if (!found) return {};
  return gen::error(Code::kInvalidArgument, "out '%.600s' is the file to read", out.c_str());
}

}  // namespace

gen_status gen_model_quantize(const char* in, const char* out, const char* type,
                              gen_progress_callback progress, void* user, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(in, "in"));
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(not_null(type, "type"));
    const gen::model::QuantRecipe* recipe = gen::model::find_recipe(type);
    if (recipe == nullptr) {
      return gen::error(Code::kInvalidArgument, "type '%.60s' is not one of %s", type,
                        gen::model::recipe_names().c_str());
    }
    GEN_TRY(check_apart(in, out));
    auto file = gen::gguf::GgufFile::open(in);
    if (!file.ok()) return in_file(in, file.status());
    GEN_ASSIGN(const auto pool, gen::ThreadPool::create(0));
    GEN_ASSIGN(gen::NewFile made, gen::NewFile::create(out));
    gen::api::Progress report(progress, user);
    Status status = gen::model::quantize(**file, *recipe, *pool, std::ref(report), made);
    GEN_TRY(report.thrown());
    GEN_TRY(in_file(in, std::move(status)));
    GEN_TRY((*file)->check_unchanged());
    return made.finish();
  });
}
