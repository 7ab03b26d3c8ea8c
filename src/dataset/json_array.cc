#include "dataset/json_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"

namespace paceline {
namespace {

// Behind the closing quotation mark.
size_t string_end(std::string_view text, size_t begin) {
  for (size_t at = begin + 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

}  // namespace

size_t json_value_end(std::string_view text, size_t begin) {
  size_t depth = 0;
  for (size_t at = begin; at < text.size(); ++at) {
    const char byte = text[at];
    const bool is_closing = byte == ']' || byte == '}';
    if (depth == 0 && (is_closing || byte == ',' || kJsonBlanks.find(byte) != kJsonBlanks.npos))
      return at;
    if (byte == '"') at = string_end(text, at) - 1;
    if (byte == '[' || byte == '{') ++depth;
    if (is_closing) --depth;
    if (depth == 0 && (is_closing || byte == '"')) return at + 1;
  }
  return text.size();
}

JsonArrayItems::JsonArrayItems(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)) {
  skip_blanks();
  ++at_;  // the bracket
  skip_blanks();
  if (at_ < text_.size() && text_[at_] == ']') check_end();
}

std::optional<std::string_view> JsonArrayItems::next() {
  if (is_done_) return std::nullopt;
  if (num_items_ > 0) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == ']') {
      check_end();
      return std::nullopt;
    }
    if (at_ == text_.size() || text_[at_] != ',') fail("a comma or ] after the item");
    ++at_;
  }
  skip_blanks();
  const size_t begin = at_;
  at_ = json_value_end(text_, begin);
  if (at_ == begin) fail("an item");
  ++num_items_;
  return text_.substr(begin, at_ - begin);
}

void JsonArrayItems::skip_blanks() {
  at_ = std::min(text_.find_first_not_of(kJsonBlanks, at_), text_.size());
}

void JsonArrayItems::check_end() {
  is_done_ = true;
  ++at_;
  skip_blanks();
  if (at_ < text_.size()) fail("nothing after the array");
}

void JsonArrayItems::fail(std::string_view expected) const {
  const auto line =
      1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
  const std::string found =
      at_ == text_.size() ? std::string("the end of the file") : shown_text(text_.substr(at_, 20));
  throw Error(ErrorCode::invalid, fmt::format("{}:{}: {} (item {} of the array)", file_, line,
                                              found_instead(found, expected), num_items_));
}

}  // namespace paceline
