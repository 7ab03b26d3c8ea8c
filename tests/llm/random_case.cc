#include "tests/llm/random_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/option_names.h"
#include "tests/llm/stored_formats.h"
#include "text/generation_options.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;
using Kind = RandomRequest::Kind;

constexpr int64_t kContext = 96;
constexpr int32_t kRandomVocab =
    256;  // of the tiny checkpoints; the bundled model has these ids too
// Longer than most prompts.
constexpr int64_t kSharedTokens = 40;
constexpr int64_t kOwnTokens = 24;
constexpr int64_t kOutputTokens = 28;
constexpr int64_t kPairContext = 700;  // Qwen3-Reranker's prompt is long

const fs::path kSource = PACELINE_SOURCE_DIR;

std::vector<std::string> models_in(const char* folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(kSource / "tests/goldens" / folder)) {
    if (fs::exists(entry.path() / "config.json")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

const std::vector<std::string>& tiny_models() {
  static const std::vector<std::string> all = models_in("models");
  return all;
}

bool has_bundled_model() {
  static const bool is_here = fs::exists(kSource / "models/paceline-10m/model.safetensors");
  return is_here;
}

template <class T>
const T& one_of(Dice& dice, const std::vector<T>& choices) {
  return choices[static_cast<size_t>(dice.below(static_cast<int64_t>(choices.size())))];
}

// One in three is stored in some format, and one in five of the others quantised while loading.
void draw_model(Dice& dice, Subject& subject) {
  if (dice.one_in(20)) {
    subject.scores_pairs = true;
    const std::string name = dice.one_of({"qwen3", "reranker", "cross_encoder"});
    subject.generates = name != "cross_encoder";
    subject.load.model = (kSource / "tests/goldens/embeddings" / name).string();
    return;
  }
  subject.has_text = has_bundled_model() && dice.one_in(20);
  const bool is_stored = !subject.has_text && dice.one_in(3);
  if (subject.has_text) {
    subject.load.model = (kSource / "models/paceline-10m").string();
  } else {
    subject.load.model =
        is_stored ? stored_model(one_of(dice, stored_formats())) : one_of(dice, tiny_models());
  }
  const bool is_packed = is_stored || subject.load.model.ends_with("mxfp4");
  if (!is_packed && dice.one_in(5))
    subject.load.quantize = dice.one_of({LoadQuantization::q4, LoadQuantization::q8});
  if (is_packed || subject.load.quantize != LoadQuantization::none) {
    subject.load.activations = dice.one_of(
        {Activations::int8, Activations::int8, Activations::bfloat16, Activations::plain});
  }
}

Subject draw_subject(Dice& dice, Isa isa) {
  Subject subject{.isa = isa};
  draw_model(dice, subject);
  subject.load.max_model_len = subject.scores_pairs ? kPairContext : kContext;
  if (dice.one_in(3)) subject.load.dtype = dice.one_of({DataType::bfloat16, DataType::float32});
  if (dice.one_in(3)) {
    subject.load.kv_cache_dtype = dice.one_of(
        {DataType::bfloat16, DataType::float32, DataType::float16, DataType::int8, DataType::int8});
  }
  if (dice.one_in(6)) subject.load.max_kv_size = 1 + dice.below(40);
  return subject;
}

void draw_engine(Dice& dice, RandomCase& drawn) {
  LoadOptions& engine = drawn.engine = drawn.subject.load;
  engine.num_threads = static_cast<int>(1 + dice.below(2));
  engine.block_size = dice.one_of<int64_t>({1, 2, 3, 4, 8, 16, 16, 32});
  engine.max_chunk = dice.one_of<int64_t>({0, 0, 1, 7, 64});
  engine.max_num_batched_tokens = dice.one_of<int64_t>({1, 3, 8, 17, 64, 512, 512});
  engine.max_num_seqs = dice.one_of<int64_t>({1, 2, 3, 8, 256, 256});
  engine.prefix_caching = !dice.one_in(4);
  drawn.contexts = dice.one_of({1.0, 1.0, 1.0, 1.3, 1.7, 2.5, 4.0, 16.0});
  if (!drawn.subject.scores_pairs && dice.one_in(2)) {
    const bool by_model = dice.below(3) > 0;
    engine.speculative_method = by_model ? DraftMethod::model : DraftMethod::ngram;
    if (by_model) engine.speculative_model = engine.model;
    engine.num_speculative_tokens = 1 + dice.below(8);
    engine.prompt_lookup_min = 1 + dice.below(2);
    engine.adaptive_drafts = dice.one_in(4);
    // A sequence that waits for blocks lets nobody draft.
    drawn.contexts = dice.one_of({1.0, 4.0, 16.0, 32.0});
  }
  drawn.on_thread = dice.one_in(2);
  if (drawn.on_thread && dice.one_in(3)) {
    engine.batch_timeout_ms = 1 + dice.below(8);
    engine.batch_size = 2 + dice.below(7);
  }
}

// Few beginnings, so that prefixes are shared.
std::vector<int32_t> draw_ids(Dice& dice) {
  const int64_t beginning = dice.below(2), num_shared = dice.below(kSharedTokens + 1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < num_shared; ++i) {
    ids.push_back(static_cast<int32_t>((beginning * 101 + 3 + i * 29) % kRandomVocab));
  }
  const int64_t num_own = 1 + dice.below(kOwnTokens);
  for (int64_t i = 0; i < num_own; ++i)
    ids.push_back(static_cast<int32_t>(dice.below(kRandomVocab)));
  return ids;
}

std::string draw_text(Dice& dice) {
  constexpr std::string_view kBeginnings[] = {
      "", "It was a dark and stormy night, and the old man",
      "It was a dark and stormy night, and the young lady had not slept at all"};
  constexpr std::string_view kWords[] = {" sea",       " and",     " said", ".\n\n",
                                         " caf\u00e9", " \u2014 ", " upon", "qz",
                                         " 17",        "\"",       " Mr.",  " the"};
  std::string text(kBeginnings[dice.below(std::size(kBeginnings))]);
  const int64_t num_words = 1 + dice.below(8);
  for (int64_t i = 0; i < num_words; ++i) text += kWords[dice.below(std::size(kWords))];
  return text;
}

void draw_sampling(Dice& dice, GenerateOptions& options) {
  options.seed = static_cast<uint64_t>(dice.below(1000));
  options.temperature = dice.one_of({0.0f, 0.7f, 1.0f, 1.7f});
  if (dice.one_in(3)) options.top_p = dice.one_of({0.3f, 0.9f, 0.99f});
  if (dice.one_in(3)) options.top_k = static_cast<int32_t>(1 + dice.below(60));
  if (dice.one_in(4)) options.min_p = 0.05f;
  if (dice.one_in(3)) options.repetition_penalty = dice.one_of({0.8f, 1.3f});
  if (dice.one_in(4)) options.frequency_penalty = dice.one_of({-0.5f, 0.4f});
  if (dice.one_in(4)) options.presence_penalty = 0.6f;
  for (const GenerationOption& option : kGenerationOptions) {
    const bool is_open = kind_of(option) == GenerationKind::number && !is_set(options, option);
    const double middle = (option.range.min + std::min(option.range.max, 2.0)) / 2;
    if (is_open && dice.one_in(8)) set_option(options, option, middle);
  }
  if (dice.one_in(4)) {
    for (int64_t i = 0; i < 3; ++i) {
      options.logit_bias.emplace_back(static_cast<int32_t>(dice.below(80) + 80 * i),
                                      dice.one_of({-100.0f, -1.0f, 2.5f}));
    }
  }
  options.mlx_sampler_order = dice.one_in(5);
  if (dice.one_in(6)) {
    const int64_t step = 2 + dice.below(3);
    for (int64_t id = 0; id < kRandomVocab; id += step) {
      options.allowed_token_ids.push_back(static_cast<int32_t>(id));
    }
  }
}

void draw_generation(Dice& dice, bool has_text, RandomRequest& request) {
  GenerateOptions& options = request.options;
  options.max_tokens = dice.one_in(12) ? dice.below(2) : 1 + dice.below(kOutputTokens);
  if (*options.max_tokens > 0 && dice.one_in(5)) {
    request.n = static_cast<int32_t>(2 + dice.below(3));
  }
  if (dice.one_in(2)) options.logprobs = static_cast<int32_t>(dice.below(4));
  options.prompt_logprobs = dice.one_in(3);
  options.ignore_eos = dice.one_in(3);
  if (dice.one_in(4)) {
    for (int64_t i = 0; i < 12; ++i) {
      options.stop_token_ids.push_back(static_cast<int32_t>(dice.below(kRandomVocab)));
    }
  }
  if (has_text && dice.one_in(2)) options.stop = {" the", "\n\n", ", and", "e"};
  if (has_text && dice.one_in(2)) options.stop = {" and the ", "zq"};
  if (has_text && dice.one_in(5)) options.bad_words = {"the", ", and", "e"};
  if (has_text && dice.one_in(5)) options.skip_special_tokens = false;
}

RandomRequest draw_pairs(Dice& dice) {
  RandomRequest request{.kind = Kind::pairs};
  request.options.seed = 0;
  const std::string query = draw_text(dice);
  for (int64_t i = 1 + dice.below(4); i > 0; --i) {
    request.pairs.push_back({dice.one_in(3) ? draw_text(dice) : query, draw_text(dice)});
  }
  if (dice.one_in(6)) request.options.cache_salt = "other";
  if (dice.one_in(3)) request.options.priority = static_cast<int32_t>(dice.below(3) - 1);
  request.is_cancelled = dice.one_in(9);
  return request;
}

RandomRequest draw_decisions(Dice& dice) {
  RandomRequest request{.kind = Kind::decide, .prompt = draw_text(dice)};
  request.options.seed = 0;
  for (int64_t i = 1 + dice.below(5); i > 0; --i) {
    DecisionQuestion question{.instructions = draw_text(dice) + "?"};
    question.kind =
        dice.one_of({QuestionKind::predicate, QuestionKind::choice, QuestionKind::score});
    const int64_t most = question.kind == QuestionKind::score ? 10 : 28;
    const int64_t count = question.kind == QuestionKind::predicate ? 0 : 2 + dice.below(most - 1);
    for (int64_t k = 0; k < count; ++k) question.options.push_back({.value = std::to_string(k)});
    request.questions.push_back(std::move(question));
  }
  request.is_calibrated = dice.one_in(4);
  if (dice.one_in(6)) request.options.cache_salt = "other";
  if (dice.one_in(3)) request.options.priority = static_cast<int32_t>(dice.below(3) - 1);
  request.is_cancelled = dice.one_in(9);
  return request;
}

Kind draw_kind(Dice& dice) {
  constexpr Kind kFirst[] = {Kind::classify, Kind::score, Kind::embed};
  const int64_t kind = dice.below(12);
  return kind < std::ssize(kFirst) ? kFirst[kind] : Kind::generate;
}

RandomRequest draw_request(Dice& dice, const Subject& subject) {
  if (subject.scores_pairs) {
    return dice.one_in(2) || !subject.generates ? draw_pairs(dice) : draw_decisions(dice);
  }
  const bool has_text = subject.has_text;
  RandomRequest request;
  request.kind = draw_kind(dice);
  if (has_text && !dice.one_in(4)) {
    request.prompt = draw_text(dice);
  } else {
    request.prompt = draw_ids(dice);
  }
  draw_sampling(dice, request.options);
  if (dice.one_in(6)) request.options.cache_salt = "other";
  if (dice.one_in(3)) request.options.priority = static_cast<int32_t>(dice.below(3) - 1);
  request.is_cancelled = dice.one_in(9);
  if (request.kind == Kind::generate) draw_generation(dice, has_text, request);
  if (request.kind == Kind::score) request.num_top_logprobs = static_cast<int32_t>(dice.below(3));
  if (request.kind != Kind::classify) return request;
  request.with_logits = dice.one_in(2);
  if (has_text && !dice.one_in(3)) {
    request.labels = {" the", " and"};
    if (dice.one_in(2)) request.labels.emplace_back(" upon the old lighthouse");
    request.want_token_id = dice.one_in(2);
  }
  return request;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::generate:
      return "generate";
    case Kind::classify:
      return "classify";
    case Kind::score:
      return "score";
    case Kind::embed:
      return "embed";
    case Kind::pairs:
      return "scores";
    case Kind::decide:
      return "decisions";
  }
  return "";
}

}  // namespace

std::string Subject::name() const {
  return fmt::format(
      "{} on {}, dtype {}, quantize {}, activations {}, kv_cache_dtype {}, state_dtype {}, "
      "max_kv_size {}",
      fs::path(load.model).filename().string(), isa_name(isa), option_name(load.dtype),
      option_name(load.quantize), option_name(load.activations), option_name(load.kv_cache_dtype),
      option_name(load.state_dtype), load.max_kv_size.value_or(0));
}

std::string RandomRequest::text() const {
  const auto* const ids = std::get_if<std::vector<int32_t>>(&prompt);
  std::string text = std::string(kind_name(kind)) + " of ";
  for (const TextPair& pair : pairs) {
    text += fmt::format("(\"{}\", \"{}\") ", pair.first, pair.second);
  }
  text += ids == nullptr ? fmt::format("\"{}\"", std::get<std::string>(prompt))
                         : fmt::format("[{}]", fmt::join(*ids, ", "));
  const auto add = [&text](std::string_view name, const auto& value) {
    text += fmt::format(", {} {}", name, value);
  };
  const GenerateOptions& o = options;
  if (o.max_tokens) add("max_tokens", *o.max_tokens);
  if (n > 1) add("n", n);
  add("seed", *o.seed);
  if (o.top_k) add("top_k", *o.top_k);
  for (const GenerationOption& option : kGenerationOptions) {
    if (kind_of(option) != GenerationKind::number || !is_set(o, option)) continue;
    const auto* open = std::get_if<std::optional<float> GenerateOptions::*>(&option.member);
    add(option.name,
        open != nullptr ? *(o.*(*open)) : o.*std::get<float GenerateOptions::*>(option.member));
  }
  for (const auto& [id, bias] : o.logit_bias) add("logit_bias", fmt::format("{}={}", id, bias));
  if (o.mlx_sampler_order) text += ", mlx_sampler_order";
  if (!o.allowed_token_ids.empty())
    add("allowed_token_ids", fmt::format("{}", o.allowed_token_ids));
  if (o.logprobs) add("logprobs", *o.logprobs);
  if (o.prompt_logprobs) text += ", prompt_logprobs";
  if (o.ignore_eos) text += ", ignore_eos";
  if (!o.stop_token_ids.empty()) add("stop_token_ids", fmt::format("{}", o.stop_token_ids));
  if (!o.stop.empty()) add("stop", fmt::format("{}", o.stop));
  if (!o.bad_words.empty()) add("bad_words", fmt::format("{}", o.bad_words));
  if (!o.skip_special_tokens) text += ", with special tokens";
  if (!o.cache_salt.empty()) add("cache_salt", o.cache_salt);
  if (o.priority != 0) add("priority", o.priority);
  if (!labels.empty()) add("labels", fmt::format("{}", labels));
  if (!want_token_id) text += ", no token_id";
  if (with_logits) text += ", with_logits";
  if (num_top_logprobs > 0) add("num_top_logprobs", num_top_logprobs);
  for (const DecisionQuestion& question : questions) {
    text += fmt::format(", question \"{}\" of {} options", question.instructions,
                        question.options.size());
  }
  if (is_calibrated) text += ", calibrated";
  if (is_cancelled) text += ", cancelled";
  return text;
}

std::string RandomCase::text() const {
  std::string text = fmt::format(
      "{}\n{} thread(s), block_size {}, max_chunk {}, max_num_batched_tokens {}, max_num_seqs {}, "
      "prefix_caching {}, room for {} contexts, {}, batch_timeout_ms {}, batch_size {}",
      subject.name(), engine.num_threads, engine.block_size, engine.max_chunk,
      engine.max_num_batched_tokens, engine.max_num_seqs, engine.prefix_caching, contexts,
      on_thread ? "on a thread" : "stepped", engine.batch_timeout_ms, engine.batch_size);
  if (engine.speculative_method != DraftMethod::automatic) {
    text += fmt::format(", drafts by {} of {}, lookup from {}, adaptive {}",
                        option_name(engine.speculative_method), *engine.num_speculative_tokens,
                        engine.prompt_lookup_min, engine.adaptive_drafts);
  }
  for (const RandomRequest& request : requests) text += "\n- " + request.text();
  return text;
}

RandomCase draw_case(uint64_t seed, const std::vector<Isa>& isas) {
  Dice dice(seed);
  RandomCase drawn;
  drawn.subject = draw_subject(dice, isas[seed % isas.size()]);
  draw_engine(dice, drawn);
  const int64_t num_requests = 1 + dice.below(8);
  for (int64_t i = 0; i < num_requests; ++i) {
    drawn.requests.push_back(draw_request(dice, drawn.subject));
  }
  return drawn;
}

// Of a case whose model has neither text nor another kind of head. A draft model is one of
// attention, or the model itself.
RandomCase draw_case_of(const char* folder, uint64_t seed, const std::vector<Isa>& isas) {
  const std::vector<std::string> models = models_in(folder);
  RandomCase drawn = draw_case(seed, isas);
  while (drawn.subject.has_text || drawn.subject.scores_pairs) {
    constexpr uint64_t kOther = 1'000'003;
    seed += kOther;
    drawn = draw_case(seed, isas);
  }
  drawn.subject.load.model = drawn.engine.model = models[seed % models.size()];
  if (seed / models.size() % 3 == 0) {  // of models without states it changes nothing
    drawn.subject.load.state_dtype = drawn.engine.state_dtype = DataType::bfloat16;
  }
  if (!drawn.engine.speculative_model.empty()) {
    drawn.engine.speculative_model =
        seed % 2 == 0 ? drawn.engine.model : (kSource / "tests/goldens/models/qwen3_tied").string();
  }
  return drawn;
}

}  // namespace paceline::testing
