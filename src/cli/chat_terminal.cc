#include "cli/chat_terminal.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <mutex>
#include <stop_token>

#include "base/error.h"
#include "cli/chat_input.h"
#include "cli/line_editor.h"
#include "cli/model_opening.h"
#include "cli/slash_command.h"
#include "cli/text_file.h"

namespace paceline {
namespace {

constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kMorePrompt = "... ";
constexpr std::string_view kBlockMark = "\"\"\"";

// A signal stops the answer being written, or else the line being typed.
class Signals {
 public:
  Signals(Interrupt& interrupt, LineEditor& editor)
      : editor_(editor), handler_(interrupt, [this](int signal) { on_signal(signal); }) {}

  // The stop token of a new answer.
  std::stop_token begin_answer() {
    const std::lock_guard lock(mutex_);
    answer_.emplace();
    return answer_->get_token();
  }
  void end_answer() {
    const std::lock_guard lock(mutex_);
    answer_.reset();
  }
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
  void greet() {
    if (settings_.quiet) return;
    session_.print_note(fmt::format("{}. /help lists the commands.", llm_.model_info().path));
  }

  void step() {
    const auto line = read_text();
    if (!line) return;
    const SlashCommand command = read_slash_command(*line);
    switch (command.kind) {
      case SlashCommand::Kind::none:
        if (command.text.find_first_not_of(" \t\n") != std::string::npos) answer(command.text);
        return;
      case SlashCommand::Kind::system:
        return set_system(command.text);
      case SlashCommand::Kind::reset:
        conversation_.clear();
        last_usage_ = {};
        return session_.print_note("new conversation");
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
    if (input.outcome == LineEditor::Outcome::interrupted && signals_.terminated_by() == 0 &&
        !settings_.quiet) {
      session_.print_note("(Ctrl-D or /exit leaves)");
    }
    return input.outcome == LineEditor::Outcome::line;
  }

  void answer(std::string question) {
    conversation_.add_question(std::move(question));
    GenerateOptions options = settings_.generate;
    options.cancelled = signals_.begin_answer();
    try {
      GenerationStream stream = llm_.chat(chat_input(conversation_, settings_), options);
      for (const std::string_view piece : stream) show(piece);
      const Completion& completion = stream.completion();
      finish(completion);
    } catch (const Error&) {
      signals_.end_answer();
      conversation_.drop_question();
      throw;
    }
    signals_.end_answer();
  }

  void finish(const Completion& completion) {
    const std::string& text = *completion.text;
    show(text.ends_with('\n') ? "" : "\n");
    if (completion.finish_reason == "cancelled") {
      session_.print_note("(stopped; what was written so far is part of the conversation)");
    } else if (completion.finish_reason == "length") {
      session_.print_note("(cut off at --max-tokens or at the end of the context)");
    }
    conversation_.add_answer(completion);
    last_usage_ = completion.usage;
    if (settings_.verbose) print_metrics(llm_.metrics(), session_, "");
  }

  void set_system(const std::string& text) {
    if (text.empty()) {
      session_.print_note(conversation_.system().empty() ? "no system message"
                                                         : conversation_.system());
      return;
    }
    conversation_.set_system(text);
    session_.print_note("the system message is set");
  }

  void save(const std::string& path) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << conversation_.to_json();
    if (!file.flush()) throw Error(ErrorCode::invalid, fmt::format("{}: can't be written", path));
    session_.print_note(fmt::format("{}: {} messages", path, conversation_.messages().size()));
  }

  void load(const std::string& path) {
    conversation_.read_json(read_whole_file(path), path);
    if (conversation_.system().empty()) conversation_.set_system(settings_.system);
    last_usage_ = {};
    session_.print_note(fmt::format("{}: {} messages", path, conversation_.messages().size()));
  }

  void print_stats() {
    const int64_t used = last_usage_.prompt_tokens + last_usage_.completion_tokens;
    const int64_t context = llm_.model_info().max_model_len;
    const bool is_counted = used > 0 || conversation_.num_turns() == 0;
    session_.print_note(fmt::format(
        "{} messages; {}", conversation_.num_turns(),
        is_counted
            ? fmt::format("{} of {} tokens of the context used", used, context)
            : fmt::format("the next answer counts the tokens of the context ({})", context)));
    if (used > 0) print_metrics(llm_.metrics(), session_, "");
  }

  void show(std::string_view text) {
    session_.out().write(text);
    session_.out().flush();
  }

  LLM& llm_;
  const Settings& settings_;
  Session& session_;
  LineEditor editor_;
  Signals signals_;
  Conversation conversation_;
  Usage last_usage_;
  bool is_ended_ = false;
};

}  // namespace

int run_chat_terminal(LLM& llm, const Settings& settings, Session& session) {
  return TerminalChat(llm, settings, session).run();
}

}  // namespace paceline
