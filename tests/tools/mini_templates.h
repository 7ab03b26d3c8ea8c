// Small chat templates, one for each way of writing tool calls.
#pragma once

#include <string>
#include <vector>

namespace paceline {

struct MiniTemplate {
  std::string name;
  std::string source;
};

// A template of a conversation whose assistant messages are `assistant`; `prompt` begins them.
inline std::string chat_source(const std::string& assistant, const std::string& prompt = "<|a|>") {
  return "{%- for m in messages %}"
         "{%- if m.role == 'assistant' %}{{- '<|a|>' }}" +
         assistant +
         "{%- elif m.role == 'tool' %}{{- '<|t|>' + m.content + '<|e|>' }}"
         "{%- else %}{{- '<|u|>' + m.content + '<|e|>' }}"
         "{%- endif %}{%- endfor %}"
         "{%- if add_generation_prompt %}{{- '" +
         prompt + "' }}{%- endif %}";
}

// The calls, each as `call` with `c` and `f` (its function), behind the content.
inline std::string calls_source(const std::string& first, const std::string& call,
                                const std::string& between, const std::string& last) {
  return chat_source("{{- m.content or '' }}{%- if m.tool_calls %}{{- '" + first +
                     "' }}{%- for c in m.tool_calls %}{%- set f = c.function %}" + call +
                     "{%- if not loop.last %}{{- '" + between +
                     "' }}{%- endif %}{%- endfor %}{{- '" + last +
                     "' }}{%- endif %}{{- '<|e|>' }}");
}

inline std::vector<MiniTemplate> mini_templates() {
  const std::string parameters =
      "{%- for k, v in f.arguments|items %}"
      "{{- '<p name=\"' + k + '\">' + (v if v is string else v|tojson) + '</p>' }}{%- endfor %}";
  return {
      {"JSON in tags",
       calls_source("\\n",
                    "{{- '<tool_call>\\n{\"name\": \"' + f.name + '\", \"arguments\": ' + "
                    "f.arguments|tojson + '}\\n</tool_call>' }}",
                    "\\n", "")},
      {"a list of JSON with ids",
       calls_source("[CALLS][",
                    "{%- if c.id|length != 9 %}{{ raise_exception('bad id') }}{%- endif %}"
                    "{{- (f|tojson)[:-1] + ', \"id\": \"' + c.id + '\"}' }}",
                    ", ", "]")},
      {"name, id and JSON",
       calls_source("", "{{- '[CALL]' + f.name + '[ID]' + c.id + '[ARGS]' + f.arguments|tojson }}",
                    "", "")},
      {"JSON with the arguments in front",
       calls_source("<calls>[",
                    "{{- '{\"arguments\": ' + f.arguments|tojson + ', \"name\": ' + "
                    "f.name|tojson + '}' }}",
                    ",\\n", "]</calls>")},
      {"the name as a key",
       calls_source("<|prefix|>[", "{{- '{\"' + f.name + '\": ' + f.arguments|tojson + '}' }}",
                    ", ", "]<|suffix|>")},
      {"a fence of code", calls_source("<|calls|>",
                                       "{{- '<|call|>function<|sep|>' + f.name + '\\n```json\\n' + "
                                       "f.arguments|tojson + '\\n```<|call_end|>' }}",
                                       "\\n", "<|calls_end|>")},
      {"numbered calls",
       calls_source("<|act|>[",
                    "{{- '\\n  {\"call\": \"' ~ loop.index0 ~ '\", \"tool\": \"' + f.name + "
                    "'\", \"parameters\": ' + f.arguments|tojson + '}' }}",
                    ",", "\\n]<|act_end|>")},
      {"an id with name and number",
       calls_source("<|section|>",
                    "{{- '<|call|>functions.' + f.name + ':' ~ loop.index0 ~ '<|args|>' + "
                    "f.arguments|tojson + '<|call_end|>' }}",
                    "", "<|section_end|>")},
      {"the name in a tag",
       calls_source("", "{{- '<function=' + f.name + '>' + f.arguments|tojson + '</function>' }}",
                    "", "")},
      {"a word in front of a list",
       calls_source(" functools[",
                    "{{- '{\"name\": \"' + f.name + '\", \"arguments\": ' + f.arguments|tojson + "
                    "'}' }}",
                    ", ", "]")},
      {"arguments in a string",
       calls_source("",
                    "{{- '<tc>{\"name\": \"' + f.name + '\", \"arguments\": ' + "
                    "(f.arguments|tojson)|tojson + '}</tc>' }}",
                    "\\n", "")},
      {"parameters with attributes", calls_source("<calls>\\n",
                                                  "{{- '<invoke name=\"' + f.name + '\">\\n' }}" +
                                                      parameters + "{{- '\\n</invoke>\\n' }}",
                                                  "", "</calls>")},
      {"parameters on lines",
       calls_source("\\n",
                    "{{- '<tool_call>\\n<function=' + f.name + '>\\n' }}"
                    "{%- for k, v in f.arguments|items %}"
                    "{{- '<parameter=' + k + '>\\n' + (v if v is string else v|string) + "
                    "'\\n</parameter>\\n' }}{%- endfor %}"
                    "{{- '</function>\\n</tool_call>' }}",
                    "\\n", "")},
      {"keys and values",
       calls_source("",
                    "{{- '<tool_call>' + f.name }}{%- for k, v in f.arguments|items %}"
                    "{{- '<k>' + k + '</k><v>' + (v if v is string else v|tojson) + '</v>' }}"
                    "{%- endfor %}{{- '</tool_call>' }}",
                    "", "")},
      {"functions of Python",
       calls_source("<|calls|>[",
                    "{{- f.name + '(' }}{%- for k, v in f.arguments|items %}"
                    "{{- k + '=' + v|tojson }}{%- if not loop.last %}{{- ', ' }}{%- endif %}"
                    "{%- endfor %}{{- ')' }}",
                    ", ", "]<|calls_end|>")},
      {"a prompt that begins the call",
       chat_source("{{- '>>>' }}{%- if m.content %}{{- 'all\\n' + m.content }}"
                   "{%- if m.tool_calls %}{{- '>>>' }}{%- endif %}{%- endif %}"
                   "{%- for c in m.tool_calls or [] %}"
                   "{{- c.function.name + '\\n' + c.function.arguments|tojson }}"
                   "{%- if not loop.last %}{{- '>>>' }}{%- endif %}{%- endfor %}{{- '<|e|>' }}",
                   "<|a|>>>>")},
      {"one call, at the beginning",
       chat_source("{%- if m.tool_calls %}{%- if m.tool_calls|length > 1 %}"
                   "{{ raise_exception('one call only') }}{%- endif %}"
                   "{{- '{\"name\": \"' + m.tool_calls[0].function.name + '\", \"parameters\": ' + "
                   "m.tool_calls[0].function.arguments|tojson + '}' }}"
                   "{%- else %}{{- m.content }}{%- endif %}{{- '<|e|>' }}")},
      {"sections, each with a header",
       chat_source(
           "{%- if m.reasoning_content %}"
           "{{- '<|think|>' + m.reasoning_content + '<|end|><|a|>' }}{%- endif %}"
           "{%- if m.tool_calls %}"
           "{%- if m.content %}{{- '<|content|>' + m.content + '<|end|><|a|>' }}{%- endif %}"
           "{{- '<|calls|>' }}{%- for c in m.tool_calls %}"
           "{{- '<|call|>' + c.id + '<|name|>' + c.function.name + '<|args|>' + "
           "c.function.arguments|tojson + '<|call_end|>' }}{%- endfor %}{{- '<|e|>' }}"
           "{%- else %}{{- '<|content|>' + m.content + '<|e|>' }}{%- endif %}")},
      {"channels, content as analysis",
       chat_source("{%- if m.tool_calls %}{%- set f = m.tool_calls[0].function %}"
                   "{%- if m.content and m.thinking %}{{ raise_exception('both') }}{%- endif %}"
                   "{%- if m.content or m.thinking %}{{- '<|channel|>analysis<|message|>' + "
                   "(m.content or m.thinking) + '<|end|><|a|>' }}{%- endif %}"
                   "{{- ' to=functions.' + f.name + '<|channel|>commentary json<|message|>' + "
                   "f.arguments|tojson + '<|call|>' }}"
                   "{%- else %}{%- if m.thinking %}{{- '<|channel|>analysis<|message|>' + "
                   "m.thinking + '<|end|><|a|>' }}{%- endif %}"
                   "{{- '<|channel|>final<|message|>' + m.content + '<|return|>' }}{%- endif %}")},
      {"channels",
       chat_source("{%- if m.reasoning_content %}"
                   "{{- '<|channel|>analysis<|message|>' + m.reasoning_content + "
                   "'<|end|><|start|>a' }}{%- endif %}"
                   "{%- if m.tool_calls %}{%- set f = m.tool_calls[0].function %}"
                   "{{- ' to=functions.' + f.name + '<|channel|>commentary json<|message|>' + "
                   "f.arguments|tojson + '<|call|>' }}"
                   "{%- else %}{{- '<|channel|>final<|message|>' + m.content + '<|return|>' }}"
                   "{%- endif %}")},
  };
}

}  // namespace paceline
