#include "load/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/option_names.h"
#include "kernels/backend.h"
#include "load/load_decoder.h"
#include "models/decoder.h"
#include "prepared/prepared_file.h"
#include "spec/ngram_drafter.h"

namespace paceline {
namespace {

constexpr int64_t kDefaultTokens = 8;

// Drafters that are trained for one target model.
bool is_trained_head(std::string_view name) {
  constexpr std::string_view kHeads[] = {"eagle", "eagle3",       "medusa",
                                         "mtp",   "deepseek_mtp", "mlp_speculator"};
  return std::find(std::begin(kHeads), std::end(kHeads), name) != std::end(kHeads);
}

// Nothing: no drafts.
std::optional<DraftMethod> method_of(const LoadOptions& options) {
  const DraftMethod method = options.speculative_method;
  const bool has_model = !options.speculative_model.empty();
  if (method == DraftMethod::ngram && has_model) {
    throw Error(ErrorCode::invalid,
                "--speculative-model: only --speculative-method model has one; found ngram");
  }
  if (method == DraftMethod::model && !has_model) {
    throw Error(ErrorCode::invalid,
                "--speculative-method model: needs --speculative-model, the model that drafts");
  }
  if (method != DraftMethod::automatic) return method;
  return has_model ? std::optional(DraftMethod::model) : std::nullopt;
}

// What differs between the tokens of two models; empty: nothing.
std::string difference(const Tokenizer& target, const Tokenizer& draft) {
  const int64_t count = std::max(target.vocab_size(), draft.vocab_size());
  const auto spelled = [](const Tokenizer& tokenizer, int64_t id) {
    return id < tokenizer.vocab_size() ? tokenizer.token_text(static_cast<TokenId>(id))
                                       : std::string_view();
  };
  for (int64_t id = 0; id < count; ++id) {
    const std::string_view ours = spelled(target, id), theirs = spelled(draft, id);
    if (ours == theirs) continue;
    return fmt::format("token {} is {}, in the model it is {}", id, json_quote(theirs),
                       json_quote(ours));
  }
  return {};
}

void check_tokens(const LoadedModel& target, const ModelSource& source, const LoadedModel& draft) {
  const bool has_tokenizer = source.files().contains("tokenizer.json");
  const int64_t own = target.decoder->config().vocab_size;
  const int64_t drafts = draft.decoder->config().vocab_size;
  std::string problem;
  if (target.tokenizer && has_tokenizer) {
    problem = difference(*target.tokenizer, Tokenizer::load(source.files()));
  } else if (target.tokenizer || has_tokenizer) {
    problem = "only one of the two models has a tokenizer.json";
  } else if (own != drafts) {
    problem = fmt::format("it has {} tokens, the model has {}", drafts, own);
  }
  if (problem.empty()) return;
  throw Error(ErrorCode::invalid,
              fmt::format("--speculative-model: {}: {}; a draft model has the model's tokens",
                          source.path().string(), problem));
}

// An error says which of the two models it is about.
ModelSource open_draft_source(const std::string& model) {
  try {
    return open_model_source(model);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--speculative-model: {}", error.what()));
  }
}

}  // namespace

DraftMethod read_draft_method(std::string_view name, std::string_view where) {
  if (is_trained_head(name)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: found {}, a drafter trained for one model, which isn't supported; "
                            "model and ngram are",
                            where, name));
  }
  return option_value<DraftMethod>(name, where);
}

LoadOptions with_speculative_config(LoadOptions options) {
  if (options.speculative_config.empty()) return options;
  constexpr std::string_view kWhere = "--speculative-config";
  constexpr std::string_view kKeys[] = {"method", "model", "num_speculative_tokens",
                                        "prompt_lookup_min", "prompt_lookup_max"};
  const Json json = parse_json(options.speculative_config, kWhere);
  const JsonCursor object(json, std::string(kWhere));
  object.expect_keys(kKeys);
  if (const auto method = object.find("method")) {
    options.speculative_method = read_draft_method(method->string(), method->name());
  }
  if (const auto model = object.find("model")) options.speculative_model = model->string();
  if (const auto count = object.find("num_speculative_tokens")) {
    options.num_speculative_tokens = count->integer();
  }
  if (const auto length = object.find("prompt_lookup_min")) {
    options.prompt_lookup_min = length->integer();
  }
  if (const auto length = object.find("prompt_lookup_max")) {
    options.prompt_lookup_max = length->integer();
  }
  return options;
}

SpeculationLimits speculation_limits(const LoadOptions& options) {
  const int64_t num_tokens = options.num_speculative_tokens.value_or(kDefaultTokens);
  if (num_tokens < 1 || num_tokens > kMaxSpeculativeTokens) {
    throw Error(ErrorCode::invalid, fmt::format("--num-speculative-tokens: {}, expected 1 to {}",
                                                num_tokens, kMaxSpeculativeTokens));
  }
  return {.num_tokens = method_of(options) ? num_tokens : 0,
          .accept = options.spec_accept,
          .adapts = options.adaptive_drafts};
}

std::unique_ptr<LoadedModel> load_draft_model(const LoadedModel& target,
                                              const LoadOptions& options) {
  if (method_of(options) != DraftMethod::model) return nullptr;
  const ModelSource source = open_draft_source(options.speculative_model);
  auto draft = std::make_unique<LoadedModel>(target.machine);
  draft->threads = target.threads;
  draft->backend = target.backend;
  draft->path = source.path();
  LoadOptions draft_options = options;
  draft_options.dtype = DataType::automatic;
  draft_options.fingerprint = false;
  const Memory& weights_memory = target.backend->memory();
  const size_t before = weights_memory.stats().active_bytes;
  load_decoder(*draft, source, draft_options);
  if (draft->decoder->config().bidirectional || target.decoder->config().bidirectional) {
    throw Error(ErrorCode::unsupported,
                "--speculative-model: one of the models attends in both directions, and generates "
                "nothing");
  }
  if (!draft->decoder->config().has_head || !target.decoder->config().has_head) {
    throw Error(ErrorCode::unsupported,
                "--speculative-model: the files of one of the models have no lm_head.weight, so it "
                "generates nothing");
  }
  draft->weight_bytes = weights_memory.stats().active_bytes - before;
  if (draft->prepared) draft->weight_bytes += draft->prepared->size_bytes();
  draft->memory.clear_cache();
  check_tokens(target, source, *draft);
  return draft;
}

std::unique_ptr<Drafter> make_ngram_drafter(const LoadOptions& options) {
  if (method_of(options) != DraftMethod::ngram) return nullptr;
  return std::make_unique<NgramDrafter>(PromptLookupOptions{
      .min_length = options.prompt_lookup_min, .max_length = options.prompt_lookup_max});
}

}  // namespace paceline
