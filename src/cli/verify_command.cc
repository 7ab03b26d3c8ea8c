#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backends/python_backend.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/option_names.h"
#include "cli/command.h"
#include "cli/items.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

// Prose, code, numbers and other scripts: what is compared where no text is given.
constexpr std::string_view kSampleTexts[] = {
    "The old man went down to the harbour every morning to watch the boats come in.",
    "def mean(values):\n    return sum(values) / len(values)\n",
    "In 1969, 3 people flew 384,400 km; 2 of them walked 250 m from where they had landed.",
    "Der Fluß fließt, la rivière coule, 川は流れる, река течёт.",
};
constexpr int64_t kComparedTokens = 512;

// How far the log-probabilities of one text are apart.
struct TextComparison {
  std::string name;
  int64_t num_tokens = 0;  // compared: all but the first
  double largest = 0;
  double sum = 0;
  int64_t num_equal = 0;  // positions at which both have the same likeliest token

  double mean() const { return num_tokens == 0 ? 0 : sum / static_cast<double>(num_tokens); }
};

TextComparison compare(std::string name, const std::vector<Logprob>& ours,
                       const BackendScores& theirs) {
  TextComparison found{.name = std::move(name)};
  for (size_t i = 1; i < ours.size(); ++i) {
    const double apart = std::abs(static_cast<double>(*ours[i].logprob) - theirs.logprobs[i - 1]);
    // A number that isn't finite on one side alone is infinitely far from the other.
    const double distance = std::isnan(apart) ? HUGE_VAL : apart;
    found.largest = std::max(found.largest, distance);
    found.sum += distance;
    found.num_equal += ours[i].top.front().id == theirs.best[i - 1] ? 1 : 0;
    ++found.num_tokens;
  }
  return found;
}

std::string table_of(const std::vector<TextComparison>& rows) {
  std::string table = fmt::format("{:>8}  {:>10}  {:>10}  {:>13}  {}\n", "tokens", "largest",
                                  "mean", "same likeliest", "text");
  for (const TextComparison& row : rows) {
    table +=
        fmt::format("{:>8}  {:>10.2e}  {:>10.2e}  {:>14}  {}\n", row.num_tokens, row.largest,
                    row.mean(), fmt::format("{} of {}", row.num_equal, row.num_tokens), row.name);
  }
  return table;
}

std::string json_of(const std::vector<TextComparison>& rows, const std::string& version,
                    double largest, double tolerance) {
  return object_json([&](JsonWriter& writer) {
           writer.member("version", version);
           writer.key("largest").number(largest).key("tolerance").number(tolerance);
           writer.key("within").boolean(largest <= tolerance).key("texts").begin_array();
           for (const TextComparison& row : rows) {
             writer.begin_object().member("text", row.name).member("tokens", row.num_tokens);
             writer.key("largest").number(row.largest).key("mean").number(row.mean());
             writer.member("same_likeliest", row.num_equal).end_object();
           }
           writer.end_array();
         }) +
         "\n";
}

struct VerifiedText {
  std::string name;
  std::vector<int32_t> ids;
};

std::vector<VerifiedText> texts_of(const Settings& settings, const LLM& llm) {
  std::vector<VerifiedText> texts;
  const auto add = [&](std::string name, const Prompt& prompt) {
    const auto* text = std::get_if<std::string>(&prompt);
    auto ids = text == nullptr ? std::get<std::vector<int32_t>>(prompt) : llm.tokenize(*text, true);
    const auto most = static_cast<size_t>(
        std::min(settings.max_positions.value_or(kComparedTokens), llm.model_info().max_model_len));
    if (ids.size() > most) ids.resize(most);
    if (ids.size() < 2) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: {} tokens, expected 2 or more: the first has "
                              "nothing before it",
                              name, ids.size()));
    }
    texts.push_back({.name = std::move(name), .ids = std::move(ids)});
  };
  if (settings.prompts.empty() && settings.id_prompts.empty() && !settings.file) {
    for (const std::string_view text : kSampleTexts) {
      add(fmt::format("sample {}", texts.size() + 1), std::string(text));
    }
    return texts;
  }
  for (ItemSource items(settings); items.has_next();) {
    const Item item = items.next();
    add(item.name.empty() ? "text" : item.name, item.prompt());
  }
  return texts;
}

PythonBackendOptions backend_options(const Settings& settings, const LLM& llm,
                                     const std::string& dtype) {
  const std::string path = llm.model_info().path;
  if (!std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: {} reads directories alone; give the model's directory", path,
                            settings.against));
  }
  return {
      .backend = settings.against, .python = settings.load.python, .model = path, .dtype = dtype};
}

}  // namespace

int run_verify(const Settings& settings, Session& session) {
  Settings ours = settings;
  if (ours.load.dtype == DataType::automatic) ours.load.dtype = DataType::float32;
  LLM llm = open_model(ours, session, 1);
  const auto texts = texts_of(settings, llm);
  const Interrupt::Graceful graceful(session.interrupt());  // the child ends with the program
  PythonBackend theirs(backend_options(settings, llm, std::string(option_name(ours.load.dtype))),
                       session.stop_token());
  std::vector<TextComparison> rows;
  double largest = 0;
  for (const VerifiedText& text : texts) {
    const auto scored =
        llm.score(text.ids, {.num_top_logprobs = 1, .cancelled = session.stop_token()});
    rows.push_back(compare(text.name, scored, theirs.score(text.ids, session.stop_token())));
    largest = std::max(largest, rows.back().largest);
  }
  llm.close();
  const bool is_within = largest <= settings.tolerance;
  const std::string version = fmt::format("{} {}", settings.against, theirs.version());
  session.out().write(settings.json ? json_of(rows, version, largest, settings.tolerance)
                                    : table_of(rows));
  session.print_note("{}: log-probabilities at most {:.2e} apart, which is {} {:g} (--tolerance)",
                     version, largest, is_within ? "within" : "beyond", settings.tolerance);
  return session.exit_code(is_within ? 0 : 1);
}

}  // namespace paceline
