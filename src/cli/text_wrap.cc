#include "cli/text_wrap.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace paceline {
namespace {

constexpr std::string_view kFence = "```";
constexpr int64_t kTab = 8;

}  // namespace

int columns_of(char32_t character) {
  return std::max(0, utf8proc_charwidth(static_cast<utf8proc_int32_t>(character)));
}

std::string TextWrap::add(std::string_view piece, int64_t columns) {
  if (columns == 0) return finish().append(piece);
  columns_ = columns;
  while (!piece.empty()) {
    const DecodedCodePoint next = decode_utf8(piece);
    add_character(next.code_point, piece.substr(0, next.size));
    piece.remove_prefix(next.size);
  }
  return std::exchange(shown_, {});
}

std::string TextWrap::finish() {
  end_word();
  if (at_ + num_blanks_ <= columns_) shown_.append(static_cast<size_t>(num_blanks_), ' ');
  std::string rest = std::exchange(shown_, {});
  *this = {};
  return rest;
}

void TextWrap::add_character(char32_t character, std::string_view bytes) {
  if (character == U'\n') return end_line();
  if (character == U' ') {
    end_word();
    ++num_blanks_;
    return;
  }
  if (character == U'\t') {
    end_word();
    shown_.append(static_cast<size_t>(num_blanks_), ' ') += '\t';
    at_ = (at_ + std::exchange(num_blanks_, 0)) / kTab * kTab + kTab;
    return;
  }
  if (line_start_.size() < kFence.size()) line_start_ += bytes;
  const int columns = columns_of(character);
  if (columns == 2) end_word();
  word_ += bytes;
  word_columns_ += columns;
  const bool is_long = word_columns_ >= columns_ || is_long_word_;
  if (columns != 2 && !is_long) return;
  end_word();
  is_long_word_ = columns != 2;
}

void TextWrap::end_word() {
  const bool goes_on = std::exchange(is_long_word_, false);
  if (word_.empty()) return;
  const bool fits = at_ + num_blanks_ + word_columns_ <= columns_;
  if (!fits && !goes_on && !is_code_ && at_ > 0) {
    shown_ += '\n';
    at_ = num_blanks_ = 0;
  }
  shown_.append(static_cast<size_t>(num_blanks_), ' ') += std::exchange(word_, {});
  move_right(std::exchange(num_blanks_, 0) + std::exchange(word_columns_, 0));
}

// The terminal goes on in the next line when something follows what fills one.
void TextWrap::move_right(int64_t columns) {
  at_ += columns;
  if (at_ > columns_) at_ = (at_ - 1) % columns_ + 1;
}

void TextWrap::end_line() {
  end_word();
  if (line_start_.starts_with(kFence)) is_code_ = !is_code_;
  line_start_.clear();
  shown_ += '\n';
  at_ = num_blanks_ = 0;
}

}  // namespace paceline
