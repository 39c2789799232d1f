// SPDX-License-Identifier: Apache-2.0
// <generate/stream.h>: generation pulled piece by piece; gen_binding_stream_next and _poll of support.i give the pieces.
%ignore gen_stream_next;
%ignore gen_stream_poll;
%include <generate/stream.h>
