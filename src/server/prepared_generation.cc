#include "server/prepared_generation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/request_error.h"
#include "engine/engine.h"
#include "engine/queue_limit.h"
#include "protocol/api_error.h"
#include "protocol/request_options.h"
#include "text/chat_turn.h"
#include "text/make_request.h"

namespace paceline {
namespace {

const Tokenizer& tokenizer_for(const TextModel& model) {
  if (model.tokenizer != nullptr) return *model.tokenizer;
  throw RequestError("", ErrorReason::feature_disabled,
                     model.name + ": has no tokenizer.json, so prompts must be token ids",
                     ErrorCode::not_found);
}

// Special tokens are added before a text that begins the prompt, and recognised in every text.
std::vector<TokenId> encode_pieces(const TextModel& model, const MixedPrompt& pieces,
                                   bool add_special_tokens) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (const auto* id = std::get_if<int32_t>(&pieces[i])) {
      ids.push_back(*id);
      continue;
    }
    const std::vector<TokenId> more = tokenizer_for(model).encode(
        std::get<std::string>(pieces[i]), {.add_special = add_special_tokens && i == 0});
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

// A prompt of one text is read as /v1/completions reads it.
PromptText prompt_text(const TextModel& model, const MixedPrompt& pieces, bool add_special_tokens) {
  if (pieces.size() == 1 && std::holds_alternative<std::string>(pieces[0])) {
    return std::get<std::string>(pieces[0]);
  }
  return encode_pieces(model, pieces, add_special_tokens);
}

void add_infill_stops(const InfillTokens& tokens, GenerateOptions& options) {
  if (options.ignore_eos) return;
  auto& stops = options.stop_token_ids;
  stops.insert(stops.end(), tokens.ends.begin(), tokens.ends.end());
}

void encode_gap(const TextModel& model, CompletionRequest& request) {
  const Tokenizer& tokenizer = tokenizer_for(model);
  const auto tokens = find_infill_tokens(tokenizer);
  if (!tokens) {
    throw Error(ErrorCode::unsupported, model.name +
                                            ": its tokenizer has no fill-in-the-middle tokens such "
                                            "as <|fim_prefix|>; use /completion");
  }
  request.prompt.prompts = {encode_infill(tokenizer, *tokens, *request.infill)};
  add_infill_stops(*tokens, request.options);
}

void encode_mixed(const TextModel& model, CompletionRequest& request) {
  request.prompt.is_array = request.mixed_prompts.size() > 1;
  for (const MixedPrompt& pieces : request.mixed_prompts) {
    request.prompt.prompts.push_back(
        prompt_text(model, pieces, request.options.add_special_tokens));
  }
}

void encode_suffixes(const TextModel& model, CompletionRequest& request) {
  const auto tokens =
      model.tokenizer == nullptr ? std::nullopt : find_infill_tokens(*model.tokenizer);
  if (!tokens) {
    throw RequestError("suffix", ErrorReason::unsupported_parameter,
                       "suffix: not supported by this model, whose tokenizer has no "
                       "fill-in-the-middle tokens such as <|fim_prefix|>");
  }
  for (size_t i = 0; i < request.prompt.prompts.size(); ++i) {
    PromptText& prompt = request.prompt.prompts[i];
    auto* const text = std::get_if<std::string>(&prompt);
    if (text == nullptr) {
      throw invalid_field("suffix", "only with a prompt of text, found token ids in " +
                                        request.prompt.name("prompt", i));
    }
    prompt = encode_infill(*model.tokenizer, *tokens,
                           {.prefix = std::move(*text), .suffix = request.suffix});
  }
  add_infill_stops(*tokens, request.options);
}

// Encodes mixed prompts, the gap to fill, and prompts with a suffix, so that the request has
// prompts of texts or token ids. Throws RequestError where the model, or the rest of the request,
// has no place for a suffix; Error when the model lacks the tokens.
void encode_prompts(const TextModel& model, CompletionRequest& request) {
  if (request.infill) encode_gap(model, request);
  if (!request.mixed_prompts.empty()) encode_mixed(model, request);
  if (!request.suffix.empty()) encode_suffixes(model, request);
}

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
