// SPDX-License-Identifier: Apache-2.0
// tokenizer.h of the C API: loading, which takes a model's options.
#include <generate/tokenizer.h>

#include <utility>

#include "api/boundary/boundary.h"
#include "api/model/model_handle.h"
#include "base/io_error.h"
#include "model/gguf/tokenizer_file.h"

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_tokenizer_load(const char* path, gen_tokenizer** out, gen_error* error) {
  return gen_tokenizer_load_with(path, nullptr, out, error);
}

gen_status gen_tokenizer_load_with(const char* path, const gen_model_options* options,
                                   gen_tokenizer** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(path, "path"));
    GEN_TRY(not_null(out, "out"));
    auto handle = std::make_unique<gen_tokenizer>();
    auto loaded = gen::gguf::load_tokenizer_file(
        path, options != nullptr ? options->pre_tokenizer : std::string());
    if (!loaded.ok()) return gen::in_file(path, loaded.status());
    handle->impl = std::move(loaded).value();
    *out = handle.release();
    return {};
  });
}
