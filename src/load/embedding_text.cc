#include "load/embedding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

// The first one that exists is read; all but the first are of older models.
constexpr const char* kNames[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr NumberRange kLengths{.min = 1};

constexpr auto kTextFields = std::to_array<std::string_view>(
    {"transformer_task", "modality_config", "module_output_name", "processing_kwargs",
     "unpad_inputs", "query_length", "document_length", "query_expansion", "max_seq_length",
     "do_lower_case", "tokenizer_name_or_path", "model_args", "model_kwargs", "tokenizer_args",
     "processor_kwargs", "config_args", "config_kwargs"});

// Padding and the form of tensors change no embedding.
constexpr auto kWithoutEffect = std::to_array<std::string_view>(
    {"padding", "padding_side", "pad_to_multiple_of", "return_tensors", "return_attention_mask",
     "return_token_type_ids", "logits_to_keep"});

bool is_without_effect(std::string_view key) {
  return std::find(kWithoutEffect.begin(), kWithoutEffect.end(), key) != kWithoutEffect.end();
}

[[noreturn]] void refuse(const JsonCursor& value, std::string_view expected) {
  value.fail(ErrorCode::unsupported, found_instead(value.node().shown(), expected));
}

void expect_word(const JsonCursor& object, std::string_view key, std::string_view word) {
  const auto found = object.find(key);
  if (!found || (found->is_string() && found->string() == word)) return;
  refuse(*found, word);
}

void expect_absent(const JsonCursor& object, std::string_view key) {
  const auto found = object.find(key);
  if (!found || (found->is_object() && found->object().empty())) return;
  if (found->is_bool() && !found->boolean()) return;
  refuse(*found, "none: it isn't supported");
}

// What processing_kwargs change.
struct Processing {
  bool cuts = true;
  std::optional<int64_t> max_length;
};

// One of `truncation`, `max_length` and the like; false: another one.
bool read_size(std::string_view key, const JsonCursor& value, Processing& processing) {
  if (is_without_effect(key)) return true;
  if (key == "max_length") {
    processing.max_length = value.integer(kLengths);
  } else if (key == "truncation" && value.is_bool()) {
    processing.cuts = value.boolean();
  } else if (key == "truncation" && value.is_string()) {
    const std::string_view word = value.string();
    processing.cuts = word != "do_not_truncate";
    if (processing.cuts && word != "longest_first" && word != "only_first") {
      refuse(value, "longest_first, only_first or do_not_truncate");
    }
  } else {
    return false;
  }
  return true;
}

void read_sizes(const JsonCursor& object, Processing& processing) {
  for (const auto& [key, node] : object.members()) {
    const JsonCursor value = object.below(key, node);
    if (value.is_null() || read_size(key, value, processing)) continue;
    value.fail(ErrorCode::unsupported, "isn't supported; truncation and max_length are");
  }
}

// The template's own variables are passed on.
void read_template_kwargs(const JsonCursor& object, Processing& processing,
                          EmbeddingMessage& message) {
  constexpr std::string_view kRefused[] = {"chat_template", "tools", "documents", "tokenize",
                                           "return_dict"};
  Json::Object variables;
  for (const auto& [key, node] : object.members()) {
    const JsonCursor value = object.below(key, node);
    if (std::find(std::begin(kRefused), std::end(kRefused), key) != std::end(kRefused)) {
      value.fail(ErrorCode::unsupported, "isn't supported");
    } else if (key == "add_generation_prompt") {
      message.add_generation_prompt = value.boolean();
    } else if (key == "continue_final_message") {
      message.continue_final_message = value.boolean();
    } else if (key == "restore_suffix") {
      message.keeps_end = value.boolean();
    } else if (!read_size(key, value, processing)) {
      variables.emplace_back(key, value.node().json());
    }
  }
  if (!variables.empty()) message.kwargs_json = to_json(Json(std::move(variables)));
}

// Only the modality that texts use counts: "message" where the model has it.
std::optional<EmbeddingMessage> read_modality(const JsonCursor& root) {
  const auto modalities = root.find("modality_config");
  if (!modalities) return std::nullopt;
  const bool is_message = modalities->contains("message");
  if (!is_message && !modalities->contains("text")) {
    modalities->fail(ErrorCode::unsupported, "has neither text nor message, so it takes no text");
  }
  const JsonCursor used = modalities->at(is_message ? "message" : "text");
  constexpr std::string_view kKeys[] = {"method", "method_output_name", "format"};
  used.expect_keys(kKeys);
  expect_word(used, "method", "forward");
  expect_word(used, "method_output_name", "last_hidden_state");
  if (!is_message) return std::nullopt;
  EmbeddingMessage message;
  const JsonCursor format = used.at("format");
  message.in_parts = format.is_string() && format.string() == "structured";
  if (!message.in_parts) expect_word(used, "format", "flat");
  return message;
}

void check_fields(const JsonCursor& root) {
  root.expect_keys(kTextFields);
  expect_word(root, "transformer_task", "feature-extraction");
  expect_word(root, "module_output_name", "token_embeddings");
  for (const std::string_view key :
       {"query_length", "document_length", "query_expansion", "tokenizer_name_or_path",
        "model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args",
        "config_kwargs"}) {
    expect_absent(root, key);
  }
}

Processing read_processing(const JsonCursor& root, std::optional<EmbeddingMessage>& message) {
  Processing processing;
  const auto kwargs = root.find("processing_kwargs");
  if (!kwargs) return processing;
  constexpr std::string_view kKeys[] = {"common", "text",  "audio",
                                        "image",  "video", "chat_template"};
  kwargs->expect_keys(kKeys);
  // Later ones win.
  if (const auto common = kwargs->find("common")) read_sizes(*common, processing);
  if (const auto text = kwargs->find("text")) read_sizes(*text, processing);
  const auto of_template = kwargs->find("chat_template");
  if (of_template && message) read_template_kwargs(*of_template, processing, *message);
  return processing;
}

// Where no file says, texts are cut at the model's context.
std::optional<int64_t> least_length(const JsonCursor& tokenizer, const JsonCursor& config) {
  std::optional<int64_t> least;
  const auto add = [&least](const std::optional<JsonCursor>& found) {
    constexpr double kMeansNone = 1e9;  // transformers writes 10^30
    if (!found || found->number(kLengths) > kMeansNone) return;
    least = std::min(least.value_or(found->integer()), found->integer());
  };
  add(tokenizer.find("model_max_length"));
  add(config.find("max_position_embeddings"));
  return least;
}

bool drops_begin(const JsonCursor& tokenizer) {
  const auto side = tokenizer.find("truncation_side");
  if (side && side->is_string() && side->string() == "left") return true;
  expect_word(tokenizer, "truncation_side", "right");
  return false;
}

Json read_if_there(const ModelFiles& files, const std::string& name) {
  if (!files.contains(name)) return Json(Json::Object());
  return files.read_json(name);
}

}  // namespace

void read_embedding_text(const ModelFiles& files, const Json& config_json,
                         EmbeddingConfig& config) {
  const auto there = [&](const char* name) { return files.contains(name); };
  const auto* const found = std::find_if(std::begin(kNames), std::end(kNames), there);
  const std::string name = found == std::end(kNames) ? kNames[0] : *found;
  const Json json = read_if_there(files, name);
  const JsonCursor root(json, files.where(name));
  check_fields(root);
  config.message = read_modality(root);
  const Processing processing = read_processing(root, config.message);

  const Json tokenizer_json = read_if_there(files, kTokenizerConfig);
  const JsonCursor tokenizer(tokenizer_json, files.where(kTokenizerConfig));
  const auto longest = root.find("max_seq_length");
  const std::optional<int64_t> length =
      processing.max_length ? processing.max_length
      : longest             ? std::optional(longest->integer(kLengths))
                : least_length(tokenizer, JsonCursor(config_json, files.where("config.json")));
  if (length && processing.cuts) {
    config.cut = TextCut{.max_tokens = *length, .drops_begin = drops_begin(tokenizer)};
  }
}

}  // namespace paceline
