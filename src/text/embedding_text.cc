#include "text/embedding_text.h"

#include <algorithm>

#include "base/json_writer.h"
#include "engine/engine.h"
#include "text/chat_prompt.h"
#include "text/make_request.h"

namespace paceline {
namespace {

using Ids = std::vector<TokenId>;

// A text that will be cut may have any length.
Ids encode_text(const TextModel& model, const EmbeddingConfig& config, const std::string& text,
                const std::string& name, bool add_special_tokens) {
  const bool is_cut = config.cut && config.cut->max_tokens <= model.engine.limits().max_model_len;
  if (!is_cut || model.tokenizer == nullptr) {
    return encode_prompt(model, text, name, {.add_special = add_special_tokens});
  }
  return model.tokenizer->encode(text, {.add_special = add_special_tokens});
}

void cut_ids(Ids& ids, int64_t length, bool drops_begin) {
  const int64_t surplus = std::ssize(ids) - length;
  if (surplus <= 0) return;
  const auto first = drops_begin ? ids.begin() : ids.begin() + length;
  ids.erase(first, first + surplus);
}

// The number of tokens of `around` that stand before `inner` in `whole`.
size_t num_before(const Ids& whole, const Ids& inner, const Ids& around) {
  const size_t most = whole.size() - std::min(whole.size(), inner.size());
  for (size_t before = 0; before < around.size() && before <= most; ++before) {
    const auto begin = whole.begin() + static_cast<int64_t>(before);
    if (std::equal(whole.begin(), begin, around.begin()) &&
        std::equal(inner.begin(), inner.end(), begin)) {
      return before;
    }
  }
  return around.size();
}

// The special tokens around the text stay whole.
Ids encode_cut(const TextModel& model, const EmbeddingConfig& config, const std::string& text,
               const EmbeddedText& input) {
  Ids whole = encode_text(model, config, text, input.name, input.add_special_tokens);
  if (!config.cut || std::ssize(whole) <= config.cut->max_tokens) return whole;
  Ids inner = encode_text(model, config, text, input.name, false);
  const Ids around = model.tokenizer->encode({}, {.add_special = input.add_special_tokens});
  const auto before = static_cast<int64_t>(num_before(whole, inner, around));
  cut_ids(inner, std::max<int64_t>(config.cut->max_tokens - std::ssize(around), 0),
          config.cut->drops_begin);
  inner.insert(inner.begin(), around.begin(), around.begin() + before);
  inner.insert(inner.end(), around.begin() + before, around.end());
  return inner;
}

ChatMessage message_of(const EmbeddingMessage& how, const char* role, const std::string& text) {
  if (!how.in_parts) return {.role = role, .content = text};
  ChatMessage message;
  JsonWriter writer(message.json);
  writer.begin_object().member("role", std::string_view(role)).key("content").begin_array();
  writer.begin_object().member("type", std::string_view("text")).member("text", text).end_object();
  writer.end_array().end_object();
  return message;
}

Ids encode_chat(const TextModel& model, const EmbeddingConfig& config, const std::string& text,
                const EmbeddedText& input) {
  const EmbeddingMessage& how = *config.message;
  ChatInput chat{.messages = {},
                 .kwargs_json = how.kwargs_json,
                 .add_generation_prompt = how.add_generation_prompt,
                 .continue_final_message = how.continue_final_message};
  if (!input.prompt.empty()) chat.messages.push_back(message_of(how, "system", input.prompt));
  chat.messages.push_back(message_of(how, "user", text));
  ChatRenderer renderer = chat_renderer(model);
  renderer.typed_specials = TypedSpecials::tokens;
  return encode_text(model, config, render_chat(renderer, chat).text, input.name, false);
}

// The last tokens that chats of two different texts have in common.
Ids end_of_chat(const TextModel& model, const EmbeddingConfig& config, const EmbeddedText& input) {
  const Ids one = encode_chat(model, config, "0", input);
  const Ids other = encode_chat(model, config, "1 2 3 4", input);
  const auto [differs, ignored] =
      std::mismatch(one.rbegin(), one.rend(), other.rbegin(), other.rend());
  const auto count = differs - one.rbegin();
  if (count == std::min(std::ssize(one), std::ssize(other))) return {};  // the text isn't in it
  return {one.end() - count, one.end()};
}

// What the template writes after the text replaces the last tokens of what was cut.
Ids encode_cut_chat(const TextModel& model, const EmbeddingConfig& config,
                    const EmbeddedText& input) {
  Ids ids = encode_chat(model, config, input.text, input);
  if (!config.cut || std::ssize(ids) < config.cut->max_tokens) return ids;
  cut_ids(ids, config.cut->max_tokens, config.cut->drops_begin);
  if (!config.message->keeps_end) return ids;
  const Ids end = end_of_chat(model, config, input);
  const int64_t kept = std::min(std::ssize(end), std::ssize(ids));
  std::copy(end.end() - kept, end.end(), ids.end() - kept);
  return ids;
}

}  // namespace

EmbeddedTokens encode_embedded_text(const TextModel& model, const EmbeddingConfig& config,
                                    const EmbeddedText& input) {
  if (config.message) return {.ids = encode_cut_chat(model, config, input)};
  EmbeddedTokens tokens{.ids = encode_cut(model, config, input.prompt + input.text, input)};
  if (input.prompt.empty()) return tokens;
  const Ids prompt = encode_cut(model, config, input.prompt, input);
  tokens.prompt_tokens = std::ssize(prompt);
  if (!prompt.empty() && model.tokenizer->is_special(prompt.back())) --tokens.prompt_tokens;
  return tokens;
}

}  // namespace paceline
