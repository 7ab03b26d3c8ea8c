#include <fmt/format.h>

#include <unordered_map>

#include "cli/command.h"
#include "cli/completion_json.h"
#include "cli/constraint_choice.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"

namespace paceline {
namespace {

constexpr std::string_view kPromptFields[] = {"prompt", "prompt_ids"};

LLM::Request read_request(const Item& item, const Settings& settings, Session& session) {
  Settings of_item = settings;
  Prompt prompt;
  if (const Json* line = item.line()) {
    check_line_keys(*line, {kPromptFields, kGenerateFields, kConstraintNames});
    apply_option_fields(*line, kGenerateFields, of_item);
    apply_constraint_fields(*line, of_item);
    prompt = read_prompt(*line, "prompt", "prompt_ids");
  } else {
    prompt = item.prompt();
  }
  of_item.generate.cancelled = session.stop_token();
  return {std::move(prompt), std::move(of_item.generate)};
}

// Shows the prompt before its continuation on a terminal.
void show_prompt(const Prompt& prompt, Session& session) {
  const auto* text = std::get_if<std::string>(&prompt);
  if (text == nullptr || !session.stdout_is_terminal()) return;
  session.out().print("\x1b[1m" + *text + "\x1b[0m");
}

const Completion& stream_text(GenerationStream& stream, Session& session) {
  char last = '\n';
  for (std::string_view piece : stream) {
    session.out().print(piece);
    last = piece.back();
  }
  const Completion& completion = stream.completion();
  if (!completion.text)
    session.out().write(fmt::format("{}", fmt::join(completion.token_ids, " ")));
  if (last != '\n' || !completion.text || completion.text->empty()) session.out().write("\n");
  session.out().flush();
  return completion;
}

std::string finish_text(const Completion& completion) {
  std::string text =
      fmt::format("; seed {}; finished by {}", completion.seed, completion.finish_reason);
  if (!completion.stop_reason) return text;
  if (const auto* id = std::get_if<int32_t>(&*completion.stop_reason)) {
    return text + fmt::format(" (token {})", *id);
  }
  return text + fmt::format(" (\"{}\")", std::get<std::string>(*completion.stop_reason));
}

// JSON Lines aren't streamed, so they run as a batch.
int generate_lines(ItemSource& items, const Settings& settings, Session& session, LLM& llm) {
  std::unordered_map<int64_t, bool> wants_logprobs;  // of items in flight
  const auto begin = [&](const Item& item, int64_t tag, RequestPool& pool) {
    const LLM::Request request = read_request(item, settings, session);
    pool.generate(tag, request.prompt, request.options);
    wants_logprobs.emplace(tag, request.options.logprobs.has_value());
  };
  const auto answer = [&](int64_t tag, const RequestPool::Done& done) -> PooledAnswer {
    const auto& completion = std::get<std::vector<Completion>>(done.result).front();
    const bool with_logprobs = wants_logprobs.extract(tag).mapped();
    return {.text = completion_json(completion, with_logprobs) + "\n",
            .ending_text = finish_text(completion)};
  };
  return for_each_item_pooled(items, settings, session, llm, {begin, answer});
}

int generate_texts(ItemSource& items, const Settings& settings, Session& session, LLM& llm) {
  bool is_first = true;
  return for_each_item(items, settings, session, [&](const Item& item) {
    const LLM::Request request = read_request(item, settings, session);
    GenerationStream stream = llm.generate(request.prompt, request.options);
    if (!is_first) session.out().write("\n");
    is_first = false;
    show_prompt(request.prompt, session);
    stream_text(stream, session);
    if (settings.verbose) print_metrics(llm.metrics(), session, finish_text(stream.completion()));
  });
}

}  // namespace

int run_generate(const Settings& given, Session& session) {
  const Settings settings = with_constraint(given);
  ItemSource items(settings);
  // Streamed texts run one after another.
  LLM llm = open_model(settings, session, settings.jsonl ? kManySequences : 1);
  if (llm.model_info().has_chat_template) {
    session.print_note(
        "note: the text is continued as it stands; the model's chat template is not applied");
  }
  print_notes(llm.model_info().generation_notes, session);
  if (settings.jsonl) return generate_lines(items, settings, session, llm);
  const int code = generate_texts(items, settings, session, llm);
  llm.close();
  return code;
}

}  // namespace paceline
