#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each function of the low layer is used by the classes on it, or is in the list below: coverage_test.py NATIVE_JAVA SOURCES"""
import pathlib
import re
import sys

# What Java has in another form, and what only C can call.
NOT_NEEDED = {
    "gen_generate_stream", "gen_session_generate_stream", "gen_batch_generate_stream", "gen_chat_session_send_stream",
    "gen_speculative_generate_stream", "gen_eagle_generate_stream",  # streams are pulled
    "gen_result_user_code",  # of their callbacks
    "gen_grammar_options_set_cancel",  # making a grammar is not cancelled from Java
    "gen_forward_attention", "gen_forward_cancelled",  # inside of a forward function in C
    "gen_cancel_reset", "gen_session_cancel", "gen_agent_cancel", "gen_supervisor_cancel",  # each call has a flag of its own
    "gen_status_name",  # Status
    "gen_ssm_state_new",  # gen_ssm_state_new_batch
    "kv_cache_gpu_new",  # kv_cache_gpu_new_typed
    "gen_binding_chat_answer", "gen_binding_chat_open_answer", "gen_binding_agent_go_on", "gen_binding_agent_step",  # null
    "gen_binding_check",  # NativeJNI calls it
}

low = pathlib.Path(sys.argv[1]).read_text()
high = "\n".join(f.read_text() for f in pathlib.Path(sys.argv[2]).rglob("*.java"))
functions = set(re.findall(r"public static [\w\[\]]+ ((?:gen|kv_cache)_\w+)\(", low))
used = set(re.findall(r"\bNative(?:::|\.)(\w+)", high))
missing = sorted(functions - used - NOT_NEEDED)
stale = sorted(NOT_NEEDED - functions | NOT_NEEDED & used)
for name in missing:
    print(f"{name} is not reached from Java")
for name in stale:
    print(f"{name} is in the list for nothing")
print(f"{len(functions)} functions")
sys.exit(bool(missing or stale or len(functions) < 300))
