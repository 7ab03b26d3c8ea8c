#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/constraint_choice.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/option_value.h"
#include "cli/usage_error.h"
#include "grammar/constraint.h"
#include "grammar/matcher.h"
#include "grammar/token_trie.h"
#include "paceline/error.h"
#include "text/text_tokens.h"

namespace paceline {
namespace {

struct WalkTimes {
  double compile_us = 0;
  double first_mask_us = 0;      // compilation included
  std::vector<double> token_us;  // of every token: its mask, and the step past it
};

class WalkClock {
 public:
  double microseconds() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Grammar compile_accepting(const ConstraintSpec& spec) {
  return compile_constraint(spec, {}, JsonTexts::accepted);
}

// A compiled constraint, and what walking texts through it took.
class GrammarWalk {
 public:
  // Compiles the constraint and computes the mask of the first token. `tokens` must outlive it;
  // `trie` has their bytes.
  GrammarWalk(const ConstraintSpec& spec, const TextTokens& tokens,
              std::shared_ptr<const TokenTrie> trie)
      : spec_(spec), tokens_(tokens) {
    const WalkClock watch;
    constraint_ = std::make_shared<Constraint>(compile_accepting(spec), std::move(trie));
    times_.compile_us = watch.microseconds();
    Matcher(constraint_).mask();
    times_.first_mask_us = watch.microseconds();
  }

  // Whether the text obeys the constraint.
  bool accepts(std::string_view text) {
    Matcher matcher(constraint_);
    for (const TokenId id : tokens_.tokens_of(text)) {
      const auto token = static_cast<uint32_t>(id);
      const WalkClock watch;
      const bool is_allowed = matcher.mask()->allows(token) && matcher.accept(token);
      times_.token_us.push_back(watch.microseconds());
      if (!is_allowed) return false;
    }
    const WalkClock watch;
    matcher.mask();
    times_.token_us.push_back(watch.microseconds());
    return matcher.is_complete();
  }

  // The bytes of the text up to the first that can't come there; all of them: it ends too early.
  size_t accepted_bytes(std::string_view text) const {
    std::vector<std::string> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    Matcher matcher(std::make_shared<Constraint>(compile_accepting(spec_),
                                                 std::make_shared<const TokenTrie>(bytes)));
    size_t count = 0;
    while (count < text.size() && matcher.accept(static_cast<uint8_t>(text[count]))) ++count;
    return count;
  }

  const WalkTimes& times() const { return times_; }

 private:
  ConstraintSpec spec_;
  const TextTokens& tokens_;
  std::shared_ptr<Constraint> constraint_;
  WalkTimes times_;
};

constexpr std::string_view kGrammarFields[] = {"texts"};

// The constraint of a line, which has exactly one.
NamedConstraint constraint_of_line(const Json& line, bool strict) {
  auto constraint = read_constraint(line, strict);
  if (constraint) return std::move(*constraint);
  throw Error(
      ErrorCode::invalid,
      "found no constraint, expected one of json_schema, regex, grammar, choice and json_object");
}

// The constraint of the options, which have exactly one.
NamedConstraint constraint_of_options(const ConstraintChoice& choice) {
  auto constraint = chosen_constraint(choice);
  if (constraint) return std::move(*constraint);
  throw UsageError(
      "found no constraint, expected one of --json-schema, --regex, --grammar and --choice, or "
      "--jsonl");
}

double share_of(const std::vector<double>& sorted, double share) {
  const auto index = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

void write_times(JsonWriter& writer, const WalkTimes& times) {
  writer.member("compile_us", times.compile_us).member("first_mask_us", times.first_mask_us);
  writer.key("mask_us").begin_object();
  if (!times.token_us.empty()) {
    std::vector<double> sorted = times.token_us;
    std::sort(sorted.begin(), sorted.end());
    const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
    writer.member("mean", sum / static_cast<double>(sorted.size()))
        .member("p50", share_of(sorted, 0.5))
        .member("p99", share_of(sorted, 0.99))
        .member("max", sorted.back());
  }
  writer.member("count", times.token_us.size()).member("all", times.token_us).end_object();
}

// The vocabulary of the model, and the constraint of the options, compiled once.
class GrammarCommand {
 public:
  GrammarCommand(const Settings& settings, Session& session)
      : settings_(settings),
        session_(session),
        tokenizer_(open_tokenizer(settings)),
        tokens_(tokenizer_),
        trie_(std::make_shared<const TokenTrie>(tokens_.bytes())) {
    if (!settings.jsonl) walk_.emplace(walk_of(constraint_of_options(settings.constraint)));
  }

  void answer(const Item& item) {
    const Json* const line = item.line();
    session_.out().print(line == nullptr ? verdict(item.text()) : answer_line(*line));
  }

  // Whether no text of the command line was rejected.
  bool all_accepted() const { return all_accepted_; }

 private:
  GrammarWalk walk_of(const NamedConstraint& constraint) const {
    try {
      return {constraint.spec, tokens_, trie_};
    } catch (const Error& error) {
      throw_named(constraint, error);
    }
  }

  std::string answer_line(const Json& object) {
    check_line_keys(object, {kGrammarFields, kConstraintNames});
    const NamedConstraint constraint = constraint_of_line(object, settings_.constraint.strict);
    const std::vector<std::string> texts = read_texts(line_cursor(object).at("texts"));
    GrammarWalk walk = walk_of(constraint);
    const std::string json = object_json([&](JsonWriter& writer) {
      writer.key("accepted").begin_array();
      for (const std::string& text : texts) writer.boolean(walk.accepts(text));
      writer.end_array();
      if (settings_.masks) write_times(writer, walk.times());
    });
    return json + "\n";
  }

  std::string verdict(const std::string& text) {
    const bool is_accepted = walk_->accepts(text);
    all_accepted_ = all_accepted_ && is_accepted;
    if (is_accepted) return fmt::format("accepted  {}\n", shown_text(text));
    const size_t at = walk_->accepted_bytes(text);
    const std::string_view why = at == text.size() ? ", where it ends too early" : "";
    return fmt::format("rejected  {} at byte {}{}\n", shown_text(text), at, why);
  }

  const Settings& settings_;
  Session& session_;
  Tokenizer tokenizer_;
  TextTokens tokens_;
  std::shared_ptr<const TokenTrie> trie_;
  std::optional<GrammarWalk> walk_;
  bool all_accepted_ = true;
};

}  // namespace

int run_grammar(const Settings& settings, Session& session) {
  if (settings.jsonl && (!settings.prompts.empty() || settings.constraint.is_given())) {
    throw UsageError(
        "--jsonl reads constraints and texts from its lines, but some were given, too");
  }
  ItemSource items(settings);
  GrammarCommand command(settings, session);
  const int code =
      for_each_item(items, settings, session, [&](const Item& item) { command.answer(item); });
  return code == 0 && !command.all_accepted() ? 1 : code;
}

}  // namespace paceline
