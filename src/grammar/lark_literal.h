// The literals of Lark's notation: texts and regular expressions.
#pragma once

#include <string>

#include "grammar/source_grammar.h"
#include "grammar/source_text.h"

namespace paceline {

// At a quote. "text", "text"i, or a range of characters "a".."z".
ExpressionId take_lark_literal(SourceText& text, SourceGrammar& source);

// At a slash. /pattern/flags
ExpressionId take_lark_regex(SourceText& text, SourceGrammar& source);

// At a brace: the JSON object that begins here, as text.
std::string_view take_lark_json(SourceText& text);

// Behind %json: a JSON Schema, the texts that it accepts.
ExpressionId take_lark_schema(SourceText& text, SourceGrammar& source);

// Behind %regex: {"substring_chunks": [...]}, {"substring_words": "..."} or {"substring_chars":
// "..."}, any run of the parts.
ExpressionId take_lark_substring(SourceText& text, SourceGrammar& source);

}  // namespace paceline
