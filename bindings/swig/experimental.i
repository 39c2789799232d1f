// SPDX-License-Identifier: Apache-2.0
// <generate/experimental.h>: functions that may change.
%gen_handle(gen_profile)
%include <generate/experimental.h>
