// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache_prefix.h>: what earlier sequences began with.
%gen_handle(kv_cache_prefix)
%include <generate/kv_cache_prefix.h>
