// SPDX-License-Identifier: Apache-2.0
// <generate/adapter.h>: low-rank adapters of a model.
%include <generate/adapter.h>
