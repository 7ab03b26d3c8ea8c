#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"

namespace paceline {
namespace {

constexpr std::string_view kEmbedOptions[] = {"dimensions", "prompt_name"};

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
  const auto begin = [&](const Item& item, int64_t tag, RequestPool& pool) {
    const InputItem input = read_input_item(item, settings, kEmbedOptions);
    pool.embed(tag, input.prompt,
               {.dimensions = input.settings.dimensions,
                .named_prompt = input.settings.prompt_name,
                .add_special_tokens = settings.generate.add_special_tokens,
                .lora = settings.generate.lora,
                .prompt_name = input.field,
                .cancelled = session.stop_token()});
  };
  const auto answer = [](int64_t, const RequestPool::Done& done) -> PooledAnswer {
    return {embedding_json(std::get<Embedding>(done.result)) + "\n"};
  };
  return for_each_item_pooled(items, settings, session, llm, {begin, answer});
}

}  // namespace paceline
