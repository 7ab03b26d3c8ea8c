#include "protocol/response.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "base/random.h"
#include "base/time_source.h"
#include "protocol/logprobs_json.h"

namespace paceline {
namespace {

constexpr double kMilliseconds = 1e3;

void write_rate(JsonWriter& writer, std::string_view name, int64_t num_tokens, double seconds) {
  writer.member(fmt::format("{}_n", name), num_tokens);
  writer.member(fmt::format("{}_ms", name), kMilliseconds * seconds);
  writer.member(fmt::format("{}_per_token_ms", name),
                num_tokens > 0 ? kMilliseconds * seconds / static_cast<double>(num_tokens) : 0.0);
  writer.member(fmt::format("{}_per_second", name),
                seconds > 0 ? static_cast<double>(num_tokens) / seconds : 0.0);
}

void write_pieces(JsonWriter& writer, const std::vector<TextPiece>& pieces) {
  writer.key("pieces").begin_array();
  for (const TextPiece& piece : pieces) {
    writer.begin_object().member("text", piece.text).member("accepted", piece.is_accepted);
    writer.end_object();
  }
  writer.end_array();
}

void write_calls(JsonWriter& writer, const std::vector<ToolCall>& calls) {
  writer.key("tool_calls").begin_array();
  for (const ToolCall& call : calls) {
    writer.begin_object().member("id", call.id).member("type", "function");
    writer.key("function").begin_object().member("name", call.name);
    writer.member("arguments", call.arguments).end_object().end_object();
  }
  writer.end_array();
}

void write_turn(JsonWriter& writer, const TurnParts& turn, std::string_view reasoning_field) {
  writer.key("content");
  const bool has_no_content = turn.must_call || !turn.tool_calls.empty();
  turn.content.empty() && has_no_content ? writer.null() : writer.string(turn.content);
  if (!turn.reasoning.empty()) writer.member(reasoning_field, turn.reasoning);
  if (!turn.tool_calls.empty()) write_calls(writer, turn.tool_calls);
}

}  // namespace

void write_warnings(JsonWriter& writer, const std::vector<std::string>& warnings) {
  constexpr size_t kMostWarnings = 32;
  writer.key("warnings").begin_array();
  for (size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i) writer.string(warnings[i]);
  if (warnings.size() > kMostWarnings) {
    writer.string(fmt::format("and {} more", warnings.size() - kMostWarnings));
  }
  writer.end_array();
}

void write_timings(JsonWriter& writer, const ResponseTimings& timings) {
  const Timings& times = timings.times;
  const Usage& tokens = timings.tokens;
  writer.key("timings").begin_object().member("queue_ms", kMilliseconds * times.queue_seconds);
  writer.member("ttft_ms", kMilliseconds * times.time_to_first_token_seconds);
  writer.member("cache_n", tokens.cached_tokens);
  write_rate(writer, "prompt", tokens.prompt_tokens - tokens.cached_tokens, times.prompt_seconds);
  // The first token comes with the prompt.
  write_rate(writer, "predicted", std::max<int64_t>(tokens.completion_tokens - 1, 0),
             times.output_seconds);
  if (tokens.drafted_tokens > 0) {
    writer.member("draft_n", tokens.drafted_tokens);
    writer.member("draft_n_accepted", tokens.accepted_tokens);
  }
  writer.end_object();
}

void write_seed(JsonWriter& writer, const ResponseChoice& choice) {
  if (choice.is_seed_signed) {
    writer.member("seed", static_cast<int64_t>(choice.seed));
  } else {
    writer.member("seed", choice.seed);
  }
}

void write_head(JsonWriter& writer, const ResponseHead& head, std::string_view object) {
  writer.member("id", head.id).member("object", object);
  writer.member("created", head.created).member("model", head.model);
  if (!head.system_fingerprint.empty()) {
    writer.member("system_fingerprint", head.system_fingerprint);
  }
  if (!head.warnings.empty()) write_warnings(writer, head.warnings);
}

void write_usage(JsonWriter& writer, const ResponseUsage& usage) {
  writer.key("usage").begin_object();
  writer.member("prompt_tokens", usage.prompt_tokens);
  writer.member("completion_tokens", usage.completion_tokens);
  writer.member("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  if (usage.cached_tokens) {
    writer.key("prompt_tokens_details").begin_object();
    writer.member("cached_tokens", *usage.cached_tokens).end_object();
  }
  if (usage.has_prediction || usage.reasoning_tokens) {
    writer.key("completion_tokens_details").begin_object();
    if (usage.reasoning_tokens) writer.member("reasoning_tokens", *usage.reasoning_tokens);
    if (usage.has_prediction) {
      writer.member("accepted_prediction_tokens", usage.accepted_tokens);
      writer.member("rejected_prediction_tokens", usage.drafted_tokens - usage.accepted_tokens);
    }
    writer.end_object();
  }
  writer.end_object();
}

void write_input_output_usage(JsonWriter& writer, const ResponseUsage& usage,
                              int64_t cache_write_tokens) {
  writer.key("usage").begin_object().member("input_tokens", usage.prompt_tokens);
  writer.key("input_tokens_details").begin_object();
  writer.member("cached_tokens", usage.cached_tokens.value_or(0));
  writer.member("cache_write_tokens", cache_write_tokens).end_object();
  writer.member("output_tokens", usage.completion_tokens);
  writer.key("output_tokens_details").begin_object();
  writer.member("reasoning_tokens", usage.reasoning_tokens.value_or(0)).end_object();
  writer.member("total_tokens", usage.prompt_tokens + usage.completion_tokens).end_object();
}

void write_choice_end(JsonWriter& writer, const ResponseChoice& choice) {
  writer.member("finish_reason", choice.finish_reason).member("stop_reason", choice.stop_reason);
  if (choice.prompt_logprobs) {
    writer.key("prompt_logprobs");
    write_prompt_logprobs(writer, *choice.prompt_logprobs);
  }
  if (choice.token_ids) writer.member("token_ids", *choice.token_ids);
  if (choice.timings) write_timings(writer, *choice.timings);
  write_seed(writer, choice);
}

std::string choices_json(const ChoicesResponse& answer, std::string_view object,
                         void (*write_body)(JsonWriter& writer, const ResponseChoice& choice,
                                            const ChoicesResponse& answer)) {
  return object_json([&](JsonWriter& writer) {
    write_head(writer, answer.head, object);
    writer.key("choices").begin_array();
    for (const ResponseChoice& choice : answer.choices) {
      writer.begin_object().member("index", choice.index);
      write_body(writer, choice, answer);
      write_choice_end(writer, choice);
      writer.end_object();
    }
    writer.end_array();
    write_usage(writer, answer.usage);
  });
}

void write_chunk_end(JsonWriter& writer, const ResponseChunk& chunk) {
  if (!chunk.pieces.empty()) write_pieces(writer, chunk.pieces);
  if (chunk.ending == nullptr) {
    writer.key("finish_reason").null();
    if (chunk.token_ids) writer.member("token_ids", *chunk.token_ids);
    return;
  }
  ResponseChoice ending = *chunk.ending;
  ending.token_ids = chunk.token_ids;
  write_choice_end(writer, ending);
}

void write_assistant_message(JsonWriter& writer, const std::optional<std::string>& text,
                             const std::optional<TurnParts>& turn,
                             std::string_view reasoning_field) {
  writer.member("role", "assistant");
  if (turn) return write_turn(writer, *turn, reasoning_field);
  writer.member("content", text);
}

ResponseHead new_head(std::string_view id_prefix, std::string model) {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::microseconds;
  const auto now = WallClock::now().time_since_epoch();
  const auto second = duration_cast<seconds>(now);
  return {.id = random_id(id_prefix),
          .created = second.count(),
          .created_micros = duration_cast<microseconds>(now - second).count(),
          .model = std::move(model)};
}

std::string rfc3339(int64_t seconds, int64_t micros) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(seconds), micros);
}

std::string random_id(std::string_view prefix) {
  static thread_local const uint64_t key = [] {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }();
  static thread_local uint64_t counter = 0;
  const auto words = philox4x32(key, counter++);
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, words[0], words[1], words[2]);
}

}  // namespace paceline
