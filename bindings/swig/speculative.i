// SPDX-License-Identifier: Apache-2.0
// <generate/speculative.h>: drafts by another model.
%gen_handle(gen_speculative)
%gen_handle(gen_draft)
%include <generate/speculative.h>
