#include "load/model_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_writer.h"
#include "load/generation_config.h"
#include "text/chat_turns.h"
#include "text/constraint_vocabulary.h"

namespace paceline {
namespace {

// Special tokens may be beyond the embedding (a text model has no row for an image's token). Other
// tokens beyond it mean that the tokenizer belongs to another model.
void check_tokenizer(const std::optional<Tokenizer>& tokenizer, const ModelFiles& files,
                     int64_t vocab_size) {
  if (!tokenizer) return;
  for (int64_t id = tokenizer->vocab_size() - 1; id >= vocab_size; --id) {
    const auto token = static_cast<TokenId>(id);
    const std::string_view text = tokenizer->token_text(token);
    if (text.empty() || tokenizer->is_special(token)) continue;
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: token {} is {}, but the model has {} tokens: the tokenizer "
                            "belongs to another model",
                            files.where("tokenizer.json"), id, json_quote(text), vocab_size));
  }
}

// Adds ends of a turn from tokenizer_config.json and the vocabulary, which generation_config.json
// may lack.
void add_stop_tokens(const std::optional<Tokenizer>& tokenizer, int64_t vocab_size,
                     std::vector<TokenId>& eos_tokens) {
  if (!tokenizer) return;
  for (const TokenId id : tokenizer->stop_tokens()) {
    const bool known = std::find(eos_tokens.begin(), eos_tokens.end(), id) != eos_tokens.end();
    if (id < vocab_size && !known) eos_tokens.push_back(id);
  }
}

void set_up_chats(LoadedModel& model, const ModelFiles& files, const std::string& wanted) {
  if (!model.tokenizer) {
    model.chat.problem =
        fmt::format("{}: has no tokenizer.json, which a chat needs", model.path.string());
    return;
  }
  model.chat = set_up_chat(files, wanted, *model.tokenizer);
  if (!model.chat.chat_template) return;
  std::vector<TokenId> stops = model.generation.eos_tokens;
  std::sort(stops.begin(), stops.end());
  for (std::string& note : check_chat(*model.chat.chat_template, *model.tokenizer, stops)) {
    model.chat.notes.push_back(std::move(note));
  }
}

}  // namespace

std::optional<Tokenizer> load_tokenizer_if_present(const ModelFiles& files) {
  if (!files.contains("tokenizer.json")) return std::nullopt;
  return Tokenizer::load(files);
}

bool carries_chat_template(const ModelFiles& files) {
  constexpr std::string_view kTokenizerConfig = "tokenizer_config.json";
  if (files.contains("chat_template.jinja") || files.contains("chat_template.json")) return true;
  if (!files.contains(kTokenizerConfig)) return false;
  const Json json = files.read_json(kTokenizerConfig);
  return json.find_value("chat_template") != nullptr;
}

void set_up_texts(LoadedModel& model, const ModelFiles& files, int64_t vocab_size,
                  const std::string& chat_template) {
  check_tokenizer(model.tokenizer, files, vocab_size);
  model.generation = read_generation_config(files, vocab_size);
  add_stop_tokens(model.tokenizer, vocab_size, model.generation.eos_tokens);
  set_up_chats(model, files, chat_template);
}

void set_up_turns(LoadedModel& model) {
  if (model.tokenizer && model.chat.chat_template) {
    model.turns = std::make_unique<ChatTurns>(*model.chat.chat_template, *model.tokenizer);
  }
  if (model.tokenizer) {
    model.constraints = std::make_unique<ConstraintCache>(
        [&tokenizer = *model.tokenizer] { return constraint_vocabulary(tokenizer); });
  }
}

TokenTexts token_texts_of(const std::optional<Tokenizer>& tokenizer) {
  return [&tokenizer](TokenId id) -> TokenText {
    if (!tokenizer) return {};
    return {.bytes = tokenizer->token_bytes(id), .is_special = tokenizer->is_special(id)};
  };
}

}  // namespace paceline
