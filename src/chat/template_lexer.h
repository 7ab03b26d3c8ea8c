// The lexer of chat templates: text, and the tokens of {{ }} and {% %}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/template_error.h"

namespace paceline {

struct TemplateToken {
  enum class Kind : uint8_t {
    text,         // between tags, after their white space control
    print_begin,  // {{
    print_end,    // }}
    block_begin,  // {%
    block_end,    // %}
    name,         // also keywords
    string,       // `text` is its content
    integer,      // `text` as written, without underscores
    floating,
    op,  // an operator or punctuation
    end,
  };
  Kind kind = Kind::end;
  std::string text = {};
  TemplatePosition position = {};
};

// With trim_blocks and lstrip_blocks, without the last newline, as transformers configures Jinja.
// Must agree with jinja2.lexer. Throws TemplateError for unclosed and unknown tokens.
std::vector<TemplateToken> lex_template(std::string_view source);

}  // namespace paceline
