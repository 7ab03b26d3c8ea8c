#include "capi/requests.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "capi/call_status.h"
#include "capi/handles.h"

namespace paceline::capi {
namespace {

std::optional<float> float_or_default(float value) {
  if (value == PACELINE_DEFAULT_FLOAT) return std::nullopt;
  return value;
}

template <class T>
std::optional<T> integer_or_default(int64_t value, const char* name) {
  if (value == PACELINE_DEFAULT) return std::nullopt;
  if (value != static_cast<int64_t>(static_cast<T>(value))) {
    throw Error(ErrorCode::invalid, fmt::format("options.{}: {} is out of range", name, value));
  }
  return static_cast<T>(value);
}

template <class T>
std::vector<T> array_of(const T* values, size_t count, const char* name) {
  if (count == 0) return {};
  check_given(values, name);
  return {values, values + count};
}

ConstraintSpec::Kind kind_of(int32_t constraint) {
  switch (constraint) {
    case PACELINE_JSON_OBJECT:
      return ConstraintSpec::Kind::json_object;
    case PACELINE_JSON_SCHEMA:
      return ConstraintSpec::Kind::json_schema;
    case PACELINE_REGEX:
      return ConstraintSpec::Kind::regex;
    case PACELINE_GRAMMAR:
      return ConstraintSpec::Kind::grammar;
    case PACELINE_CHOICE:
      return ConstraintSpec::Kind::choice;
    case PACELINE_FREE:
      break;
  }
  throw Error(ErrorCode::invalid, fmt::format("options.constraint: found {}, expected 0 to {}",
                                              constraint, static_cast<int>(PACELINE_CHOICE)));
}

std::optional<ConstraintSpec> constraint_of(const paceline_generate_options& options) {
  if (options.constraint == PACELINE_FREE) return std::nullopt;
  ConstraintSpec spec{.kind = kind_of(options.constraint), .text = {}, .choices = {}};
  if (spec.kind == ConstraintSpec::Kind::choice) {
    spec.choices = texts_of(options.choices, options.num_choices, "options.choices");
  } else if (spec.kind != ConstraintSpec::Kind::json_object) {
    check_given(options.constraint_text, "options.constraint_text");
    spec.text = options.constraint_text;
  }
  return spec;
}

void take_token_rules(const paceline_generate_options& from, GenerateOptions& to) {
  to.stop = texts_of(from.stop, from.num_stop, "options.stop");
  to.stop_token_ids =
      array_of(from.stop_token_ids, from.num_stop_token_ids, "options.stop_token_ids");
  to.allowed_token_ids =
      array_of(from.allowed_token_ids, from.num_allowed_token_ids, "options.allowed_token_ids");
  const auto ids =
      array_of(from.biased_token_ids, from.num_biased_tokens, "options.biased_token_ids");
  const auto biases = array_of(from.token_biases, from.num_biased_tokens, "options.token_biases");
  for (size_t i = 0; i < ids.size(); ++i) to.logit_bias.emplace_back(ids[i], biases[i]);
}

}  // namespace

Prompt prompt_of(const paceline_prompt& prompt, const std::string& name) {
  if (prompt.ids != nullptr) return std::vector<int32_t>(prompt.ids, prompt.ids + prompt.num_ids);
  if (prompt.text == nullptr) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: text and ids are NULL, expected one of them", name));
  }
  return std::string(prompt.text, prompt.text_size);
}

std::vector<Prompt> prompts_of(const paceline_prompt* prompts, size_t count) {
  if (count > 0) check_given(prompts, "prompts");
  std::vector<Prompt> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    all.push_back(prompt_of(prompts[i], fmt::format("prompts[{}]", i)));
  }
  return all;
}

std::vector<std::string> texts_of(const char* const* texts, size_t count, const char* name) {
  if (count > 0) check_given(texts, name);
  std::vector<std::string> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    check_given(texts[i], fmt::format("{}[{}]", name, i).c_str());
    all.emplace_back(texts[i]);
  }
  return all;
}

std::stop_token token_of(const paceline_cancellation* cancellation) {
  return cancellation == nullptr ? std::stop_token() : cancellation->source.get_token();
}

GenerateOptions generate_options(const paceline_generate_options* given) {
  const auto from = complete(given, paceline_generate_options_init, "options");
  GenerateOptions to{.max_tokens = integer_or_default<int64_t>(from.max_tokens, "max_tokens"),
                     .temperature = float_or_default(from.temperature),
                     .top_p = float_or_default(from.top_p),
                     .top_k = integer_or_default<int32_t>(from.top_k, "top_k"),
                     .min_p = float_or_default(from.min_p),
                     .typical_p = float_or_default(from.typical_p),
                     .repetition_penalty = float_or_default(from.repetition_penalty),
                     .frequency_penalty = from.frequency_penalty,
                     .presence_penalty = from.presence_penalty,
                     .constraint = constraint_of(from),
                     .mlx_sampler_order = from.mlx_sampler_order != 0,
                     .include_stop_in_output = from.include_stop_in_output != 0,
                     .ignore_eos = from.ignore_eos != 0,
                     .skip_special_tokens = from.skip_special_tokens != 0,
                     .min_tokens = integer_or_default<int64_t>(from.min_tokens, "min_tokens"),
                     .prompt_logprobs = from.prompt_logprobs != 0,
                     .add_special_tokens = from.add_special_tokens != 0,
                     .priority = from.priority,
                     .cancelled = token_of(from.cancellation)};
  if (from.seed != PACELINE_DEFAULT) to.seed = static_cast<uint64_t>(from.seed);
  if (from.num_top_logprobs >= 0) to.logprobs = from.num_top_logprobs;
  if (from.adapter != nullptr) to.lora = from.adapter;
  if (from.cache_salt != nullptr) to.cache_salt = from.cache_salt;
  take_token_rules(from, to);
  return to;
}

std::function<void()> listener_of(const paceline_generate_options* given) {
  const auto options = complete(given, paceline_generate_options_init, "options");
  if (options.queue == nullptr) return nullptr;
  return [ready = options.queue->ready, tag = options.tag] { ready->add(tag); };
}

ChatInput chat_input(const char* messages_json, const paceline_chat_options& chat) {
  check_given(messages_json, "messages_json");
  ChatInput input;
  const Json messages = parse_json(messages_json, "messages_json");
  for (const Json& message : messages.as_array("messages_json")) {
    input.messages.push_back({.role = {}, .content = {}, .json = to_json(message)});
  }
  if (chat.tools_json != nullptr) input.tools_json = chat.tools_json;
  if (chat.template_json != nullptr) input.kwargs_json = chat.template_json;
  return input;
}

ChatOptions chat_options(const paceline_chat_options& chat) {
  ChatOptions options{.parallel_tool_calls = chat.parallel_tool_calls != 0};
  switch (chat.tool_choice) {
    case PACELINE_TOOLS_AUTO:
      options.tool_choice = ToolChoice::automatic;
      break;
    case PACELINE_TOOLS_NONE:
      options.tool_choice = ToolChoice::none;
      break;
    case PACELINE_TOOLS_REQUIRED:
      options.tool_choice = ToolChoice::required;
      break;
    case PACELINE_TOOLS_NAMED:
      options.tool_choice = ToolChoice::named;
      check_given(chat.tool_name, "chat.tool_name");
      options.tool_name = chat.tool_name;
      break;
    default:
      throw Error(ErrorCode::invalid,
                  fmt::format("chat.tool_choice: found {}, expected 0 to 3", chat.tool_choice));
  }
  if (chat.reasoning_effort != nullptr) options.reasoning_effort = chat.reasoning_effort;
  return options;
}

paceline_request_options request_options(const paceline_request_options* options) {
  return complete(options, paceline_request_options_init, "options");
}

}  // namespace paceline::capi

using paceline::capi::token_of;

paceline_cancellation* paceline_new_cancellation() {
  return new (std::nothrow) paceline_cancellation();
}

void paceline_cancel(paceline_cancellation* cancellation) {
  if (cancellation != nullptr) cancellation->source.request_stop();
}

void paceline_free_cancellation(paceline_cancellation* cancellation) { delete cancellation; }

paceline_prompt paceline_text_prompt(const char* text) {
  return {.text = text,
          .text_size = text == nullptr ? 0 : __builtin_strlen(text),
          .ids = nullptr,
          .num_ids = 0};
}

void paceline_generate_options_init(paceline_generate_options* options) {
  *options = {};
  options->size = sizeof(*options);
  options->max_tokens = options->top_k = options->min_tokens = options->seed = PACELINE_DEFAULT;
  options->temperature = options->top_p = options->min_p = PACELINE_DEFAULT_FLOAT;
  options->typical_p = options->repetition_penalty = PACELINE_DEFAULT_FLOAT;
  options->skip_special_tokens = options->add_special_tokens = 1;
  options->num_top_logprobs = -1;
}

void paceline_chat_options_init(paceline_chat_options* options) {
  *options = {};
  options->size = sizeof(*options);
  options->parallel_tool_calls = 1;
}

void paceline_request_options_init(paceline_request_options* options) {
  *options = {};
  options->size = sizeof(*options);
  options->add_special_tokens = 1;
}
