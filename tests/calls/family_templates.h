// SPDX-License-Identifier: Apache-2.0
// A small template for each family, that writes calls as the family's own one does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gen::calls::test {

struct FamilyTemplate {
  std::string_view format;
  std::string source;
  bool parallel = true;
  bool derivable = true;  // its format is found without being known
};

/// `calls` is the body of a loop over the calls, of which c is the function; the rest is written
/// around the loop.
struct CallsOfFamily {
  std::string_view calls;
  std::string_view open = {}, close = {};
  std::string_view think = {}, thought = {};
  std::string_view text_open = {}, text_close = {};
  std::string_view signs = {};
};

inline std::string family_source(const CallsOfFamily& family) {
  const auto print = [](std::string_view text) {
    return text.empty() ? std::string() : "{{- '" + std::string(text) + "' -}}";
  };
  std::string source = "{#- tools " + std::string(family.signs) +
                       " -#}{%- for m in messages -%}{%- if m.role == 'assistant' -%}" +
                       "{{- '<|bot|>' -}}";
  if (!family.think.empty()) {
    source += "{%- if m.reasoning_content -%}" + print(family.think) +
              "{{- m.reasoning_content -}}" + print(family.thought) + "{%- endif -%}";
  }
  source += "{%- if m.content -%}" + print(family.text_open) + "{{- m.content -}}" +
            print(family.text_close) + "{%- endif -%}";
  source += "{%- if m.tool_calls -%}" + print(family.open) +
            "{%- for call in m.tool_calls -%}{%- set c = call.function -%}" +
            std::string(family.calls) + "{%- endfor -%}" + print(family.close) + "{%- endif -%}";
  return source + "{%- else -%}{{- '<|' + m.role + '|>' + m.content -}}{%- endif -%}" +
         "{{- '<|im_end|>' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|bot|>' -}}" +
         "{%- endif -%}";
}

inline std::string tagged_calls(std::string_view before, std::string_view behind_name,
                                std::string_view open, std::string_view middle,
                                std::string_view close, std::string_view end) {
  const auto quoted = [](std::string_view text) { return "'" + std::string(text) + "'"; };
  return "{{- " + quoted(before) + " + c.name + " + quoted(behind_name) +
         " -}}{%- for k, v in c.arguments.items() -%}{{- " + quoted(open) + " + k + " +
         quoted(middle) + " + (v if v is string else v | tojson) + " + quoted(close) +
         " -}}{%- endfor -%}{{- " + quoted(end) + " -}}";
}

/// In a list: `before` each call, and commas between them.
inline std::string object_calls(std::string_view between, std::string_view name,
                                std::string_view arguments, std::string_view rest = {}) {
  return "{{- '" + std::string(between) + "' if not loop.first else '' -}}{{- '{\"" +
         std::string(name) + "\": \"' + c.name + '\", \"" + std::string(arguments) +
         "\": ' + c.arguments | tojson" + std::string(rest) + " + '}' -}}";
}

inline std::vector<FamilyTemplate> family_templates() {
  std::vector<FamilyTemplate> all;
  const auto add = [&](std::string_view format, const CallsOfFamily& family, bool parallel = true,
                       bool derivable = true) {
    all.push_back({format, family_source(family), parallel, derivable});
  };
  const std::string_view think = "<think>\\n", thought = "\\n</think>\\n\\n";
  add("hermes", {.calls = "{{- '\\n<tool_call>\\n{\"name\": \"' + c.name + '\", \"arguments\": ' + "
                          "c.arguments | tojson + '}\\n</tool_call>' -}}",
                 .think = think,
                 .thought = thought});
  const std::string coder =
      tagged_calls("\\n<tool_call>\\n<function=", ">\\n", "<parameter=", ">\\n",
                   "\\n</parameter>\\n", "</function>\\n</tool_call>");
  add("qwen3-coder", {.calls = coder, .think = think, .thought = thought});
  const std::string seed =
      tagged_calls("\\n<seed:tool_call>\\n<function=", ">\\n", "<parameter=", ">",
                   "</parameter>\\n", "</function>\\n</seed:tool_call>");
  add("seed-oss", {.calls = seed, .think = "<seed:think>", .thought = "</seed:think>\\n"});
  const std::string llama = object_calls("", "name", "parameters");
  add("llama3", {.calls = llama, .signs = "<|start_header_id|>"}, false);
  const std::string list = object_calls(", ", "name", "arguments");
  const std::string nemo =
      object_calls(", ", "name", "arguments", " + ', \"id\": \"' + call.id + '\"'");
  add("mistral-list", {.calls = nemo, .open = "[TOOL_CALLS][", .close = "]"});
  add("mistral-id", {.calls = "{{- '[TOOL_CALLS]' + c.name + '[CALL_ID]' + call.id + '[ARGS]' + "
                              "c.arguments | tojson -}}"});
  add("mistral", {.calls = "{{- '[TOOL_CALLS]' + c.name + '[ARGS]' + c.arguments | tojson -}}",
                  .think = "[THINK]",
                  .thought = "[/THINK]"});
  add("harmony",
      {.calls = "{{- '<|start|>assistant to=functions.' + c.name + '<|channel|>commentary "
                "json<|message|>' + c.arguments | tojson + '<|call|>' -}}",
       .think = "<|start|>assistant<|channel|>analysis<|message|>",
       .thought = "<|end|>",
       .text_open = "<|start|>assistant<|channel|>final<|message|>",
       .text_close = "<|end|>"},
      false, false);
  const std::string_view dictionary =
      "{%- macro d(v) -%}{%- if v is string -%}{{- Q + v + Q -}}{%- elif v is mapping -%}{{- '{' "
      "-}}{%- for k, w in v.items() -%}{{- (',' if not loop.first else '') + k + ':' -}}{{- d(w) "
      "-}}{%- endfor -%}{{- '}' -}}{%- elif v is iterable -%}{{- '[' -}}{%- for w in v -%}{{- ',' "
      "if not loop.first else '' -}}{{- d(w) -}}{%- endfor -%}{{- ']' -}}{%- else -%}{{- v | "
      "tojson "
      "-}}{%- endif -%}{%- endmacro -%}";
  const std::string gemma =
      "{%- set Q = '<|\"|>' -%}" + std::string(dictionary) +
      "{{- '<|tool_call>call:' + c.name + d(c.arguments) + '<tool_call|>' -}}";
  add("gemma4", {.calls = gemma, .think = "<|channel>thought\\n", .thought = "\\n<channel|>"});
  const std::string function_gemma =
      "{%- set Q = '<escape>' -%}" + std::string(dictionary) +
      "{{- '<start_function_call>call:' + c.name + d(c.arguments) + '<end_function_call>' -}}";
  add("functiongemma", {.calls = function_gemma});
  add("deepseek-r1",
      {.calls =
           "{{- '\\n' if not loop.first else '' -}}{{- "
           "'<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + c.name + '\\n```json\\n' + c.arguments "
           "| tojson + '\\n```<｜tool▁call▁end｜>' -}}",
       .open = "<｜tool▁calls▁begin｜>",
       .close = "<｜tool▁calls▁end｜>"});
  add("deepseek-v3.1", {.calls = "{{- '<｜tool▁call▁begin｜>' + c.name + '<｜tool▁sep｜>' + "
                                 "c.arguments | tojson + '<｜tool▁call▁end｜>' -}}",
                        .open = "<｜tool▁calls▁begin｜>",
                        .close = "<｜tool▁calls▁end｜>"});
  const std::string dsml =
      "{{- '<｜DSML｜invoke name=\"' + c.name + '\">\\n' -}}{%- for k, v in c.arguments.items() "
      "-%}{{- "
      "'<｜DSML｜parameter name=\"' + k + '\" string=\"' + ('true\">' + v if v is string else "
      "'false\">' + v | tojson) + '</｜DSML｜parameter>\\n' -}}{%- endfor -%}{{- "
      "'</｜DSML｜invoke>\\n' -}}";
  add("deepseek-v3.2", {.calls = dsml,
                        .open = "\\n\\n<｜DSML｜function_calls>\\n",
                        .close = "</｜DSML｜function_calls>"});
  add("deepseek-v4",
      {.calls = dsml, .open = "\\n\\n<｜DSML｜tool_calls>\\n", .close = "</｜DSML｜tool_calls>"});
  std::string gcml = dsml;
  for (size_t at = 0; (at = gcml.find("DSML", at)) != std::string::npos;)
    gcml.replace(at, 4, "GCML");
  add("gigachat3.5",
      {.calls = gcml, .open = "\\n\\n<｜GCML｜tool_calls>\\n", .close = "</｜GCML｜tool_calls>"});
  const std::string glm =
      tagged_calls("\\n<tool_call>", "\\n", "<arg_key>", "</arg_key>\\n<arg_value>",
                   "</arg_value>\\n", "</tool_call>");
  add("glm", {.calls = glm, .think = "<think>", .thought = "</think>\\n"});
  add("kimi-k2",
      {.calls = "{{- '<|tool_call_begin|>functions.' + c.name + ':' + loop.index0 | string + "
                "'<|tool_call_argument_begin|>' + c.arguments | tojson + '<|tool_call_end|>' -}}",
       .open = "<|tool_calls_section_begin|>",
       .close = "<|tool_calls_section_end|>"});
  const std::string invoke = tagged_calls("<invoke name=\"", "\">\\n", "<parameter name=\"", "\">",
                                          "</parameter>\\n", "</invoke>\\n");
  add("minimax-m2", {.calls = invoke,
                     .open = "<minimax:tool_call>\\n",
                     .close = "</minimax:tool_call>",
                     .think = think,
                     .thought = thought});
  const std::string nested =
      "{%- set L = ']<]minimax[>[' -%}{%- macro n(v) -%}{%- if v is string -%}{{- v -}}{%- elif v "
      "is "
      "mapping -%}{%- for k, w in v.items() -%}{{- L + '<' + k + '>' -}}{{- n(w) -}}{{- L + '</' + "
      "k "
      "+ '>' -}}{%- endfor -%}{%- elif v is iterable -%}{%- for w in v -%}{{- L + '<item>' -}}{{- "
      "n(w) -}}{{- L + '</item>' -}}{%- endfor -%}{%- else -%}{{- v | tojson -}}{%- endif -%}{%- "
      "endmacro -%}{{- L + '<invoke name=\"' + c.name + '\">\\n' -}}{{- n(c.arguments) -}}{{- L + "
      "'</invoke>\\n' -}}";
  add("minimax-m3", {.calls = nested,
                     .open = "]<]minimax[>[<tool_call>\\n",
                     .close = "]<]minimax[>[</tool_call>",
                     .think = "<mm:think>",
                     .thought = "</mm:think>"});
  const std::string python =
      "{{- S if not loop.first else '' -}}{{- c.name + '(' -}}{%- for k, v in c.arguments.items() "
      "-%}{{- (', ' if not loop.first else '') + k + '=' + v | tojson -}}{%- endfor -%}{{- ')' -}}";
  const std::string lfm = "{%- set S = ', ' -%}" + python, olmo = "{%- set S = '\\n' -%}" + python;
  add("lfm2", {.calls = lfm,
               .open = "<|tool_call_start|>[",
               .close = "]<|tool_call_end|>",
               .signs = "<|tool_list_start|>"});
  add("olmo3", {.calls = olmo, .open = "<function_calls>", .close = "</function_calls>"});
  const std::string action =
      "{{- ',\\n    ' if not loop.first else '' -}}{{- '{\"tool_call_id\": \"' + loop.index0 | "
      "string + "
      "'\", \"tool_name\": \"' + c.name + '\", \"parameters\": ' + c.arguments | tojson + '}' -}}";
  add("command-r7b", {.calls = action,
                      .open = "<|START_ACTION|>[\\n    ",
                      .close = "\\n]<|END_ACTION|>",
                      .think = "<|START_THINKING|>",
                      .thought = "<|END_THINKING|>",
                      .text_open = "<|START_RESPONSE|>",
                      .text_close = "<|END_RESPONSE|>"});
  const std::string actions = object_calls(",\\n", "tool_name", "parameters");
  add("command-r", {.calls = actions, .open = "\\nAction:\\n```json\\n[\\n", .close = "\\n]```"});
  const std::string atem =
      "{{- '<|start|>assistant to=' + c.name + '<|message|><atem:function_calls>\\n' -}}" +
      tagged_calls("<atem:invoke name=\"", "\">\\n", "<atem:parameter name=\"", "\">",
                   "</atem:parameter>\\n", "</atem:invoke>\\n</atem:function_calls><|eom|>");
  add("muse",
      {.calls = atem,
       .think = "<|start|>assistant to=self<|message|>",
       .thought = "<|eom|>",
       .text_open = "<|start|>assistant to=user<|message|>",
       .text_close = "<|eom|>"},
      true, false);
  add("functionary-3.2",
      {.calls = "{{- '>>>' + c.name + '\\n' + c.arguments | tojson -}}", .text_open = ">>>all\\n"});
  add("functionary-3.1",
      {.calls = "{{- '<function=' + c.name + '>' + c.arguments | tojson + '</function>' -}}",
       .signs = "<|start_header_id|>"});
  const std::string first = "{%- if loop.first -%}" + list + "{%- endif -%}";
  add("gigachat3", {.calls = first, .open = "<|message_sep|>\\n\\nfunction call<|role_sep|>\\n"},
      false);
  const std::string mini = tagged_calls("<function name=\"", "\">", "<param name=\"", "\">",
                                        "</param>", "</function>\\n");
  add("minicpm5", {.calls = mini, .think = think, .thought = thought});
  add("apertus", {.calls = "{{- ', ' if not loop.first else '' -}}{{- '{\"' + c.name + '\": ' + "
                           "c.arguments | tojson + '}' -}}",
                  .open = "<|tools_prefix|>[",
                  .close = "]<|tools_suffix|>",
                  .think = "<|inner_prefix|>",
                  .thought = "<|inner_suffix|>"});
  const std::string k3 =
      "{{- '<|open|>call tool=\"' + c.name + '\" index=\"' + loop.index | string + '\"<|sep|>' "
      "-}}{%- "
      "for k, v in c.arguments.items() -%}{%- set t = 'string' if v is string else 'boolean' if v "
      "is "
      "boolean else 'number' if v is number else 'object' if v is mapping else 'null' if v is none "
      "else 'array' -%}{{- '<|open|>argument key=\"' + k + '\" type=\"' + t + '\"<|sep|>' + (v if "
      "v is "
      "string else v | tojson) + '<|close|>' + 'argument' + '<|sep|>' -}}{%- endfor -%}{{- "
      "'<|close|>call<|sep|>' -}}";
  add("kimi-k3",
      {.calls = k3,
       .open = "<|open|>tools<|sep|>",
       .close = "<|close|>tools<|sep|>",
       .think = "<|open|>think<|sep|>",
       .thought = "<|close|>think<|sep|>",
       .text_open = "<|open|>response<|sep|>",
       .text_close = "<|close|>response<|sep|>"},
      true, false);
  const std::string with_ids =
      object_calls(", ", "name", "arguments", " + ', \"id\": \"' + call.id + '\"'");
  add("apriel", {.calls = with_ids, .open = "\\n<tool_calls>[", .close = "]</tool_calls>"});
  add("granite3", {.calls = list,
                   .open = "<|tool_call|>[",
                   .close = "]",
                   .think = "<think>",
                   .thought = "</think>",
                   .text_open = "<response>",
                   .text_close = "</response>",
                   .signs = "<|start_of_role|>"});
  add("phi4",
      {.calls = list, .open = "<|tool_call|>[", .close = "]<|/tool_call|>", .signs = "<|/tool|>"});
  add("firefunction2", {.calls = list, .open = " functools[", .close = "]"});
  add("nemotron-nano2", {.calls = list,
                         .open = "<TOOLCALL>[",
                         .close = "]</TOOLCALL>",
                         .think = think,
                         .thought = thought});
  return all;
}

}  // namespace gen::calls::test
