// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache_pool.h>: blocks that paged caches share.
%gen_handle(kv_cache_pool)
%gen_handle(kv_cache_block)
%gen_handle_array(kv_cache_block, blocks)
%include <generate/kv_cache_pool.h>
