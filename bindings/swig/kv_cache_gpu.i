// SPDX-License-Identifier: Apache-2.0
// <generate/kv_cache_gpu.h>: buffers on a device. Addresses there are numbers, see gen_binding_gpu_… of support.i.
%ignore kv_cache_gpu_append_device;
%ignore kv_cache_gpu_append_stream;
%ignore kv_cache_gpu_pointers;
%ignore kv_cache_gpu_pointer_arrays;
%include <generate/kv_cache_gpu.h>
