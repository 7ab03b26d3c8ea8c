// Shared by the tests of tools/: turns read as a whole, or in pieces.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "paceline/chat_template.h"
#include "tools/derive_turn_format.h"
#include "tools/turn_reader.h"

namespace paceline {

struct CallRead {
  std::string name;
  std::string arguments;
  std::string id = "made0";
  bool is_complete = true;
  bool operator==(const CallRead&) const = default;
};

inline void PrintTo(const CallRead& call, std::ostream* out) {
  *out << call.name << call.arguments << " id " << call.id << (call.is_complete ? "" : " (broken)");
}

struct TurnRead {
  std::string reasoning;
  std::string content;
  std::vector<CallRead> calls;
  bool operator==(const TurnRead&) const = default;
};

inline void PrintTo(const TurnRead& turn, std::ostream* out) {
  *out << "reasoning " << json_quote(turn.reasoning) << " content " << json_quote(turn.content);
  for (const CallRead& call : turn.calls) {
    *out << "\n  ";
    PrintTo(call, out);
  }
}

inline void add_events(const std::vector<TurnEvent>& events, TurnRead& turn) {
  for (const TurnEvent& event : events) {
    switch (event.kind) {
      case TurnEvent::Kind::reasoning:
        turn.reasoning += event.text;
        break;
      case TurnEvent::Kind::content:
        turn.content += event.text;
        break;
      case TurnEvent::Kind::call_begun:
        EXPECT_EQ(event.call_index, turn.calls.size());
        turn.calls.push_back({.name = event.name, .id = event.id, .is_complete = false});
        break;
      case TurnEvent::Kind::arguments:
        turn.calls.at(event.call_index).arguments += event.text;
        break;
      case TurnEvent::Kind::call_ended:
        turn.calls.at(event.call_index).is_complete = event.is_complete;
        break;
    }
  }
}

struct TurnText {
  std::string text;
  bool begins_in_reasoning = false;
  bool reads_calls = true;
  bool must_call = false;
};

// With ids made0, made1, ... where the text has none. `cuts`: where the text is cut.
template <class Cuts>
TurnRead read_turn(const TurnFormat& format, const std::shared_ptr<const ToolSet>& tools,
                   const TurnText& turn, Cuts next_piece) {
  int num_ids = 0;
  TurnReader reader(std::make_shared<const TurnFormat>(format), tools,
                    {.begins_in_reasoning = turn.begins_in_reasoning,
                     .reads_calls = turn.reads_calls,
                     .must_call = turn.must_call,
                     .make_id = [&] { return "made" + std::to_string(num_ids++); }});
  TurnRead read;
  std::string_view rest = turn.text;
  while (!rest.empty()) {
    const size_t bytes = std::min<size_t>(rest.size(), next_piece());
    add_events(reader.push(rest.substr(0, bytes)), read);
    rest.remove_prefix(bytes);
  }
  add_events(reader.finish(), read);
  return read;
}

// Read as a whole, byte by byte and in random pieces, which must be the same.
inline TurnRead read_turn(const TurnFormat& format, const std::shared_ptr<const ToolSet>& tools,
                          const TurnText& turn) {
  const TurnRead whole = read_turn(format, tools, turn, [] { return size_t{1} << 30; });
  EXPECT_EQ(read_turn(format, tools, turn, [] { return size_t{1}; }), whole) << turn.text;
  std::mt19937 random(7);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(read_turn(format, tools, turn, [&] { return 1 + random() % 12; }), whole)
        << turn.text;
  }
  return whole;
}

// Cut at any byte, the turn is a beginning of itself. Where it is calls alone no mark is content.
inline void expect_cuts_show_no_marks(const TurnFormat& format,
                                      const std::shared_ptr<const ToolSet>& tools, TurnText turn) {
  const auto read = [&](std::string_view text) {
    TurnText one = turn;
    one.text = text;
    return read_turn(format, tools, one, [] { return size_t{1} << 30; });
  };
  const TurnRead whole = read(turn.text);
  turn.must_call = whole.content.empty() && !whole.calls.empty();
  for (size_t bytes = 0; bytes < turn.text.size(); ++bytes) {
    const std::string_view text = std::string_view(turn.text).substr(0, bytes);
    const TurnRead part = read(text);
    SCOPED_TRACE(text);
    EXPECT_TRUE(whole.reasoning.starts_with(part.reasoning)) << part.reasoning;
    ASSERT_LE(part.calls.size(), whole.calls.size());
    for (size_t i = 0; i < part.calls.size(); ++i) {
      EXPECT_EQ(part.calls[i].name, whole.calls[i].name);
      EXPECT_TRUE(whole.calls[i].arguments.starts_with(part.calls[i].arguments))
          << part.calls[i].arguments;
    }
    if (turn.must_call) {
      EXPECT_EQ(part.content, "");
    }
    EXPECT_EQ(part.content.find(format.calls->trigger), std::string::npos) << part.content;
  }
}

inline TurnFormat format_of(std::string_view source) {
  return derive_turn_format(ChatTemplate::parse(source, "test"),
                            {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}});
}

}  // namespace paceline
