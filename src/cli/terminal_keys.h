// TerminalKeys reads what a terminal sends, code point by code point, and tells pasted text from
// typed.
#pragma once

#include <deque>
#include <optional>

namespace paceline {

// A newline inside pasted text, shown in the line: it would end the line otherwise.
inline constexpr wchar_t kPastedNewline = L'\u21B5';

// Ask the terminal to put pasted text between marks (xterm's bracketed paste), or no longer.
inline constexpr const char* kMarkPastedText = "\x1b[?2004h";
inline constexpr const char* kLeavePastedTextUnmarked = "\x1b[?2004l";

class TerminalKeys {
 public:
  // Reads `input`; stops waiting when `wake` becomes readable.
  TerminalKeys(int input, int wake) : input_(input), wake_(wake) {}

  // The next key; nothing at the end of the input or when woken. Ill-formed UTF-8 is U+FFFD.
  // Inside pasted text newlines are kPastedNewline, tabs stay, other control characters are left
  // out, and what it ends with of newlines is too.
  std::optional<wchar_t> next();

  // Forgets what was typed and not given yet.
  void drop();

 private:
  std::optional<unsigned char> next_byte(int timeout_ms);
  std::optional<wchar_t> next_code_point();
  // After an escape: true when the bytes of `mark` follow; what was read in vain is kept.
  bool follows(const char* mark);
  std::optional<wchar_t> pasted(wchar_t key);

  int input_;
  int wake_;
  std::deque<unsigned char> bytes_;  // read, not yet interpreted
  std::deque<wchar_t> keys_;         // to be given next
  bool in_paste_ = false;
  int pending_newlines_ = 0;  // of a paste, given only when something follows them
  bool after_carriage_return_ = false;
};

}  // namespace paceline
