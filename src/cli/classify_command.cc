#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"
#include "paceline/error.h"
#include "text/generation_options.h"

namespace paceline {
namespace {

constexpr std::string_view kClassifyFields[] = {"text"};
constexpr std::string_view kOptionFields[] = {"labels"};

struct ClassifyCall {
  Prompt prompt;
  ClassifyOptions options;
};

void check_given_labels(const Json& line, const std::vector<std::string>& labels) {
  if (line.find_value("labels") == nullptr || !labels.empty()) return;
  throw Error(
      ErrorCode::invalid,
      "labels: an empty array, expected at least one label; leave the field out to draw a token");
}

ClassifyCall read_classify_call(const Item& item, const Settings& settings, Session& session) {
  Settings of_item = settings;
  Prompt prompt;
  if (const Json* line = item.line()) {
    check_line_keys(*line, {kClassifyFields, kOptionFields});
    apply_option_fields(*line, kOptionFields, of_item);
    check_given_labels(*line, of_item.labels);
    prompt = line_cursor(*line).at("text").string();
    of_item.generate.prompt_name = "text";
  } else {
    prompt = item.prompt();
  }
  of_item.generate.cancelled = session.stop_token();
  const bool want_token_id = of_item.labels.empty() || settings.with_token_id;
  return {std::move(prompt),
          {.labels = std::move(of_item.labels),
           .want_token_id = want_token_id,
           .with_logits = settings.with_logits,
           .sampling = std::move(of_item.generate)}};
}

std::string classification_json(const Classification& result, bool with_logits) {
  return object_json([&](JsonWriter& writer) {
    writer.member("token_id", result.token_id).key("token");
    result.token_id ? writer.string(result.token) : writer.null();
    writer.member("label", result.label).key("scores");
    result.label ? writer.value(result.scores) : writer.null();
    if (!result.labels.empty()) writer.member("labels", result.labels);
    if (with_logits) writer.member("logits", result.logits);
  });
}

// The likeliest label first.
std::string label_table(const Classification& result, const std::vector<std::string>& labels) {
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return result.scores[a] > result.scores[b]; });
  std::string table;
  for (size_t i : order) table += fmt::format("{:.4f}  {}\n", result.scores[i], labels[i]);
  return table;
}

std::string classification_text(const Classification& result,
                                const std::vector<std::string>& labels) {
  std::string text = result.label ? label_table(result, labels) : "";
  if (!result.token_id) return text;
  return text +
         (result.token.empty() ? std::to_string(*result.token_id) : json_quote(result.token)) +
         "\n";
}

// "--labels a,b" is one label, because labels may contain commas.
void check_listed_labels(const std::vector<std::string>& labels) {
  if (labels.size() != 1 || labels[0].find(',') == std::string::npos) return;
  throw UsageError(
      "--label: found one label, \"{}\"; repeat the option for each: --label A --label B",
      labels[0]);
}

// Labels get scores; without --with-token-id no token is drawn.
void warn_of_sampling(const Settings& settings, Session& session) {
  if (settings.labels.empty() || settings.with_token_id) return;
  for (const GenerationOption& option : kGenerationOptions) {
    if (option.group != GenerationGroup::sampling || !is_set(settings.generate, option)) continue;
    std::string flag(option.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    session.print_note(
        "warning: --{}: no effect beside --label, where no token is drawn without --with-token-id",
        flag);
  }
}

}  // namespace

int run_classify(const Settings& settings, Session& session) {
  check_listed_labels(settings.labels);
  warn_of_sampling(settings, session);
  ItemSource items(settings);
  // The prompt is one sequence, and each label may become another.
  LLM llm = open_model(settings, session, usual_sequences(settings, 1 + settings.labels.size()));
  std::unordered_map<int64_t, std::vector<std::string>> labels;  // of items in flight
  const auto begin = [&](const Item& item, int64_t tag, RequestPool& pool) {
    ClassifyCall call = read_classify_call(item, settings, session);
    pool.classify(tag, call.prompt, call.options);
    labels.emplace(tag, std::move(call.options.labels));
  };
  const auto answer = [&](int64_t tag, const RequestPool::Done& done) -> PooledAnswer {
    const auto& result = std::get<Classification>(done.result);
    const auto own_labels = labels.extract(tag);
    if (settings.jsonl) return {classification_json(result, settings.with_logits) + "\n"};
    const auto& shown = result.labels.empty() ? own_labels.mapped() : result.labels;
    return {classification_text(result, shown), result.label.has_value()};
  };
  return for_each_item_pooled(items, settings, session, llm, {begin, answer});
}

}  // namespace paceline
