// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache_tiered.h>: caches that move layers between memory and files.
%include <generate/kv_cache_tiered.h>
