// responses::Writer makes the Response object of the Responses API and the events of its stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/dialect.h"
#include "protocol/responses_request.h"

namespace paceline::responses {

// One item of an answer.
struct OutputItem {
  enum class Kind : uint8_t { reasoning, message, call, custom_call, compaction };
  Kind kind = Kind::message;
  std::string id;
  std::string text;  // reasoning, content, arguments, input or sealed summary
  std::string call_id;
  std::string name;
  std::vector<ReportedToken> logprobs;
};

// What the API calls a kind of item, and the texts of one in a stream.
struct KindNames {
  std::string_view type;
  std::string_view id_prefix;
  std::string_view text_event = {};
  std::string_view text_member = {};
};
// In the order of the kinds.
inline constexpr KindNames kKindNames[] = {
    {"reasoning", "rs", "response.reasoning_text.", "text"},
    {"message", "msg", "response.output_text.", "text"},
    {"function_call", "fc", "response.function_call_arguments.", "arguments"},
    {"custom_tool_call", "ctc", "response.custom_tool_call_input.", "input"},
    {"compaction", "cmp"}};
inline const KindNames& names_of(OutputItem::Kind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

struct Outcome {
  std::string_view status;  // of the response
  const ResponseUsage* usage = nullptr;
  const ApiError* error = nullptr;
};

// What the object says of an error.
std::string_view error_code_of(ErrorReason reason);

// A stored Response object with another status.
std::string with_status(const std::string& json, std::string_view status);
// Makes a stored response that was running one that failed, or was cancelled, with the error of an
// answer's body. Does nothing when it isn't there.
void store_failure(ResponseStore& store, const std::string& owner, const std::string& id,
                   const std::string& error_body);

class Writer : public ChoiceWriter {
 public:
  // Stored state belongs to the terms' owner; seal and store outlive the writer.
  Writer(const Request& request, const CallTerms& terms);

  std::string_view id_prefix() const override { return "resp_"; }
  void see_prompts(const PromptFacts& facts) override;
  std::string accepted(const ResponseHead& head) override;
  std::string whole(const ChoicesResponse& answer) override;
  void begin(const AnswerStart& start, std::string& out) override;
  void chunk(const ResponseChunk& chunk, std::string& out) override;
  void end(const ResponseUsage& usage, std::string& out) override;
  void fail(const ApiError& error, std::string& out) override;

 protected:
  // The answer's items, from a turn that is whole.
  void take_turn(const ResponseChoice& choice);
  void write_items(JsonWriter& writer, std::string_view last_status) const;

  ResponseHead head_;

 private:
  template <class Write>
  void event(std::string_view type, std::string& out, const Write& write);
  // One of the open item, and of its part.
  template <class Write>
  void item_event(std::string_view type, std::string& out, const Write& write);
  void text_event(std::string_view suffix, std::string_view member, std::string_view text,
                  const std::vector<ReportedToken>& logprobs, std::string& out);
  void part_event(std::string_view suffix, std::string_view text, std::string& out);
  void response_event(std::string_view type, const Outcome& outcome, std::string& out);

  OutputItem& add(OutputItem::Kind kind);
  void open(OutputItem::Kind kind, std::string& out, const TurnDelta& call = {});
  void close(std::string_view status, std::string& out);
  void add_text(OutputItem::Kind kind, std::string_view text, const ResponseChunk& chunk,
                std::string& out);
  void add_call(const TurnDelta& turn, std::string& out);
  OutputItem::Kind kind_of_call(std::string_view name) const;

  // The text that a custom tool gets, out of the arguments of its function; those that were cut off
  // stay as they are.
  static std::string input_of(const std::string& arguments);
  std::string_view final_status() const;
  std::string sealed(std::string_view text, std::string_view purpose) const;
  void write_item(JsonWriter& writer, const OutputItem& item, std::string_view status) const;
  void write_part(JsonWriter& writer, const OutputItem& item, std::string_view text) const;
  std::string response_json(const Outcome& outcome) const;
  void store(const std::string& json);

  std::string echo_;
  std::vector<std::string> custom_tools_;
  bool seals_reasoning_;
  bool summarises_reasoning_;
  bool compacts_;
  bool is_background_;
  const Seal* seal_;
  ResponseStore* store_;  // null: the response isn't stored
  std::string owner_;
  Json::Array input_;
  std::vector<StoredText> earlier_;
  float temperature_ = 1;
  float top_p_ = 1;

  std::vector<OutputItem> items_;
  // Of a stream.
  int64_t num_events_ = 0;
  bool is_open_ = false;  // the last item
  std::string finish_reason_;
};

}  // namespace paceline::responses
