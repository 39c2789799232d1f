// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache_tensor.h>: layers as buffers of a fixed shape; gen_binding_full_buffer of support.i shows them.
%ignore kv_cache_full_buffer;
%include <generate/kv_cache_tensor.h>
