#include "text/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "engine/engine.h"
#include "text/embedding_text.h"
#include "text/make_request.h"

namespace paceline {
namespace {

const EmbeddingConfig& embedding_of(const TextModel& model) {
  if (model.embedding) return *model.embedding;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: classifies texts and makes no embeddings of them", model.name));
}

void check_dimensions(const EmbeddingConfig& config, const std::optional<int64_t>& dimensions) {
  if (!dimensions || *dimensions == config.width) return;
  if (!config.is_matryoshka) {
    throw invalid_field(
        "dimensions",
        fmt::format("{}, but the model isn't trained for embeddings of other "
                    "sizes than {}; if it is, set is_matryoshka to true in its config.json",
                    *dimensions, config.width));
  }
  const auto& known = config.dimensions;
  if (!known.empty() && std::find(known.begin(), known.end(), *dimensions) == known.end()) {
    throw invalid_field("dimensions",
                        fmt::format("{}, the model is trained for {} and {}", *dimensions,
                                    fmt::join(known, ", "), config.width));
  }
  if (*dimensions < 1 || *dimensions > config.width) {
    throw invalid_field("dimensions",
                        fmt::format("{}, expected 1 to {}", *dimensions, config.width));
  }
}

// The text that stands in front of the input.
std::string prompt_text(const EmbeddingConfig& config, const Prompt& input,
                        const std::optional<std::string>& asked) {
  const bool is_text = std::holds_alternative<std::string>(input);
  if (!asked && !is_text) return {};
  const std::optional<std::string>& name = asked ? asked : config.default_prompt;
  if (!name) return {};
  if (!is_text) {
    throw invalid_field("prompt_name", "the input is token ids, which are used as they are");
  }
  std::vector<std::string_view> names;
  for (const auto& [known, text] : config.prompts) {
    if (known == *name) return text;
    names.push_back(known);
  }
  throw invalid_field("prompt_name",
                      fmt::format("{}, the model {}", json_quote(*name),
                                  names.empty() ? "has no prompts"
                                                : fmt::format("has {}", fmt::join(names, ", "))));
}

void normalise(std::vector<float>& pooled) {
  double squares = 0;
  for (const float element : pooled) squares += double{element} * double{element};
  // As torch.nn.functional.normalize, which never divides by less.
  constexpr double kLeast = 1e-12;
  const double length = std::max(std::sqrt(squares), kLeast);
  for (float& element : pooled) element = static_cast<float>(double{element} / length);
}

}  // namespace

GenerateRequest make_embed_request(const TextModel& model, const Prompt& prompt,
                                   const EmbedOptions& options) {
  EmbeddingConfig config = embedding_of(model);
  check_dimensions(config, options.dimensions);
  const int64_t context = model.engine.limits().max_model_len;
  const int64_t longest = config.cut ? std::min(config.cut->max_tokens, context) : context;
  if (options.truncates == true) {
    config.cut = {.max_tokens = longest, .drops_begin = config.cut && config.cut->drops_begin};
  }
  if (options.truncates == false) config.cut.reset();
  const std::string before = prompt_text(config, prompt, options.named_prompt);
  const std::string name = prompt_name(prompt, options.prompt_name);
  EmbeddedTokens tokens;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    tokens = encode_embedded_text(model, config,
                                  {.text = *text,
                                   .prompt = before,
                                   .name = name,
                                   .add_special_tokens = options.add_special_tokens});
  } else {
    tokens.ids = std::get<std::vector<int32_t>>(prompt);
  }
  if (options.truncates == false && std::ssize(tokens.ids) > longest) {
    throw invalid_field(
        name, fmt::format("found {} tokens, the model takes {}", std::ssize(tokens.ids), longest));
  }
  const bool pools_all = config.pools_prompt || config.pooling == Pooling::last;
  GenerateRequest request{.prompt = std::move(tokens.ids),
                          .prompt_name = name,
                          .max_tokens = 0,
                          .pooling = config.pooling,
                          .pool_from = pools_all ? 0 : tokens.prompt_tokens,
                          .adapter = find_adapter(model, options.lora),
                          .priority = options.priority,
                          .cancelled = options.cancelled};
  request.prefix.scope = prefix_scope(model, options.cache_salt);
  return request;
}

std::vector<float> finish_embedding(const TextModel& model, std::vector<float> pooled,
                                    const EmbedOptions& options) {
  const EmbeddingConfig& config = embedding_of(model);
  if (options.dimensions) pooled.resize(static_cast<size_t>(*options.dimensions));
  if (config.normalises) normalise(pooled);
  if (config.cut_width && !options.dimensions) {
    pooled.resize(static_cast<size_t>(*config.cut_width));
  }
  return pooled;
}

}  // namespace paceline
