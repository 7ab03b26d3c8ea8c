#include "protocol/completed_responses.h"

#include <algorithm>
#include <iterator>

#include "protocol/token_names.h"

namespace paceline {
namespace {

// Puts the prompt's text and tokens in front of the answer's.
void add_echo(const CompletionRequest& request, const PromptText& prompt,
              const Completion& completion, const TokenNames& names, ResponseChoice& choice) {
  if (choice.text) choice.text->insert(0, echoed_text(prompt, names));
  if (!choice.logprobs) return;
  auto tokens = report_echo(completion.prompt_logprobs, *request.logprobs, prompt,
                            request.options.add_special_tokens, names);
  choice.logprobs->insert(choice.logprobs->begin(), std::make_move_iterator(tokens.begin()),
                          std::make_move_iterator(tokens.end()));
}

// The next choice of the answer.
template <class Request>
ResponseChoice& add_choice(const Request& request, const Completion& completion,
                           const TokenNames& names, ChoicesResponse& answer) {
  ResponseChoice choice = response_choice(completion, request.generation, names);
  choice.index = static_cast<int64_t>(answer.choices.size());
  if (const auto num_alternatives = request.num_alternatives()) {
    choice.logprobs =
        report_output(completion.logprobs, *num_alternatives, names, specials_of(request.options));
  }
  return answer.choices.emplace_back(std::move(choice));
}

double mean_logprob(const Completion& completion) {
  return completion.logprob /
         static_cast<double>(std::max<int64_t>(completion.usage.completion_tokens, 1));
}

std::vector<const Completion*> best_choices(const CompletionRequest& request,
                                            std::span<const Completion> candidates) {
  std::vector<const Completion*> best;
  for (const Completion& candidate : candidates) best.push_back(&candidate);
  const auto n = static_cast<size_t>(request.generation.n);
  if (best.size() <= n) return best;
  std::stable_sort(best.begin(), best.end(), [](const Completion* a, const Completion* b) {
    return mean_logprob(*a) > mean_logprob(*b);
  });
  best.resize(n);
  return best;
}

bool has_token_ids(const PromptList& list) {
  return std::any_of(list.prompts.begin(), list.prompts.end(), [](const PromptText& prompt) {
    return std::holds_alternative<std::vector<int32_t>>(prompt);
  });
}

}  // namespace

ResponseChoice response_choice(const Completion& completion, const GenerationFields& fields,
                               const TokenNames& names) {
  const bool has_calls = completion.turn && !completion.turn->tool_calls.empty();
  ResponseChoice choice{.text = completion.text,
                        .turn = completion.turn,
                        .finish_reason = has_calls && completion.finish_reason == "stop"
                                             ? "tool_calls"
                                             : completion.finish_reason,
                        .stop_reason = completion.stop_reason,
                        .seed = completion.seed,
                        .is_seed_signed = fields.has_negative_seed};
  if (fields.prompt_logprobs) {
    choice.prompt_logprobs =
        report_prompt(completion.prompt_logprobs, *fields.prompt_logprobs, names);
  }
  if (fields.timings) {
    choice.timings = ResponseTimings{.tokens = completion.usage, .times = completion.timings};
  }
  if (fields.return_token_ids || !completion.text) choice.token_ids = completion.token_ids;
  return choice;
}

std::vector<std::string> warnings_of(const ChatRequest* chat, const Completion& completion) {
  std::vector<std::string> warnings;
  if (chat != nullptr) warnings = chat->warnings;
  warnings.insert(warnings.end(), completion.warnings.begin(), completion.warnings.end());
  return warnings;
}

void add_usage(std::span<const Completion> choices, ResponseUsage& usage) {
  const Usage& of_first = choices.front().usage;
  usage.prompt_tokens += of_first.prompt_tokens;
  usage.cached_tokens = usage.cached_tokens.value_or(0) + of_first.cached_tokens;
  for (const Completion& completion : choices) {
    usage.completion_tokens += completion.usage.completion_tokens;
    usage.drafted_tokens += completion.usage.drafted_tokens;
    usage.accepted_tokens += completion.usage.accepted_tokens;
    if (completion.turn) {
      usage.reasoning_tokens =
          usage.reasoning_tokens.value_or(0) + completion.usage.reasoning_tokens;
    }
  }
}

std::string echoed_text(const PromptText& prompt, const TokenNames& names) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return names.decode(std::get<std::vector<int32_t>>(prompt));
}

TokenNaming naming_of(const GenerationFields& fields) {
  return fields.return_tokens_as_token_ids ? TokenNaming::id : TokenNaming::text;
}

bool names_tokens(const CompletionRequest& request) {
  return request.logprobs || request.generation.prompt_logprobs ||
         (request.echo && has_token_ids(request.prompt));
}

bool names_tokens(const ChatRequest& request) {
  return request.logprobs || request.generation.prompt_logprobs;
}

ChoicesResponse completed_response(const CompletionRequest& request,
                                   std::span<const CompletedPart> parts, const TokenNames& names,
                                   ResponseHead head) {
  ChoicesResponse answer{.head = std::move(head), .naming = naming_of(request.generation)};
  for (size_t part = 0; part < parts.size(); ++part) {
    for (const Completion* completion : best_choices(request, parts[part].choices)) {
      ResponseChoice& choice = add_choice(request, *completion, names, answer);
      if (request.echo) add_echo(request, request.prompt.prompts[part], *completion, names, choice);
    }
    add_usage(parts[part].choices, answer.usage);
  }
  answer.head.warnings = warnings_of(nullptr, parts.front().choices.front());
  return answer;
}

ChoicesResponse completed_response(const ChatRequest& request, const CompletedPart& part,
                                   const TokenNames& names, ResponseHead head) {
  ChoicesResponse answer{.head = std::move(head), .naming = naming_of(request.generation)};
  for (const Completion& completion : part.choices) add_choice(request, completion, names, answer);
  add_usage(part.choices, answer.usage);
  answer.head.warnings = warnings_of(&request, part.choices.front());
  answer.usage.has_prediction = !request.options.prediction.empty();
  return answer;
}

}  // namespace paceline
