// SPDX-License-Identifier: Apache-2.0
// <generate/memory_estimate.h>: will it fit.
%gen_handle(gen_memory_estimate)
%include <generate/memory_estimate.h>
