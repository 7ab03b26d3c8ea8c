// Reads arguments that stand one by one, each between a key and a mark.
#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "tools/arguments_reader.h"
#include "tools/literal_match.h"
#include "tools/text_units.h"
#include "tools/value_notation.h"
#include "tools/value_scanner.h"

namespace paceline {
namespace {

constexpr size_t kMaxKeyBytes = 256;
using MatchState = LiteralMatch::State;
using Escapes = StringNotation::Escapes;

// Appends `text` as the inside of a JSON string, byte by byte: the end of a character may follow.
void append_escaped(std::string& out, std::string_view text, bool has_escapes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      if (!has_escapes && (c == '"' || c == '\\')) out += '\\';
      out += c;
    }
  }
}

// The value as JSON: of the kinds that the schema allows, else a string.
std::string json_of(std::string_view raw, const ArgumentsFormat& format, JsonKinds kinds,
                    bool is_never_text) {
  const std::string_view text = trimmed(raw);
  const std::optional<Json> value = read_value(text, format.nested);
  const bool is_text = value && value->is_string();
  const bool is_allowed = value && (is_never_text || (!is_text && (kind_of_value(*value) & kinds)));
  if (!is_allowed) return json_quote(raw);
  try {
    parse_json(text, "value");
    return std::string(text);  // as it stands: numbers keep their digits
  } catch (const Error&) {
    return to_json(*value);
  }
}

class ParametersReader : public ArgumentsReader {
 public:
  ParametersReader(const ArgumentsFormat& format, const Tool* tool, std::string_view next)
      : format_(format), tool_(tool), next_(next) {}

  size_t take(std::string_view text, bool is_final, std::string& out) override {
    size_t taken = 0;
    is_final_ = is_final;
    while (state_ == State::running) {
      const std::optional<size_t> part = step(text.substr(taken), out);
      if (!part) break;
      taken += *part;
    }
    return taken;
  }
  bool has_begun() const override { return num_ > 0; }

 private:
  enum class Phase : uint8_t { before_key, key, text, value };

  // The bytes that were taken; nothing: more text decides.
  std::optional<size_t> step(std::string_view text, std::string& out) {
    switch (phase_) {
      case Phase::before_key:
        return take_before_key(text, out);
      case Phase::key:
        return take_key(text, out);
      case Phase::text:
        return take_text(text, out);
      case Phase::value:
        break;
    }
    return take_value(text, out);
  }

  static LiteralMatch match(std::string_view text, std::string_view literal) {
    return match_literal(text, literal, false);
  }
  // Where the text may end, these are all arguments unless something is to follow them.
  std::optional<size_t> decide_end(std::string_view text, std::string& out) {
    if (is_final_ && is_blank(text) && is_blank(next_)) return finish(out);
    return std::nullopt;
  }
  std::optional<size_t> finish(std::string& out) {
    out += num_ == 0 ? "{}" : "}";
    state_ = State::done;
    return 0;
  }
  std::optional<size_t> fail() {
    state_ = State::broken;
    return 0;
  }

  std::optional<size_t> take_before_key(std::string_view text, std::string& out);
  struct Opening {
    LiteralMatch match;
    bool is_string = false;  // that of strings
  };
  Opening opening(std::string_view text) const;
  std::optional<size_t> declared_key(std::string_view text) const;
  std::optional<size_t> take_key(std::string_view text, std::string& out);
  void begin_value(std::string_view key, bool is_string_frame, std::string& out);
  std::optional<size_t> take_text(std::string_view text, std::string& out);
  std::optional<size_t> take_value(std::string_view text, std::string& out);
  std::optional<size_t> end_of_value(std::string_view text);
  std::optional<size_t> end_of_container(std::string_view text);
  size_t find_close(std::string_view text, std::string_view core, Escapes escapes) const;
  void emit_value(std::string_view raw, std::string& out);

  const ArgumentsFormat& format_;
  const Tool* tool_;
  std::string_view next_;
  bool is_final_ = false;
  Phase phase_ = Phase::before_key;
  size_t num_ = 0;                         // of keys
  bool is_separated_ = false;              // behind a separator: a key must follow
  const ParameterFrame* frame_ = nullptr;  // of the value
  JsonKinds kinds_ = kAllKinds;            // of the value
  ValueScanner scanner_;
  size_t scanned_ = 0;  // bytes of the value
};

std::optional<size_t> ParametersReader::take_before_key(std::string_view text, std::string& out) {
  size_t taken = 0;
  if (num_ > 0 && !is_separated_ && !is_blank(format_.separator)) {
    const LiteralMatch separator = match(text, format_.separator);
    if (separator.state == MatchState::partial) return decide_end(text, out);
    if (separator.state == MatchState::mismatch) return finish(out);
    taken = separator.bytes;
    text.remove_prefix(taken);
    is_separated_ = true;
    if (text.empty() && !is_final_) return taken;
  }
  if (is_blank(format_.before_key)) {
    if (!is_separated_) {
      const LiteralMatch end = match(text, next_);
      if (end.state == MatchState::partial) return decide_end(text, out);
      if (end.state == MatchState::matched) return finish(out);
    }
  } else {
    const LiteralMatch before = match(text, format_.before_key);
    if (before.state == MatchState::partial) {
      return taken > 0 ? std::optional(taken) : decide_end(text, out);
    }
    if (before.state == MatchState::mismatch) return is_separated_ ? fail() : finish(out);
    taken += before.bytes;
  }
  phase_ = Phase::key;
  return taken;
}

// What stands in front of a value; of two such texts the longer counts.
ParametersReader::Opening ParametersReader::opening(std::string_view text) const {
  const std::string& string_open = format_.string_frame.open;
  const std::string& other_open = format_.other_frame.open;
  const bool is_string_longer = string_open.size() >= other_open.size();
  const LiteralMatch found = match(text, is_string_longer ? string_open : other_open);
  if (found.state != MatchState::mismatch) return {found, is_string_longer};
  return {match(text, is_string_longer ? other_open : string_open), !is_string_longer};
}

// The longest declared name that a value follows, which may hold blanks and what else stands in
// front of values. Nothing: more text decides; 0 bytes: there is none.
std::optional<size_t> ParametersReader::declared_key(std::string_view text) const {
  size_t best = 0;
  if (tool_ == nullptr) return best;
  for (const ToolParameter& one : tool_->parameters()) {
    const std::string_view name = one.name;
    if (text.size() < name.size() && name.starts_with(text) && !is_final_) return std::nullopt;
    if (!text.starts_with(name) || name.size() <= best) continue;
    const MatchState state = opening(text.substr(name.size())).match.state;
    if (state == MatchState::partial) return std::nullopt;
    if (state == MatchState::matched) best = name.size();
  }
  return best;
}

// A key that isn't declared ends where what stands in front of a value begins.
std::optional<size_t> ParametersReader::take_key(std::string_view text, std::string& out) {
  const std::optional<size_t> declared = declared_key(text);
  if (!declared) return std::nullopt;
  if (*declared > 0) {
    const auto [match, is_string] = opening(text.substr(*declared));
    begin_value(text.substr(0, *declared), is_string, out);
    return *declared + match.bytes;
  }
  const char first = format_.string_frame.open.front();
  const char other_first = format_.other_frame.open.front();
  for (size_t at = 0; at < text.size() && at <= kMaxKeyBytes; ++at) {
    if (text[at] != first && text[at] != other_first) continue;
    const auto [match, is_string] = opening(text.substr(at));
    if (match.state == MatchState::partial) return std::nullopt;
    if (match.state == MatchState::mismatch) continue;
    const std::string_view key = trimmed(text.substr(0, at));
    if (key.empty()) return fail();
    begin_value(key, is_string, out);
    return at + match.bytes;
  }
  return text.size() > kMaxKeyBytes ? fail() : std::nullopt;
}

void ParametersReader::begin_value(std::string_view key, bool is_string_frame, std::string& out) {
  out += num_++ == 0 ? "{" : ", ";
  out += json_quote(key) + ": ";
  is_separated_ = false;
  scanner_ = ValueScanner(format_.nested.strings);
  scanned_ = 0;
  const ToolParameter* parameter = tool_ == nullptr ? nullptr : tool_->find(key);
  kinds_ = parameter == nullptr ? kAllKinds : parameter->kinds;
  frame_ = is_string_frame ? &format_.string_frame : &format_.other_frame;
  const bool is_told_by_frame = format_.string_frame != format_.other_frame;
  const bool is_text = is_told_by_frame ? is_string_frame : kinds_ == kStringKind;
  if (is_told_by_frame) kinds_ = is_string_frame ? kStringKind : kAllKinds & ~kStringKind;
  if (is_text && !trimmed(frame_->close).empty() && format_.string_escapes != Escapes::python) {
    phase_ = Phase::text;
    out += '"';
  } else {
    phase_ = Phase::value;
  }
}

size_t ParametersReader::find_close(std::string_view text, std::string_view core,
                                    Escapes escapes) const {
  if (escapes == Escapes::none) return text.find(core);
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text.substr(at).starts_with(core)) {
      return at;
    }
  }
  return std::string_view::npos;
}

// A string, which is written as it arrives.
std::optional<size_t> ParametersReader::take_text(std::string_view text, std::string& out) {
  const std::string_view close = frame_->close;
  const std::string_view core = trimmed_left(close);
  const std::string_view blanks = close.substr(0, close.size() - core.size());
  const bool has_escapes = format_.string_escapes != Escapes::none;
  const size_t end = find_close(text, core, format_.string_escapes);
  if (end != std::string_view::npos) {
    std::string_view last = text.substr(0, end);
    if (last.ends_with(blanks)) last.remove_suffix(blanks.size());
    append_escaped(out, last, has_escapes);
    out += '"';
    phase_ = Phase::before_key;
    return end + core.size();
  }
  size_t held = std::max(partial_suffix(text, core), partial_suffix(text, close));
  if (!is_final_ && has_escapes) {
    // An escape stays whole: its second byte may look like the end.
    size_t backslashes = 0;
    while (held + backslashes < text.size() && text[text.size() - held - backslashes - 1] == '\\') {
      ++backslashes;
    }
    held += backslashes % 2;
  }
  if (text.empty() || (held == text.size() && !is_final_)) return std::nullopt;
  append_escaped(out, text.substr(0, text.size() - held), has_escapes);
  return is_final_ ? text.size() : text.size() - held;
}

// The end of an object or array at the beginning of `text`; what was scanned before isn't again.
std::optional<size_t> ParametersReader::end_of_container(std::string_view text) {
  if (scanned_ == 0) scanned_ = text.size() - trimmed_left(text).size();
  scanned_ += scanner_.take(text.substr(scanned_));
  return scanner_.state() == ValueScanner::State::done ? std::optional(scanned_) : std::nullopt;
}

// The bytes of the value; nothing: more text decides.
std::optional<size_t> ParametersReader::end_of_value(std::string_view text) {
  const std::string_view begin = trimmed_left(text);
  if (begin.empty()) return std::nullopt;
  const bool is_container = begin.front() == '{' || begin.front() == '[';
  if (is_container && (kinds_ & kStringKind) == 0) return end_of_container(text);
  const std::string_view core = trimmed_left(frame_->close);
  if (!core.empty()) {
    const Escapes escapes =
        frame_ == &format_.string_frame ? format_.string_escapes : Escapes::none;
    const size_t from = escapes == Escapes::none ? scanned_ - std::min(scanned_, core.size()) : 0;
    const size_t end = find_close(text.substr(from), core, escapes);
    scanned_ = text.size();
    return end == std::string_view::npos ? std::nullopt : std::optional(from + end);
  }
  const bool is_quoted = begin.front() == '"' || begin.front() == '\'';
  size_t at = text.size() - begin.size();
  if (is_quoted) {
    const size_t end = find_close(begin.substr(1), begin.substr(0, 1), Escapes::python);
    if (end == std::string_view::npos) return std::nullopt;
    at += end + 2;
  }
  for (; at < text.size(); ++at) {
    for (const std::string_view mark : {std::string_view(format_.separator), next_}) {
      if (is_blank(mark)) continue;
      const LiteralMatch found = match(text.substr(at), mark);
      if (found.state == MatchState::partial) return std::nullopt;
      if (found.state == MatchState::matched) return at;
    }
  }
  return std::nullopt;
}

void ParametersReader::emit_value(std::string_view raw, std::string& out) {
  const std::string_view close = frame_->close;
  const std::string_view blanks = close.substr(0, close.size() - trimmed_left(close).size());
  if (raw.ends_with(blanks)) raw.remove_suffix(blanks.size());
  const bool is_told_by_frame = format_.string_frame != format_.other_frame;
  if (is_told_by_frame && frame_ == &format_.string_frame) {
    out += json_quote(unescaped(raw, format_.string_escapes).value_or(std::string(raw)));
  } else {
    out += json_of(raw, format_, kinds_, is_told_by_frame);
  }
}

// A value that isn't text counts only as a whole.
std::optional<size_t> ParametersReader::take_value(std::string_view text, std::string& out) {
  const std::optional<size_t> end = end_of_value(text);
  if (!end) {
    if (!is_final_ || text.empty()) return std::nullopt;
    state_ = State::broken;
    return text.size();
  }
  const std::string_view core = trimmed_left(frame_->close);
  const LiteralMatch close = match(text.substr(*end), core);
  if (close.state == MatchState::partial) return std::nullopt;
  emit_value(text.substr(0, *end), out);
  phase_ = Phase::before_key;
  if (close.state == MatchState::mismatch) return fail();
  return *end + close.bytes;
}

}  // namespace

std::unique_ptr<ArgumentsReader> make_parameters_reader(const ArgumentsFormat& format,
                                                        const Tool* tool, std::string_view next) {
  return std::make_unique<ParametersReader>(format, tool, next);
}

}  // namespace paceline
