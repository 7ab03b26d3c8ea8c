#include "tools/call_sample.h"

#include <algorithm>

#include "base/json_writer.h"
#include "tools/value_notation.h"
#include "tools/value_scanner.h"

namespace paceline {
namespace {

using Style = ArgumentsFormat::Style;
using Kind = CallPiece::Kind;

bool has_members(const Json& value, const Json::Object& members) {
  const Json::Object* object = value.object();
  if (object == nullptr || object->size() != members.size()) return false;
  return std::all_of(members.begin(), members.end(), [&](const Json::Member& member) {
    const Json* found = value.find(member.first);
    return found != nullptr && to_json(*found) == to_json(member.second);
  });
}

std::optional<ArgumentsPlace> find_object(std::string_view text, const Json::Object& arguments,
                                          size_t first_key) {
  for (size_t at = text.find('{'); at < first_key; at = text.find('{', at + 1)) {
    const size_t bytes = json_container_bytes(text.substr(at));
    if (bytes > 0 && is_object_with(text.substr(at, bytes), arguments)) {
      return ArgumentsPlace{Style::json_object, at, at + bytes};
    }
  }
  return std::nullopt;
}

// The bytes of the JSON string at the beginning of `text`.
size_t quoted_bytes(std::string_view text) {
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return 0;
}

std::optional<ArgumentsPlace> find_string(std::string_view text, const Json::Object& arguments,
                                          size_t first_key) {
  for (size_t at = text.find("\"{"); at < first_key; at = text.find("\"{", at + 1)) {
    const size_t bytes = quoted_bytes(text.substr(at));
    if (bytes == 0) continue;
    const auto inner = unescaped(text.substr(at + 1, bytes - 2), StringNotation::Escapes::json);
    if (inner && is_object_with(*inner, arguments)) {
      return ArgumentsPlace{Style::json_string, at, at + bytes};
    }
  }
  return std::nullopt;
}

// The places of `mark` in front of the arguments; without any, the first one behind them. What
// follows that is about the call's result.
void add_fields(std::string_view text, std::string_view mark, Kind kind,
                const ArgumentsPlace& arguments, std::vector<CallField>& fields) {
  const size_t count = fields.size();
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
    if (at >= arguments.begin && at < arguments.end) continue;
    if (at >= arguments.end && fields.size() > count) break;
    fields.push_back({kind, at, at + mark.size()});
  }
}

}  // namespace

bool is_object_with(std::string_view text, const Json::Object& members) {
  const std::optional<Json> value = read_value(text, {});
  return value && has_members(*value, members);
}

std::optional<ArgumentsPlace> find_arguments(std::string_view text, const Json::Object& arguments) {
  size_t first_key = text.size();
  size_t end = 0;
  for (const auto& [key, value] : arguments) {
    const size_t at = text.find(key);
    const size_t value_at = value.is_string() ? text.find(*value.string()) : at;
    if (at == std::string_view::npos || value_at == std::string_view::npos) return std::nullopt;
    first_key = std::min(first_key, at);
    if (value.is_string()) end = std::max(end, value_at + value.string()->size());
  }
  if (auto object = find_object(text, arguments, first_key)) return object;
  if (auto string = find_string(text, arguments, first_key)) return string;
  if (end <= first_key) return std::nullopt;
  return ArgumentsPlace{Style::parameters, first_key, end};
}

bool CallSample::has(size_t call, Kind kind) const {
  return std::any_of(calls[call].begin(), calls[call].end(),
                     [&](const CallField& field) { return field.kind == kind; });
}

std::optional<CallSample> read_sample(std::string text, std::span<const ProbeCall> calls) {
  CallSample sample{.text = std::move(text)};
  for (const ProbeCall& call : calls) {
    const auto arguments = find_arguments(sample.text, call.arguments);
    if (!arguments) return std::nullopt;
    if (!sample.calls.empty() && arguments->style != sample.style) return std::nullopt;
    sample.style = arguments->style;
    std::vector<CallField>& fields = sample.calls.emplace_back();
    fields.push_back({Kind::arguments, arguments->begin, arguments->end});
    add_fields(sample.text, call.name, Kind::name, *arguments, fields);
    add_fields(sample.text, call.id, Kind::id, *arguments, fields);
    if (fields.size() == 1) return std::nullopt;
    std::sort(fields.begin(), fields.end(),
              [](const CallField& a, const CallField& b) { return a.begin < b.begin; });
    const size_t count = sample.calls.size();
    if (count > 1 && sample.end_of(count - 2) > sample.begin_of(count - 1)) return std::nullopt;
  }
  return sample;
}

}  // namespace paceline
