#include "server/completion_prompts.h"

#include <utility>

#include "base/error.h"
#include "base/request_error.h"

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

}  // namespace

void encode_prompts(const TextModel& model, CompletionRequest& request) {
  if (request.infill) encode_gap(model, request);
  if (!request.mixed_prompts.empty()) encode_mixed(model, request);
  if (!request.suffix.empty()) encode_suffixes(model, request);
}

}  // namespace paceline
