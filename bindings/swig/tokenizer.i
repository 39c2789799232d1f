// SPDX-License-Identifier: Apache-2.0
// <generate/tokenizer.h>: text to tokens and back.
%include <generate/tokenizer.h>
