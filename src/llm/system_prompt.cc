// LLM's system prompt: the common prefix of its conversations, computed once and held.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/channel.h"
#include "engine/run_alone.h"
#include "llm/llm_state.h"
#include "text/chat_prompt.h"
#include "text/make_request.h"

namespace paceline {
namespace {

constexpr std::string_view kName = "system prompt (--system-prompt)";

ChatInput conversation(std::string_view system, std::string_view question,
                       const std::string& kwargs_json) {
  return {.messages = {{"system", std::string(system)}, {"user", std::string(question)}},
          .kwargs_json = kwargs_json};
}

std::vector<TokenId> encode(const TextModel& model, const ChatInput& input) {
  GenerateOptions ignored;
  try {
    return encode_chat(model, input, ignored);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: the chat template fails on a system message: {}",
                                          kName, error.what()));
  }
}

// The tokens before any question that no question can change.
std::vector<TokenId> encode_beginning(const TextModel& model, std::string_view text,
                                      const std::string& kwargs_json) {
  std::vector<TokenId> ids = encode(model, conversation(text, "a", kwargs_json));
  const std::string longer = std::string(text) + " b";
  if (encode(model, conversation(longer, "a", kwargs_json)) == ids) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: the chat template ({}) leaves system messages out", kName,
                            model.chat_template->name()));
  }
  const auto other = encode(model, conversation(text, "b", kwargs_json));
  ids.erase(std::mismatch(ids.begin(), ids.end(), other.begin(), other.end()).first, ids.end());
  return ids;
}

// Computes the prompt; the id holds its blocks.
RequestId compute_and_hold(LLM::State& state, std::vector<TokenId> prompt,
                           std::shared_ptr<const LoadedAdapter> adapter) {
  GenerateRequest request{.prompt = std::move(prompt),
                          .prompt_name = std::string(kName),
                          .max_tokens = 0,
                          .adapter = std::move(adapter)};
  request.prefix.hold = true;
  const auto channel = std::make_shared<Channel>();
  const auto id = state.model->engine->submit(std::move(request), channel);
  if (!id) throw Error(ErrorCode::exhausted, "too many requests are waiting, try again later");
  std::vector<TokenEvent> events;
  while (true) {
    channel->wait(events);
    const auto last = std::find_if(events.begin(), events.end(),
                                   [](const TokenEvent& event) { return event.ending != nullptr; });
    if (last == events.end()) continue;
    throw_if_failed(*last->ending);
    state.record(last->ending->stats);
    return *id;
  }
}

}  // namespace

int64_t LLM::preload_system_prompt(std::string_view text, const std::string& kwargs_json,
                                   const std::string& lora) {
  const Call call(*this);
  State& state = *call;
  const std::lock_guard lock(state.system_prompt_mutex);
  auto adapter = find_adapter(*state.text, lora);
  Engine& engine = *state.model->engine;
  std::vector<TokenId> ids;
  if (!text.empty()) ids = encode_beginning(*state.text, text, kwargs_json);
  const auto block = static_cast<size_t>(engine.block_size());
  ids.resize(engine.limits().prefix_cache ? ids.size() / block * block : 0);
  const auto num_kept = static_cast<int64_t>(ids.size());
  const auto previous = state.system_prompt;
  state.system_prompt.reset();
  if (num_kept > 0)
    state.system_prompt = compute_and_hold(state, std::move(ids), std::move(adapter));
  if (previous) engine.release(*previous);
  return num_kept;
}

}  // namespace paceline
