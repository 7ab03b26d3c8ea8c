// The events of a streamed response, in OpenAI's order.
#include <utility>

#include "base/json_writer.h"
#include "protocol/logprobs_json.h"
#include "protocol/responses_writer.h"

namespace paceline::responses {

using Kind = OutputItem::Kind;

template <class Write>
void Writer::event(std::string_view type, std::string& out, const Write& write) {
  append_typed_event(type, out, [&](JsonWriter& writer) {
    writer.member("sequence_number", num_events_++);
    write(writer);
  });
}

template <class Write>
void Writer::item_event(std::string_view type, std::string& out, const Write& write) {
  event(type, out, [&](JsonWriter& writer) {
    writer.member("output_index", items_.size() - 1);
    write(writer);
  });
}

void Writer::response_event(std::string_view type, const Outcome& outcome, std::string& out) {
  const std::string json = response_json(outcome);
  if (outcome.status != "in_progress") store(json);
  event(type, out, [&](JsonWriter& writer) { writer.key("response").raw(json); });
}

// "response.output_text.delta" and its kin.
void Writer::text_event(std::string_view suffix, std::string_view member, std::string_view text,
                        const std::vector<ReportedToken>& logprobs, std::string& out) {
  const OutputItem& item = items_.back();
  const bool is_summary = item.kind == Kind::reasoning && summarises_reasoning_;
  std::string type(is_summary ? "response.reasoning_summary_text."
                              : names_of(item.kind).text_event);
  item_event(type.append(suffix), out, [&](JsonWriter& writer) {
    writer.member("item_id", item.id);
    if (is_summary) {
      writer.member("summary_index", 0);
    } else if (item.kind == Kind::message || item.kind == Kind::reasoning) {
      writer.member("content_index", 0);
    }
    writer.member(member, text);
    if (item.kind != Kind::message) return;
    writer.key("logprobs");
    write_chat_logprobs(writer, logprobs, TokenNaming::text);
  });
}

// "response.content_part.added" and its kin, of items that have parts.
void Writer::part_event(std::string_view suffix, std::string_view text, std::string& out) {
  const OutputItem& item = items_.back();
  if (item.kind != Kind::message && item.kind != Kind::reasoning) return;
  const bool is_summary = item.kind == Kind::reasoning && summarises_reasoning_;
  std::string type = is_summary ? "response.reasoning_summary_part." : "response.content_part.";
  item_event(type.append(suffix), out, [&](JsonWriter& writer) {
    writer.member("item_id", item.id).member(is_summary ? "summary_index" : "content_index", 0);
    write_part(writer.key("part"), item, text);
  });
}

void Writer::open(Kind kind, std::string& out, const TurnDelta& call) {
  if (is_open_ && items_.back().kind == kind && !call.begins_call) return;
  close("completed", out);
  OutputItem& item = add(kind);
  item.call_id = call.call_id;
  item.name = call.call_name;
  is_open_ = true;
  item_event("response.output_item.added", out,
             [&](JsonWriter& writer) { write_item(writer.key("item"), item, "in_progress"); });
  part_event("added", "", out);
}

void Writer::close(std::string_view status, std::string& out) {
  if (!std::exchange(is_open_, false)) return;
  OutputItem& item = items_.back();
  if (item.kind == Kind::custom_call) {
    item.text = input_of(item.text);
    text_event("delta", "delta", item.text, {}, out);
  }
  const std::string_view member = names_of(item.kind).text_member;
  if (!member.empty()) text_event("done", member, item.text, item.logprobs, out);
  part_event("done", item.text, out);
  item_event("response.output_item.done", out,
             [&](JsonWriter& writer) { write_item(writer.key("item"), item, status); });
}

void Writer::add_text(Kind kind, std::string_view text, const ResponseChunk& chunk,
                      std::string& out) {
  if (text.empty()) return;
  open(kind, out);
  OutputItem& item = items_.back();
  item.text += text;
  std::vector<ReportedToken> logprobs;
  if (kind == Kind::message && chunk.logprobs) logprobs = *chunk.logprobs;
  item.logprobs.insert(item.logprobs.end(), logprobs.begin(), logprobs.end());
  text_event("delta", "delta", text, logprobs, out);
}

void Writer::add_call(const TurnDelta& turn, std::string& out) {
  if (turn.begins_call) open(kind_of_call(turn.call_name), out, turn);
  if (turn.arguments.empty()) return;
  OutputItem& item = items_.back();
  item.text += turn.arguments;
  // The arguments of a custom tool are one text, which is known when they are whole.
  if (item.kind == Kind::call) text_event("delta", "delta", turn.arguments, {}, out);
}

void Writer::begin(const AnswerStart& start, std::string& out) {
  head_ = start.head;
  response_event("response.created", {.status = "in_progress"}, out);
  response_event("response.in_progress", {.status = "in_progress"}, out);
}

void Writer::chunk(const ResponseChunk& chunk, std::string& out) {
  if (chunk.ending != nullptr) finish_reason_ = chunk.ending->finish_reason;
  if (compacts_) {
    if (chunk.ending != nullptr) take_turn(*chunk.ending);
    return;
  }
  if (chunk.turn == nullptr) return add_text(Kind::message, chunk.text.value_or(""), chunk, out);
  add_text(Kind::reasoning, chunk.turn->reasoning, chunk, out);
  add_text(Kind::message, chunk.turn->content, chunk, out);
  if (chunk.turn->call_index) add_call(*chunk.turn, out);
}

void Writer::end(const ResponseUsage& usage, std::string& out) {
  if (compacts_ && !items_.empty()) {
    const OutputItem& item = items_.back();
    for (const std::string_view type :
         {"response.output_item.added", "response.output_item.done"}) {
      item_event(type, out,
                 [&](JsonWriter& writer) { write_item(writer.key("item"), item, "completed"); });
    }
  } else if (items_.empty()) {
    open(Kind::message, out);
  }
  const std::string_view status = final_status();
  close(status, out);
  response_event("response." + std::string(status), {.status = status, .usage = &usage}, out);
}

void Writer::fail(const ApiError& error, std::string& out) {
  close("incomplete", out);
  response_event("response.failed", {.status = "failed", .error = &error}, out);
}

}  // namespace paceline::responses
