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
  if (const Json* line = item.line()) {
    check_line_keys(*line, {kDetokenizeFields});
    return read_token_ids(line_cursor(*line).at("ids"));
  }
  const auto* text = std::get_if<std::string>(&item.prompt());
  return text == nullptr ? std::get<std::vector<int32_t>>(item.prompt())
                         : parse_token_ids(*text, "ids");
}

}  // namespace

int run_detokenize(const Settings& settings, Session& session) {
  ItemSource items(settings);
  const Tokenizer tokenizer = open_tokenizer(settings);
  return for_each_item(items, settings, session, [&](const Item& item) {
    const std::string text = tokenizer.decode(read_ids(item));
    if (settings.jsonl) {
      write_json_line(session, object_json([&](JsonWriter& json) { json.member("text", text); }));
    } else {
      session.out().print(text + "\n");
    }
  });
}

}  // namespace paceline
