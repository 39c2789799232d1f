// SPDX-License-Identifier: Apache-2.0
// <generate/sampling.h>: how tokens are chosen.
%include <generate/sampling.h>
