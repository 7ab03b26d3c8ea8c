#include "chat/template_token_stream.h"

#include <fmt/format.h>

namespace paceline {
namespace {

using Kind = TemplateToken::Kind;

std::string described(const TemplateToken& token) {
  switch (token.kind) {
    case Kind::text:
      return "text";
    case Kind::print_begin:
      return "{{";
    case Kind::print_end:
      return "}}";
    case Kind::block_begin:
      return "{%";
    case Kind::block_end:
      return "%}";
    case Kind::string:
      return "a string";
    case Kind::end:
      return "the end of the template";
    default:
      return fmt::format("\"{}\"", token.text.substr(0, 40));
  }
}

}  // namespace

TemplateTokenStream::Nesting::Nesting(TemplateTokenStream& stream) : stream_(stream) {
  if (stream.nesting_ >= kMaxTemplateNesting) {
    throw TemplateError(stream.peek().position,
                        fmt::format("nested deeper than {} levels", kMaxTemplateNesting),
                        ErrorCode::exhausted);
  }
  ++stream.nesting_;
}

TemplateToken TemplateTokenStream::take() {
  TemplateToken token = peek();
  if (next_ + 1 < tokens_.size()) ++next_;
  return token;
}

bool TemplateTokenStream::take_op(std::string_view op) {
  if (!at_op(op)) return false;
  take();
  return true;
}

bool TemplateTokenStream::take_name(std::string_view name) {
  if (!at_name(name)) return false;
  take();
  return true;
}

void TemplateTokenStream::expect_op(std::string_view op) {
  if (!take_op(op)) unexpected(fmt::format("\"{}\"", op));
}

void TemplateTokenStream::expect_name(std::string_view name) {
  if (!take_name(name)) unexpected(name);
}

std::string TemplateTokenStream::expect_identifier() {
  if (!at(Kind::name)) unexpected("a name");
  return take().text;
}

void TemplateTokenStream::fail(const TemplatePosition& position, const std::string& message) const {
  throw TemplateError(position, message);
}

void TemplateTokenStream::unexpected(std::string_view what) const {
  fail(peek().position, fmt::format("expected {}, found {}", what, described(peek())));
}

}  // namespace paceline
