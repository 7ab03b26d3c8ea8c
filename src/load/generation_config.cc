#include "load/generation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "text/generation_options.h"

namespace paceline {
namespace {

constexpr std::string_view kBeams = "beam search isn't supported";
constexpr std::string_view kOfBeams = "is of beam search";
constexpr std::string_view kOfPython = "is what generate() returns to Python";
constexpr std::string_view kOfCache = "keys and values have a cache of their own form here";
constexpr std::string_view kOfDrafts = "drafts are set by options, and change no token";
constexpr std::string_view kOfSpeed = "is about speed in PyTorch";
constexpr std::string_view kOfOrigin = "says where the file comes from";

constexpr GenerationFieldUse kRefused = GenerationFieldUse::refused;
constexpr GenerationFieldUse kWithout = GenerationFieldUse::without_effect;

constexpr GenerationField kClassFields[] = {
    {"max_length"},
    {"max_new_tokens"},
    {"min_length"},
    {"min_new_tokens"},
    {"early_stopping", kWithout, kOfBeams},
    {"max_time", kRefused, "a limit of time isn't supported"},
    {"stop_strings"},
    {"do_sample"},
    {"num_beams", kRefused, kBeams, "1"},
    {"use_mtp", kWithout, kOfDrafts},
    {"use_cache", kWithout, kOfCache},
    {"cache_implementation", kWithout, kOfCache},
    {"cache_config", kWithout, kOfCache},
    {"max_cache_len", kWithout, kOfCache},
    {"temperature"},
    {"top_k"},
    {"top_p"},
    {"min_p"},
    {"top_h", kRefused, "top-h sampling isn't supported", "1"},
    {"typical_p"},
    {"epsilon_cutoff", kRefused, "epsilon sampling isn't supported", "0"},
    {"eta_cutoff", kRefused, "eta sampling isn't supported", "0"},
    {"repetition_penalty"},
    {"encoder_repetition_penalty", kRefused, "a bonus for tokens of the prompt isn't supported",
     "1"},
    {"length_penalty", kWithout, kOfBeams},
    {"no_repeat_ngram_size", kRefused, "forbidding repeated n-grams isn't supported", "0"},
    {"bad_words_ids"},
    {"renormalize_logits", kWithout, "the same tokens are drawn either way"},
    {"forced_bos_token_id", kRefused, "forced tokens aren't supported"},
    {"forced_eos_token_id", kRefused, "forced tokens aren't supported"},
    {"remove_invalid_values", kWithout, "logits that aren't finite end a request with an error"},
    {"exponential_decay_length_penalty", kRefused,
     "a bonus that grows for the end isn't supported"},
    {"suppress_tokens"},
    {"begin_suppress_tokens"},
    {"sequence_bias", kRefused, "biases of sequences aren't supported", "[]"},
    {"token_healing", kRefused, "token healing isn't supported", "false"},
    {"guidance_scale", kRefused, "classifier-free guidance isn't supported", "1"},
    {"watermarking_config", kRefused, "watermarks aren't supported"},
    {"num_return_sequences", kWithout, "requests say how many answers they want"},
    {"output_attentions", kWithout, kOfPython},
    {"output_hidden_states", kWithout, kOfPython},
    {"output_scores", kWithout, kOfPython},
    {"output_logits", kWithout, kOfPython},
    {"return_dict_in_generate", kWithout, kOfPython},
    {"pad_token_id", kWithout, "nothing is padded"},
    {"bos_token_id"},
    {"eos_token_id"},
    {"encoder_no_repeat_ngram_size", kRefused, "forbidding n-grams of the prompt isn't supported",
     "0"},
    {"decoder_start_token_id", kWithout, "is of models with an encoder"},
    {"is_assistant", kWithout, kOfDrafts},
    {"num_assistant_tokens", kWithout, kOfDrafts},
    {"num_assistant_tokens_schedule", kWithout, kOfDrafts},
    {"assistant_confidence_threshold", kWithout, kOfDrafts},
    {"prompt_lookup_num_tokens", kWithout, kOfDrafts},
    {"max_matching_ngram_size", kWithout, kOfDrafts},
    {"assistant_early_exit", kWithout, kOfDrafts},
    {"assistant_lookbehind", kWithout, kOfDrafts},
    {"target_lookbehind", kWithout, kOfDrafts},
    {"assistant_ensemble_weight", kWithout, kOfDrafts},
    {"speculation_type", kWithout, kOfDrafts},
    {"compile_config", kWithout, kOfSpeed},
    {"disable_compile", kWithout, kOfSpeed},
    {"continuous_batching_config", kWithout, kOfSpeed},
    {"low_memory", kWithout, kOfSpeed},
    {"penalty_alpha", kRefused, "contrastive search isn't supported", "0"},
    {"dola_layers", kRefused, "DoLa decoding isn't supported"},
    {"diversity_penalty", kWithout, kOfBeams},
    {"num_beam_groups", kRefused, kBeams, "1"},
    {"constraints", kRefused, kBeams, "[]"},
    {"force_words_ids", kRefused, kBeams, "[]"},
    {"prefill_chunk_size", kWithout, "--prefill-chunk is the option"},
    {"_from_model_config", kWithout, kOfOrigin},
    {"transformers_version", kWithout, kOfOrigin},
};

constexpr const char* kGenerationFile = "generation_config.json";

Json read_file(const ModelFiles& files, const char* name) {
  if (!files.contains(name)) return Json(Json::Object());
  return files.read_json(name);
}

// 1 and 1.0 are equal.
bool is_neutral(const Json& value, std::string_view neutral) {
  if (value.is_null()) return true;
  if (neutral.empty()) return false;
  const Json expected = parse_json(neutral, "neutral");
  if (value.is_object() && value.object()->empty()) return expected.is_array();
  if (value.is_number() && expected.is_number()) return value.number() == expected.number();
  return to_json(value) == to_json(expected);
}

class GenerationReader {
 public:
  explicit GenerationReader(int64_t vocab_size) : vocab_size_(vocab_size) {}

  void check_fields(const JsonCursor& file) {
    for (const auto& [key, node] : file.members()) {
      const auto* const field =
          std::find_if(std::begin(kClassFields), std::end(kClassFields),
                       [&, &name = key](const auto& f) { return f.name == name; });
      const JsonCursor value = file.below(key, node);
      if (field == std::end(kClassFields)) {
        if (!value.is_null()) note(value.name(), "isn't a field of generation: it is ignored");
      } else if (field->use == kRefused && !is_neutral(node.json(), field->neutral)) {
        const std::string_view expected = field->neutral.empty() ? "null" : field->neutral;
        stop(fmt::format("{}: {}: {}; without the field the model generates", value.name(),
                         found_instead(node.shown(), expected), field->why));
      }
    }
  }

  // The first of the sources that has ids.
  void read_ends(std::span<const JsonCursor> sources) {
    std::vector<int32_t> bos;
    for (const JsonCursor& source : sources) {
      if (config_.eos_tokens.empty()) config_.eos_tokens = token_ids(source, "eos_token_id");
      if (bos.empty()) bos = token_ids(source, "bos_token_id");
    }
    if (!bos.empty()) config_.bos_token = bos[0];
  }

  void read_defaults(const JsonCursor& file) {
    for (const GenerationOption& option : kGenerationOptions) {
      const std::string_view key = option.file_keys.generation_config;
      const auto field = key.empty() ? std::nullopt : file.find(key);
      if (field) trying([&] { set_default(option, *field); });
    }
    trying([&] {
      if (!file.boolean_or("do_sample", true)) config_.defaults.temperature = 0.0f;
    });
    const auto length = [&](const char* key, std::optional<int64_t>& target) {
      trying([&] {
        if (const auto field = file.find(key)) target = field->integer();
      });
    };
    length("min_length", config_.min_length);
    length("max_length", config_.max_length);
  }

  void read_bans(const JsonCursor& file) {
    for (const int32_t id : token_ids(file, "suppress_tokens")) config_.banned.push_back({id});
    config_.not_first = token_ids(file, "begin_suppress_tokens");
    trying([&] { read_bad_words(file); });
    trying([&] { read_stop_strings(file); });
  }

  GenerationConfig take() { return std::move(config_); }

 private:
  void note(std::string_view where, std::string_view what) {
    config_.notes.push_back(fmt::format("{}: {}", where, what));
  }

  void stop(std::string problem) {
    if (config_.problem.empty()) config_.problem = std::move(problem);
  }

  // An error in the file stops generating, and nothing else.
  template <class Read>
  void trying(const Read& read) {
    try {
      read();
    } catch (const Error& error) {
      stop(error.what());
    }
  }

  bool is_known(const JsonCursor& id) {
    const int64_t value = id.integer();
    if (value >= 0 && value < vocab_size_) return true;
    note(id.name(), fmt::format("{} is outside the vocabulary (0..{}): it is never drawn", value,
                                vocab_size_ - 1));
    return false;
  }

  // An id or a list of ids.
  std::vector<int32_t> token_ids(const JsonCursor& file, std::string_view key) {
    std::vector<int32_t> ids;
    trying([&] {
      const auto field = file.find(key);
      if (!field) return;
      const auto add = [&](const JsonCursor& id) {
        if (is_known(id)) ids.push_back(static_cast<int32_t>(id.integer()));
      };
      if (!field->is_array()) return add(*field);
      for (const JsonCursor& id : field->items()) add(id);
    });
    return ids;
  }

  // As in transformers, an end token alone is no bad word.
  void read_bad_words(const JsonCursor& file) {
    const auto words = file.find("bad_words_ids");
    if (!words) return;
    for (const JsonCursor& word : words->items()) {
      std::vector<int32_t> ids;
      bool is_drawable = word.num_items() > 0;
      for (const JsonCursor& id : word.items()) {
        is_drawable = is_known(id) && is_drawable;
        ids.push_back(static_cast<int32_t>(id.integer()));
      }
      const auto& ends = config_.eos_tokens;
      const bool is_end =
          ids.size() == 1 && std::find(ends.begin(), ends.end(), ids[0]) != ends.end();
      if (is_drawable && !is_end) config_.banned.push_back(std::move(ids));
    }
  }

  void read_stop_strings(const JsonCursor& file) {
    const auto field = file.find("stop_strings");
    if (!field) return;
    const auto add = [&](const JsonCursor& text) {
      if (!text.string().empty()) config_.stop_strings.push_back(text.string());
    };
    if (field->is_string()) return add(*field);
    for (const JsonCursor& text : field->items()) add(text);
  }

  void set_default(const GenerationOption& option, const JsonCursor& field) {
    const NumberRange& range = option.range;
    const double found = field.number();
    double value = std::clamp(found, range.min, range.max);
    if (range.above_min && value == range.min) {
      field.fail(found_instead(field.node().shown(), range_words("a number", range)));
    }
    if (value != found) note(field.name(), fmt::format("found {}, {} is used", found, value));
    const bool is_whole = kind_of(option) == GenerationKind::integer;
    if (is_whole && value == found) value = static_cast<double>(field.integer());
    set_option(config_.defaults, option,
               is_whole ? GenerationValue(static_cast<int64_t>(value)) : GenerationValue(value));
  }

  int64_t vocab_size_;
  GenerationConfig config_;
};

}  // namespace

std::span<const GenerationField> generation_config_fields() { return kClassFields; }

std::vector<std::string> generation_notes(const GenerationConfig& config) {
  std::vector<std::string> notes = config.notes;
  if (!config.problem.empty()) notes.push_back("nothing can be generated: " + config.problem);
  return notes;
}

GenerationConfig read_generation_config(const ModelFiles& files, int64_t vocab_size) {
  const Json file_json = read_file(files, kGenerationFile);
  const Json model_json = read_file(files, "config.json");
  const JsonCursor file(file_json, kGenerationFile);
  const JsonCursor model(model_json, "config.json");

  // The text model's own object comes last in a multi-modal config.
  std::vector<JsonCursor> sources = {file, model};
  if (const auto nested = model.find("text_config")) sources.push_back(*nested);
  GenerationReader reader(vocab_size);
  reader.check_fields(file);
  reader.read_ends(sources);
  reader.read_defaults(file);
  reader.read_bans(file);
  return reader.take();
}

}  // namespace paceline
