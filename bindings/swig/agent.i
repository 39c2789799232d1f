// SPDX-License-Identifier: Apache-2.0
// <generate/agent.h>: tools, agents and supervisors.
%include <generate/agent.h>
