#include "tools/probe_reasoning.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "tools/prompt_variables.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

constexpr size_t kMaxMarks = 8;
constexpr const char* kPrintedWhole = "zqprintedwhole";  // shows that a part stands as JSON

class ReasoningProbe {
 public:
  explicit ReasoningProbe(TemplateProbe& probe) : probe_(probe), text_(probe.mark("reason")) {}

  std::optional<ReasoningFormat> run() {
    variables_ = prompt_variables(probe_);
    if (!find_written() && !find_in_prompts() && !find_split()) return std::nullopt;
    find_toggle();
    find_effort();
    return std::move(format_);
  }

 private:
  bool find_written();
  size_t end_of_reasoning(std::string_view text, size_t from, bool has_call) const;
  bool find_written_with(const Json::Object& kwargs, bool has_call);
  ProbeTurn turn_with(std::string_view field, bool has_call) const;
  bool take_written(std::string_view text, const PlainTurn& plain, bool has_call);
  void take_begin(std::string_view before, std::string_view end, const PlainTurn& plain);
  bool find_in_prompts();
  bool take_prompts(std::string_view first, std::string_view second);
  bool find_split();
  bool is_dropped_before(const std::string& mark);
  enum class Stands : uint8_t { closed, absent, open };
  Stands state_of(std::string_view prompt) const;
  void find_toggle();
  void find_effort();

  TemplateProbe& probe_;
  std::string text_;  // the reasoning of the conversations
  std::vector<PromptVariable> variables_;
  ReasoningFormat format_;
};

// The turn of an answer, or of a call, with reasoning in a field of the message.
ProbeTurn ReasoningProbe::turn_with(std::string_view field, bool has_call) const {
  ProbeTurn turn{.content = Json(has_call ? std::string() : probe_.content())};
  if (has_call) turn.calls.push_back(probe_.call(0));
  if (field == "content") {
    const auto part = [&](const char* type, const std::string& text) {
      return Json(Json::Object{
          {"type", Json(std::string(type))}, {type, Json(text)}, {kPrintedWhole, Json(true)}});
    };
    Json::Array parts{part("thinking", text_)};
    if (!has_call) parts.push_back(part("text", probe_.content()));
    turn.content = Json(std::move(parts));
  } else if (!field.empty()) {
    turn.more.emplace_back(std::string(field), Json(text_));
  }
  return turn;
}

bool ReasoningProbe::find_written() {
  std::vector<Json::Object> settings{{}};
  for (const PromptVariable& variable : variables_) {
    for (const Json& value : variable.values) settings.push_back({{variable.name, value}});
  }
  for (const bool has_call : {false, true}) {
    for (const Json::Object& kwargs : settings) {
      if (find_written_with(kwargs, has_call)) return true;
    }
  }
  return false;
}

// Where the content, or anything of the call, stands behind `from`.
size_t ReasoningProbe::end_of_reasoning(std::string_view text, size_t from, bool has_call) const {
  if (!has_call) return text.find(probe_.content(), from);
  const ProbeCall call = probe_.call(0);
  return std::min({text.find(call.name, from), text.find(call.id, from),
                   text.find(call.arguments[0].first, from),
                   text.find(call.arguments[1].first, from)});
}

bool ReasoningProbe::find_written_with(const Json::Object& kwargs, bool has_call) {
  constexpr std::array<std::string_view, 5> kFields{"reasoning_content", "reasoning", "thinking",
                                                    "thought", "content"};
  for (const std::string_view field : kFields) {
    const auto text = probe_.turn(turn_with(field, has_call), {.kwargs = kwargs});
    if (!text || text->find(kPrintedWhole) != std::string::npos) continue;
    const size_t at = text->find(text_);
    const size_t end = at == std::string::npos ? at : end_of_reasoning(*text, at, has_call);
    if (end == std::string::npos) continue;
    PlainTurn plain{.prompt = probe_.generation_prompt(kwargs).value_or("")};
    const std::string without =
        probe_.turn(turn_with("", has_call), {.kwargs = kwargs}).value_or("");
    plain.before = without.substr(0, end_of_reasoning(without, 0, has_call));
    if (!take_written(std::string_view(*text).substr(0, end), plain, has_call)) continue;
    format_.field = field;
    return true;
  }
  return false;
}

// `text` is that of a turn up to its content or call.
bool ReasoningProbe::take_written(std::string_view text, const PlainTurn& plain, bool has_call) {
  const size_t at = text.find(text_);
  const std::string_view before = text.substr(0, at);
  const std::string_view after = text.substr(at + text_.size());
  // What begins the content, or the call, is no part of the mark.
  const std::string_view own =
      std::string_view(plain.before).substr(common_prefix(plain.before, plain.prompt).size());
  std::string_view end = trimmed(after.substr(0, after.size() - common_suffix(after, own).size()));
  if (end.empty() || has_call) {
    const auto units = text_units(trimmed_left(after));
    const auto tag = std::find_if(units.begin(), units.end(), is_tag);
    if (tag != units.end() && (end.empty() || end.size() > tag->size())) {
      end = trimmed_left(after).substr(
          0, static_cast<size_t>(tag->data() + tag->size() - trimmed_left(after).data()));
    }
  }
  if (end.empty()) return false;
  format_.end = end;
  take_begin(before, end, plain);
  return true;
}

void ReasoningProbe::take_begin(std::string_view before, std::string_view end,
                                const PlainTurn& plain) {
  std::string_view begin;
  if (!plain.prompt.empty() && before.starts_with(plain.prompt)) {
    begin = trimmed(before.substr(plain.prompt.size()));
  }
  const bool writes_empty = plain.before.find(end) != std::string::npos;
  if (begin.empty() && !writes_empty) {
    begin = trimmed(before.substr(common_prefix(before, plain.before).size()));
  }
  if (begin.empty() && writes_empty) {
    const auto units = text_units(trimmed_right(before));
    if (!units.empty() && is_tag(units.back())) begin = units.back();
  }
  format_.begin = begin;
}

// Prompts with and without reasoning differ by its marks.
bool ReasoningProbe::find_in_prompts() {
  for (const PromptVariable& variable : variables_) {
    if (take_prompts(variable.prompts[0], variable.prompts[1])) return true;
    if (take_prompts(variable.prompts[1], variable.prompts[0])) return true;
  }
  return false;
}

bool is_closing(std::string_view tag) { return tag.starts_with("</") || tag.starts_with("[/"); }

std::string opening_of(std::string_view closing) {
  return std::string(closing.substr(0, 1)) + std::string(closing.substr(2));
}

// `first` reasons; `second` has an end of the reasoning that `first` doesn't have.
bool ReasoningProbe::take_prompts(std::string_view first, std::string_view second) {
  const std::string_view common = common_prefix(second, first);
  const std::string_view more = trimmed(second.substr(common.size()));
  const std::string_view opened = trimmed(first.substr(common.size()));
  const auto units = text_units(more);
  if (units.empty() || !is_tag(units.back())) return false;
  const std::string_view end = units.back();
  const std::string_view ahead = trimmed(more.substr(0, more.size() - end.size()));
  const auto common_units = text_units(trimmed_right(common));
  if (opened.empty() && !ahead.empty() && is_tag(text_units(ahead).front())) {
    format_.begin = ahead;  // "<think> </think>", or nothing
  } else if (opened.empty() && ahead.empty() && !common_units.empty() &&
             is_tag(common_units.back())) {
    format_.begin = common_units.back();  // "</think>", or nothing, behind "<think>"
  } else if (is_closing(end) && opened == opening_of(end)) {
    format_.begin = opened;  // "</think>", or "<think>"
  } else {
    return false;
  }
  if (!is_closing(end) && ahead.empty()) return false;
  format_.end = end;
  return true;
}

// The marks by which the template takes the reasoning out of earlier turns: `.split('</think>')`.
bool ReasoningProbe::find_split() {
  std::vector<std::string> marks;
  const std::string_view source = probe_.source();
  constexpr std::string_view kSplit = "split(";
  for (size_t at = source.find(kSplit); at != std::string_view::npos && marks.size() < kMaxMarks;
       at = source.find(kSplit, at + 1)) {
    const std::string_view rest = source.substr(at + kSplit.size());
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"')) continue;
    const std::string_view mark = rest.substr(1, std::min(rest.find(rest[0], 1), rest.size()) - 1);
    if (is_tag(mark) && std::find(marks.begin(), marks.end(), mark) == marks.end()) {
      marks.emplace_back(mark);
    }
  }
  const std::string prompt = probe_.generation_prompt().value_or("");
  const auto units = text_units(trimmed_right(prompt));
  for (const std::string& mark : marks) {
    if (!is_dropped_before(mark)) continue;
    if (is_closing(mark)) {
      format_.begin = opening_of(mark);
    } else if (!units.empty() && is_tag(units.back())) {
      format_.begin = units.back();
    } else {
      continue;
    }
    format_.end = mark;
    return true;
  }
  return false;
}

// Whether content loses what stands in front of the mark, in an earlier turn at least.
bool ReasoningProbe::is_dropped_before(const std::string& mark) {
  const ProbeTurn turn{.content = Json(text_ + mark + probe_.content())};
  for (const bool is_followed : {false, true}) {
    const std::string text = probe_.turn(turn, {.is_followed = is_followed}).value_or("");
    if (text.find(probe_.content()) == std::string::npos) continue;
    if (text.find(text_) == std::string::npos) return true;
  }
  return false;
}

ReasoningProbe::Stands ReasoningProbe::state_of(std::string_view prompt) const {
  if (format_.is_opened_by(prompt)) return Stands::open;
  return trimmed_right(prompt).ends_with(format_.end) ? Stands::closed : Stands::absent;
}

void ReasoningProbe::find_toggle() {
  for (const PromptVariable& variable : variables_) {
    const Stands first = state_of(variable.prompts[0]);
    const Stands second = state_of(variable.prompts[1]);
    if (first == second) continue;
    const size_t on = first > second ? 0 : 1;
    format_.toggle = {.variable = variable.name,
                      .on = to_json(variable.values[on]),
                      .off = to_json(variable.values[1 - on])};
    return;
  }
}

void ReasoningProbe::find_effort() {
  if (probe_.source().find("reasoning_effort") == std::string_view::npos) return;
  const auto prompt = [&](const char* effort) {
    return probe_.whole_prompt({{"reasoning_effort", Json(std::string(effort))}});
  };
  const auto low = prompt("low");
  const auto high = prompt("high");
  format_.reads_effort = low && high && *low != *high;
}

}  // namespace

std::optional<ReasoningFormat> probe_reasoning(TemplateProbe& probe) {
  return ReasoningProbe(probe).run();
}

}  // namespace paceline
