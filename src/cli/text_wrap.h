// TextWrap breaks a streamed text between words, where a terminal would break it inside one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

// The columns that a character takes: 2 for wide ones, 0 for marks that combine.
int columns_of(char32_t character);

// A line break takes the place of the blanks before a word that doesn't fit; wide characters, which
// East Asian scripts write without blanks, may be parted anywhere. A word longer than a line and
// the lines of a fenced block of code stay as they are, for the terminal to break: code can be
// copied.
class TextWrap {
 public:
  // What can be shown once `piece` (well-formed UTF-8) has come, on a terminal of that many
  // columns. The beginning of a word is kept until the word ends. 0 columns: all is shown as it
  // comes.
  std::string add(std::string_view piece, int64_t columns);
  // The rest. The next text begins a line.
  std::string finish();

 private:
  void add_character(char32_t character, std::string_view bytes);
  void end_word();
  void end_line();
  void move_right(int64_t columns);

  std::string shown_;
  int64_t columns_ = 0;
  int64_t at_ = 0;          // the column of the cursor
  int64_t num_blanks_ = 0;  // between the cursor and the word
  std::string word_;
  int64_t word_columns_ = 0;
  bool is_long_word_ = false;  // whose beginning, longer than a line, has been shown
  std::string
      line_start_;  // the line's first characters that aren't blanks, as many as a fence has
  bool is_code_ = false;
};

}  // namespace paceline
