// SPDX-License-Identifier: Apache-2.0
// <generate/custom_model.h>: models in C, whose table is passed on as a number.
%ignore gen_forward_batch;
%gen_table(gen_forward)
%gen_table(gen_forward_call)
%include <generate/custom_model.h>
