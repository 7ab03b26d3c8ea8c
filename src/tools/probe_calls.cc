#include "tools/probe_calls.h"

#include <algorithm>
#include <utility>

#include "tools/call_messages.h"
#include "tools/call_sample.h"
#include "tools/literal_alignment.h"
#include "tools/probe_call_ids.h"
#include "tools/probe_parameters.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

using Kind = CallPiece::Kind;

class CallProbe {
 public:
  CallProbe(TemplateProbe& probe, const PlainTurn& plain,
            const std::optional<ReasoningFormat>& reasoning)
      : probe_(probe), plain_(plain), reasoning_(reasoning), messages_(probe) {}

  CallsFound run() {
    one_ = messages_.choose_shape();
    format_.message = messages_.shape();
    two_ = messages_.sample({probe_.call(0), probe_.call(1)});
    format_.is_parallel = two_.has_value();
    find_lead();
    two_ ? find_pieces_of_two() : find_pieces_of_one();
    find_arguments_format();
    probe_call_ids(probe_, messages_, format_);
    format_.name_is_json = is_name_quoted();
    format_.name_is_in_id = !format_.has(Kind::name);
    find_trigger();
    std::vector<CallsWritten> written{written_in(one_, {probe_.call(0)})};
    if (two_) written.push_back(written_in(*two_, {probe_.call(0), probe_.call(1)}));
    return {std::move(format_), std::move(turn_end_), std::move(written)};
  }

 private:
  CallsWritten written_in(const CallSample& sample, std::vector<ProbeCall> calls) const {
    const size_t lead = whole_lead_.size() - format_.num_prompt_bytes;
    const size_t begin = sample.begin_of(0) - std::min(lead, sample.begin_of(0));
    return {sample.text.substr(begin), std::move(calls)};
  }

  void find_lead();
  void find_content(std::string_view before);
  std::string_view without_header(std::string_view text) const;
  void find_pieces_of_one();
  void find_pieces_of_two();
  void find_ends(std::string_view tail);
  void add_literal(std::string_view first, std::string_view second, std::string_view what);
  void add_inner_pieces(const CallSample& sample);
  void find_arguments_format();
  bool is_name_quoted() const;
  void find_trigger();

  TemplateProbe& probe_;
  const PlainTurn& plain_;
  const std::optional<ReasoningFormat>& reasoning_;
  CallMessages messages_;
  CallSample one_;                 // a turn with one call
  std::optional<CallSample> two_;  // with two
  std::string whole_lead_;         // lead and the literals in front of the first field
  CallFormat format_;
  std::string turn_end_;
};

// What is left of the text in front of a call without the end of the user's message, the beginning
// of the turn, and marks of reasoning that is empty.
std::string_view CallProbe::without_header(std::string_view text) const {
  if (!plain_.prompt.empty() && text.starts_with(plain_.prompt)) {
    text.remove_prefix(plain_.prompt.size());
  } else {
    text.remove_prefix(std::max(common_prefix(text, plain_.prompt).size(),
                                common_prefix(text, plain_.before).size()));
  }
  if (!reasoning_) return text;
  for (const std::string& mark : {reasoning_->begin, reasoning_->end}) {
    const std::string_view rest = trimmed_left(text);
    if (!mark.empty() && rest.starts_with(mark)) text = rest.substr(mark.size());
  }
  return text;
}

// The text from the last thing that isn't part of calls to the first field of the first call.
void CallProbe::find_lead() {
  const std::string_view before = one_.part(0, one_.begin_of(0));
  const std::string_view own = without_header(before);
  whole_lead_ = trimmed_left(own);
  find_content(before);
  if (own.size() < whole_lead_.size() && before.starts_with(plain_.prompt)) {
    format_.num_prompt_bytes = static_cast<uint32_t>(whole_lead_.size() - own.size());
  }
}

// Where content stands in a turn with a call. In front of it, it shows where the lead begins.
void CallProbe::find_content(std::string_view before) {
  ProbeTurn turn = messages_.turn({probe_.call(0)});
  turn.content = Json(probe_.content());
  const std::string text = probe_.turn(turn, messages_.context()).value_or("");
  const auto sample = read_sample(text, turn.calls);
  const size_t at = text.find(probe_.content());
  if (!sample || at == std::string::npos) return;
  if (at < sample->begin_of(0)) {
    const size_t end = at + probe_.content().size();
    const std::string_view joint = sample->part(end, sample->begin_of(0));
    whole_lead_ = trimmed_left(common_suffix(before, joint));
    if (whole_lead_.empty()) not_derivable("what stands in front of a call");
    format_.may_follow_content = true;
    format_.behind_content = joint.substr(0, joint.size() - whole_lead_.size());
  } else if (at >= sample->end_of(0)) {
    const std::string_view end = trimmed(plain_.after);
    const std::string_view between = sample->part(sample->end_of(0), at);
    format_.content_may_follow = end.empty() || between.find(end) == std::string_view::npos;
  }
}

// All that follows the call belongs to it, but for the end of the turn.
void CallProbe::find_pieces_of_one() {
  append_piece(format_.pieces, {.text = whole_lead_});
  add_inner_pieces(one_);
  find_ends(one_.part(one_.end_of(0), one_.text.size()));
  append_piece(format_.pieces, {.text = std::string(trimmed_right(format_.closing))});
  format_.closing.clear();
}

// The text between two calls is the end of a call and the beginning of the next: it starts like the
// text after the last call, and ends like the text before the first.
void CallProbe::find_pieces_of_two() {
  const std::string_view lead = whole_lead_;
  const std::string_view joint = two_->part(two_->end_of(0), two_->begin_of(1));
  std::string_view tail = two_->part(two_->end_of(1), two_->text.size());
  const std::string_view end = trimmed_right(joint.substr(0, aligned_prefix(joint, tail).first));
  const size_t begin_bytes =
      std::min(aligned_suffix(lead, joint).second, joint.size() - end.size());
  const std::string_view begin = trimmed_left(joint.substr(joint.size() - begin_bytes));
  const CommonBytes opening = aligned_suffix(lead, begin);
  const CommonBytes ending = aligned_prefix(end, tail);
  format_.lead = lead.substr(0, lead.size() - opening.first);
  format_.between = joint.substr(end.size(), joint.size() - end.size() - opening.second);
  add_literal(lead.substr(lead.size() - opening.first), begin.substr(begin.size() - opening.second),
              "where a call begins");
  add_inner_pieces(*two_);
  find_ends(tail.substr(ending.second));
  add_literal(end, tail.substr(0, ending.second), "where a call ends");
  const std::string_view tail_of_one = one_.part(one_.end_of(0), one_.text.size());
  format_.closing_is_optional =
      tail_of_one.find(trimmed(format_.closing)) == std::string_view::npos;
}

// What follows the last call: the end of all calls, and that of the turn.
void CallProbe::find_ends(std::string_view tail) {
  std::string_view turn_end = common_suffix(tail, plain_.after);
  if (messages_.are_answered()) {
    // The results follow: the end of a turn without calls shows where this one ends.
    const std::string_view end = trimmed(plain_.after);
    const size_t at = end.empty() ? std::string_view::npos : tail.find(end);
    tail = at == std::string_view::npos ? std::string_view() : tail.substr(0, at + end.size());
    turn_end = at == std::string_view::npos ? std::string_view() : tail.substr(at);
  }
  turn_end_ = turn_end;
  format_.closing = tail.substr(0, tail.size() - turn_end.size());
}

// What the template writes in the same place of two calls.
void CallProbe::add_literal(std::string_view first, std::string_view second,
                            std::string_view what) {
  const auto pieces = aligned_pieces(first, second);
  if (!pieces) not_derivable(what);
  for (const CallPiece& piece : *pieces) append_piece(format_.pieces, piece);
}

// The fields of the call and the literals between them.
void CallProbe::add_inner_pieces(const CallSample& sample) {
  const std::vector<CallField>& first = sample.calls[0];
  const std::vector<CallField>& last = sample.calls.back();
  for (size_t i = 0; i < first.size(); ++i) {
    append_piece(format_.pieces, {.kind = first[i].kind});
    if (i + 1 == first.size()) break;
    const std::string_view what = "what stands between a call's name and its arguments";
    if (first.size() != last.size()) not_derivable(what);
    add_literal(sample.part(first[i].end, first[i + 1].begin),
                sample.part(last[i].end, last[i + 1].begin), what);
  }
}

void CallProbe::find_arguments_format() {
  const auto place = std::find_if(format_.pieces.begin(), format_.pieces.end(),
                                  [](const auto& piece) { return piece.kind == Kind::arguments; });
  if (one_.style != ArgumentsFormat::Style::parameters) {
    const std::string_view text = one_.text;
    const Json::Object& given = probe_.call(0).arguments;
    format_.arguments.style = one_.style;
    format_.arguments.sorts_keys = text.find(given[1].first) < text.find(given[0].first);
    return;
  }
  const auto before = place == format_.pieces.begin() ? format_.pieces.end() : place - 1;
  const auto after = place + 1;
  if (before == format_.pieces.end() || before->kind != Kind::literal) {
    not_derivable("where the first argument begins");
  }
  if (after == format_.pieces.end() || after->kind != Kind::literal) {
    not_derivable("where the last argument ends");
  }
  ArgumentsFormat& arguments = format_.arguments;
  arguments = probe_parameters(probe_, messages_, one_, {before->text, after->text});
  // The literals keep what belongs to all arguments together.
  std::string_view left = before->text;
  left.remove_suffix(arguments.before_key.size() + arguments.begin_blanks.size());
  before->text = std::string(left);
  after->text.erase(0, arguments.string_frame.close.size() + arguments.end_blanks.size());
  if (after->text.empty()) format_.pieces.erase(after);
}

// Between quotes that follow JSON's punctuation.
bool CallProbe::is_name_quoted() const {
  for (size_t i = 1; i + 1 < format_.pieces.size(); ++i) {
    if (format_.pieces[i].kind != Kind::name) continue;
    std::string_view before = format_.pieces[i - 1].text;
    if (!before.ends_with('"') || !format_.pieces[i + 1].text.starts_with('"')) return false;
    before = trimmed_right(before.substr(0, before.size() - 1));
    return !before.empty() && std::string_view(":,{[").find(before.back()) != std::string::npos;
  }
  return false;
}

// The first tag by which a call is told apart from an answer; without any, all in front of the
// first field.
void CallProbe::find_trigger() {
  std::string all = format_.lead;
  if (!format_.pieces.empty() && format_.pieces[0].kind == Kind::literal) {
    all += format_.pieces[0].text;
  }
  const std::string answer = plain_.before + plain_.after;
  for (const std::string_view unit : text_units(all)) {
    format_.trigger += unit;
    if (is_tag(unit) && answer.find(format_.trigger) == std::string::npos) {
      format_.may_follow_content = true;
      return;
    }
  }
  if (trimmed(all).empty()) not_derivable("what stands in front of a call");
  // Words in front of a bracket tell enough: a model may write blanks of its own behind it.
  const size_t bracket = all.find_first_of("[{(");
  const bool has_words = bracket != std::string::npos &&
                         std::count_if(all.begin(), all.begin() + static_cast<ptrdiff_t>(bracket),
                                       [](char c) { return 'a' <= c && c <= 'z'; }) >= 4;
  format_.trigger = has_words ? all.substr(0, bracket + 1) : all;
}

}  // namespace

CallsFound probe_calls(TemplateProbe& probe, const PlainTurn& plain,
                       const std::optional<ReasoningFormat>& reasoning) {
  return CallProbe(probe, plain, reasoning).run();
}

}  // namespace paceline
