#include "cli/chat_terminal.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stop_token>

#include "base/error.h"
#include "cli/chat_input.h"
#include "cli/line_editor.h"
#include "cli/model_opening.h"
#include "cli/slash_command.h"
#include "cli/text_file.h"
#include "cli/text_wrap.h"

namespace paceline {
namespace {

constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kMorePrompt = "... ";
constexpr std::string_view kBlockMark = "\"\"\"";
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J\x1b[3J";

// A signal stops the answer being written, or else the line being typed.
class Signals {
 public:
  Signals(Interrupt& interrupt, LineEditor& editor)
      : editor_(editor), handler_(interrupt, [this](int signal) { on_signal(signal); }) {}

  // While one lives, an answer is written, and signals stop it.
  class Answer {
   public:
    explicit Answer(Signals& signals) : signals_(signals) {
      const std::lock_guard lock(signals_.mutex_);
      stop_token_ = signals_.answer_.emplace().get_token();
    }
    ~Answer() {
      const std::lock_guard lock(signals_.mutex_);
      signals_.answer_.reset();
    }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;

    const std::stop_token& stop_token() const { return stop_token_; }

   private:
    Signals& signals_;
    std::stop_token stop_token_;
  };
  // The signal that ends the program, or 0.
  int terminated_by() const { return terminated_by_; }

 private:
  void on_signal(int signal) {
    const std::lock_guard lock(mutex_);
    if (signal != SIGINT) terminated_by_ = signal;
    if (answer_) answer_->request_stop();
    if (!answer_ || signal != SIGINT) editor_.interrupt();
  }

  LineEditor& editor_;
  std::mutex mutex_;
  std::optional<std::stop_source> answer_;  // guarded by mutex_
  std::atomic<int> terminated_by_ = 0;
  Interrupt::Handler handler_;  // last: it calls into the others
};

class TerminalChat {
 public:
  TerminalChat(LLM& llm, const Settings& settings, Session& session)
      : llm_(llm),
        settings_(settings),
        session_(session),
        signals_(session.interrupt(), editor_),
        conversation_(settings.system) {}

  int run() {
    greet();
    while (!is_ended_ && signals_.terminated_by() == 0) {
      try {
        step();
      } catch (const Error& error) {
        session_.print_error(error.what());
      }
    }
    return signals_.terminated_by() == 0 ? 0 : 128 + signals_.terminated_by();
  }

 private:
  void greet() { session_.print_note("{}. /help lists the commands.", llm_.model_info().path); }

  void step() {
    const auto line = read_text();
    if (!line) return;
    const SlashCommand command = read_slash_command(*line);
    switch (command.kind) {
      case SlashCommand::Kind::none:
        if (command.text.find_first_not_of(" \t\n") != std::string::npos) ask(command.text);
        return;
      case SlashCommand::Kind::system:
        return set_system(command.text);
      case SlashCommand::Kind::clear:
        show(kClearScreen);
        return reset();
      case SlashCommand::Kind::reset:
        return reset();
      case SlashCommand::Kind::regenerate:
        return regenerate();
      case SlashCommand::Kind::save:
        return save(command.text);
      case SlashCommand::Kind::load:
        return load(command.text);
      case SlashCommand::Kind::stats:
        return print_stats();
      case SlashCommand::Kind::help:
        return show(slash_help());
      case SlashCommand::Kind::exit:
        is_ended_ = true;
    }
  }

  // One text: a line, or the lines between two block marks. Nothing at the end.
  std::optional<std::string> read_text() {
    LineEditor::Input input = editor_.read(kPrompt);
    if (!accepted(input)) return std::nullopt;
    if (!input.text.starts_with(kBlockMark)) return std::move(input.text);
    std::string text = input.text.substr(kBlockMark.size());
    while (!text.ends_with(kBlockMark)) {
      input = editor_.read(kMorePrompt);
      if (!accepted(input)) return std::nullopt;
      text += "\n" + input.text;
    }
    text.resize(text.size() - kBlockMark.size());
    return text;
  }

  bool accepted(const LineEditor::Input& input) {
    if (input.outcome == LineEditor::Outcome::closed) is_ended_ = true;
    if (input.outcome == LineEditor::Outcome::interrupted && signals_.terminated_by() == 0) {
      session_.print_note("(Ctrl-D or /exit leaves)");
    }
    return input.outcome == LineEditor::Outcome::line;
  }

  void reset() {
    conversation_.clear();
    last_usage_ = {};
    session_.print_line("new conversation");
  }

  void ask(std::string question) {
    conversation_.add_question(std::move(question));
    num_again_ = 0;
    try {
      answer();
    } catch (const Error& error) {
      const ChatInput asked = chat_input(conversation_, settings_);
      conversation_.drop_question();
      if (!fills_context(asked)) throw;
      throw Error(error.code(), fmt::format("{}; /reset starts a new conversation", error.what()));
    }
  }

  void regenerate() {
    std::optional<ChatMessage> old = conversation_.take_answer();
    if (!old) {
      throw Error(ErrorCode::invalid, "/regenerate: there is no answer yet; ask a question first");
    }
    ++num_again_;
    try {
      answer();
    } catch (const Error&) {
      conversation_.put_answer(std::move(*old));
      throw;
    }
  }

  // Streams the answer to the last question and adds it.
  void answer() {
    GenerateOptions options = settings_.generate;
    if (options.seed) *options.seed += num_again_;  // the same seed would give the same answer
    const Signals::Answer running(signals_);
    options.cancelled = running.stop_token();
    TextWrap wrap;
    GenerationStream stream = llm_.chat(chat_input(conversation_, settings_), options);
    for (const std::string_view piece : stream) show(wrap.add(piece, session_.stdout_columns()));
    show(wrap.finish());
    finish(stream.completion());
  }

  // Whether there is no room for an answer.
  bool fills_context(const ChatInput& asked) const {
    return std::ssize(llm_.tokenize(llm_.render(asked))) >= llm_.model_info().max_model_len;
  }

  void finish(const Completion& completion) {
    const std::string& text = *completion.text;
    show(text.ends_with('\n') ? "" : "\n");
    conversation_.add_answer(completion);
    last_usage_ = completion.usage;
    const int64_t used = last_usage_.prompt_tokens + last_usage_.completion_tokens;
    const int64_t context = llm_.model_info().max_model_len;
    if (completion.finish_reason == "cancelled") {
      session_.print_line("(stopped; what was written so far is part of the conversation)");
    } else if (completion.finish_reason == "length" && used >= context) {
      session_.print_line(
          "(cut off: the context of {} tokens is full; /reset starts a new conversation)", context);
    } else if (completion.finish_reason == "length") {
      session_.print_line("(cut off at --max-tokens)");
    }
    if (settings_.verbose) print_metrics(llm_.metrics(), session_, "");
  }

  void set_system(const std::string& text) {
    if (text.empty()) {
      session_.print_line(conversation_.system().empty() ? "no system message"
                                                         : conversation_.system());
      return;
    }
    conversation_.set_system(text);
    session_.print_line("the system message is set");
  }

  // A file that is there is overwritten only where the answer is yes.
  bool may_write(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return true;
    const LineEditor::Input input =
        editor_.ask(fmt::format("{} exists. Overwrite it? [y/N] ", path));
    const bool is_answered = input.outcome == LineEditor::Outcome::line;
    if (is_answered && (input.text == "y" || input.text == "Y" || input.text == "yes")) return true;
    session_.print_line("not saved");
    return false;
  }

  void save(const std::string& path) {
    if (!may_write(path)) return;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << conversation_.to_json();
    if (!file.flush()) throw error_of(ErrorCode::invalid, "{}: can't be written", path);
    session_.print_line("{}: {} messages", path, conversation_.messages().size());
  }

  void load(const std::string& path) {
    conversation_.read_json(read_whole_file(path), path);
    if (conversation_.system().empty()) conversation_.set_system(settings_.system);
    last_usage_ = {};
    session_.print_line("{}: {} messages", path, conversation_.messages().size());
  }

  void print_stats() {
    const int64_t used = last_usage_.prompt_tokens + last_usage_.completion_tokens;
    const int64_t context = llm_.model_info().max_model_len;
    const bool is_counted = used > 0 || conversation_.num_turns() == 0;
    session_.print_line(
        "{} messages; {}", conversation_.num_turns(),
        is_counted ? fmt::format("{} of {} tokens of the context used", used, context)
                   : fmt::format("the next answer counts the tokens of the context ({})", context));
    if (used > 0) print_metrics(llm_.metrics(), session_, "");
  }

  void show(std::string_view text) { session_.out().print(text); }

  LLM& llm_;
  const Settings& settings_;
  Session& session_;
  LineEditor editor_;
  Signals signals_;
  Conversation conversation_;
  Usage last_usage_;
  uint64_t num_again_ = 0;  // times that the last question was answered again
  bool is_ended_ = false;
};

}  // namespace

int run_chat_terminal(LLM& llm, const Settings& settings, Session& session) {
  return TerminalChat(llm, settings, session).run();
}

}  // namespace paceline
