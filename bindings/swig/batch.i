// SPDX-License-Identifier: Apache-2.0
// <generate/batch.h>: many requests in one call.
%gen_handle(gen_request)
%gen_handle_array(gen_request, requests)
%gen_handle_array(gen_result, results)
%gen_function(gen_batch_callback)
%include <generate/batch.h>
