// SPDX-License-Identifier: Apache-2.0
// <generate/error.h>: names of statuses. gen_error itself never leaves the wrapper.
%ignore gen_error;
%include <generate/error.h>
