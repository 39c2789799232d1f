// SPDX-License-Identifier: Apache-2.0
// See call_grammar.h.
#include "calls/call_grammar.h"

namespace gen::calls {

Result<std::shared_ptr<const grammar::Grammar>> call_grammar(const CallFormat&,
                                                             std::span<const Tool>,
                                                             const tokenizer::VocabSpec&,
                                                             const CallGrammarOptions&,
                                                             CallGrammarReport*) {
  return error(Code::kUnsupported, "calls are not constrained yet");
}

}  // namespace gen::calls
