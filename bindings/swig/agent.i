// SPDX-License-Identifier: Apache-2.0
// <generate/agent.h>: tools, agents and supervisors. Functions of the language are reached through the desk of support.h.
%ignore gen_tool_call;
%ignore gen_agent_event;
%ignore gen_tool_reply_write;
%ignore gen_tool_reply_stopped;
%gen_handle(gen_tool_registry)
%gen_handle(gen_agent_options)
%gen_handle(gen_agent)
%gen_handle(gen_supervisor)
%gen_function(gen_tool_callback)
%gen_function(gen_agent_callback)
%include <generate/agent.h>
