// SPDX-License-Identifier: Apache-2.0
// Sampling settings of grammar.h: the grammar or matcher of a call.
#include <generate/grammar.h>

#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/text/grammar_handle.h"
#include "api/generate/handles.h"

using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::grammar::Matcher;

gen_status gen_sampling_set_grammar(gen_sampling* sampling, const gen_grammar* grammar,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(sampling, "sampling"));
    if (grammar != nullptr) GEN_TRY(grammar->home.check("grammar"));
    sampling->params.grammar = grammar != nullptr ? grammar->impl : nullptr;
    sampling->params.matcher = nullptr;
    return {};
  });
}

gen_status gen_sampling_set_grammar_matcher(gen_sampling* sampling,
                                            const gen_grammar_matcher* matcher, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(sampling, "sampling"));
    std::shared_ptr<const Matcher> fork;
    if (matcher != nullptr) {
      GEN_TRY(gen::api::with_matcher(matcher, [&](const Matcher& impl) -> Status {
        fork = std::make_shared<const Matcher>(impl.fork());
        return {};
      }));
    }
    sampling->params.matcher = std::move(fork);
    sampling->params.grammar = nullptr;
    return {};
  });
}

gen_status gen_sampling_set_fit_grammar(gen_sampling* sampling, int32_t fit, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(sampling, "sampling"));
    return sampling->params.set(&gen::generate::StopRules::fit_grammar, fit != 0);
  });
}
