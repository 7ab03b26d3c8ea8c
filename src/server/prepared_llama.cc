// Requests of llama.cpp's endpoints: their prompts, and the parts of their answers about prompts.
#include <utility>

#include "base/error.h"
#include "engine/engine.h"
#include "protocol/api_error.h"
#include "protocol/completed_responses.h"
#include "server/prepared_request.h"
#include "text/infill_prompt.h"

namespace paceline {
namespace {

const Tokenizer& tokenizer_for(const TextModel& model) {
  if (model.tokenizer != nullptr) return *model.tokenizer;
  throw Error(ErrorCode::not_found,
              model.name + ": has no tokenizer.json, so prompts must be token ids");
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

void set_infill_prompt(const TextModel& model, LlamaRequest& request) {
  const Tokenizer& tokenizer = tokenizer_for(model);
  const auto tokens = find_infill_tokens(tokenizer);
  if (!tokens) {
    throw Error(ErrorCode::unsupported,
                model.name +
                    ": its tokenizer has no fill-in-the-middle tokens such as "
                    "<|fim_prefix|>; use /completion");
  }
  InfillPrompt prompt{.prefix = std::move(request.prefix),
                      .suffix = std::move(request.suffix),
                      .beginning = {},
                      .files = {}};
  if (!request.prompts.empty()) prompt.beginning = std::get<std::string>(request.prompts[0][0]);
  for (InfillFile& file : request.files) {
    prompt.files.emplace_back(std::move(file.filename), std::move(file.text));
  }
  request.completion.prompt.prompts = {encode_infill(tokenizer, *tokens, prompt)};
  add_infill_stops(*tokens, request.completion.options);
}

// A model may have more ids than its tokenizer has tokens; those stand for no text.
std::string decode_known(const Tokenizer& tokenizer, std::vector<TokenId> ids) {
  std::erase_if(ids, [&](TokenId id) { return id >= tokenizer.vocab_size(); });
  return tokenizer.decode(ids);
}

}  // namespace

void set_suffix_prompts(const TextModel& model, CompletionRequest& request) {
  const auto tokens =
      model.tokenizer == nullptr ? std::nullopt : find_infill_tokens(*model.tokenizer);
  if (!tokens) {
    throw RequestError("suffix", "unsupported_parameter",
                       "suffix: not supported by this model, whose tokenizer has no "
                       "fill-in-the-middle tokens such as <|fim_prefix|>");
  }
  for (size_t i = 0; i < request.prompt.prompts.size(); ++i) {
    PromptText& prompt = request.prompt.prompts[i];
    auto* const text = std::get_if<std::string>(&prompt);
    if (text == nullptr) {
      throw RequestError("suffix", "invalid_value",
                         "suffix: only with a prompt of text, found token ids in " +
                             request.prompt.name("prompt", i));
    }
    prompt = encode_infill(
        *model.tokenizer, *tokens,
        {.prefix = std::move(*text), .suffix = request.suffix, .beginning = {}, .files = {}});
  }
  add_infill_stops(*tokens, request.options);
}

LlamaRequest read_llama_request(const TextModel& model, ApiEndpoint endpoint, const Json& body,
                                const RequestRules& rules) {
  if (endpoint == ApiEndpoint::infill) {
    LlamaRequest request = parse_infill_request(body, rules.terms);
    set_infill_prompt(model, request);
    return request;
  }
  LlamaRequest request = parse_llama_request(body, rules.terms);
  PromptList& list = request.completion.prompt;
  list.is_array = request.prompts.size() > 1;
  for (const MixedPrompt& pieces : request.prompts) {
    list.prompts.push_back(
        prompt_text(model, pieces, request.completion.options.add_special_tokens));
  }
  return request;
}

void add_llama_answers(const TextModel& model, const RequestRules& rules, bool returns_tokens,
                       PreparedRequest& prepared) {
  const auto& request = std::get<CompletionRequest>(prepared.request);
  prepared.llama_style = {.model = rules.model_names[0],
                          .context = model.engine.limits().max_model_len,
                          .max_drafted = model.engine.limits().speculation.num_tokens,
                          .returns_tokens = returns_tokens,
                          .has_probabilities = request.as_probabilities,
                          .naming = naming_of(request.generation)};
  for (const PreparedPart& part : prepared.parts) {
    LlamaPrompt& prompt = prepared.llama_prompts.emplace_back();
    if (model.tokenizer != nullptr) {
      prompt.text = decode_known(*model.tokenizer, part.request.prompt);
    }
    prompt.settings_json = llama_settings_json(part.request, request, prepared.llama_style);
  }
}

}  // namespace paceline
