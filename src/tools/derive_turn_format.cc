#include "tools/derive_turn_format.h"

#include <memory>
#include <utility>

#include "tools/call_sample.h"
#include "tools/probe_calls.h"
#include "tools/probe_reasoning.h"
#include "tools/template_probe.h"
#include "tools/text_units.h"
#include "tools/turn_reader.h"

namespace paceline {
namespace {

// What stands between the generation prompt, or the reasoning, and the content.
std::string content_begin(const PlainTurn& plain, const std::optional<ReasoningFormat>& reasoning) {
  std::string_view own = plain.before;
  own.remove_prefix(own.starts_with(plain.prompt) ? plain.prompt.size()
                                                  : common_prefix(own, plain.prompt).size());
  const size_t end = reasoning ? own.rfind(reasoning->end) : std::string_view::npos;
  if (end == std::string_view::npos) return std::string(own);
  return std::string(trimmed(own.substr(end + reasoning->end.size())));
}

bool is_read_back(const std::shared_ptr<const TurnFormat>& format, const CallsWritten& written) {
  std::vector<ToolSpec> tools;
  for (const ProbeCall& call : written.calls) {
    tools.push_back({format->calls->name_is_in_id ? call.id : call.name, R"({"type":"object"})"});
  }
  TurnReader reader(format, std::make_shared<const ToolSet>(std::move(tools)),
                    {.make_id = [] { return std::string(); }});
  std::vector<TurnEvent> events = reader.push(written.text);
  for (TurnEvent& event : reader.finish()) events.push_back(std::move(event));
  size_t num_calls = 0;
  std::string arguments;
  for (const TurnEvent& event : events) {
    if (event.kind == TurnEvent::Kind::arguments) arguments += event.text;
    if (event.kind != TurnEvent::Kind::call_ended) continue;
    if (!event.is_complete || num_calls == written.calls.size()) return false;
    const ProbeCall& call = written.calls[num_calls++];
    if (!is_object_with(std::exchange(arguments, ""), call.arguments)) return false;
  }
  return num_calls == written.calls.size();
}

// No text of the format has anything of the conversations in it.
void check_texts(const CallFormat& calls, std::string_view mark) {
  const ArgumentsFormat& arguments = calls.arguments;
  std::string all = calls.lead + calls.between + calls.closing + arguments.before_key +
                    arguments.separator + arguments.string_frame.open +
                    arguments.string_frame.close + arguments.other_frame.open +
                    arguments.other_frame.close;
  for (const CallPiece& piece : calls.pieces) all += piece.text;
  if (all.find(mark) != std::string::npos) {
    not_derivable("which texts are the same around all calls and arguments");
  }
}

// What was found out reads what it was found out from.
void check_reading(const TurnFormat& format, const std::vector<CallsWritten>& written) {
  const auto shared = std::make_shared<const TurnFormat>(format);
  for (const CallsWritten& one : written) {
    if (!is_read_back(shared, one)) not_derivable("how its calls are read back");
  }
}

}  // namespace

TurnFormat derive_turn_format(
    const ChatTemplate& chat_template,
    const std::vector<std::pair<std::string, std::string>>& special_tokens) {
  TurnFormat format;
  try {
    TemplateProbe probe(chat_template, special_tokens);
    format.writes_system = probe.writes_system();
    format.reasoning = probe_reasoning(probe);
    const PlainTurn plain = probe.plain_turn();
    format.turn_end = plain.after;
    format.content.begin = content_begin(plain, format.reasoning);
    CallsFound found = probe_calls(probe, plain, format.reasoning);
    format.calls = std::move(found.format);
    format.turn_end = std::move(found.turn_end);
    if (plain.after.ends_with(format.turn_end)) {
      format.content.end = plain.after.substr(0, plain.after.size() - format.turn_end.size());
    }
    check_texts(*format.calls, probe.mark(""));
    check_reading(format, found.written);
  } catch (const Error& error) {
    format.calls.reset();
    format.no_calls = error.what();
  }
  return format;
}

}  // namespace paceline
