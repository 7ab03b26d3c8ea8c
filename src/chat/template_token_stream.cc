#include "chat/template_token_stream.h"

#include <fmt/format.h>

namespace paceline {
namespace {

using Kind = TemplateToken::Kind;

std::string described(const TemplateToken& token) {
  constexpr std::pair<Kind, const char*> kNames[] = {
      {Kind::text, "text"},
      {Kind::print_begin, "{{"},
      {Kind::print_end, "}}"},
      {Kind::block_begin, "{%"},
      {Kind::block_end, "%}"},
      {Kind::string, "a string"},
      {Kind::end, "the end of the template"},
  };
  for (const auto& [kind, name] : kNames) {
    if (token.kind == kind) return name;
  }
  return fmt::format("\"{}\"", token.text.substr(0, 40));
}

}  // namespace

Switched<int> TemplateTokenStream::nest() {
  if (nesting_ >= kMaxTemplateNesting) {
    throw TemplateError(peek().position,
                        fmt::format("nested deeper than {} levels", kMaxTemplateNesting),
                        ErrorCode::exhausted);
  }
  return {nesting_, nesting_ + 1};
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
