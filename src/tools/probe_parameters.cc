#include "tools/probe_parameters.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "tools/text_units.h"
#include "tools/value_notation.h"

namespace paceline {
namespace {

using Escapes = StringNotation::Escapes;

constexpr int64_t kNumber = 7340157;
constexpr std::string_view kSpecial = "a\"b\n\\<c>";

class ParameterProbe {
 public:
  ParameterProbe(TemplateProbe& probe, const CallMessages& messages, const CallSample& sample,
                 const ParameterNeighbours& neighbours)
      : probe_(probe), messages_(messages), sample_(sample), neighbours_(neighbours) {}

  ArgumentsFormat run() {
    format_.style = ArgumentsFormat::Style::parameters;
    find_frame_of_strings();
    find_slots();
    find_frame_of_others();
    find_escapes();
    find_constants();
    find_nested();
    return std::move(format_);
  }

 private:
  void find_frame_of_strings();
  void split_gap(std::string_view gap);
  void find_empty_blanks();
  void find_slots();
  void find_frame_of_others();
  void find_escapes();
  void find_constants();
  void find_nested();
  std::string text_of(const Json::Object& arguments);
  std::optional<std::string> slot(size_t index) const;
  // The value in the slot, without the frame of values that aren't strings.
  std::optional<std::string> value(size_t index) const;

  TemplateProbe& probe_;
  const CallMessages& messages_;
  const CallSample& sample_;
  ParameterNeighbours neighbours_;
  ArgumentsFormat format_;
  // Arguments of all kinds, and what stands behind the key of each.
  enum Slot : size_t { kNumberSlot, kTextSlot, kTrueSlot, kFalseSlot, kNullSlot, kNestedSlot };
  Json nested_;
  std::vector<std::optional<std::string>> slots_;
};

// From the two arguments of the sample, in the order in which they are written.
void ParameterProbe::find_frame_of_strings() {
  const std::string_view text = sample_.text;
  const Json::Object arguments = probe_.call(0).arguments;
  format_.sorts_keys = text.find(arguments[1].first) < text.find(arguments[0].first);
  const Json::Member& first = arguments[format_.sorts_keys ? 1 : 0];
  const Json::Member& second = arguments[format_.sorts_keys ? 0 : 1];
  const auto places = [&](const Json::Member& of) {
    const size_t key = text.find(of.first);
    const size_t value = text.find(*of.second.string(), key);
    if (value == std::string_view::npos) not_derivable("where an argument's value stands");
    return std::array{key, key + of.first.size(), value, value + of.second.string()->size()};
  };
  const auto [key, key_end, value, value_end] = places(first);
  const auto [next_key, next_key_end, next_value, next_value_end] = places(second);
  if (next_key < value_end) not_derivable("where an argument's value stands");
  const std::string_view open = text.substr(key_end, value - key_end);
  if (is_blank(open) || open != text.substr(next_key_end, next_value - next_key_end)) {
    not_derivable("what stands between an argument's name and its value");
  }
  format_.string_frame.open = open;
  split_gap(text.substr(value_end, next_key - value_end));
  find_empty_blanks();
}

// What stands between a value and the next key begins as what stands behind the last value, and
// ends as what stands in front of the first key.
void ParameterProbe::split_gap(std::string_view gap) {
  const std::string_view close = trimmed_right(common_prefix(gap, neighbours_.after));
  const size_t key_bytes =
      std::min(common_suffix(gap, neighbours_.before).size(), gap.size() - close.size());
  const std::string_view before_key = trimmed_left(gap.substr(gap.size() - key_bytes));
  format_.string_frame.close = close;
  format_.before_key = before_key;
  format_.separator = gap.substr(close.size(), gap.size() - close.size() - before_key.size());
  if (close.empty() && format_.separator.empty()) not_derivable("where an argument's value ends");
  const std::string_view left =
      neighbours_.before.substr(0, neighbours_.before.size() - before_key.size());
  format_.begin_blanks = left.substr(trimmed_right(left).size());
  const std::string_view right = neighbours_.after.substr(close.size());
  format_.end_blanks = right.substr(0, right.size() - trimmed_left(right).size());
}

// What the template writes between the texts around all arguments when there are none.
void ParameterProbe::find_empty_blanks() {
  const std::string text = text_of({});
  const std::string_view before = trimmed_right(
      neighbours_.before.substr(0, neighbours_.before.size() - format_.before_key.size()));
  const std::string_view after =
      trimmed_left(neighbours_.after.substr(format_.string_frame.close.size()));
  const std::string name = probe_.call(0).name;
  size_t at = text.find(name);
  if (at == std::string::npos) return;
  at = text.find(before, at + name.size());
  if (at == std::string::npos) return;
  const std::string_view rest = std::string_view(text).substr(at + before.size());
  if (trimmed_left(rest).starts_with(after)) {
    format_.empty_blanks = rest.substr(0, rest.size() - trimmed_left(rest).size());
  }
}

std::string ParameterProbe::text_of(const Json::Object& arguments) {
  ProbeCall call = probe_.call(0);
  call.arguments = arguments;
  return probe_.turn(messages_.turn({call}), messages_.context()).value_or("");
}

// One kind of value in each rendering: a template that fails on one still writes the others.
void ParameterProbe::find_slots() {
  nested_ = Json(Json::Object{
      {"a", Json(Json::Array{Json(probe_.mark("item")), Json(int64_t{7}), Json(true), Json()})},
      {"b", Json(Json::Object{{"c", Json(1.5)}})}});
  const std::array<Json, 6> values{
      Json(kNumber), Json(std::string(kSpecial)), Json(true), Json(false), Json(), nested_};
  const std::string first = probe_.mark("keya");
  const std::string last = probe_.mark("keyb");
  for (const Json& value : values) {
    const std::string text = text_of({{first, value}, {last, Json(probe_.mark("end"))}});
    const size_t begin = text.find(first);
    const size_t end = text.find(last);
    const std::string gap = format_.separator + format_.before_key;
    std::optional<std::string>& slot = slots_.emplace_back();
    if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
    std::string_view part = std::string_view(text).substr(begin + first.size());
    part = part.substr(0, end - begin - first.size());
    if (!part.ends_with(gap)) continue;
    slot = part.substr(0, part.size() - gap.size());
  }
}

void ParameterProbe::find_frame_of_others() {
  format_.other_frame = format_.string_frame;
  const std::optional<std::string>& number = slots_[kNumberSlot];
  const std::string digits = std::to_string(kNumber);
  const size_t at = number ? number->find(digits) : std::string::npos;
  if (at == std::string::npos) return;
  if (is_blank(std::string_view(*number).substr(0, at))) {
    not_derivable("what stands between an argument's name and its value");
  }
  format_.other_frame = {number->substr(0, at), number->substr(at + digits.size())};
}

std::optional<std::string> ParameterProbe::value(size_t index) const {
  const auto& [open, close] = format_.other_frame;
  const std::optional<std::string>& slot = slots_[index];
  if (!slot || slot->size() < open.size() + close.size()) return std::nullopt;
  if (!slot->starts_with(open) || !slot->ends_with(close)) return std::nullopt;
  return slot->substr(open.size(), slot->size() - open.size() - close.size());
}

void ParameterProbe::find_escapes() {
  const auto& [open, close] = format_.string_frame;
  const std::optional<std::string>& slot = slots_[kTextSlot];
  if (!slot || slot->size() < open.size() + close.size()) return;
  const std::string_view text =
      std::string_view(*slot).substr(open.size(), slot->size() - open.size() - close.size());
  for (const Escapes escapes : {Escapes::none, Escapes::json, Escapes::python}) {
    if (unescaped(text, escapes) != std::string(kSpecial)) continue;
    format_.string_escapes = escapes;
    return;
  }
  not_derivable("how a string with quotes is written");
}

void ParameterProbe::find_constants() {
  const auto find = [&](size_t index, std::string& text) {
    const std::optional<std::string> found = value(index);
    if (found && !found->empty()) text = *found;
  };
  find(kTrueSlot, format_.true_text);
  find(kFalseSlot, format_.false_text);
  find(kNullSlot, format_.null_text);
}

// JSON, Python's repr, or strings in the quotes that strings have as arguments.
void ParameterProbe::find_nested() {
  const std::optional<std::string> text = value(kNestedSlot);
  if (!text) return;
  const ValueNotation python{.strings = {.quote = "'", .escapes = Escapes::python},
                             .true_text = "True",
                             .false_text = "False",
                             .null_text = "None"};
  std::vector<ValueNotation> notations{{}, python};
  const std::string_view open = format_.string_frame.open;
  if (open.starts_with(format_.other_frame.open)) {
    ValueNotation own{
        .strings = {.quote = std::string(open.substr(format_.other_frame.open.size())),
                    .escapes = format_.string_escapes},
        .true_text = format_.true_text,
        .false_text = format_.false_text,
        .null_text = format_.null_text};
    for (const bool quotes_keys : {true, false}) {
      own.quotes_keys = quotes_keys;
      if (!own.strings.quote.empty()) notations.push_back(own);
    }
  }
  for (const ValueNotation& notation : notations) {
    const std::optional<Json> found = read_value(*text, notation);
    if (!found || to_json(*found) != to_json(nested_)) continue;
    format_.nested = notation;
    return;
  }
}

}  // namespace

ArgumentsFormat probe_parameters(TemplateProbe& probe, const CallMessages& messages,
                                 const CallSample& sample, const ParameterNeighbours& neighbours) {
  return ParameterProbe(probe, messages, sample, neighbours).run();
}

}  // namespace paceline
