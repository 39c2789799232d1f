// SPDX-License-Identifier: Apache-2.0
// <generate/template.h>: a chat template by itself.
%gen_handle(gen_template)
%include <generate/template.h>
