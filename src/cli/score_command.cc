#include <fmt/format.h>

#include <cmath>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"

namespace paceline {
namespace {

constexpr std::string_view kScoreFields[] = {"text", "ids"};
constexpr std::string_view kPairFields[] = {"text_1", "text_2", "instruction"};

struct ScoreCall {
  Prompt prompt;
  ScoreOptions options;
};

ScoreCall read_score_call(const Item& item, const Settings& settings, Session& session) {
  ScoreCall call;
  if (const auto* line = std::get_if<JsonLine>(&item.input)) {
    check_line_keys(line->object, {kScoreFields});
    call.prompt = read_prompt(line->object, "text", "ids");
    call.options.prompt_name = std::holds_alternative<std::string>(call.prompt) ? "text" : "ids";
  } else {
    call.prompt = std::get<Prompt>(item.input);
  }
  call.options.add_special_tokens = settings.generate.add_special_tokens;
  call.options.lora = settings.generate.lora;
  call.options.cancelled = session.stop_token();
  return call;
}

bool is_pair(const Item& item) {
  const auto* const line = std::get_if<JsonLine>(&item.input);
  return line != nullptr && (line->object.find("text_1") || line->object.find("text_2"));
}

void score_pair(const JsonLine& line, const Settings& settings, Session& session, int64_t tag,
                RequestPool& pool) {
  check_line_keys(line.object, {kPairFields});
  const JsonCursor fields = line_cursor(line.object);
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
  bool is_first = true;
  const PooledWork work{.begin =
                            [&](const Item& item, int64_t tag, RequestPool& pool) {
                              if (is_pair(item)) {
                                const auto& line = std::get<JsonLine>(item.input);
                                return score_pair(line, settings, session, tag, pool);
                              }
                              const ScoreCall call = read_score_call(item, settings, session);
                              pool.score(tag, call.prompt, call.options);
                            },
                        .write =
                            [&](int64_t, RequestPool::Done&& done) {
                              const auto* pair = std::get_if<PairScores>(&done.result);
                              const auto* tokens = std::get_if<std::vector<Logprob>>(&done.result);
                              if (pair != nullptr) {
                                write_json_line(session, pair_json(*pair));
                              } else if (settings.jsonl) {
                                write_json_line(session, score_json(*tokens));
                              } else {
                                if (!is_first) session.out().write("\n");
                                is_first = false;
                                session.out().write(score_table(*tokens));
                                session.out().flush();
                              }
                              if (settings.verbose) print_metrics(done.metrics, session, "");
                            }};
  const int code = for_each_item_pooled(items, settings, session, llm, work);
  llm.close();
  return code;
}

}  // namespace paceline
