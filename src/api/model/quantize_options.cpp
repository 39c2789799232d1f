// SPDX-License-Identifier: Apache-2.0
// quantize.h of the C API: the options.
#include "api/model/quantize_options.h"

#include "api/boundary/boundary.h"
#include "api/boundary/option_table.h"

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::TextOption;
using Quantizing = gen_quantize_options;

Status set_importance(Quantizing& options, const char* text) {
  options.importance = text;
  return {};
}

Status set_types(Quantizing& options, const char* text) {
  GEN_ASSIGN(auto types, gen::model::parse_type_patterns(text));
  options.types_text = text;
  options.types = std::move(types);
  return {};
}

const OptionRow<Quantizing> kQuantizeRows[] = {
    {"importance",
     TextOption<Quantizing>{[] { return std::string("path"); }, set_importance,
                            [](const Quantizing& o) { return o.importance; }},
     "importance matrix of the model, by which the errors of columns count; empty: all alike"},
    {"types",
     TextOption<Quantizing>{[] { return std::string("PATTERN=TYPE with commas between them"); },
                            set_types, [](const Quantizing& o) { return o.types_text; }},
     "types of matrices by name, the first pattern that matches; * stands for any text, ? for any "
     "one byte"},
};

}  // namespace

gen_status gen_quantize_options_new(gen_quantize_options** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_quantize_options;
    return {};
  });
}

gen_status gen_quantize_options_set(gen_quantize_options* options, const char* key,
                                    const char* value, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<Quantizing>(kQuantizeRows, *options, key, value);
  });
}

gen_status gen_quantize_options_describe(const gen_quantize_options* options, char* buf,
                                         size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return gen::api::text_out(gen::api::describe_options<Quantizing>(kQuantizeRows, *options), buf,
                              capacity, n);
  });
}

void gen_quantize_options_free(gen_quantize_options* options) { delete options; }
