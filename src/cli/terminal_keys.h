// TerminalKeys reads a terminal's input by code point, and distinguishes pasted from typed text.
#pragma once

#include <deque>
#include <optional>

namespace paceline {

// Stands for a newline in pasted text, which would otherwise end the line.
inline constexpr wchar_t kPastedNewline = L'\u21B5';

// Switch on and off the marks around pasted text (xterm's bracketed paste).
inline constexpr const char* kMarkPastedText = "\x1b[?2004h";
inline constexpr const char* kLeavePastedTextUnmarked = "\x1b[?2004l";

class TerminalKeys {
 public:
  // Reads `input`; stops waiting when `wake` becomes readable.
  TerminalKeys(int input, int wake) : input_(input), wake_(wake) {}

  // The next key; nothing at the end of the input or when woken. Ill-formed UTF-8 is U+FFFD. In
  // pasted text newlines become kPastedNewline, tabs stay, and other control characters and
  // trailing newlines are dropped.
  std::optional<wchar_t> next();

  // Drops keys that were typed but not yet returned.
  void drop();

 private:
  std::optional<unsigned char> next_byte(int timeout_ms);
  std::optional<wchar_t> next_code_point();
  // After an escape: true when the bytes of `mark` follow; otherwise the bytes read stay queued.
  bool follows(const char* mark);
  std::optional<wchar_t> pasted(wchar_t key);

  int input_;
  int wake_;
  std::deque<unsigned char> bytes_;  // read, not yet interpreted
  std::deque<wchar_t> keys_;         // to be given next
  bool in_paste_ = false;
  int pending_newlines_ = 0;  // of a paste; dropped if nothing follows
  bool after_carriage_return_ = false;
};

}  // namespace paceline
