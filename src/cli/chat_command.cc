#include <unistd.h>

#include "base/error.h"
#include "base/line_reader.h"
#include "cli/chat_input.h"
#include "cli/chat_terminal.h"
#include "cli/command.h"
#include "cli/completion_json.h"
#include "cli/constraint_choice.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/text_file.h"
#include "cli/text_wrap.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

constexpr std::string_view kOwnFields[] = {"messages",        "tools",
                                           "documents",       "chat_template_kwargs",
                                           "tool_choice",     "parallel_tool_calls",
                                           "reasoning_effort"};

// One conversation a line.
int run_chat_lines(LLM& llm, const Settings& settings, Session& session) {
  ItemSource items(settings);
  return for_each_item(items, settings, session, [&](const Item& item) {
    const Json& line = *item.line();
    check_line_keys(line, {kOwnFields, kGenerateFields, kConstraintNames});
    Settings of_item = settings;
    apply_option_fields(line, kGenerateFields, of_item);
    apply_constraint_fields(line, of_item);
    of_item.generate.cancelled = session.stop_token();
    GenerationStream stream = llm.chat(read_chat_input(line, "chat_template_kwargs", settings),
                                       of_item.generate, read_chat_options(line));
    write_json_line(
        session, chat_completion_json(stream.completion(), of_item.generate.logprobs.has_value()));
    if (settings.verbose) print_metrics(llm.metrics(), session, "");
  });
}

// Streams the answer to the conversation's last question and adds it.
void stream_answer(LLM& llm, Conversation& conversation, const Settings& settings,
                   Session& session) {
  GenerateOptions options = settings.generate;
  options.cancelled = session.stop_token();
  GenerationStream stream = llm.chat(chat_input(conversation, settings), options);
  TextWrap wrap;
  for (const std::string_view piece : stream) {
    session.out().print(wrap.add(piece, session.stdout_columns()));
  }
  session.out().write(wrap.finish());
  const std::string& text = *stream.completion().text;
  if (!text.ends_with('\n')) session.out().write("\n");
  session.out().flush();
  conversation.add_answer(stream.completion());
  if (settings.verbose) print_metrics(llm.metrics(), session, "");
}

// --prompt and --file: each text is a conversation of one turn.
int run_single_turns(LLM& llm, const Settings& settings, Session& session) {
  ItemSource items(settings);
  bool is_first = true;
  return for_each_item(items, settings, session, [&](const Item& item) {
    if (!is_first) session.out().write("\n");
    is_first = false;
    Conversation conversation(settings.system);
    conversation.add_question(item.text());
    stream_answer(llm, conversation, settings, session);
  });
}

// Piped: every line is the next turn of one conversation.
int run_piped_turns(LLM& llm, const Settings& settings, Session& session) {
  Conversation conversation(settings.system);
  LineReader lines("-");
  bool all_done = true;
  while (!session.interrupted()) {
    auto line = lines.next();
    if (!line) break;
    if (line->text.find_first_not_of(" \t") == std::string::npos) continue;
    try {
      check_utf8(line->text, "standard input");
      const Interrupt::Graceful graceful(session.interrupt());
      conversation.add_question(std::move(line->text));
      stream_answer(llm, conversation, settings, session);
    } catch (const Error& error) {
      all_done = false;
      conversation.drop_question();
      session.print_error(error.code(), fmt::format("line {}: {}", line->number, error.what()));
    }
  }
  return session.exit_code(all_done ? 0 : 1);
}

int run_with_model(LLM& llm, const Settings& settings, Session& session) {
  if (settings.jsonl) return run_chat_lines(llm, settings, session);
  if (!settings.prompts.empty() || settings.file) return run_single_turns(llm, settings, session);
  if (session.stdin_is_terminal() && session.stdout_is_terminal()) {
    return run_chat_terminal(llm, settings, session);
  }
  return run_piped_turns(llm, settings, session);
}

}  // namespace

int run_chat(const Settings& asked, Session& session) {
  if (asked.jsonl && !asked.prompts.empty()) {
    throw UsageError("--jsonl reads conversations from its lines, but --prompt was given, too");
  }
  const Settings given = with_constraint(asked);
  LLM llm = open_model(given, session, 1);
  print_notes(llm.model_info().notes, session);
  print_notes(llm.model_info().generation_notes, session);
  const int code = run_with_model(llm, with_system_prompt(given, llm, session), session);
  llm.close();
  return code;
}

}  // namespace paceline
