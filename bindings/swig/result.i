// SPDX-License-Identifier: Apache-2.0
// <generate/result.h>: what a generation gave; its error through support.i.
%ignore gen_result_error;
%include <generate/result.h>
