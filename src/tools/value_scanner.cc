#include "tools/value_scanner.h"

namespace paceline {

namespace {
constexpr size_t kMaxOpenBrackets = 64;
}

// Python writes a string that has a single quote, and no double one, between double quotes.
bool ValueScanner::opens_string(char c) {
  if (strings_.escapes == StringNotation::Escapes::python) {
    if (c != '"' && c != '\'') return false;
    quote_ = c;
    return true;
  }
  if (strings_.quote.empty()) return false;
  if (c != strings_.quote[matched_]) {
    matched_ = c == strings_.quote[0] ? 1 : 0;
  } else {
    ++matched_;
  }
  if (matched_ < strings_.quote.size()) return false;
  matched_ = 0;
  quote_ = strings_.quote;
  return true;
}

void ValueScanner::take_in_string(char c) {
  if (is_escaped_) {
    is_escaped_ = false;
    return;
  }
  if (c == '\\' && strings_.escapes != StringNotation::Escapes::none) {
    is_escaped_ = true;
    return;
  }
  if (c == quote_[matched_]) {
    ++matched_;
  } else {
    matched_ = c == quote_[0] ? 1 : 0;
  }
  if (matched_ < quote_.size()) return;
  matched_ = 0;
  quote_.clear();
}

void ValueScanner::take_byte(char c) {
  if (!quote_.empty()) {
    take_in_string(c);
    return;
  }
  if (open_.empty() && c != '{' && c != '[') {
    state_ = State::broken;
    return;
  }
  if (opens_string(c)) return;
  if (c == '{' || c == '[') {
    if (open_.size() == kMaxOpenBrackets) state_ = State::broken;
    open_ += c == '{' ? '}' : ']';
  } else if (c == '}' || c == ']') {
    if (open_.back() != c) {
      state_ = State::broken;
      return;
    }
    open_.pop_back();
    if (open_.empty()) state_ = State::done;
  }
}

size_t ValueScanner::take(std::string_view text) {
  size_t taken = 0;
  while (state_ == State::running && taken < text.size()) {
    take_byte(text[taken]);
    if (state_ != State::broken) ++taken;
  }
  return taken;
}

size_t json_container_bytes(std::string_view text) {
  ValueScanner scanner;
  const size_t taken = scanner.take(text);
  return scanner.state() == ValueScanner::State::done ? taken : 0;
}

}  // namespace paceline
