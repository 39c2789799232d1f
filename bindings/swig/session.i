// SPDX-License-Identifier: Apache-2.0
// <generate/session.h>: one growing sequence.
%include <generate/session.h>
