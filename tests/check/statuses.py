#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the statuses that the public headers promise with those that the tests have seen.

Tests that include status_record.h note the status of each call by the function's name. Each (function, status) that a
comment promises must have been returned in a test, and what was returned must be promised. A comment's part after
@return is read so: a status is promised; "as F" in a part between semicolons promises what F does, unless that part names statuses of its own; "without S" takes S away.

usage: statuses.py <source root> <folder of the records>
       statuses.py <source root> --header <status_record.h to write>
"""
import pathlib
import re
import sys

# Sentences at the top of a header: its words, the functions it is about, and what they promise. Others there repeat what
# the functions say.
ONE_SEQUENCE = """kv_cache_update kv_cache_get kv_cache_view kv_cache_truncate kv_cache_reset kv_cache_save
    kv_cache_save_buffer kv_cache_load kv_cache_load_buffer kv_cache_clone"""
TOPS = {
    "kv_cache_batch.h": [
        ("Functions of kv_cache.h that are about one sequence answer GEN_ERROR_STATE for these caches", ONE_SEQUENCE, "STATE"),
        ("Every function here answers GEN_ERROR_INVALID_ARGUMENT if the cache is NULL, GEN_ERROR_BUSY if it is in use, and "
         "GEN_ERROR_STATE for a cache of one sequence", """kv_cache_set_config kv_cache_set_shift kv_cache_set_quota
         kv_cache_init kv_cache_set_layer kv_cache_set_layer_type kv_cache_start_forward kv_cache_put kv_cache_get_masked
         kv_cache_set_causal kv_cache_copy_prefix kv_cache_can_resume kv_cache_remove kv_cache_compact
         kv_cache_encoder_cached kv_cache_close""", "INVALID_ARGUMENT BUSY STATE")],
    "kv_cache_tiered.h": [
        ("(kv_cache_update, kv_cache_get and kv_cache_clone of a cold layer, kv_cache_truncate and kv_cache_reset where one "
         "is cut) can also fail with GEN_ERROR_IO, the first three with GEN_ERROR_FORMAT", """kv_cache_update kv_cache_get
         kv_cache_clone kv_cache_truncate kv_cache_reset""", "IO"),
        ("the first three with GEN_ERROR_FORMAT", "kv_cache_update kv_cache_get kv_cache_clone", "FORMAT"),
        ("after kv_cache_tiered_close all of these with GEN_ERROR_STATE", """kv_cache_update kv_cache_get kv_cache_clone
         kv_cache_truncate kv_cache_reset""", "STATE")],
}
# Who returns what a comment says of another function: (the comment's, the status): the function. None: of no function's
# return value.
ELSEWHERE = {
    ("gen_allocator", "BUSY"): "gen_session_append",
    ("gen_gpu_allocator", "BUSY"): "kv_cache_gpu_append",
    ("gen_gpu_allocator", "DEVICE"): "kv_cache_gpu_append",
    ("gen_gpu_allocator", "INVALID_ARGUMENT"): "kv_cache_gpu_new",
    ("gen_gpu_allocator", "OUT_OF_MEMORY"): "kv_cache_gpu_new",
    ("gen_log_callback", "BUSY"): None,
    ("gen_tool_callback", "BUSY"): "gen_agent_run",
    ("gen_agent_callback", "BUSY"): "gen_agent_run",
    ("gen_agent_callback", "INTERNAL"): "gen_agent_run",
    ("gen_cancel_fire", "CANCELLED"): "gen_generate",
    ("gen_request_set_deadline_ms", "CANCELLED"): None,
    ("gen_forward", "BUSY"): "gen_session_generate",
    ("gen_forward", "INTERNAL"): "gen_session_generate",
    ("gen_forward", "MODEL"): "gen_session_generate",
    ("caches", "STATE"): "kv_cache_truncate",
    ("caches", "UNSUPPORTED"): "kv_cache_clone",
    ("forward", "MODEL"): "gen_session_generate",
    ("gen_forward_attention", "MODEL"): "gen_session_generate",
    ("gen_forward_cancelled", "CANCELLED"): "gen_session_generate",
    ("gen_status_name", "FORMAT"): None,
    ("gen_status_name", "UNKNOWN"): None,
    ("gen_logits_callback", "BUSY"): "gen_session_generate",
    ("gen_logits_callback", "INTERNAL"): "gen_session_generate",
    ("gen_logits_callback", "CANCELLED"): "gen_session_generate",
    ("gen_logits_callback", "MODEL"): "gen_session_generate",
    ("gen_token_callback", "BUSY"): "gen_session_generate",
    ("gen_token_callback", "INTERNAL"): "gen_session_generate_stream",
    ("gen_options_set_paged_kv", "POOL_EXHAUSTED"): "gen_generate",
    ("gen_options_set_tiered_kv", "IO"): "gen_generate",
    ("gen_options_set_tiered_kv", "FORMAT"): "gen_generate",
    ("gen_options_set_context_policy", "CONTEXT_FULL"): "gen_generate",
    ("gen_options_set_max_queue", "BUSY"): "gen_generate",
    ("kv_cache_underlying", "STATE"): "kv_cache_update",
    ("kv_cache_shift_fn", "BUSY"): "kv_cache_get",
    ("kv_cache_shift_fn", "INTERNAL"): "kv_cache_get_masked",
    ("kv_cache_close", "STATE"): "kv_cache_start_forward",
    ("kv_cache_paged_new", "POOL_EXHAUSTED"): "kv_cache_update",
    ("kv_cache_radix_evict_callback", "BUSY"): "kv_cache_radix_insert",
    ("kv_cache_tiered_close", "STATE"): "kv_cache_tiered_promote",
    ("gen_metrics_sink", "BUSY"): "gen_generate",
    ("gen_progress_callback", "INTERNAL"): "gen_model_load",
    ("gen_model_options_set_device", "OUT_OF_RANGE"): "gen_model_load",
    ("gen_model_options_set_max_seq_len", "OUT_OF_RANGE"): "gen_model_load",
    ("gen_model_options_set_check_tensors", "FORMAT"): "gen_model_load",
    ("gen_sampling_set_logit_bias", "OUT_OF_RANGE"): "gen_generate",
    ("gen_sampling_add_stop_token", "OUT_OF_RANGE"): "gen_generate",
}
# What no test can bring about here.
UNSEEN = {
    ("gen_measure_peaks", "UNSUPPORTED"): "a machine with AVX512-BF16 has every instruction",
    ("gen_gpu_allocator_cuda", "DEVICE"): "no device of a test fails while it is asked",
    ("gen_gpu_allocator_cuda", "OUT_OF_MEMORY"): "without a device nothing is allocated",
    ("kv_cache_sync_counter", "OK"): "no backend of this build keeps a counter on a device",
}
# What generate.h says of every function with a status.
ANYWHERE = {"OK", "OUT_OF_MEMORY", "BUSY", "INTERNAL", "DEVICE"}
# Tests in which a function of the caller's decides what these return.
PASSED_ON = {
    "custom_model_test": r"gen_session_",
    "custom_model_states_test": r"gen_session_",
    "custom_attention_test": r"gen_session_",
    "custom_trace_test": r"gen_session_",
    "metrics_test": r"gen_session_",
    "generating_forms_test": r"gen_(session|stream)_",
    "kv_cache_batch_test": r"kv_cache_get_masked",
}


class Headers:
    """What the comments of the public headers say."""

    def __init__(self, root):
        self.functions = {}  # those with a status, and their parameters
        self.comments = {}  # of functions, types and callbacks, by name
        self.tops = {}  # comment at the top, by the header's name
        for path in sorted((root / "include" / "generate").glob("*.h")):
            text = path.read_text()
            self.tops[path.name] = flatten(text.split("#ifndef")[0])
            for comment, declaration in re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*\n([^/#;{]+)", text, re.S):
                name = (re.search(r"\(\*(\w+)\)", declaration) or re.search(r"\b((?:gen|kv)_\w+) ?\(", declaration) or
                        re.search(r"(\w+)\s*$", declaration))
                function = re.match(r"GEN_API gen_status (\w+)\s*\((.*)\)", declaration, re.S)
                if function:
                    self.functions[function.group(1)] = re.sub(r"\s+", " ", function.group(2))
                if function or "GEN_ERROR" in comment:
                    self.comments[name.group(1)] = flatten(comment)


def flatten(comment):
    return re.sub(r"\s+", " ", re.sub(r"\n \*", "\n", comment)).strip()


def write_recorder(functions, path):
    """A header that puts in the place of each function, {name: parameters}, one that notes what it returns."""
    lines = ["/* Made by tests/check/statuses.py: calls of public functions note what they return. */",
             "#ifndef STATUS_RECORD_H", "#define STATUS_RECORD_H", "",
             "#include <generate/experimental.h>", "#include <generate/generate.h>", "",
             "#ifdef __cplusplus", 'extern "C" {', "#endif",
             "gen_status record_status(int function, gen_status status); /* gives the status back */",
             "void record_nothing(int whether); /* notes nothing until called with 0 */",
             "extern void (*record_hook)(int function); /* called after each call, if not NULL */",
             "#ifdef __cplusplus", "}", "#endif", "",
             f"enum {{ STATUS_RECORD_FUNCTIONS = {len(functions)} }};",
             "#define STATUS_RECORD_NAMES " + ", ".join(f'"{name}"' for name in functions), ""]
    for i, (name, parameters) in enumerate(functions.items()):
        arguments = ", ".join(re.search(r"(\w+)(\[\d*\])?$", one).group(1) for one in parameters.split(", "))
        lines += [f"static inline gen_status recorded_{name}({parameters}) {{",
                  f"  return record_status({i}, {name}({arguments}));", "}", f"#define {name} recorded_{name}"]
    text = "\n".join(lines + ["", "#endif", ""])
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def split_return(comment):
    """What the comment says of the function's own status, and the rest."""
    match = re.search(r"@return (.*?)(?= (?:Threads|Cost|Since):|$)", comment)
    return (match.group(1), comment.replace(match.group(1), "")) if match else (comment, "")


def promises_of(headers, name):
    """The statuses that the function's own comment promises."""
    said, rest = split_return(headers.comments[name])
    without = set(re.findall(r"without GEN_ERROR_(\w+)", said))
    found = set(re.findall(r"GEN_(?:ERROR_)?(OK|(?<=ERROR_)\w+)", said)) - without
    found |= set(re.findall(r"GEN_ERROR_(\w+)", rest))
    found -= {status for comment, status in ELSEWHERE if comment == name}
    for part in said.split(";"):
        other = re.search(r"\bas (\w+)(?: and (\w+))?", part)
        if other and "GEN_ERROR" not in re.sub(r"without GEN_ERROR_\w+", "", part):
            for one in other.groups():
                found |= promises_of(headers, one) - without if one in headers.functions and one != name else set()
    return found


def read_records(folder):
    """{(function, status): tests that saw it}"""
    seen = {}
    names = ["OK"] + STATUS_NAMES
    for path in folder.iterdir():
        rows = path.read_bytes()
        for i in range(0, len(rows), 72):
            function = rows[i:i + 48].rstrip(b"\0").decode()
            for status, flag in enumerate(rows[i + 48:i + 72]):
                if flag:
                    seen.setdefault((function, names[status]), set()).add(path.name)
    return seen


root = pathlib.Path(sys.argv[1])
headers = Headers(root)
if sys.argv[2] == "--header":
    write_recorder(headers.functions, pathlib.Path(sys.argv[3]))
    sys.exit(0)

STATUS_NAMES = re.findall(r"^  GEN_ERROR_(\w+) = -", (root / "include/generate/base.h").read_text(), re.M)
promised = {(name, status): "its comment" for name in headers.functions for status in promises_of(headers, name)}
failures = []
for header, sentences in TOPS.items():
    for sentence, functions, statuses in sentences:
        if sentence not in headers.tops[header]:
            failures.append(f"{header} does not say at its top: {sentence}")
        promised |= {(name, status): header for name in functions.split() for status in statuses.split()}
for (comment, status), function in ELSEWHERE.items():
    if f"GEN_ERROR_{status}" not in headers.comments.get(comment, ""):
        failures.append(f"the comment of {comment} does not say GEN_ERROR_{status}: ELSEWHERE is out of date")
    if function:
        promised[function, status] = f"the comment of {comment}"
for comment, text in headers.comments.items():
    for status in set(re.findall(r"GEN_ERROR_(\w+)", text)):
        if comment not in headers.functions and (comment, status) not in ELSEWHERE:
            failures.append(f"{comment}: who returns GEN_ERROR_{status}?")

seen = read_records(pathlib.Path(sys.argv[2]))
for function, status in sorted(promised):
    if (function, status) not in seen and (function, status) not in UNSEEN:
        failures.append(f"{function}: {status}, as {promised[function, status]} says, is seen in no test")
for (function, status), tests in sorted(seen.items()):
    unsaid = {test for test in tests if not re.match(PASSED_ON.get(test, "$"), function)}
    if (function, status) not in promised and status not in ANYWHERE and unsaid:
        failures.append(f"{function}: {status}, seen in {min(unsaid)}, is not in its comment")
failures += [f"{function} does not promise {status}: UNSEEN is out of date"
             for function, status in UNSEEN if (function, status) not in promised]
print("\n".join(failures) or f"{len(promised)} promises of a status, all but {len(UNSEEN)} seen")
sys.exit(1 if failures or len(promised) < 600 else 0)
