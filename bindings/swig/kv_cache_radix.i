// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache_radix.h>: an index from tokens to block ids.
%gen_handle(kv_cache_radix)
%gen_function(kv_cache_radix_evict_callback)
%include <generate/kv_cache_radix.h>
