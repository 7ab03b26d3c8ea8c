#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/grammar_walk.h"
#include "cli/items.h"
#include "cli/line_fields.h"
#include "cli/model_opening.h"
#include "cli/text_file.h"
#include "cli/usage_error.h"
#include "cli/words.h"
#include "grammar/constraint.h"

namespace paceline {
namespace {

using ConstraintKind = ConstraintSpec::Kind;

constexpr std::string_view kGrammarFields[] = {"json_schema", "regex",  "grammar", "choice",
                                               "json_object", "strict", "texts"};

std::vector<std::string> read_texts(const JsonCursor& array) {
  std::vector<std::string> texts;
  for (const JsonCursor& text : array.items()) texts.push_back(text.string());
  return texts;
}

// A schema is an object, or its text.
std::string schema_text(const JsonCursor& schema) {
  return schema.is_string() ? schema.string() : to_json(schema.node().json());
}

// The constraint of a line, which has exactly one.
ConstraintSpec read_constraint(const JsonCursor& line) {
  std::vector<ConstraintSpec> found;
  if (const auto schema = line.find("json_schema")) {
    found.push_back({.kind = ConstraintKind::json_schema, .text = schema_text(*schema)});
  }
  if (const auto regex = line.find("regex")) {
    found.push_back({.kind = ConstraintKind::regex, .text = regex->string()});
  }
  if (const auto grammar = line.find("grammar")) {
    found.push_back({.kind = ConstraintKind::grammar, .text = grammar->string()});
  }
  if (const auto choice = line.find("choice")) {
    found.push_back({.kind = ConstraintKind::choice, .choices = read_texts(*choice)});
  }
  if (line.boolean_or("json_object", false)) found.push_back({.kind = ConstraintKind::json_object});
  if (found.size() != 1) {
    throw Error(ErrorCode::invalid,
                fmt::format("found {} constraints, expected one of json_schema, regex, grammar, "
                            "choice and json_object",
                            found.size()));
  }
  found[0].strict = line.boolean_or("strict", false);
  return found[0];
}

// "a,b" is two texts; a text with a comma is one where the option is repeated.
std::vector<std::string> listed_choices(const std::vector<std::string>& choices) {
  if (choices.size() != 1) return choices;
  std::vector<std::string> listed;
  for (const std::string_view choice : split_words(choices[0], ",")) listed.emplace_back(choice);
  return listed;
}

// The constraint of the options.
ConstraintSpec chosen_constraint(const GrammarChoice& choice) {
  std::vector<ConstraintSpec> found;
  if (!choice.json_schema_file.empty()) {
    found.push_back(
        {.kind = ConstraintKind::json_schema, .text = read_whole_text(choice.json_schema_file)});
  }
  if (choice.regex) found.push_back({.kind = ConstraintKind::regex, .text = *choice.regex});
  if (!choice.grammar_file.empty()) {
    found.push_back(
        {.kind = ConstraintKind::grammar, .text = read_whole_text(choice.grammar_file)});
  }
  if (!choice.choices.empty()) {
    found.push_back({.kind = ConstraintKind::choice, .choices = listed_choices(choice.choices)});
  }
  if (found.size() != 1) {
    throw UsageError(
        fmt::format("found {} constraints, expected one of --json-schema, --regex, --grammar and "
                    "--choice, or --jsonl",
                    found.size()));
  }
  found[0].strict = choice.strict;
  return found[0];
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
  writer.member("count", times.token_us.size()).key("all").begin_array();
  for (const double us : times.token_us) writer.number(us);
  writer.end_array().end_object();
}

// The vocabulary of the model, and the constraint of the options, compiled once.
class GrammarCommand {
 public:
  GrammarCommand(const Settings& settings, Session& session)
      : settings_(settings),
        session_(session),
        tokenizer_(open_tokenizer(settings)),
        tokens_(tokenizer_),
        trie_(GrammarWalk::trie_of(tokens_)) {
    if (!settings.jsonl) walk_.emplace(chosen_constraint(settings.grammar), tokens_, trie_);
  }

  void answer(const Item& item) {
    if (const auto* line = std::get_if<JsonLine>(&item.input)) {
      write_json_line(session_, answer_line(line->object));
      return;
    }
    const std::string& text = std::get<std::string>(std::get<Prompt>(item.input));
    session_.out().write(verdict(text));
    session_.out().flush();
  }

 private:
  std::string answer_line(const Json& object) {
    check_line_keys(object, kGrammarFields, {});
    const JsonCursor line = line_cursor(object);
    const ConstraintSpec spec = read_constraint(line);
    const std::vector<std::string> texts = read_texts(line.at("texts"));
    GrammarWalk walk(spec, tokens_, trie_);
    std::string json;
    JsonWriter writer(json);
    writer.begin_object().key("accepted").begin_array();
    for (const std::string& text : texts) writer.boolean(walk.accepts(text));
    writer.end_array();
    if (settings_.grammar.masks) write_times(writer, walk.times());
    writer.end_object();
    return json;
  }

  std::string verdict(const std::string& text) {
    if (walk_->accepts(text)) return fmt::format("accepted  {}\n", shown_text(text));
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
};

}  // namespace

int run_grammar(const Settings& settings, Session& session) {
  if (settings.jsonl && (!settings.prompts.empty() || settings.grammar.has_constraint())) {
    throw UsageError(
        "--jsonl reads constraints and texts from its lines, but some were given, too");
  }
  ItemSource items(settings);
  GrammarCommand command(settings, session);
  return for_each_item(items, settings, session, [&](const Item& item) { command.answer(item); });
}

}  // namespace paceline
