#include "protocol/responses_writer.h"

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "chat/message_json.h"
#include "protocol/logprobs_json.h"

namespace paceline::responses {
namespace {

using Kind = OutputItem::Kind;

constexpr std::string_view kCompleted = "completed";
constexpr std::string_view kIncomplete = "incomplete";
constexpr std::string_view kInProgress = "in_progress";

// Those of the tokens that have a part of `content`, which stands in the text that all made.
std::vector<ReportedToken> tokens_of_content(const ResponseChoice& choice,
                                             const std::string& content) {
  if (!choice.logprobs) return {};
  if (!choice.turn || !choice.text) return *choice.logprobs;
  const size_t begin = choice.text->rfind(content);
  std::vector<ReportedToken> tokens;
  size_t at = 0;
  for (const ReportedToken& token : *choice.logprobs) {
    const size_t next = at + token.text_bytes;
    if (begin != std::string::npos && next > begin && at < begin + content.size()) {
      tokens.push_back(token);
    }
    at = next;
  }
  return tokens;
}

}  // namespace

std::string_view error_code_of(ErrorReason reason) {
  const int status = openai_kind(reason).status;
  constexpr int kTooMany = 429, kOfServer = 500;
  if (status == kTooMany) return "rate_limit_exceeded";
  return status < kOfServer ? "invalid_prompt" : "server_error";
}

std::string with_status(const std::string& json, std::string_view status) {
  return to_json(with_member(parse_json(json, "response"), "status", Json(std::string(status))));
}

void store_failure(ResponseStore& store, const std::string& owner, const std::string& id,
                   const std::string& error_body) {
  const auto stored = store.find(owner, id);
  if (stored == nullptr) return;
  const Json error = *parse_json(error_body, "error").find_value("error");
  const bool is_cancelled = *error.find_value("code")->string() == "cancelled";
  Json response = parse_json(*stored->json, "response");
  response = with_member(response, "status", is_cancelled ? "cancelled" : "failed");
  if (!is_cancelled) {
    const bool is_of_request = *error.find_value("type")->string() == "invalid_request_error";
    response = with_member(response, "error",
                           Json::Object{{"code", is_of_request ? "invalid_prompt" : "server_error"},
                                        {"message", *error.find_value("message")}});
  }
  store.replace(owner, id, {.json = store.keep(to_json(response)), .input = stored->input});
}

Writer::Writer(const Request& request, const CallTerms& terms)
    : echo_(request.echo),
      custom_tools_(request.tools.custom),
      seals_reasoning_(request.seals_reasoning && terms.seal != nullptr),
      summarises_reasoning_(request.summarises_reasoning),
      compacts_(request.conversation.asks_for_compaction),
      is_background_(request.is_background),
      seal_(terms.seal),
      store_(request.is_stored ? terms.store : nullptr),
      owner_(terms.owner) {
  if (store_ == nullptr) return;
  input_ = request.conversation.items;
  earlier_ = request.conversation.earlier;
}

void Writer::see_prompts(const PromptFacts& facts) {
  if (facts.requests.empty()) return;
  temperature_ = facts.requests[0]->sampling.temperature;
  top_p_ = facts.requests[0]->sampling.top_p;
}

std::string Writer::sealed(std::string_view text, std::string_view purpose) const {
  return seal_ == nullptr ? std::string()
                          : seal_->close(text, {.purpose = purpose, .owner = owner_});
}

std::string Writer::input_of(const std::string& arguments) {
  const Json json = parse_object(arguments).value_or(Json());
  const std::string* const input = json.find_text("input");
  return input == nullptr ? arguments : *input;
}

std::string_view Writer::final_status() const {
  return finish_reason_ == "length" ? kIncomplete : kCompleted;
}

OutputItem& Writer::add(Kind kind) {
  OutputItem& item = items_.emplace_back();
  item.kind = kind;
  // The response's own id without its prefix.
  item.id = std::string(names_of(kind).id_prefix) + head_.id.substr(head_.id.find('_')) + "_" +
            std::to_string(items_.size() - 1);
  return item;
}

Kind Writer::kind_of_call(std::string_view name) const {
  const bool is_custom =
      std::find(custom_tools_.begin(), custom_tools_.end(), name) != custom_tools_.end();
  return is_custom ? Kind::custom_call : Kind::call;
}

void Writer::take_turn(const ResponseChoice& choice) {
  const TurnParts turn = choice.turn.value_or(TurnParts{.content = choice.text.value_or("")});
  finish_reason_ = choice.finish_reason;
  if (compacts_) {
    add(Kind::compaction).text = sealed(turn.content, kCompactionPurpose);
    return;
  }
  if (!turn.reasoning.empty()) add(Kind::reasoning).text = turn.reasoning;
  if (!turn.content.empty() || (turn.tool_calls.empty() && turn.reasoning.empty())) {
    OutputItem& item = add(Kind::message);
    item.text = turn.content;
    item.logprobs = tokens_of_content(choice, turn.content);
  }
  for (const ToolCall& call : turn.tool_calls) {
    OutputItem& item = add(kind_of_call(call.name));
    item.text = item.kind == Kind::call ? call.arguments : input_of(call.arguments);
    item.call_id = call.id;
    item.name = call.name;
  }
}

void Writer::write_part(JsonWriter& writer, const OutputItem& item, std::string_view text) const {
  if (item.kind == Kind::reasoning) {
    writer.begin_object().member("type", summarises_reasoning_ ? "summary_text" : "reasoning_text");
    writer.member("text", text).end_object();
    return;
  }
  writer.begin_object().member("type", "output_text").member("text", text);
  writer.key("annotations").begin_array().end_array().key("logprobs");
  write_chat_logprobs(writer, text.empty() ? std::vector<ReportedToken>() : item.logprobs,
                      TokenNaming::text);
  writer.end_object();
}

void Writer::write_item(JsonWriter& writer, const OutputItem& item, std::string_view status) const {
  const bool has_parts = status != kInProgress;
  writer.begin_object().member("id", item.id).member("type", names_of(item.kind).type);
  const auto parts = [&](std::string_view name, bool is_there) {
    writer.key(name).begin_array();
    if (is_there) write_part(writer, item, item.text);
    writer.end_array();
  };
  switch (item.kind) {
    case Kind::reasoning:
      parts("summary", has_parts && summarises_reasoning_);
      if (!summarises_reasoning_) parts("content", has_parts);
      if (seals_reasoning_) {
        writer.key("encrypted_content");
        has_parts ? writer.string(sealed(item.text, kReasoningPurpose)) : writer.null();
      }
      break;
    case Kind::message:
      writer.member("role", "assistant");
      parts("content", has_parts);
      break;
    case Kind::call:
    case Kind::custom_call:
      writer.member("call_id", item.call_id).member("name", item.name);
      writer.member(names_of(item.kind).text_member, has_parts ? item.text : "");
      break;
    case Kind::compaction:
      writer.member("encrypted_content", item.text);
  }
  if (item.kind != Kind::compaction) writer.member("status", status);
  writer.end_object();
}

// The last item may be unfinished.
void Writer::write_items(JsonWriter& writer, std::string_view last_status) const {
  writer.begin_array();
  for (const OutputItem& item : items_) {
    write_item(writer, item, &item == &items_.back() ? last_status : kCompleted);
  }
  writer.end_array();
}

std::string Writer::response_json(const Outcome& outcome) const {
  const bool is_over = outcome.status != kInProgress && outcome.status != "queued";
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("id", head_.id).member("object", "response");
  writer.member("created_at", head_.created).member("status", outcome.status);
  writer.member("background", is_background_).key("completed_at");
  outcome.status == kCompleted ? writer.integer(new_head({}, {}).created) : writer.null();
  writer.key("error");
  if (outcome.error == nullptr) {
    writer.null();
  } else {
    writer.begin_object().member("code", error_code_of(outcome.error->reason));
    writer.member("message", outcome.error->message).end_object();
  }
  writer.key("incomplete_details");
  if (outcome.status == kIncomplete) {
    writer.begin_object().member("reason", "max_output_tokens").end_object();
  } else {
    writer.null();
  }
  writer.member("model", head_.model).key("output");
  if (is_over) {
    write_items(writer, outcome.status == kCompleted ? kCompleted : kIncomplete);
  } else {
    writer.begin_array().end_array();
  }
  writer.member("temperature", temperature_).member("top_p", top_p_);
  writer.member("service_tier", "default");
  if (outcome.usage != nullptr) {
    write_input_output_usage(writer, *outcome.usage, 0);
  } else {
    writer.key("usage").null();
  }
  if (!head_.warnings.empty()) writer.member("warnings", head_.warnings);
  writer.end_object();
  if (!echo_.empty()) json.insert(json.size() - 1, "," + echo_);
  return json;
}

// Items that came without an id get one.
void Writer::store(const std::string& json) {
  if (store_ == nullptr) return;
  const std::string suffix = head_.id.substr(head_.id.find('_')) + "_i";
  int64_t index = 0;
  for (Json& item : input_) {
    const std::string id = "msg" + suffix + std::to_string(index++);
    if (item.find_value("id") == nullptr) item = with_member(item, "id", Json(id));
  }
  std::string output;
  JsonWriter writer(output);
  write_items(writer, kCompleted);
  StoredResponse response{.json = store_->keep(json),
                          .input = store_->keep(to_json(Json(input_))),
                          .context = earlier_};
  response.context.push_back(response.input);
  response.context.push_back(store_->keep(std::move(output)));
  if (!store_->replace(owner_, head_.id, response) && !is_background_) {
    store_->add(owner_, head_.id, std::move(response));
  }
}

std::string Writer::accepted(const ResponseHead& head) {
  head_ = head;
  std::string json = response_json({.status = "queued"});
  if (store_ != nullptr) {
    store_->add(owner_, head_.id, {.json = store_->keep(json), .input = store_->keep("[]")});
  }
  return json;
}

std::string Writer::whole(const ChoicesResponse& answer) {
  head_ = answer.head;
  take_turn(answer.choices.at(0));
  std::string json = response_json({.status = final_status(), .usage = &answer.usage});
  store(json);
  return json;
}

}  // namespace paceline::responses
