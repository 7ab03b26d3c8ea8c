#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/option_value.h"

namespace paceline {
namespace {

constexpr std::string_view kTokenizeFields[] = {"text"};

std::string read_text(const Item& item) {
  const Json* const line = item.line();
  if (line == nullptr) return item.text();
  check_line_keys(*line, {kTokenizeFields});
  return line_cursor(*line).at("text").string();
}

std::string tokens_json(const Tokenizer& tokenizer, const Encoding& encoding,
                        const Settings& settings) {
  return object_json([&](JsonWriter& writer) {
    writer.member("ids", encoding.ids).member("decoded", tokenizer.decode(encoding.ids));
    if (settings.spans) {
      writer.key("spans").begin_array();
      for (const TextSpan& span : encoding.spans) {
        writer.begin_array().unsigned_integer(span.begin).unsigned_integer(span.end).end_array();
      }
      writer.end_array();
    }
  });
}

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

int run_tokenize(const Settings& settings, Session& session) {
  ItemSource items(settings);
  const Tokenizer tokenizer = open_tokenizer(settings);
  const EncodeOptions options{.add_special = settings.special,
                              .specials_as_text = settings.specials_as_text};
  return for_each_item(items, settings, session, [&](const Item& item) {
    const std::string text = read_text(item);
    const Encoding encoding = settings.spans ? tokenizer.encode_with_spans(text, options)
                                             : Encoding{.ids = tokenizer.encode(text, options)};
    if (settings.jsonl) {
      write_json_line(session, tokens_json(tokenizer, encoding, settings));
    } else {
      session.out().print(fmt::format("{}\n", fmt::join(encoding.ids, " ")));
    }
    if (settings.verbose) session.print_note("{} tokens", encoding.ids.size());
  });
}

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
