// SPDX-License-Identifier: Apache-2.0
// <generate/trace.h>: what runs, in order.
%gen_handle(gen_tracer)
%include <generate/trace.h>
