#include <gtest/gtest.h>

#include "tests/chat/rendering.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

void fails(std::string_view source, const std::vector<std::string>& parts,
           ErrorCode code = ErrorCode::invalid) {
  SCOPED_TRACE(source);
  expect_error(code, parts, [&] { render(source, R"({"m": {"role": "user"}, "l": [1]})"); });
}

TEST(TemplateError, SaysWhereInCodePoints) {
  fails("one\n  {{ é.x }}", {"test:2:"});
  fails("{{ 'é' ~ }}", {"test:1:10: expected an expression, found }}"});
  fails("\n\n{% if x %}", {"test:3:11", "endif"});
  fails("a\n{{ l + m }}", {"test:2:4", "'list'", "'dict'"});
  fails("{{ m.a.b }}", {"test:1:7", "'dict object' has no attribute 'a'"});
}

TEST(TemplateError, NamesWhatIsMissingOrUnknown) {
  fails("{{ nope() }}", {"'nope' is undefined"});
  fails("{{ 1|nope }}", {"No filter named 'nope'"});
  fails("{{ 1 is nope }}", {"No test named 'nope'"});
  fails("{{ l.append(2) }}", {"unsafe"});
  fails("{{ 9223372036854775807 + 1 }}", {"64 bits"});
  fails("{{ range(1, 2, 0) }}", {"zero"});
  fails("{% set m.x = 1 %}", {"non-namespace"});
  fails("{% for a, b in [[1]] %}{% endfor %}", {"expected 2 values to unpack, found 1"});
}

TEST(TemplateError, WhatIsNotClosedOrNotOpen) {
  fails("{{ 1", {"{{ is not closed"});
  fails("{% if 1", {"{% is not closed"});
  fails("a {# b", {"{# is not closed"});
  fails("{% raw %} x", {"{% raw %} is not closed"});
  fails("{{ 'abc }}", {"a string is not closed"});
  fails("{% endif %}", {"endif"});
  fails("{% break %}", {"outside of a loop"});
  fails("{{ (1] }}", {"unexpected ']'"});
}

TEST(TemplateError, WhatChatTemplatesHaveNoUseForIsRefusedByName) {
  for (const char* name : {"include", "import", "extends", "block"}) {
    fails("{% " + std::string(name) + " 'x' %}", {name, "isn't supported"}, ErrorCode::unsupported);
  }
}

TEST(TemplateError, PythonsFormattingIsRefusedWithWhatToWriteInstead) {
  for (const char* expression : {"'%s' % 1", "'a' % 'b'", "'{}'.format(1)", "'{a}'.format_map(m)",
                                 "'%s'|format(1)", "['%d']|map('format', 1)|list"}) {
    fails(printed(expression), {"test:1:", "isn't supported: join the parts with ~"},
          ErrorCode::unsupported);
  }
}

TEST(TemplateError, TheTemplatesOwnWordsComeThroughAlone) {
  const std::string message = error_message(ErrorCode::invalid, [] {
    render("\n{{ raise_exception('Roles must \"alternate\": ' ~ 3) }}");
  });
  EXPECT_EQ(message, "Roles must \"alternate\": 3");
}

}  // namespace
}  // namespace paceline
