#include "backends/child_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include "base/json_writer.h"
#include "base/request_error.h"

namespace paceline {
namespace {

// Calls visit(name, value) for each setting of the output that isn't as it usually is.
template <class Visit>
void visit_settings(const GenerateRequest& request, const Visit& visit) {
  const SamplingOptions& sampling = request.sampling;
  const SamplingNumbers usual;
  for (const SamplingNumber& number : kSamplingNumbers) {
    std::visit(
        [&](auto member) {
          auto value = sampling.*member;
          // Both are off at 0 and below.
          if (number.name == "top_k" || number.name == "top_n_sigma") {
            value = std::max(value, decltype(value){});
          }
          if (value != usual.*member) visit(number.name, value);
        },
        number.member);
  }
  if (sampling.order != SamplerOrder::standard) visit("mlx_sampler_order", true);
  using Bias = std::array<std::variant<int32_t, float>, 2>;  // null: never
  std::vector<Bias> biases;
  for (const auto& [id, bias] : sampling.logit_bias) biases.push_back({id, bias});
  if (!biases.empty()) visit("logit_bias", biases);
  if (!request.allowed_token_ids.empty()) visit("allowed_token_ids", request.allowed_token_ids);
  if (!request.banned_sequences.empty()) visit("bad_words", request.banned_sequences);
  if (!request.not_first.empty()) visit("begin_suppress_tokens", request.not_first);
  if (request.min_tokens > 0) visit("min_tokens", request.min_tokens);
  if (request.want_logprobs) visit("logprobs", sampling.num_top_logprobs);
  if (!sampling.logprob_token_ids.empty()) visit("logprob_token_ids", sampling.logprob_token_ids);
}

std::string_view scored_field(const GenerateRequest& request) {
  if (request.score_from) return "prompt_logprobs";
  return request.columns.empty() ? "logits" : "labels";
}

[[noreturn]] void refuse(std::string_view field, std::string_view backend) {
  throw RequestError(
      std::string(field), ErrorReason::unsupported_parameter,
      fmt::format("{}: the backend {} doesn't have it; leave it out, or use a model that Paceline "
                  "computes itself",
                  field, backend),
      ErrorCode::unsupported);
}

}  // namespace

bool asks_for_scores(const GenerateRequest& request) {
  return request.score_from || !request.columns.empty() || request.want_row;
}

void check_child_request(const GenerateRequest& request, const ChildFacts& facts,
                         std::string_view backend) {
  if (request.adapter != nullptr) refuse("adapter", backend);
  if (request.constraint != nullptr) refuse(request.constraint_name, backend);
  if (request.pooling) refuse("pooling", backend);
  if (asks_for_scores(request) && !facts.scores) refuse(scored_field(request), backend);
  if (request.max_tokens == 0) return;
  visit_settings(request, [&](std::string_view name, const auto& /*value*/) {
    if (!facts.fields.contains(name)) refuse(name, backend);
  });
}

std::string score_message(int64_t id, const GenerateRequest& request) {
  return object_json([&](JsonWriter& writer) {
    writer.member("op", "score").member("id", id).member("ids", request.prompt);
    if (request.score_from) writer.member("from", *request.score_from);
    const int32_t num_top = request.sampling.num_top_logprobs;
    if (request.score_from && num_top > 0) writer.member("top", num_top);
    if (!request.columns.empty()) writer.member("columns", request.columns);
    if (request.want_row) writer.member("row", true);
  });
}

std::string generate_message(int64_t id, const GenerateRequest& request, int32_t choice) {
  std::vector<TokenId> ends;
  if (!request.ignore_eos) ends = request.eos_tokens;
  ends.insert(ends.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
  return object_json([&](JsonWriter& writer) {
    writer.member("op", "generate").member("id", id).member("ids", request.prompt);
    writer.member("max_tokens", request.max_tokens).member("stop_token_ids", ends);
    writer.member("seed", request.sampling.seed + static_cast<uint64_t>(choice));
    visit_settings(request,
                   [&](std::string_view name, const auto& value) { writer.member(name, value); });
  });
}

}  // namespace paceline
