// TurnReader takes a model's turn apart while it is written: reasoning, content and tool calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/call_reader.h"
#include "tools/tool_set.h"
#include "tools/turn_event.h"
#include "tools/turn_format.h"

namespace paceline {

struct TurnReaderOptions {
  bool begins_in_reasoning = false;  // ReasoningFormat::is_opened_by of the prompt
  bool reads_calls = true;           // false: tool_choice "none"
  bool must_call = false;            // what isn't reasoning is calls: there is no content
  // Makes an id for a call whose format has none; without it such ids are empty.
  std::function<std::string()> make_id;
};

// What turns out to be no call is content. Dropped are marks, with the blanks beside them, and the
// beginning of a call, of what stands between calls or of a value's end where the text ends there:
// it was cut short. Never throws because of the text. Memory: the text that isn't decided yet,
// which is a possible beginning of a mark, or a call whose name or id stands after its arguments.
class TurnReader {
 public:
  TurnReader(std::shared_ptr<const TurnFormat> format, std::shared_ptr<const ToolSet> tools,
             TurnReaderOptions options);

  // The text as it is shown, special tokens as their text. The events of all calls together don't
  // depend on where the text is cut, but for pieces of one kind being cut too.
  std::vector<TurnEvent> push(std::string_view text);
  // The text ends here; call it once.
  std::vector<TurnEvent> finish();

 private:
  enum class State : uint8_t {
    start,
    reasoning,
    content_start,  // behind the reasoning
    content,
    call,
    between_calls,
  };

  // Goes on in the text. False: more text decides.
  bool step();
  bool take_start();
  bool take_reasoning();
  bool take_content_start();
  bool take_begun_call();
  bool take_content();
  bool take_call();
  bool take_between_calls();
  bool begin_first_call(size_t at);
  void begin_call(size_t skipped);
  void give_call_back();
  bool drop_cut_text();
  void emit(TurnEvent::Kind kind, std::string_view text);
  void emit_content(size_t bytes);
  void emit_first_character();
  size_t content_held() const;
  size_t end_mark_begin() const;
  void drop(size_t bytes) { text_.erase(0, bytes); }
  bool reads_calls() const { return options_.reads_calls && format_->calls.has_value(); }
  // Whether a call may begin at the current place.
  bool may_begin_call() const;

  std::shared_ptr<const TurnFormat> format_;
  std::shared_ptr<const ToolSet> tools_;
  TurnReaderOptions options_;
  State state_ = State::start;
  std::string text_;  // not yet decided
  bool is_final_ = false;
  bool has_content_ = false;
  bool is_reasoning_begun_ = false;
  bool is_behind_reasoning_ = false;
  bool skips_blanks_ = false;  // behind calls
  std::string call_lead_;      // the text in front of the call's pieces
  std::optional<CallReader> call_;
  size_t num_calls_ = 0;
  std::vector<std::string> ends_;    // of the turn, without blanks
  std::vector<std::string> joints_;  // of content and a call's trigger, without blanks
  size_t longest_mark_ = 0;          // of these, with blanks
  std::string end_blanks_;           // in front of the token that ends the turn, which isn't shown
  std::vector<TurnEvent> events_;
};

}  // namespace paceline
