// POST /v1/messages and /v1/messages/count_tokens, Anthropic's.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/json_writer.h"
#include "protocol/anthropic_request.h"
#include "protocol/dialect.h"

namespace paceline {
namespace anthropic {
namespace {

// Signatures open for the key that they were made for.
constexpr std::string_view kPurpose = "thinking";

struct Kind {
  int status;
  std::string_view type;
};

// The statuses are those of OpenAI's API but for two: Anthropic's client retries after 408, 409,
// 429 and everything from 500 on, so what a retry would meet again is none of these, and an
// overload has a status of its own.
Kind kind_of(ErrorReason reason) {
  constexpr Kind kKinds[] = {
      {401, "authentication_error"},
      {403, "permission_error"},
      {404, "not_found_error"},
      {408, "timeout_error"},
      {413, "request_too_large"},
      {429, "rate_limit_error"},
      {499, "api_error"},
      {500, "api_error"},
      {503, "overloaded_error"},
      {504, "timeout_error"},
  };
  constexpr int kUnsupported = 501, kUnavailable = 503, kOverloaded = 529;
  const int status = openai_kind(reason).status;
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                        [&](const Kind& one) { return one.status == status; });
  if (status == kUnavailable) return {kOverloaded, kind->type};
  if (kind != std::end(kKinds)) return *kind;
  return {status == kUnsupported ? 400 : status, "invalid_request_error"};
}

std::string error_body(const ApiError& error, std::string_view request_id) {
  return object_json([&](JsonWriter& writer) {
    writer.member("type", "error").key("error").begin_object();
    writer.member("type", kind_of(error.reason).type).member("message", error.message).end_object();
    if (!request_id.empty()) writer.member("request_id", request_id);
  });
}

ErrorAnswer write_error(const ApiError& error, std::string_view request_id) {
  return {.status = kind_of(error.reason).status, .body = error_body(error, request_id)};
}

void write_usage_member(JsonWriter& writer, const ResponseUsage& usage) {
  const int64_t num_cached = usage.cached_tokens.value_or(0);
  writer.key("usage").begin_object().member("input_tokens", usage.prompt_tokens - num_cached);
  writer.member("cache_creation_input_tokens", 0).member("cache_read_input_tokens", num_cached);
  writer.member("output_tokens", usage.completion_tokens);
  if (usage.reasoning_tokens) {
    writer.key("output_tokens_details").begin_object();
    writer.member("thinking_tokens", *usage.reasoning_tokens).end_object();
  }
  writer.end_object();
}

class Writer : public ChoiceWriter {
 public:
  Writer(const Request& request, const CallTerms& terms)
      : shows_reasoning_(request.shows_reasoning),
        max_tokens_(request.chat.options.max_tokens.value_or(0)),
        seal_(terms.seal),
        owner_(terms.owner) {}

  std::string_view id_prefix() const override { return "msg_"; }

  std::string whole(const ChoicesResponse& answer) override {
    head_ = answer.head;
    const ResponseChoice& choice = answer.choices.at(0);
    TurnParts turn = choice.turn.value_or(TurnParts{.content = choice.text.value_or("")});
    return object_json([&](JsonWriter& writer) {
      write_head_members(writer);
      writer.key("content").begin_array();
      if (!turn.reasoning.empty()) {
        writer.begin_object().member("type", "thinking");
        writer.member("thinking", shows_reasoning_ ? turn.reasoning : "");
        writer.member("signature", signature_of(turn.reasoning)).end_object();
      }
      if (!turn.content.empty()) {
        writer.begin_object().member("type", "text").member("text", turn.content).end_object();
      }
      for (const ToolCall& call : turn.tool_calls) {
        // One that was cut off has no input.
        const auto input = parse_object(call.arguments);
        if (!input) continue;
        writer.begin_object().member("type", "tool_use").member("id", call.id);
        writer.member("name", call.name).key("input").tree(*input).end_object();
      }
      writer.end_array();
      write_stop(writer, choice, answer.usage);
      write_usage_member(writer, answer.usage);
    });
  }

  void begin(const AnswerStart& start, std::string& /*out*/) override {
    head_ = start.head;
    start_usage_ = start.usage;
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    write_start(chunk.cached_tokens, out);
    if (chunk.turn == nullptr) {
      write_text(Block::text, chunk.text.value_or(""), out);
    } else {
      const TurnDelta& turn = *chunk.turn;
      write_text(Block::thinking, turn.reasoning, out);
      write_text(Block::text, turn.content, out);
      if (turn.begins_call) open(Block::call, out, turn);
      if (!turn.arguments.empty()) delta("input_json_delta", "partial_json", turn.arguments, out);
    }
    if (chunk.ending != nullptr) ending_ = *chunk.ending;
  }

  void end(const ResponseUsage& usage, std::string& out) override {
    write_start(usage.cached_tokens.value_or(0), out);
    close(out);
    append_typed_event("message_delta", out, [&](JsonWriter& writer) {
      writer.key("delta").begin_object();
      write_stop(writer, ending_, usage);
      writer.end_object();
      write_usage_member(writer, usage);
    });
    append_typed_event("message_stop", out, [](JsonWriter&) {});
  }

  void fail(const ApiError& error, std::string& out) override {
    out.append("event: error\ndata: ").append(error_body(error, {})).append("\n\n");
  }

  void ping(std::string& out) override { out += "event: ping\ndata: {\"type\": \"ping\"}\n\n"; }

 private:
  enum class Block : uint8_t { none, thinking, text, call };

  std::string signature_of(std::string_view reasoning) const {
    if (seal_ == nullptr) return {};
    return seal_->close(reasoning, {.purpose = kPurpose, .owner = owner_});
  }

  void write_head_members(JsonWriter& writer) const {
    writer.member("id", head_.id).member("type", "message").member("role", "assistant");
    writer.member("model", head_.model);
    if (head_.warnings.empty()) return;
    writer.member("warnings", head_.warnings);
  }

  // The members stop_reason and stop_sequence.
  void write_stop(JsonWriter& writer, const ResponseChoice& choice,
                  const ResponseUsage& usage) const {
    const std::string* sequence = nullptr;
    if (choice.stop_reason) sequence = std::get_if<std::string>(&*choice.stop_reason);
    std::string_view reason = sequence != nullptr ? "stop_sequence" : "end_turn";
    if (choice.finish_reason == "tool_calls") reason = "tool_use";
    if (choice.finish_reason == "length") {
      reason =
          usage.completion_tokens < max_tokens_ ? "model_context_window_exceeded" : "max_tokens";
    }
    writer.member("stop_reason", reason).key("stop_sequence");
    sequence != nullptr&& reason == "stop_sequence" ? writer.string(*sequence) : writer.null();
  }

  // An event of the open block; `write` adds members.
  template <class Write>
  void block_event(std::string_view type, std::string& out, const Write& write) const {
    append_typed_event(type, out, [&](JsonWriter& writer) {
      writer.member("index", num_closed_);
      write(writer);
    });
  }

  void delta(std::string_view type, std::string_view name, std::string_view text,
             std::string& out) const {
    block_event("content_block_delta", out, [&](JsonWriter& writer) {
      writer.key("delta").begin_object().member("type", type).member(name, text).end_object();
    });
  }

  void open(Block kind, std::string& out, const TurnDelta& call = {}) {
    if (block_ == kind && !call.begins_call) return;
    close(out);
    block_ = kind;
    block_event("content_block_start", out, [&](JsonWriter& writer) {
      writer.key("content_block").begin_object();
      if (kind == Block::call) {
        writer.member("type", "tool_use").member("id", call.call_id).member("name", call.call_name);
        writer.key("input").begin_object().end_object();
      } else if (kind == Block::text) {
        writer.member("type", "text").member("text", "");
      } else {
        writer.member("type", "thinking").member("thinking", "").member("signature", "");
      }
      writer.end_object();
    });
  }

  void close(std::string& out) {
    if (block_ == Block::none) return;
    if (block_ == Block::thinking) {
      delta("signature_delta", "signature", signature_of(std::exchange(reasoning_, {})), out);
    }
    block_event("content_block_stop", out, [](JsonWriter&) {});
    block_ = Block::none;
    ++num_closed_;
  }

  // Not before the first token, which says how much of the prompt was cached.
  void write_start(int64_t cached_tokens, std::string& out) {
    if (std::exchange(has_started_, true)) return;
    start_usage_.cached_tokens = cached_tokens;
    append_typed_event("message_start", out, [&](JsonWriter& writer) {
      writer.key("message").begin_object();
      write_head_members(writer);
      writer.key("content").begin_array().end_array();
      writer.key("stop_reason").null().key("stop_sequence").null();
      write_usage_member(writer, start_usage_);
      writer.end_object();
    });
  }

  void write_text(Block kind, std::string_view text, std::string& out) {
    if (text.empty()) return;
    open(kind, out);
    if (kind == Block::text) return delta("text_delta", "text", text, out);
    reasoning_ += text;
    if (shows_reasoning_) delta("thinking_delta", "thinking", text, out);
  }

  bool shows_reasoning_;
  int64_t max_tokens_;
  const Seal* seal_;
  std::string owner_;

  ResponseHead head_;
  // Of a stream.
  ResponseUsage start_usage_;
  bool has_started_ = false;
  Block block_ = Block::none;  // the open one
  int64_t num_closed_ = 0;     // blocks
  std::string reasoning_;      // of the open block
  ResponseChoice ending_;
};

SignatureReader signatures_of(const CallTerms& terms) {
  return {.seal = terms.seal, .scope = {.purpose = kPurpose, .owner = terms.owner}};
}

Call parse_messages(const Json& body, const CallTerms& terms) {
  Request request = parse_request(body, terms.limits, signatures_of(terms));
  GenerationCall call{.writer = std::make_unique<Writer>(request, terms)};
  call.request = std::move(request.chat);
  return call;
}

Call parse_count(const Json& body, const CallTerms& terms) {
  return CountCall{
      .request = parse_prompt(body, terms.limits, signatures_of(terms)).chat,
      .write = [](int64_t num_tokens) {
        return object_json([&](JsonWriter& writer) { writer.member("input_tokens", num_tokens); });
      }};
}

constexpr Dialect dialect(decltype(Dialect::fields) fields, decltype(Dialect::parse) parse) {
  return {.fields = fields,
          .parse = parse,
          .error = write_error,
          .error_schema = "AnthropicError",
          .id_header = "request-id"};
}

}  // namespace
}  // namespace anthropic

const Dialect kMessagesDialect =
    anthropic::dialect(anthropic::request_fields, anthropic::parse_messages);
const Dialect kMessageCountDialect =
    anthropic::dialect(anthropic::prompt_fields, anthropic::parse_count);

}  // namespace paceline
