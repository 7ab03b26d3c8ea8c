// CallSample is a rendering of tool calls and where the parts of each call stand in it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/template_probe.h"
#include "tools/turn_format.h"

namespace paceline {

// A part of a call that differs from call to call.
struct CallField {
  CallPiece::Kind kind = CallPiece::Kind::name;  // not literal, not index
  size_t begin = 0;
  size_t end = 0;
};

struct CallSample {
  std::string text;  // behind the user's message
  ArgumentsFormat::Style style = ArgumentsFormat::Style::json_object;
  std::vector<std::vector<CallField>> calls;  // the fields of each call, in order

  size_t begin_of(size_t call) const { return calls[call].front().begin; }
  size_t end_of(size_t call) const { return calls[call].back().end; }
  std::string_view part(size_t begin, size_t end) const {
    return std::string_view(text).substr(begin, end - begin);
  }
  bool has(size_t call, CallPiece::Kind kind) const;
};

// Where the arguments stand: a JSON object, a JSON string that holds one, or keys and values one by
// one (then from the first key to the end of the last value). Nothing when they don't.
struct ArgumentsPlace {
  ArgumentsFormat::Style style = ArgumentsFormat::Style::json_object;
  size_t begin = 0;
  size_t end = 0;
};
std::optional<ArgumentsPlace> find_arguments(std::string_view text, const Json::Object& arguments);

// Whether `text` is JSON of an object with these members, in any order.
bool is_object_with(std::string_view text, const Json::Object& members);

// Nothing when a call's arguments, or both its name and id, don't stand in the text, or calls
// overlap.
std::optional<CallSample> read_sample(std::string text, std::span<const ProbeCall> calls);

}  // namespace paceline
