// Any text is read as a model's turn in any format, the same wherever it is cut. Of the input the
// first byte chooses the format, the second one the pieces, the rest is the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/chat_template.h"
#include "tests/tools/mini_templates.h"
#include "tools/derive_turn_format.h"
#include "tools/turn_reader.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

const std::vector<std::shared_ptr<const TurnFormat>>& formats() {
  static const auto all = [] {
    std::vector<std::shared_ptr<const TurnFormat>> derived;
    for (const MiniTemplate& one : mini_templates()) {
      derived.push_back(std::make_shared<const TurnFormat>(
          derive_turn_format(ChatTemplate::parse(one.source, one.name))));
      require(derived.back()->calls.has_value());
    }
    return derived;
  }();
  return all;
}

std::shared_ptr<const ToolSet> fuzzed_tools() {
  static const auto tools = std::make_shared<const ToolSet>(
      std::vector<ToolSpec>{{"get", R"({"type": "object", "properties": {"a": {"type": "string"},
                  "b": {"type": "integer"}, "c": {"type": ["array", "null"]}}})"},
                            {"get_time", ""}});
  return tools;
}

// All events, neighbours of one kind as one.
std::vector<TurnEvent> events_of(const std::shared_ptr<const TurnFormat>& format,
                                 bool begins_in_reasoning, std::string_view text,
                                 size_t piece_bytes) {
  TurnReader reader(
      format, fuzzed_tools(),
      {.begins_in_reasoning = begins_in_reasoning, .make_id = [] { return std::string("made"); }});
  std::vector<TurnEvent> all;
  const auto add = [&](std::vector<TurnEvent> events) {
    for (TurnEvent& event : events) {
      const bool is_text =
          event.kind != TurnEvent::Kind::call_begun && event.kind != TurnEvent::Kind::call_ended;
      if (is_text && !all.empty() && all.back().kind == event.kind) {
        all.back().text += event.text;
      } else {
        all.push_back(std::move(event));
      }
    }
  };
  for (size_t at = 0; at < text.size(); at += piece_bytes) {
    add(reader.push(text.substr(at, piece_bytes)));
  }
  add(reader.finish());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto& format = formats()[data[0] % formats().size()];
  const bool begins_in_reasoning = format->reasoning && data[1] >= 128;
  const size_t piece_bytes = 1 + data[1] % 16;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  require(events_of(format, begins_in_reasoning, text, text.size() + 1) ==
          events_of(format, begins_in_reasoning, text, piece_bytes));
  return 0;
}
