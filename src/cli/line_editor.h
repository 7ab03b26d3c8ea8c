// LineEditor reads lines from a terminal, with editing, history and pasted text of several lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace paceline {

// Standard input and output must be terminals. One at a time.
class LineEditor {
 public:
  enum class Outcome {
    line,
    interrupted,  // interrupt() was called
    closed,       // end of input (Ctrl-D on an empty line)
  };
  struct Input {
    Outcome outcome = Outcome::closed;
    std::string text;  // UTF-8 without the final newline; a pasted text keeps its inner ones
  };

  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Shows `prompt` (plain characters) and waits. A line that isn't empty joins the history. Keys
  // that were typed since the last line come first: between two lines, the terminal keeps what is
  // typed and doesn't show it.
  Input read(std::string_view prompt);
  // The same for the answer to a question, which doesn't join the history.
  Input ask(std::string_view question);

  // Makes the waiting read(), or else the next one, return. From any thread.
  void interrupt();

 private:
  struct State;
  Input read_line(std::string_view prompt);
  static State& state_of(void* editor);  // of libedit's, in its callbacks

  std::unique_ptr<State> state_;
};

}  // namespace paceline
