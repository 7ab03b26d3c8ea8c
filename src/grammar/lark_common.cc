#include "grammar/lark_common.h"

namespace paceline {
namespace {

struct CommonTerminal {
  std::string_view name;
  std::string_view definition;
};

// As Lark 1's common.lark defines them. Quoted texts and comments in C end at their first end, as
// its lexer has it.
constexpr CommonTerminal kCommonTerminals[] = {
    {"DIGIT", "/[0-9]/"},
    {"HEXDIGIT", "/[0-9a-fA-F]/"},
    {"INT", "/[0-9]+/"},
    {"SIGNED_INT", "/[+-]?[0-9]+/"},
    {"DECIMAL", "/[0-9]+\\.[0-9]*|\\.[0-9]+/"},
    {"_EXP", "/[eE]/ SIGNED_INT"},
    {"FLOAT", "INT _EXP | DECIMAL _EXP?"},
    {"SIGNED_FLOAT", "/[+-]?/ FLOAT"},
    {"NUMBER", "FLOAT | INT"},
    {"SIGNED_NUMBER", "/[+-]?/ NUMBER"},
    {"ESCAPED_STRING", R"(/"([^"\\\n]|\\[^\n])*"/)"},
    {"LCASE_LETTER", "/[a-z]/"},
    {"UCASE_LETTER", "/[A-Z]/"},
    {"LETTER", "/[a-zA-Z]/"},
    {"WORD", "/[a-zA-Z]+/"},
    {"CNAME", "/[a-zA-Z_][a-zA-Z_0-9]*/"},
    {"WS_INLINE", "/[ \\t]+/"},
    {"WS", "/[ \\t\\f\\r\\n]+/"},
    {"CR", "/\\r/"},
    {"LF", "/\\n/"},
    {"NEWLINE", "/(\\r?\\n)+/"},
    {"SH_COMMENT", "/#[^\\n]*/"},
    {"CPP_COMMENT", "/\\/\\/[^\\n]*/"},
    {"C_COMMENT", R"(/\/\*([^*]|\*+[^*\/])*\*+\//)"},
    {"SQL_COMMENT", "/--[^\\n]*/"},
};

}  // namespace

std::optional<std::string_view> common_terminal(std::string_view name) {
  for (const CommonTerminal& terminal : kCommonTerminals) {
    if (terminal.name == name) return terminal.definition;
  }
  return std::nullopt;
}

}  // namespace paceline
