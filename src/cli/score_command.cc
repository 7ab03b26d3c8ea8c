#include <fmt/format.h>

#include <cmath>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"

namespace paceline {
namespace {

constexpr std::string_view kPairFields[] = {"text_1", "text_2", "instruction"};

bool is_pair(const Item& item) {
  const Json* const line = item.line();
  return line != nullptr && (line->find("text_1") || line->find("text_2"));
}

void score_pair(const Json& line, const Settings& settings, Session& session, int64_t tag,
                RequestPool& pool) {
  check_line_keys(line, {kPairFields});
  const JsonCursor fields = line_cursor(line);
  const TextPair pair = {.first = fields.at("text_1").string(),
                         .second = fields.at("text_2").string(),
                         .name = "text_2"};
  PairOptions options{.lora = settings.generate.lora, .cancelled = session.stop_token()};
  if (const auto instruction = fields.find("instruction")) {
    options.instruction = instruction->string();
  }
  pool.score_pairs(tag, std::span(&pair, 1), options);
}

std::string pair_json(const PairScores& scores) {
  return object_json([&](JsonWriter& writer) {
    writer.key("score").number(scores.values.front());
    writer.member("prompt_tokens", scores.usage.prompt_tokens);
  });
}

std::string score_json(const std::vector<Logprob>& tokens) {
  return object_json([&](JsonWriter& writer) {
    writer.key("ids").begin_array();
    for (const Logprob& token : tokens) writer.integer(token.id);
    writer.end_array().key("logprobs").begin_array();
    for (const Logprob& token : tokens)
      token.logprob ? writer.number(*token.logprob) : writer.null();
    writer.end_array();
  });
}

std::string score_table(const std::vector<Logprob>& tokens) {
  std::string table;
  double total = 0;
  for (const Logprob& token : tokens) {
    const std::string logprob = token.logprob ? fmt::format("{:.4f}", *token.logprob) : "-";
    table += fmt::format("{:>10}  {:>7}  {}\n", logprob, token.id, json_quote(token.token));
    total += static_cast<double>(token.logprob.value_or(0.0f));
  }
  const auto scored = static_cast<double>(tokens.size()) - 1;
  table += fmt::format("{:>10.4f}  in all", total);
  if (scored > 0) table += fmt::format(", perplexity {:.3f}", std::exp(-total / scored));
  return table + "\n";
}

}  // namespace

int run_score(const Settings& settings, Session& session) {
  ItemSource items(settings);
  LLM llm = open_model(settings, session, usual_sequences(settings, 1));
  const auto begin = [&](const Item& item, int64_t tag, RequestPool& pool) {
    if (is_pair(item)) return score_pair(*item.line(), settings, session, tag, pool);
    const InputItem input = read_input_item(item, settings);
    pool.score(tag, input.prompt,
               {.add_special_tokens = settings.generate.add_special_tokens,
                .lora = settings.generate.lora,
                .prompt_name = input.field,
                .cancelled = session.stop_token()});
  };
  const auto answer = [&](int64_t, const RequestPool::Done& done) -> PooledAnswer {
    const auto* pair = std::get_if<PairScores>(&done.result);
    if (pair != nullptr) return {pair_json(*pair) + "\n"};
    const auto& tokens = std::get<std::vector<Logprob>>(done.result);
    if (settings.jsonl) return {score_json(tokens) + "\n"};
    return {score_table(tokens), true};
  };
  return for_each_item_pooled(items, settings, session, llm, {begin, answer});
}

}  // namespace paceline
