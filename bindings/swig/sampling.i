// SPDX-License-Identifier: Apache-2.0
// <generate/sampling.h>: how tokens are chosen.
%gen_function(gen_logits_callback)
%include <generate/sampling.h>
