// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache_batch.h>: caches of many sequences.
%gen_handle_array(kv_cache, caches)
%gen_function(kv_cache_shift_fn)
%include <generate/kv_cache_batch.h>
