// SPDX-License-Identifier: Apache-2.0
// <generate/eagle.h>: drafts by a head; gen_binding_eagle_new_tensors of support.i makes one of arrays.
%gen_handle(gen_eagle)
%ignore gen_eagle_tensors;
%ignore gen_eagle_new_tensors;
%include <generate/eagle.h>
