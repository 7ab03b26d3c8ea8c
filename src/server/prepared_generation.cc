#include "server/prepared_generation.h"

#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/queue_limit.h"
#include "protocol/api_error.h"
#include "protocol/request_options.h"
#include "server/completion_prompts.h"
#include "text/chat_turn.h"
#include "text/make_request.h"

namespace paceline {
namespace {

PreparedPart prepare_choices(const TextModel& model, GenerateRequest request, int32_t n,
                             const std::optional<TurnShape>& turn = {}) {
  request.n = n;
  model.engine.check(request);
  PreparedPart part{.choices = {}};
  part.choices.reserve(static_cast<size_t>(n));
  for (int32_t k = 0; k < n; ++k) {
    CompletionShape shape = chat_completion_shape(request, turn);
    shape.seed += static_cast<uint64_t>(k);
    part.choices.emplace_back(model, std::move(shape));
  }
  part.request = std::move(request);
  return part;
}

// The turn of the conversation's end: as few of the oldest messages are left out, but the system's,
// as the context needs, and what is left begins with a message of the user.
ChatTurn prepare_fitting_turn(const TextModel& model, const ChatRequest& request,
                              GenerateOptions& options) {
  const auto& all = request.input.messages;
  // At most half of the context waits for an answer, which ends where the context does.
  const int64_t context = model.engine.limits().max_model_len;
  const int64_t most = context - std::min(request.options.max_tokens.value_or(1), context / 2);
  size_t num_first = 0;
  while (num_first < all.size() && all[num_first].role == "system") ++num_first;
  std::vector<size_t> begins = {num_first};
  for (size_t i = num_first + 1; i < all.size(); ++i) {
    if (all[i].role == "user") begins.push_back(i);
  }
  // The turn without what stands before `begin`; nothing if it doesn't fit.
  const auto turn_from = [&](size_t begin) -> std::optional<ChatTurn> {
    ChatInput input = request.input;
    input.messages.erase(input.messages.begin() + static_cast<ptrdiff_t>(num_first),
                         input.messages.begin() + static_cast<ptrdiff_t>(begin));
    try {
      ChatTurn turn = prepare_chat_turn(model, input, request.turn, options);
      if (std::ssize(turn.prompt) <= most) return turn;
    } catch (const RequestError& error) {
      if (error.reason() != ErrorReason::context_length_exceeded) throw;
    }
    return std::nullopt;
  };
  // All, or from the first beginning on that fits.
  if (auto turn = turn_from(num_first)) return std::move(*turn);
  std::optional<ChatTurn> found;
  size_t low = 1, high = begins.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (auto turn = turn_from(begins[middle])) {
      found = std::move(turn);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (found) return std::move(*found);
  return prepare_chat_turn(model, request.input, request.turn, options);
}

struct PreparingChoices {
  const TextModel& model;
  std::vector<PreparedPart>& parts;

  void operator()(const CompletionRequest& request) const {
    check_constraint(request.generation.constraint, model.constraints);
    for (size_t i = 0; i < request.prompt.prompts.size(); ++i) {
      parts.push_back(
          prepare_choices(model,
                          make_request(model, request.prompt.prompts[i],
                                       completion_options(request, i, std::nullopt, {})),
                          request.num_candidates()));
    }
  }

  void operator()(const ChatRequest& request) const {
    check_constraint(request.generation.constraint, model.constraints);
    GenerateOptions options = chat_options(request, std::nullopt, {});
    ChatTurn turn = request.drops_oldest
                        ? prepare_fitting_turn(model, request, options)
                        : prepare_chat_turn(model, request.input, request.turn, options);
    const std::optional<TurnShape> shape = turn.shape;
    parts.push_back(prepare_choices(model, make_chat_request(model, std::move(turn), options),
                                    request.generation.n, shape));
  }
};

int64_t prompt_logprob_bytes(const std::vector<PreparedPart>& parts) {
  int64_t num_bytes = 0;
  for (const PreparedPart& part : parts) {
    if (!part.request.score_from) continue;
    const int64_t per_token = 1 + part.request.sampling.num_top_logprobs;
    num_bytes +=
        std::ssize(part.request.prompt) * per_token * kJsonLogprobBytes * std::ssize(part.choices);
  }
  return num_bytes;
}

// Together they would never find room, however long the client tries.
void check_queue(const Engine& engine, const std::vector<PreparedPart>& parts) {
  if (parts.size() == 1) return;  // alone it finds room
  int64_t num_tokens = 0, num_sequences = 0;
  for (const PreparedPart& part : parts) {
    num_tokens += std::ssize(part.request.prompt);
    num_sequences += part.request.n;
  }
  const bool are_too_many = num_sequences > engine.limits().max_queued;
  const bool are_too_long = num_tokens > engine.queue().max_tokens();
  if (!are_too_many && !are_too_long) return;
  throw invalid_field("prompt",
                      "{} choices with {} prompt tokens together, the queue "
                      "takes {} with {}; send fewer at once",
                      num_sequences, num_tokens, engine.limits().max_queued,
                      engine.queue().max_tokens());
}

void show_prompts(const TextModel& model, const RequestRules& rules, PreparedGeneration& prepared) {
  std::vector<const GenerateRequest*> requests;
  for (const PreparedPart& part : prepared.parts) requests.push_back(&part.request);
  const TokenNames names(model.tokenizer);
  prepared.writer->see_prompts({.names = names,
                                .model = rules.model_names[0],
                                .context = model.engine.limits().max_model_len,
                                .max_drafted = model.engine.limits().speculation.num_tokens,
                                .requests = requests});
}

}  // namespace

int64_t count_prompt_tokens(const TextModel& model, const ChatRequest& request) {
  GenerateOptions options = chat_options(request, std::nullopt, {});
  return std::ssize(prepare_chat_turn(model, request.input, request.turn, options).prompt);
}

PreparedGeneration prepare_generation(const TextModel& model, GenerationCall call,
                                      const RequestRules& rules) {
  PreparedGeneration prepared{.request = std::move(call.request), .writer = std::move(call.writer)};
  auto* completion = std::get_if<CompletionRequest>(&prepared.request);
  if (completion != nullptr) encode_prompts(model, *completion);
  std::visit(PreparingChoices{model, prepared.parts}, prepared.request);
  check_queue(model.engine, prepared.parts);
  prepared.prompt_logprob_bytes = prompt_logprob_bytes(prepared.parts);
  check_response_size(rules, prepared.prompt_logprob_bytes,
                      completion != nullptr ? "prompt" : "prompt_logprobs");
  show_prompts(model, rules, prepared);
  return prepared;
}

}  // namespace paceline
