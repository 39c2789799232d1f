// SPDX-License-Identifier: Apache-2.0
// <generate/gpu.h>: where memory on a device comes from. The table is a handle, of the library's or in C.
%ignore gen_gpu_allocator;
%gen_handle(gen_gpu_allocator)
%include <generate/gpu.h>
