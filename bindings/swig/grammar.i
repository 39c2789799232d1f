// SPDX-License-Identifier: Apache-2.0
// <generate/grammar.h>: which texts are allowed. gen_binding_token_mask of support.i takes its strings in one array.
%gen_handle(gen_grammar)
%gen_handle(gen_grammar_options)
%gen_handle(gen_grammar_matcher)
%ignore gen_token_mask;
%include <generate/grammar.h>
