// SPDX-License-Identifier: Apache-2.0
// <generate/chat.h>: conversations, and sessions that hold one. gen_binding_chat_answer of support.i sends no message.
%gen_handle(gen_chat_session)
%include <generate/chat.h>
