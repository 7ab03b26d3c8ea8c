// What the caller says of a request, as the C++ API has it; NULL options are the defaults.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "paceline/llm.h"
#include "paceline/paceline.h"

namespace paceline::capi {

// Each throws Error invalid naming the argument at fault.
Prompt prompt_of(const paceline_prompt& prompt, const std::string& name = "prompt");
std::vector<Prompt> prompts_of(const paceline_prompt* prompts, size_t count);
std::vector<std::string> texts_of(const char* const* texts, size_t count, const char* name);
GenerateOptions generate_options(const paceline_generate_options* options);
ChatInput chat_input(const char* messages_json, const paceline_chat_options& chat);
ChatOptions chat_options(const paceline_chat_options& chat);

// What tells the options' queue of the generation; empty without one.
std::function<void()> listener_of(const paceline_generate_options* options);

// Those that all calls on many items have in common.
paceline_request_options request_options(const paceline_request_options* options);
std::stop_token token_of(const paceline_cancellation* cancellation);

template <class Options>
void take_request_options(const paceline_request_options& given, Options& options) {
  if (given.adapter != nullptr) options.lora = given.adapter;
  options.cancelled = token_of(given.cancellation);
  if constexpr (requires { options.cache_salt; }) {
    if (given.cache_salt != nullptr) options.cache_salt = given.cache_salt;
    options.priority = given.priority;
  }
  if constexpr (requires { options.add_special_tokens; }) {
    options.add_special_tokens = given.add_special_tokens != 0;
  }
}

}  // namespace paceline::capi
