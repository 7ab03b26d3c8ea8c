#include "tools/probe_call_ids.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tools/call_sample.h"
#include "tools/literal_alignment.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

using Kind = CallPiece::Kind;

constexpr size_t kMaxIdEnding = 256;

// Some templates write the id in messages that are answered, and not in the last one: then it
// stands behind all else, and the call's last literal follows it.
void find_optional_id(TemplateProbe& probe, const CallMessages& messages, CallFormat& format) {
  const std::vector<ProbeCall> calls{probe.call(0)};
  std::optional<std::string> text = probe.turn(messages.turn(calls), {.is_answered = true});
  if (!text || format.pieces.back().kind != Kind::literal) return;
  const auto sample = read_sample(*std::move(text), calls);
  if (!sample || sample->calls[0].size() < 2) return;
  const std::vector<CallField>& fields = sample->calls[0];
  const CallField& id = fields.back();
  if (id.kind != Kind::id) return;
  const std::string_view before = sample->part(fields[fields.size() - 2].end, id.begin);
  const std::string_view after =
      sample->part(id.end, std::min(sample->text.size(), id.end + kMaxIdEnding));
  const CallPiece ending = format.pieces.back();
  const size_t at = after.find(ending.text);
  if (at == std::string_view::npos) return;
  format.pieces.pop_back();
  append_piece(format.pieces, {.text = std::string(before), .is_optional = true});
  append_piece(format.pieces, {.kind = Kind::id, .is_optional = true});
  append_piece(format.pieces, {.text = std::string(after.substr(0, at)), .is_optional = true});
  format.pieces.push_back(ending);
}

// A name, a few marks and an index, between tags.
void find_made_id(CallFormat& format) {
  const std::vector<CallPiece>& pieces = format.pieces;
  for (size_t i = 1; i + 3 < pieces.size(); ++i) {
    if (pieces[i].kind != Kind::name || pieces[i + 2].kind != Kind::index) continue;
    const auto before = text_units(pieces[i - 1].text);
    const auto after = text_units(pieces[i + 3].text);
    const std::string& between = pieces[i + 1].text;
    const auto last_tag = std::find_if(before.rbegin(), before.rend(), is_tag);
    if (last_tag == before.rend() || after.empty() || !is_tag(after.front())) return;
    const std::string_view text = pieces[i - 1].text;
    const std::string_view prefix =
        text.substr(static_cast<size_t>(last_tag->data() + last_tag->size() - text.data()));
    const auto is_id_text = [](std::string_view part) {
      return part.find_first_of(" \t\r\n\"'{}[],<>") == std::string_view::npos;
    };
    if (is_id_text(prefix) && is_id_text(between)) format.made_id_prefix = prefix;
    return;
  }
}

}  // namespace

void probe_call_ids(TemplateProbe& probe, const CallMessages& messages, CallFormat& format) {
  if (!messages.are_answered() && !format.has(Kind::id)) find_optional_id(probe, messages, format);
  if (!format.has(Kind::id)) {
    find_made_id(format);
    return;
  }
  // Whether other ids than those of 9 letters and digits stand as they are.
  ProbeCall call = probe.call(0);
  const auto id_bytes = static_cast<uint32_t>(call.id.size());
  call.id = probe.mark("call") + "_3-0123456789abcdef";
  for (const bool is_answered : {true, false}) {
    const auto text = probe.turn(messages.turn({call}), {.is_answered = is_answered});
    if (text && text->find(call.id) != std::string::npos) return;
  }
  format.id = {.min_length = id_bytes, .max_length = id_bytes, .is_alphanumeric = true};
}

}  // namespace paceline
