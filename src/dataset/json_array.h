// Finds the items of a JSON array without parsing them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What may stand between values.
inline constexpr std::string_view kJsonBlanks = " \t\r\n";

// The end of the JSON value that begins at `text[begin]`, found by its brackets and strings alone;
// text.size() when it doesn't end.
size_t json_value_end(std::string_view text, size_t begin);

// The items of an array in turn. What they hold is the reader's to check.
class JsonArrayItems {
 public:
  // `text` begins with the array's bracket, perhaps after blanks, and must outlive it. `file`
  // names it in messages.
  JsonArrayItems(std::string_view text, std::string file);

  // Nothing after the last one. Throws Error invalid "FILE: ..." where something else stands than
  // a comma, the closing bracket or, after it, blanks.
  std::optional<std::string_view> next();
  // The index of the item that next() returned last.
  int64_t index() const { return num_items_ - 1; }

 private:
  void skip_blanks();
  void check_end();
  [[noreturn]] void fail(std::string_view expected) const;

  std::string_view text_;
  std::string file_;
  size_t at_ = 0;
  int64_t num_items_ = 0;
  bool is_done_ = false;
};

}  // namespace paceline
