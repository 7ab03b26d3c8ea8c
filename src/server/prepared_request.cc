#include "server/prepared_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/adapter_set.h"
#include "engine/engine.h"
#include "engine/queue_limit.h"
#include "protocol/api_error.h"
#include "protocol/generate_response.h"
#include "protocol/request_body.h"
#include "protocol/request_options.h"
#include "protocol/response.h"
#include "text/chat_turn.h"
#include "text/make_request.h"

namespace paceline {
namespace {

PreparedPart prepare_choices(const TextModel& model, GenerateRequest request, int32_t n,
                             const std::optional<TurnShape>& turn = {}) {
  request.n = n;
  model.engine.check(request);
  PreparedPart part{.request = {}, .choices = {}};
  part.choices.reserve(static_cast<size_t>(n));
  for (int32_t k = 0; k < n; ++k) {
    CompletionShape shape = chat_completion_shape(request, turn);
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
    ChatTurn turn = prepare_chat_turn(model, request.input, request.turn, options);
    const std::optional<TurnShape> shape = turn.shape;
    parts.push_back(prepare_choices(model, make_chat_request(model, std::move(turn), options),
                                    request.generation.n, shape));
  }
};

bool is_llama(ApiEndpoint endpoint) {
  return endpoint == ApiEndpoint::completion || endpoint == ApiEndpoint::infill;
}

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

std::vector<std::string> accepted_names(const TextModel& model, const RequestRules& rules) {
  std::vector<std::string> names = rules.model_names;
  if (model.adapters == nullptr) return names;
  for (std::string& name : model.adapters->names()) names.push_back(std::move(name));
  return names;
}

void apply_rules(const TextModel& model, const RequestRules& rules, const ReceivedRequest& request,
                 CommonFields& common) {
  const auto& own = rules.model_names;
  if (common.model && std::find(own.begin(), own.end(), *common.model) == own.end()) {
    check_model_name(common.model, accepted_names(model, rules));
    common.lora = *common.model;
  }
  common.cache_salt.insert(0, request.tenant);
}

void check_response_size(const RequestRules& rules, int64_t num_bytes, std::string_view param) {
  if (num_bytes <= rules.max_response_bytes) return;
  constexpr double kMebibyte = 1 << 20;
  throw RequestError(
      std::string(param), "invalid_value",
      fmt::format("{}: the response would hold about {:.1f} MiB, the limit is {:.1f} "
                  "(--max-response-size); send fewer inputs at once",
                  param, static_cast<double>(num_bytes) / kMebibyte,
                  static_cast<double>(rules.max_response_bytes) / kMebibyte));
}

namespace {

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
  throw RequestError(
      "prompt", "invalid_value",
      fmt::format(
          "prompt: {} choices with {} prompt tokens together, the queue takes {} with {}; send "
          "fewer at once",
          num_sequences, num_tokens, engine.limits().max_queued, engine.queue().max_tokens()));
}

}  // namespace

PreparedRequest prepare_request(const TextModel& model, ApiEndpoint endpoint,
                                const ReceivedRequest& received, const RequestRules& rules) {
  const Json body = parse_request_body(received.body);
  PreparedRequest prepared;
  prepared.endpoint = endpoint;
  bool returns_tokens = false;
  if (is_llama(endpoint)) {
    LlamaRequest llama = read_llama_request(model, endpoint, body, rules);
    returns_tokens = llama.returns_tokens;
    prepared.request = std::move(llama.completion);
  } else {
    prepared.request = parse_request(endpoint, body, rules.terms);
  }
  std::visit([&](auto& request) { apply_rules(model, rules, received, request.common); },
             prepared.request);
  if (auto* completion = std::get_if<CompletionRequest>(&prepared.request)) {
    if (!completion->suffix.empty()) set_suffix_prompts(model, *completion);
  }
  std::visit(Preparing{model, prepared.parts}, prepared.request);
  check_queue(model.engine, prepared.parts);
  prepared.prompt_logprob_bytes = prompt_logprob_bytes(prepared.parts);
  const bool is_completion = std::holds_alternative<CompletionRequest>(prepared.request);
  check_response_size(rules, prepared.prompt_logprob_bytes,
                      is_completion ? "prompt" : "prompt_logprobs");
  if (is_llama(endpoint)) add_llama_answers(model, rules, returns_tokens, prepared);
  return prepared;
}

}  // namespace paceline
