#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"

namespace paceline {
namespace {

constexpr std::string_view kOwnFields[] = {"text"};

std::string read_text(const Item& item) {
  const auto* line = std::get_if<JsonLine>(&item.input);
  if (line == nullptr) return std::get<std::string>(std::get<Prompt>(item.input));
  check_line_keys(line->object, kOwnFields, {});
  const Json* text = line->object.find("text");
  if (text == nullptr) throw Error(ErrorCode::invalid, "found no text");
  return text->as_string("text");
}

std::string tokens_json(const std::vector<TokenId>& ids, std::string_view decoded) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().key("ids").begin_array();
  for (TokenId id : ids) writer.integer(id);
  writer.end_array().member("decoded", decoded).end_object();
  return json;
}

}  // namespace

int run_tokenize(const Settings& settings, Session& session) {
  ItemSource items(settings);
  const auto tokenizer = open_tokenizer(settings);
  return for_each_item(items, settings, session, [&](const Item& item) {
    const auto ids = tokenizer->encode(
        read_text(item),
        {.add_special = settings.special, .specials_as_text = settings.specials_as_text});
    if (settings.jsonl) {
      write_json_line(session, tokens_json(ids, tokenizer->decode(ids)));
    } else {
      session.out().write(fmt::format("{}\n", fmt::join(ids, " ")));
      session.out().flush();
    }
    if (settings.verbose) session.say(fmt::format("{} tokens", ids.size()));
  });
}

}  // namespace paceline
