// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache.h>: keys and values of one sequence; gen_binding_view of support.i shows them in place.
%ignore kv_cache_span;
%ignore kv_cache_view;
%include <generate/kv_cache.h>
