// SPDX-License-Identifier: Apache-2.0
// A chat template that writes tools, reasoning and calls as they are given, in the form of many
// models.
#pragma once

namespace gen {

inline constexpr const char* kToolTemplate =
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ '\\n<tool_call>\\n' }}{\"name\": \"{{ c.function.name "
    "}}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

}  // namespace gen
