#include "tools/call_reader.h"

#include <algorithm>

#include "base/json_writer.h"
#include "tools/literal_match.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

using Kind = CallPiece::Kind;
using MatchState = LiteralMatch::State;

constexpr size_t kMaxWordBytes = 128;  // of an id or an index

bool is_id_byte(char c) {
  return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_' ||
         c == '-' || c == '.' || c == ':';
}
bool is_index_byte(char c) { return '0' <= c && c <= '9'; }

}  // namespace

CallReader::CallReader(const CallFormat& format, const ToolSet& tools, size_t index, size_t skipped)
    : format_(format), tools_(tools), index_(index), skipped_(skipped) {}

// The call is told when its name and id are known and its arguments have begun: then it can't be
// anything else.
bool CallReader::is_known() const {
  if (tool_ == nullptr || arguments_ == nullptr) return false;
  // A call without arguments is recognised by what follows them.
  const bool is_behind = is_at_end() || format_.pieces[piece_ - 1].kind == Kind::literal;
  if (!arguments_->has_begun() &&
      !(is_behind && arguments_->state() == ArgumentsReader::State::done)) {
    return false;
  }
  return std::none_of(
      format_.pieces.begin() + static_cast<ptrdiff_t>(piece_), format_.pieces.end(),
      [](const auto& piece) { return piece.kind == Kind::id || piece.kind == Kind::name; });
}

size_t CallReader::take(std::string_view text, bool is_final,
                        const std::function<std::string()>& make_id,
                        std::vector<TurnEvent>& events) {
  size_t taken = 0;
  bool goes_on = true;
  while (goes_on && state_ == State::running) {
    size_t bytes = 0;
    goes_on = step(text.substr(taken), is_final, bytes);
    if (!has_begun_) taken_ += text.substr(taken, bytes);
    taken += bytes;
    if (!has_begun_ && is_known()) {
      has_begun_ = true;
      taken_.clear();
      if (id_.empty() && make_id) id_ = make_id();
      events.push_back({.kind = TurnEvent::Kind::call_begun,
                        .call_index = index_,
                        .id = id_,
                        .name = tool_->name()});
    }
    if (has_begun_ && !json_.empty()) {
      events.push_back({.kind = TurnEvent::Kind::arguments,
                        .text = std::exchange(json_, ""),
                        .call_index = index_});
    }
    if (state_ == State::running && is_at_end()) state_ = State::done;
  }
  // What was refused before the end of the text isn't seen again.
  if (is_final && state_ != State::done) state_ = has_begun_ ? State::broken : State::cut;
  if (state_ == State::refused && has_begun_) state_ = State::broken;
  if (has_begun_ && state_ != State::running) {
    events.push_back({.kind = TurnEvent::Kind::call_ended,
                      .call_index = index_,
                      .is_complete = state_ == State::done});
  }
  return taken;
}

// False: more text decides, or the call is refused.
bool CallReader::step(std::string_view text, bool is_final, size_t& bytes) {
  switch (format_.pieces[piece_].kind) {
    case Kind::literal:
      return take_literal(text, is_final, bytes);
    case Kind::name:
      return take_name(text, is_final, bytes);
    case Kind::id:
    case Kind::index:
      return take_word(text, is_final, bytes);
    case Kind::arguments:
      break;
  }
  return take_arguments(text, is_final, bytes);
}

void CallReader::skip_optional() {
  while (!is_at_end() && format_.pieces[piece_].is_optional) ++piece_;
}

bool CallReader::take_literal(std::string_view text, bool is_final, size_t& bytes) {
  std::string_view literal = format_.pieces[piece_].text;
  if (piece_ == 0) literal.remove_prefix(std::min(skipped_, literal.size()));
  const LiteralMatch match = match_literal(text, literal, is_final);
  if (match.state == MatchState::partial) return false;
  if (match.state == MatchState::mismatch) {
    const bool begins_optional = format_.pieces[piece_].is_optional &&
                                 (piece_ == 0 || !format_.pieces[piece_ - 1].is_optional);
    if (!begins_optional) return refuse();
    skip_optional();
    return true;
  }
  bytes = match.bytes;
  ++piece_;
  return true;
}

std::string_view CallReader::next_literal() const {
  if (piece_ + 1 >= format_.pieces.size()) return {};
  return format_.pieces[piece_ + 1].text;
}

// The longest name of a tool that what must follow follows.
bool CallReader::take_name(std::string_view text, bool is_final, size_t& bytes) {
  const Tool* best = nullptr;
  size_t best_bytes = 0;
  for (const Tool& tool : tools_.tools()) {
    std::string name = tool.name();
    if (format_.name_is_json) {
      name = json_quote(name);
      name = name.substr(1, name.size() - 2);
    }
    if (text.size() < name.size() && name.starts_with(text)) {
      if (!is_final) return false;
      continue;
    }
    if (!text.starts_with(name) || name.size() <= best_bytes) continue;
    const LiteralMatch next = match_literal(text.substr(name.size()), next_literal(), is_final);
    if (next.state == MatchState::partial) return false;
    if (next.state == MatchState::mismatch) continue;
    best = &tool;
    best_bytes = name.size();
  }
  if (best == nullptr || (tool_ != nullptr && tool_ != best)) return refuse();
  bytes = best_bytes;
  tool_ = best;
  ++piece_;
  return true;
}

// The longest name of a tool that stands in the id between bytes that no name has.
bool CallReader::find_name_in_id() {
  const auto is_name_byte_at = [&](size_t at) {
    return at < id_.size() && is_id_byte(id_[at]) && id_[at] != '.' && id_[at] != ':';
  };
  for (const Tool& tool : tools_.tools()) {
    const std::string& name = tool.name();
    if (tool_ != nullptr && name.size() <= tool_->name().size()) continue;
    for (size_t at = id_.find(name); at != std::string::npos; at = id_.find(name, at + 1)) {
      const bool begins = at == 0 || !is_name_byte_at(at - 1);
      if (begins && !is_name_byte_at(at + name.size())) tool_ = &tool;
    }
  }
  return tool_ != nullptr;
}

bool CallReader::take_word(std::string_view text, bool is_final, size_t& bytes) {
  const bool is_id = format_.pieces[piece_].kind == Kind::id;
  const auto end = std::find_if_not(text.begin(), text.end(), is_id ? is_id_byte : is_index_byte);
  const auto size = static_cast<size_t>(end - text.begin());
  if (size > kMaxWordBytes) return refuse();
  if (end == text.end() && !is_final) return false;
  if (size == 0) return refuse();
  if (!is_id && format_.made_id_prefix && tool_ != nullptr) {
    const std::string& between = format_.pieces[piece_ - 1].text;
    id_ = *format_.made_id_prefix + tool_->name() + between + std::string(text.substr(0, size));
  }
  if (is_id) {
    id_ = text.substr(0, size);
    if (format_.name_is_in_id && !find_name_in_id()) return refuse();
  }
  bytes = size;
  ++piece_;
  return true;
}

bool CallReader::take_arguments(std::string_view text, bool is_final, size_t& bytes) {
  if (arguments_ == nullptr) {
    arguments_ = make_arguments_reader(format_.arguments, tool_, next_literal());
  }
  bytes = arguments_->take(text, is_final, json_);
  switch (arguments_->state()) {
    case ArgumentsReader::State::running:
      return false;
    case ArgumentsReader::State::broken:
      return refuse();
    case ArgumentsReader::State::done:
      break;
  }
  ++piece_;
  return true;
}

}  // namespace paceline
