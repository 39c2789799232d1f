// SPDX-License-Identifier: Apache-2.0
// See builtin_forms.h. Each form is the common format of its family, without tools.
#include "chat/builtin_forms.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace gen::chat {

using tokenizer::TokenType;
using tokenizer::VocabSpec;

namespace {

constexpr BuiltinForm kForms[] = {
    {"chatml",
     {"<|im_start|>", "<|im_end|>"},
     "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    {"llama3",
     {"<|start_header_id|>", "<|eot_id|>"},
     "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + "
     "'<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}"
     "{% if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"},
    {"gemma",
     {"<start_of_turn>", "<end_of_turn>"},
     "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
     "{% if m.role == 'system' %}{% set ns.system = ns.system + m.content | trim + '\\n\\n' %}"
     "{% else %}{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + "
     "ns.system + m.content | trim + '<end_of_turn>\\n' }}{% set ns.system = '' %}{% endif %}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"},
    {"gemma4",
     {"<|turn>", "<turn|>"},
     "{{ bos_token }}{% for m in messages %}{{ '<|turn>' + ('model' if m.role == 'assistant' else "
     "m.role) + '\\n' + m.content | trim + '<turn|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}"
     "{{ '<|turn>model\\n<|channel>thought\\n<channel|>' }}{% endif %}"},
    {"phi3",
     {"<|user|>", "<|end|>"},
     "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"},
    {"mistral",
     {"[INST]", "[/INST]"},
     "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
     "{% if m.role == 'system' %}{% set ns.system = ns.system + m.content + '\\n\\n' %}"
     "{% elif m.role == 'assistant' %}{{ m.content + eos_token }}"
     "{% else %}{{ '[INST]' + ns.system + m.content + '[/INST]' }}{% set ns.system = '' %}"
     "{% endif %}{% endfor %}"},
    {"granite",
     {"<|start_of_role|>", "<|end_of_role|>"},
     "{% for m in messages %}{{ '<|start_of_role|>' + m.role + '<|end_of_role|>' + m.content + "
     "'<|end_of_text|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}"},
    {"command-r",
     {"<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     "{{ bos_token }}{% for m in messages %}{{ '<|START_OF_TURN_TOKEN|><|' + ('CHATBOT' if m.role "
     "== 'assistant' else m.role | upper) + '_TOKEN|>' + m.content | trim + "
     "'<|END_OF_TURN_TOKEN|>' }}{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}"},
};

bool is_special(const VocabSpec& spec, size_t id) {
  return spec.types[id] == TokenType::kControl || spec.types[id] == TokenType::kUserDefined;
}

}  // namespace

const BuiltinForm* recognise_form(const VocabSpec& spec) noexcept {
  const auto has = [&](std::string_view mark) {
    for (size_t id = 0; id < spec.tokens.size(); ++id) {
      if (is_special(spec, id) && spec.tokens[id] == mark) return true;
    }
    return false;
  };
  const auto* const found = std::find_if(
      std::begin(kForms), std::end(kForms),
      [&](const BuiltinForm& form) { return has(form.marks[0]) && has(form.marks[1]); });
  return found == std::end(kForms) ? nullptr : found;
}

std::string_view missing_mark(const VocabSpec& spec, std::string_view source) {
  std::vector<std::string_view> marks;
  for (size_t at = source.find("<|"); at != std::string_view::npos;
       at = source.find("<|", at + 2)) {
    size_t end = at + 2;
    while (end < source.size() &&
           (std::isalnum(static_cast<unsigned char>(source[end])) != 0 || source[end] == '_')) {
      ++end;
    }
    if (end == at + 2 || source.substr(end, 2) != "|>") continue;
    const std::string_view mark = source.substr(at, end + 2 - at);
    if (std::find(marks.begin(), marks.end(), mark) == marks.end()) marks.push_back(mark);
  }
  for (size_t id = 0; id < spec.tokens.size() && !marks.empty(); ++id) {
    if (is_special(spec, id)) {
      marks.erase(std::remove(marks.begin(), marks.end(), spec.tokens[id]), marks.end());
    }
  }
  return marks.empty() ? std::string_view() : marks.front();
}

const BuiltinForm* form_named(std::string_view name) noexcept {
  const auto* const found =
      std::find_if(std::begin(kForms), std::end(kForms),
                   [&](const BuiltinForm& form) { return form.name == name; });
  return found == std::end(kForms) ? nullptr : found;
}

bool is_form_mark(std::string_view text) noexcept {
  return std::any_of(std::begin(kForms), std::end(kForms), [&](const BuiltinForm& form) {
    return form.marks[0] == text || form.marks[1] == text;
  });
}

std::string form_names() {
  std::string names;
  for (const BuiltinForm& form : kForms) {
    if (!names.empty()) names.append(", ");
    names.append(form.name);
  }
  return names;
}

}  // namespace gen::chat
