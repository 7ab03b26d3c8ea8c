#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/option_value.h"

namespace paceline {
namespace {

constexpr std::string_view kDetokenizeFields[] = {"ids"};

std::vector<TokenId> read_ids(const Item& item) {
  if (const auto* line = std::get_if<JsonLine>(&item.input)) {
    check_line_keys(line->object, {kDetokenizeFields});
    return read_token_ids(line_cursor(line->object).at("ids"));
  }
  const Prompt& prompt = std::get<Prompt>(item.input);
  if (const auto* text = std::get_if<std::string>(&prompt)) return parse_token_ids(*text, "ids");
  return std::get<std::vector<int32_t>>(prompt);
}

}  // namespace

int run_detokenize(const Settings& settings, Session& session) {
  ItemSource items(settings);
  const Tokenizer tokenizer = open_tokenizer(settings);
  return for_each_item(items, settings, session, [&](const Item& item) {
    const std::string text = tokenizer.decode(read_ids(item));
    if (settings.jsonl) {
      std::string json;
      JsonWriter(json).begin_object().member("text", text).end_object();
      write_json_line(session, std::move(json));
    } else {
      session.out().write(text + "\n");
      session.out().flush();
    }
  });
}

}  // namespace paceline
