#include "server/prepared_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/queue_limit.h"
#include "protocol/api_error.h"
#include "protocol/generate_answer.h"
#include "protocol/request_body.h"
#include "protocol/request_options.h"
#include "text/chat_prompt.h"
#include "text/make_request.h"

namespace paceline {
namespace {

PreparedPart prepare_choices(const TextModel& model, GenerateRequest request, int32_t n) {
  request.n = n;
  model.engine.check(request);
  PreparedPart part{.request = {}, .choices = {}};
  part.choices.reserve(static_cast<size_t>(n));
  for (int32_t k = 0; k < n; ++k) {
    CompletionShape shape = completion_shape(request);
    shape.seed += static_cast<uint64_t>(k);
    part.choices.emplace_back(model, std::move(shape));
  }
  part.request = std::move(request);
  return part;
}

struct Preparing {
  const TextModel& model;
  std::vector<PreparedPart>& parts;

  void operator()(const CompletionRequest& request) const {
    for (size_t i = 0; i < request.prompt.prompts.size(); ++i) {
      parts.push_back(
          prepare_choices(model,
                          make_request(model, request.prompt.prompts[i],
                                       completion_options(request, i, std::nullopt, {})),
                          request.num_candidates()));
    }
  }

  void operator()(const ChatRequest& request) const {
    GenerateOptions options = chat_options(request, std::nullopt, {});
    const std::vector<TokenId> ids = encode_chat(model, request.input, options);
    parts.push_back(
        prepare_choices(model, make_request(model, ids, options), request.generation.n));
  }
};

GenerationRequest parse_request(ApiEndpoint endpoint, const Json& json, const RequestTerms& terms) {
  if (endpoint == ApiEndpoint::chat) return parse_chat_request(json, terms);
  if (endpoint == ApiEndpoint::generate) return parse_generate_request(json, terms);
  return parse_completion_request(json, terms);
}

}  // namespace

void check_model_name(const std::optional<std::string>& model,
                      const std::vector<std::string>& names) {
  if (!model || std::find(names.begin(), names.end(), *model) != names.end()) return;
  throw RequestError(
      "model", "model_not_found",
      fmt::format("model: found \"{}\", this server has {}", *model, fmt::join(names, ", ")));
}

void apply_rules(const RequestRules& rules, const ReceivedRequest& request, CommonFields& common) {
  check_model_name(common.model, rules.model_names);
  common.cache_salt.insert(0, request.tenant);
}

namespace {

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
  throw RequestError(
      "prompt", "invalid_value",
      fmt::format("prompt: {} choices of {} tokens of prompts together, {} of {} may wait; send "
                  "fewer at once",
                  num_sequences, num_tokens, engine.limits().max_queued,
                  engine.queue().max_tokens()));
}

}  // namespace

PreparedRequest prepare_request(const TextModel& model, ApiEndpoint endpoint,
                                const ReceivedRequest& received, const RequestRules& rules) {
  PreparedRequest prepared{
      .endpoint = endpoint,
      .request = parse_request(endpoint, parse_request_body(received.body), rules.terms),
      .parts = {}};
  std::visit([&](auto& request) { apply_rules(rules, received, request.common); },
             prepared.request);
  std::visit(Preparing{model, prepared.parts}, prepared.request);
  check_queue(model.engine, prepared.parts);
  return prepared;
}

}  // namespace paceline
