// SPDX-License-Identifier: Apache-2.0
// <generate/ssm_state.h>: the state of recurrent layers.
%gen_handle(gen_ssm_state)
%include <generate/ssm_state.h>
