#include "cli/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/terminal_keys.h"

namespace paceline {
namespace {

constexpr int kHistoryLines = 1000;

// libedit shows characters as the locale says. A bare machine has no locale set, but C.UTF-8 always
// exists.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

// What is typed while nothing is read waits, unseen and as it was typed. A terminal discards
// pending output on an interrupt: it could discard our answer to the interrupt.
void keep_keys_and_output(termios& found) {
  if (tcgetattr(STDIN_FILENO, &found) != 0) return;
  termios wanted = found;
  wanted.c_lflag |= NOFLSH;
  wanted.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &wanted);
}

// A line of the history, with the marks of pasted newlines.
std::wstring wide_of(std::string_view text) {
  std::wstring line;
  while (!text.empty()) {
    const DecodedCodePoint next = decode_utf8(text);
    line.push_back(next.code_point == U'\n' ? kPastedNewline
                                            : static_cast<wchar_t>(next.code_point));
    text.remove_prefix(next.size);
  }
  return line;
}

std::string text_of(const wchar_t* line, int length) {
  std::string text;
  for (int i = 0; i < length; ++i) {
    append_utf8(text, static_cast<char32_t>(line[i] == kPastedNewline ? L'\n' : line[i]));
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

struct LineEditor::State {
  termios terminal = {};  // as it was found
  EditLine* editor = nullptr;
  HistoryW* history = nullptr;
  int wake = -1;
  TerminalKeys keys{STDIN_FILENO, -1};
  std::string prompt;
};

LineEditor::State& LineEditor::state_of(void* editor) {
  void* state = nullptr;
  el_wget(static_cast<EditLine*>(editor), EL_CLIENTDATA, &state);
  return *static_cast<State*>(state);
}

LineEditor::LineEditor() : state_(std::make_unique<State>()) {
  use_utf8();
  keep_keys_and_output(state_->terminal);
  state_->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  state_->keys = TerminalKeys(STDIN_FILENO, state_->wake);
  state_->editor = el_init("paceline", stdin, stdout, stderr);
  state_->history = history_winit();
  if (state_->editor == nullptr || state_->history == nullptr) {
    throw Error(ErrorCode::internal, "the line editor can't be set up on this terminal");
  }
  HistEventW event;
  history_w(state_->history, &event, H_SETSIZE, kHistoryLines);
  history_w(state_->history, &event, H_SETUNIQUE, 1);
  EditLine* const editor = state_->editor;
  el_wset(editor, EL_CLIENTDATA, state_.get());
  el_wset(editor, EL_EDITOR, L"emacs");
  el_wset(editor, EL_HIST, history_w, state_->history);
  el_wset(editor, EL_SIGNAL, 0);  // signals are the session's
  el_wset(editor, EL_SETTY, L"-d", L"+noflsh", nullptr);
  el_wset(editor, EL_SETTY, L"-x", L"+noflsh", L"-echo", L"-icanon", nullptr);  // between lines
  el_wset(editor, EL_BIND, L"^I", L"ed-insert", nullptr);
  el_wset(editor, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
  el_set(
      editor, EL_PROMPT, +[](EditLine* of) { return state_of(of).prompt.data(); });
  el_wset(
      editor, EL_GETCFN, +[](EditLine* of, wchar_t* key) {
        const auto next = state_of(of).keys.next();
        if (next) *key = *next;
        return next ? 1 : 0;
      });
  std::fputs(kMarkPastedText, stdout);
  std::fflush(stdout);
}

LineEditor::~LineEditor() {
  std::fputs(kLeavePastedTextUnmarked, stdout);
  std::fflush(stdout);
  if (state_->editor != nullptr) el_end(state_->editor);
  if (state_->history != nullptr) history_wend(state_->history);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &state_->terminal);
  close(state_->wake);
}

LineEditor::Input LineEditor::read(std::string_view prompt) {
  Input input = read_line(prompt);
  if (input.outcome != Outcome::line || input.text.empty()) return input;
  HistEventW event;
  history_w(state_->history, &event, H_ENTER, wide_of(input.text).c_str());
  return input;
}

LineEditor::Input LineEditor::ask(std::string_view question) { return read_line(question); }

LineEditor::Input LineEditor::read_line(std::string_view prompt) {
  state_->prompt = prompt;
  el_resize(state_->editor);
  // Before libedit, which shows the prompt first: an earlier Ctrl-D would be lost.
  el_wset(state_->editor, EL_PREP_TERM, 1);
  int length = 0;
  const wchar_t* line = el_wgets(state_->editor, &length);
  uint64_t wakes = 0;
  if (::read(state_->wake, &wakes, sizeof wakes) == sizeof wakes) {
    state_->keys.drop();
    el_reset(state_->editor);
    std::fputs("\n", stdout);
    return {.outcome = Outcome::interrupted};
  }
  if (line == nullptr || length <= 0) {
    std::fputs("\n", stdout);
    return {.outcome = Outcome::closed};
  }
  return {.outcome = Outcome::line, .text = text_of(line, length)};
}

void LineEditor::interrupt() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(state_->wake, &one, sizeof one);
}

}  // namespace paceline
