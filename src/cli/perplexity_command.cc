#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/logits_dump.h"
#include "cli/model_opening.h"
#include "cli/perplexity.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

std::string result_text(const Perplexity& measured, bool as_json) {
  if (!as_json) return perplexity_text(measured) + "\n";
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_perplexity(measured, writer);
  writer.end_object();
  return json + "\n";
}

}  // namespace

int run_perplexity(const Settings& settings, Session& session) {
  if (!settings.file && session.stdin_is_terminal()) {
    throw UsageError("nothing to measure: give --file, or pipe a text in");
  }
  const Tokenizer tokenizer = open_tokenizer(settings);
  const MeasuredText text =
      read_measured_text(settings.file.value_or("-"), settings.max_positions, tokenizer);
  const Interrupt::Graceful graceful(session.interrupt());

  Perplexity measured;
  if (settings.dump_logits.empty()) {
    LLM llm = open_model(settings, session);
    measured = measure_perplexity(text, llm.model_info().max_model_len, scorer_of(llm, session),
                                  settings, session);
  } else {
    LogitsDump dump(load_options(settings), settings.dump_logits);
    say_weights_cache(dump.weights_cache(), settings, session);
    const auto score = [&](const std::vector<TokenId>& window) { return dump.score(window); };
    measured = measure_perplexity(text, dump.context(), score, settings, session);
    dump.finish();
  }
  session.out().write(result_text(measured, settings.json));
  session.out().flush();
  return 0;
}

}  // namespace paceline
