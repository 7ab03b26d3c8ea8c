#include "chat/builtin_templates.h"

namespace paceline {

// The turn formats of the models' cards, for plain conversations.
constexpr std::array<BuiltinTemplate, 3> kBuiltinTemplates = {
    // Qwen 2 and 3, and many more: ChatML.
    BuiltinTemplate{"chatml", "<|im_start|>", R"({%- for message in messages %}
{{- '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n' }}
{%- endif %})"},
    // Gemma 2 and 3: no system turn; its text comes before the first user's. The assistant is
    // "model".
    BuiltinTemplate{"gemma", "<start_of_turn>", R"({{- bos_token }}
{%- set state = namespace(system='') %}
{%- for message in messages %}
  {%- if message.role == 'system' and loop.first %}
    {%- set state.system = message.content ~ '\n\n' %}
  {%- else %}
{{- '<start_of_turn>' ~ ('model' if message.role == 'assistant' else message.role) ~ '\n' }}
{{- state.system ~ message.content | trim ~ '<end_of_turn>\n' }}
    {%- set state.system = '' %}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<start_of_turn>model\n' }}
{%- endif %})"},
    // Llama 3.
    BuiltinTemplate{"llama3", "<|start_header_id|>", R"({{- bos_token }}
{%- for message in messages %}
{{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n' }}
{{- message.content | trim ~ '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})"}};

std::string builtin_template_names() {
  std::string names;
  for (const BuiltinTemplate& one : kBuiltinTemplates) {
    if (!names.empty()) names += ", ";
    names += one.name;
  }
  return names;
}

}  // namespace paceline
