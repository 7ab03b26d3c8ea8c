#include "tools/turn_reader.h"

#include <algorithm>

#include "base/utf8.h"
#include "tools/literal_match.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

using EventKind = TurnEvent::Kind;
using MatchState = LiteralMatch::State;

constexpr size_t kMaxJointBlanks = 16;
constexpr size_t kMaxMarkBytes = 512;

std::string without_blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_blank(c)) out += c;
  }
  return out;
}

// Whether `text` is the mark, or with `is_whole` false the beginning of it, blanks apart. It
// doesn't begin with one.
bool is_mark(std::string_view text, std::string_view mark, bool is_whole) {
  size_t at = 0;
  for (const char c : text) {
    if (is_blank(c) && at > 0) continue;
    if (at == mark.size() || mark[at] != c) return false;
    ++at;
  }
  return !is_whole || at == mark.size();
}

}  // namespace

TurnReader::TurnReader(std::shared_ptr<const TurnFormat> format,
                       std::shared_ptr<const ToolSet> tools, TurnReaderOptions options)
    : format_(std::move(format)), tools_(std::move(tools)), options_(std::move(options)) {
  const std::string& end = format_->content.end;
  const std::string& turn_end = format_->turn_end;
  const auto add = [&](std::vector<std::string>& marks, const std::string& text) {
    if (is_blank(text) || text.size() > kMaxMarkBytes) return;
    longest_mark_ = std::max(longest_mark_, text.size());
    marks.push_back(without_blanks(text));
  };
  for (const std::string& text : {end + turn_end, end, turn_end}) add(ends_, text);
  const std::string whole_end = end + turn_end;
  end_blanks_ = whole_end.substr(0, whole_end.size() - trimmed_left(whole_end).size());
  if (format_->calls) {
    const CallFormat& calls = *format_->calls;
    for (const std::string& text : {calls.closing + turn_end, calls.closing}) add(ends_, text);
    for (const std::string& text : {end, calls.behind_content}) {
      if (!is_blank(text)) add(joints_, text + calls.trigger);
    }
  }
  if (options_.begins_in_reasoning && format_->reasoning) state_ = State::reasoning;
}

std::vector<TurnEvent> TurnReader::push(std::string_view text) {
  text_ += text;
  while (step()) {
  }
  return std::exchange(events_, {});
}

std::vector<TurnEvent> TurnReader::finish() {
  is_final_ = true;
  return push({});
}

void TurnReader::emit(EventKind kind, std::string_view text) {
  if (text.empty() || (kind == EventKind::content && options_.must_call)) return;
  if (!events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
  } else {
    events_.push_back({.kind = kind, .text = std::string(text)});
  }
}

void TurnReader::emit_content(size_t bytes) {
  const std::string_view text = std::string_view(text_).substr(0, bytes);
  has_content_ |= !is_blank(text);
  emit(EventKind::content, text);
  drop(bytes);
}

bool TurnReader::step() {
  switch (state_) {
    case State::start:
      return take_start();
    case State::reasoning:
      return take_reasoning();
    case State::content_start:
      return take_content_start();
    case State::content:
      return take_content();
    case State::call:
      return take_call();
    case State::between_calls:
      break;
  }
  return take_between_calls();
}

bool TurnReader::take_start() {
  if (format_->reasoning && !format_->reasoning->begin.empty()) {
    const std::string_view rest = trimmed_left(text_);
    if (rest.empty() && !is_final_) return false;
    const LiteralMatch begin = match_literal(rest, format_->reasoning->begin, is_final_);
    if (begin.state == MatchState::partial) return false;
    if (begin.state == MatchState::matched) {
      drop(text_.size() - rest.size() + begin.bytes);
      state_ = State::reasoning;
      return true;
    }
    // Its end alone: the reasoning is empty.
    const LiteralMatch end = match_literal(rest, format_->reasoning->end, is_final_);
    if (end.state == MatchState::partial) return false;
    if (end.state == MatchState::matched) {
      drop(text_.size() - rest.size() + end.bytes);
      is_behind_reasoning_ = true;
    }
  }
  state_ = State::content_start;
  return true;
}

bool TurnReader::take_reasoning() {
  const std::string& end = format_->reasoning->end;
  if (!is_reasoning_begun_) {
    drop(text_.size() - trimmed_left(text_).size());
    if (text_.empty()) return false;
    is_reasoning_begun_ = true;
  }
  const size_t at = text_.find(end);
  // Reasoning that nothing has begun may have no end: a call ends it.
  const bool ends_at_call = format_->reasoning->begin.empty() && reads_calls();
  const size_t call = ends_at_call ? text_.find(format_->calls->trigger) : std::string::npos;
  if (at != std::string::npos || call != std::string::npos) {
    emit(EventKind::reasoning,
         trimmed_right(std::string_view(text_).substr(0, std::min(at, call))));
    drop(at < call ? at + end.size() : call);
    is_behind_reasoning_ = true;
    state_ = State::content_start;
    return true;
  }
  const std::string_view text = text_;
  size_t held = partial_suffix(text, end);
  if (ends_at_call) {
    held = std::max(held, partial_suffix(text, format_->calls->trigger));
  }
  std::string_view piece = text.substr(0, text.size() - held);
  if (!is_final_) piece = trimmed_right(piece);
  emit(EventKind::reasoning, piece);
  drop(piece.size());
  return false;
}

// The beginning of the content, which may have a mark, or of a call that the prompt has begun.
bool TurnReader::take_content_start() {
  const std::string_view begin = format_->content.begin;
  const std::string_view text = is_behind_reasoning_ ? trimmed_left(text_) : text_;
  if (text.empty() && !is_final_) return false;
  const std::string_view core = trimmed(begin);
  if (core.empty()) {
    // Blanks that the template writes in front of the content.
    size_t blanks = 0;
    while (blanks < begin.size() && blanks < text.size() && text[blanks] == begin[blanks]) ++blanks;
    if (blanks == text.size() && blanks < begin.size() && !is_final_) return false;
    drop(text_.size() - text.size() + blanks);
  } else {
    const LiteralMatch mark = match_literal(text, begin, is_final_);
    if (mark.state == MatchState::partial) return false;
    if (mark.state == MatchState::matched) drop(text_.size() - text.size() + mark.bytes);
    if (mark.state == MatchState::mismatch) {
      drop(text_.size() - text.size());
      if (reads_calls() && format_->calls->num_prompt_bytes > 0) return take_begun_call();
    }
  }
  state_ = State::content;
  return true;
}

// What follows the beginning of a call that the prompt has written.
bool TurnReader::take_begun_call() {
  const CallFormat& calls = *format_->calls;
  const size_t of_lead = std::min<size_t>(calls.num_prompt_bytes, calls.lead.size());
  const LiteralMatch lead =
      match_literal(text_, std::string_view(calls.lead).substr(of_lead), false);
  if (lead.state == MatchState::partial) return is_final_ && drop_cut_text();
  state_ = State::content;
  if (lead.state == MatchState::mismatch) return true;
  call_lead_ = text_.substr(0, lead.bytes);
  drop(lead.bytes);
  begin_call(calls.num_prompt_bytes - of_lead);
  return true;
}

bool TurnReader::may_begin_call() const {
  return reads_calls() && (format_->calls->may_follow_content || !has_content_);
}

// Where a suffix begins that is the end of the turn or, as long as more text comes, the beginning
// of it, or of what stands between content and a call. Blanks may stand anywhere in it, but not
// many.
size_t TurnReader::end_mark_begin() const {
  const size_t from = text_.size() - std::min(text_.size(), longest_mark_ + kMaxJointBlanks);
  for (size_t at = from; at < text_.size(); ++at) {
    const std::string_view rest = std::string_view(text_).substr(at);
    const auto matches = [&](const std::string& mark) { return is_mark(rest, mark, is_final_); };
    if (std::any_of(ends_.begin(), ends_.end(), matches)) return at;
    if (!is_final_ && may_begin_call() && std::any_of(joints_.begin(), joints_.end(), matches)) {
      return at;
    }
  }
  return text_.size();
}

// Bytes at the end of the text that may belong to a mark.
size_t TurnReader::content_held() const {
  const std::string_view text = text_;
  size_t held = text.size() - end_mark_begin();
  if (is_final_) {
    const std::string_view rest = text.substr(0, text.size() - held);
    if (held > 0) return text.size() - trimmed_right(rest).size();
    return text.ends_with(end_blanks_) ? end_blanks_.size() : 0;
  }
  if (may_begin_call()) held = std::max(held, partial_suffix(text, format_->calls->trigger));
  const std::string_view decided = text.substr(0, text.size() - held);
  if (reads_calls() || !ends_.empty()) held += decided.size() - trimmed_right(decided).size();
  return held;
}

bool TurnReader::take_content() {
  if (skips_blanks_) {
    drop(text_.size() - trimmed_left(text_).size());
    if (text_.empty()) return false;
    skips_blanks_ = false;
  }
  if (may_begin_call()) {
    const size_t at = text_.find(format_->calls->trigger);
    const bool is_allowed =
        format_->calls->may_follow_content || is_blank(std::string_view(text_).substr(0, at));
    if (at != std::string::npos && is_allowed) return begin_first_call(at);
  }
  const size_t held = content_held();
  emit_content(text_.size() - held);
  if (is_final_) text_.clear();  // the end of the turn
  return false;
}

// What stands between content and call is part of neither.
bool TurnReader::begin_first_call(size_t at) {
  std::string_view before = trimmed_right(std::string_view(text_).substr(0, at));
  const std::string_view joint = trimmed(format_->calls->behind_content);
  const std::string_view end = trimmed(format_->content.end);
  for (const std::string_view mark : {joint, end}) {
    if (mark.empty() || !before.ends_with(mark) || at - before.size() > kMaxJointBlanks) continue;
    before = trimmed_right(before.substr(0, before.size() - mark.size()));
    break;
  }
  const size_t bytes = before.size();
  call_lead_ = text_.substr(bytes, at - bytes);
  emit_content(bytes);
  drop(call_lead_.size());
  const std::string& lead = format_->calls->lead;
  const LiteralMatch match = match_literal(text_, lead, false);
  if (match.state == MatchState::partial) {
    if (is_final_) return drop_cut_text();
    text_.insert(0, call_lead_);
    return false;
  }
  if (match.state == MatchState::matched) {
    call_lead_ += text_.substr(0, match.bytes);
    drop(match.bytes);
    begin_call(0);
    return true;
  }
  // The trigger alone is no call.
  emit(EventKind::content, call_lead_);
  emit_first_character();
  return true;
}

void TurnReader::emit_first_character() {
  if (!text_.empty()) emit_content(decode_utf8(text_).size);
}

void TurnReader::begin_call(size_t skipped) {
  state_ = State::call;
  call_.emplace(*format_->calls, *tools_, num_calls_, skipped);
}

bool TurnReader::take_call() {
  const size_t taken = call_->take(text_, is_final_, options_.make_id, events_);
  drop(taken);
  switch (call_->state()) {
    case CallReader::State::running:
      return false;
    case CallReader::State::refused:
      give_call_back();
      return true;
    case CallReader::State::cut:
      return drop_cut_text();
    case CallReader::State::broken:
      state_ = State::content;
      break;
    case CallReader::State::done:
      state_ = State::between_calls;
      break;
  }
  ++num_calls_;
  call_.reset();
  return true;
}

// The text ends in what begins a call or stands between two.
bool TurnReader::drop_cut_text() {
  call_.reset();
  call_lead_.clear();
  text_.clear();
  state_ = State::content;
  return false;
}

// The text is content as far as it is read; what follows may be a call again.
void TurnReader::give_call_back() {
  const std::string taken = call_lead_ + call_->taken();
  call_.reset();
  call_lead_.clear();
  state_ = State::content;
  if (taken.empty()) {
    emit_first_character();
    return;
  }
  has_content_ = true;
  emit(EventKind::content, taken);
}

bool TurnReader::take_between_calls() {
  const CallFormat& calls = *format_->calls;
  const LiteralMatch between = match_literal(text_, calls.between, false);
  LiteralMatch next = between;
  if (between.state == MatchState::matched && calls.pieces[0].kind == CallPiece::Kind::literal) {
    next =
        match_literal(std::string_view(text_).substr(between.bytes), calls.pieces[0].text, false);
  }
  const LiteralMatch closing =
      trimmed(calls.closing).empty() ? LiteralMatch{} : match_literal(text_, calls.closing, false);
  const bool is_undecided =
      next.state == MatchState::partial || closing.state == MatchState::partial;
  if (closing.state == MatchState::matched) {
    drop(closing.bytes);
  } else if (is_undecided || (next.state == MatchState::matched && between.bytes == text_.size())) {
    return is_final_ && drop_cut_text();
  } else if (next.state == MatchState::matched && between.bytes < text_.size()) {
    call_lead_ = text_.substr(0, between.bytes);
    drop(between.bytes);
    begin_call(0);
    return true;
  }
  state_ = State::content;
  skips_blanks_ = true;
  return true;
}

}  // namespace paceline
