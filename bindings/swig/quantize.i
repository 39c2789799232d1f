// SPDX-License-Identifier: Apache-2.0
// <generate/quantize.h>: quantising with options.
%gen_handle(gen_quantize_options)
%include <generate/quantize.h>
