#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"

namespace paceline {
namespace {

constexpr std::string_view kEmbedFields[] = {"text", "ids"};
constexpr std::string_view kEmbedOptions[] = {"dimensions", "prompt_name"};

struct EmbedCall {
  Prompt prompt;
  EmbedOptions options;
};

EmbedCall read_embed_call(const Item& item, const Settings& settings, Session& session) {
  Settings of_item = settings;
  EmbedCall call;
  std::string field;
  if (const auto* line = std::get_if<JsonLine>(&item.input)) {
    check_line_keys(line->object, {kEmbedFields, kEmbedOptions});
    apply_option_fields(line->object, kEmbedOptions, of_item);
    call.prompt = read_prompt(line->object, "text", "ids");
    field = std::holds_alternative<std::string>(call.prompt) ? "text" : "ids";
  } else {
    call.prompt = std::get<Prompt>(item.input);
  }
  call.options = {.dimensions = of_item.dimensions,
                  .named_prompt = of_item.prompt_name,
                  .add_special_tokens = settings.generate.add_special_tokens,
                  .lora = settings.generate.lora,
                  .prompt_name = field,
                  .cancelled = session.stop_token()};
  return call;
}

std::string embedding_json(const Embedding& embedding) {
  return object_json([&](JsonWriter& writer) {
    writer.member("embedding", embedding.values)
        .member("prompt_tokens", embedding.usage.prompt_tokens);
  });
}

}  // namespace

int run_embed(const Settings& settings, Session& session) {
  ItemSource items(settings);
  LLM llm = open_model(settings, session, usual_sequences(settings, 1));
  const PooledWork work{.begin =
                            [&](const Item& item, int64_t tag, RequestPool& pool) {
                              const EmbedCall call = read_embed_call(item, settings, session);
                              pool.embed(tag, call.prompt, call.options);
                            },
                        .write =
                            [&](int64_t, RequestPool::Done&& done) {
                              write_json_line(session,
                                              embedding_json(std::get<Embedding>(done.result)));
                              if (settings.verbose) print_metrics(done.metrics, session, "");
                            }};
  const int code = for_each_item_pooled(items, settings, session, llm, work);
  llm.close();
  return code;
}

}  // namespace paceline
