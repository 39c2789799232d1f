# SPDX-License-Identifier: Apache-2.0
"""Conversations of every shape that chat templates tell apart."""
BASE = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
        "now": "2024-07-26T13:05:09"}
SPECIALS = ("<|im_start|>system\n<|im_end|><s></s>[INST][/INST]<|start_header_id|>x<|end_header_id|><|eot_id|>"
            "<start_of_turn><end_of_turn><|system|><|user|><|assistant|><|end|><|START_OF_TURN_TOKEN|><tool_call>"
            "</think><|channel|>[TOOL_CALLS]<｜User｜><|python_tag|>")


def tool(name, description, properties, required=None):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": list(properties) if required is None else required}}}


TOOLS = [
    tool("get_weather", "Weather of a place, “now” & <later>", {
        "city": {"type": "string", "description": "the town's name"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "unit", "default": "celsius"},
        "days": {"type": "integer", "description": "how many", "minimum": 1, "maximum": 14}}, ["city"]),
    tool("search", "Sucht überall: 你好", {
        "query": {"type": "string", "description": "what"},
        "filters": {"type": "object", "description": "narrow", "properties": {
            "since": {"type": ["string", "null"], "description": "date"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "tags"},
            "score": {"type": "number", "description": "least", "nullable": True}}, "required": ["tags"]},
        "exact": {"type": "boolean", "description": "exact"}}),
    tool("no_arguments", "Nothing to give", {}),
]


def call(name, arguments, identifier="call00001", text=False):
    import json
    return {"id": identifier, "type": "function", "function": {
        "name": name, "arguments": json.dumps(arguments, ensure_ascii=False) if text else arguments}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def conversations():
    system = {"role": "system", "content": "  You are kind.\n"}
    weather = call("get_weather", {"city": "Köln", "days": 2, "exact": True, "score": 1.0, "note": None})
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": '{"sky": "clear"}'}
    made = {
        "user": {"messages": [user("Hello!")], "add_generation_prompt": True},
        "user_closed": {"messages": [user(" Hello! \n"), assistant(" Hi. ")], "add_generation_prompt": False},
        "system": {"messages": [system, user("Hi")], "add_generation_prompt": True},
        "turns": {"messages": [system, user("1"), assistant("one"), user("2"), assistant("two\n"), user("3")],
                  "add_generation_prompt": True},
        "tools": {"messages": [system, user("Weather?")], "tools": TOOLS, "add_generation_prompt": True},
        "tools_no_system": {"messages": [user("Weather?")], "tools": TOOLS[:1], "add_generation_prompt": True},
        "call": {"messages": [user("Weather?"), assistant("", tool_calls=[weather]), result], "tools": TOOLS,
                 "add_generation_prompt": True},
        "call_text": {"messages": [system, user("W?"), assistant("Let me see.", tool_calls=[
            call("get_weather", {"city": "A\"B'<&>"}, text=True)]), result, assistant("Clear."), user("And <b>?")],
            "tools": TOOLS, "add_generation_prompt": True},
        "calls": {"messages": [system, user("Both?"), assistant(None, tool_calls=[
            weather, call("search", {"query": "x", "filters": {"tags": ["a", "b"]}, "exact": False}, "call00002")]),
            result, {"role": "tool", "name": "search", "tool_call_id": "call00002", "content": "none found"},
            assistant("Clear, nothing."), user("Thanks")], "tools": TOOLS, "add_generation_prompt": True},
        "thinking": {"messages": [system, user("Think"), assistant("Yes.", reasoning_content="Let me think."), user("?")],
                     "add_generation_prompt": True, "enable_thinking": True, "thinking": True,
                     "reasoning_effort": "high"},
        "no_thinking": {"messages": [user("Think"), assistant("<think>\nhm\n</think>\n\nNo."), user("/no_think ?")],
                        "add_generation_prompt": True, "enable_thinking": False, "thinking": False},
        "thinking_calls": {"messages": [user("W?"), assistant("", reasoning_content="hm", thinking="hm",
                                                             tool_calls=[weather]), result],
                           "tools": TOOLS, "add_generation_prompt": True, "enable_thinking": True},
        "special": {"messages": [{"role": "system", "content": SPECIALS}, user(SPECIALS), assistant(SPECIALS),
                                 user("x " + SPECIALS)], "add_generation_prompt": True},
        "special_tools": {"messages": [user(SPECIALS), assistant("", tool_calls=[call(SPECIALS, {SPECIALS: SPECIALS})]),
                                       {"role": "tool", "name": SPECIALS, "tool_call_id": "call00001",
                                        "content": SPECIALS}],
                          "tools": [tool(SPECIALS, SPECIALS, {"a": {"type": "string", "description": SPECIALS}})],
                          "add_generation_prompt": True},
        "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "part one"},
                                                            {"type": "text", "text": " part two"}]}],
                  "add_generation_prompt": True},
        "documents": {"messages": [system, user("Read")], "add_generation_prompt": True, "documents": [
            {"doc_id": 1, "title": "T", "text": "Body", "content": "Body"},
            {"doc_id": 2, "title": "Ü", "text": "Other", "content": "Other"}]},
        "developer": {"messages": [{"role": "developer", "content": "Rules."}, user("Hi")],
                      "add_generation_prompt": True},
        "wrong_order": {"messages": [user("a"), user("b"), assistant("c"), assistant("d")],
                        "add_generation_prompt": True},
        "assistant_first": {"messages": [assistant("Hi"), user("x")], "add_generation_prompt": True},
        "system_late": {"messages": [user("a"), system, user("b")], "add_generation_prompt": True},
        "empty": {"messages": [], "add_generation_prompt": True},
        "unicode": {"messages": [user("日本語 \u2028 é 🦙 \\ \t \"quoted\" 'single'"), assistant("ok\r\n"), user(".")],
                    "add_generation_prompt": True},
    }
    return {name: {**BASE, **one} for name, one in made.items()}
