// SPDX-License-Identifier: Apache-2.0
// <generate/generator.h>: options, generators, one-shot generation. Pieces come through stream.i.
%ignore gen_token;
%ignore gen_piece;
%ignore gen_token_logprob;
%gen_function(gen_token_callback)
%include <generate/generator.h>
