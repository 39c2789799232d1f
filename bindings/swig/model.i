// SPDX-License-Identifier: Apache-2.0
// <generate/model.h>: loading, quantising, what a model is.
%gen_function(gen_progress_callback)
%include <generate/model.h>
