// What mlx_lm.lora's config files call otherwise than this program's options do.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "cli/config_text.h"
#include "cli/words.h"

namespace paceline {
namespace {

constexpr std::string_view kLora = "lora_parameters";
constexpr std::string_view kOptimizers = "optimizer_config";
constexpr std::string_view kSchedule = "lr_schedule";
constexpr std::string_view kCosine = "cosine_decay";
constexpr std::string_view kLinear = "linear_schedule";

// Makes options of one file's entries.
class MlxTranslation {
 public:
  struct Choices {
    std::string optimizer = "adamw";
    bool is_full = false;
    std::string schedule = {};  // lr_schedule's name, which replaces learning_rate
    bool warms_up = false;
  };

  MlxTranslation(std::string_view where, Choices choices)
      : where_(where), choices_(std::move(choices)) {}

  void add(ConfigEntry entry) {
    if (entry.table.empty()) return add_top(std::move(entry));
    if (entry.table == kLora && choices_.is_full) return;  // of another kind of fine-tuning
    if (entry.table == kLora) return add_lora(entry);
    if (entry.table.starts_with(kOptimizers)) return add_optimizer(entry);
    if (entry.table == kSchedule) return add_schedule(entry);
    if (entry.table == "hf_dataset") refuse(entry, "name files: data, valid_data");
    entries_.push_back(std::move(entry));
  }

  std::vector<ConfigEntry> take() { return std::move(entries_); }

 private:
  JsonCursor cursor(const ConfigEntry& entry) const {
    JsonCursor at(entry.value, fmt::format("{}:{}", where_, entry.line));
    for (const std::string_view table : split_words(entry.table, ".")) {
      at = at.below(table, entry.value);
    }
    return at.below(entry.key, entry.value);
  }
  [[noreturn]] void refuse(const ConfigEntry& entry, std::string_view instead) const {
    cursor(entry).fail(ErrorCode::unsupported, fmt::format("is not supported here: {}", instead));
  }
  // A switch that is accepted in one position only.
  void require(const ConfigEntry& entry, bool expected, std::string_view instead) const {
    if (cursor(entry).boolean() != expected) refuse(entry, instead);
  }
  void add_option(const ConfigEntry& entry, std::string_view option, Json value) {
    entries_.push_back({"", std::string(option), std::move(value), entry.line});
  }

  void add_top(ConfigEntry entry) {
    if (entry.key == "train") return require(entry, true, "this command trains");
    if (entry.key == "test") return require(entry, false, "paceline perplexity evaluates a text");
    if (entry.key == "test_batches") return;
    if (entry.key == "learning_rate" && !choices_.schedule.empty()) return;
    if (entry.key == "report_to" || entry.key == "wandb" || entry.key == "project_name") {
      refuse(entry, "the run's figures are in metrics.jsonl");
    }
    if (entry.key == "adapter_path") return add_option(entry, "output", entry.value);
    if (entry.key == "grad_checkpoint") {
      return add_option(entry, "no_grad_checkpoint", Json(!cursor(entry).boolean()));
    }
    if (entry.key == "resume_adapter_file") {
      std::filesystem::path path = cursor(entry).string();
      if (path.extension() == ".safetensors") path = path.parent_path();
      return add_option(entry, "initial_adapter", Json(path.empty() ? "." : path.string()));
    }
    entries_.push_back(std::move(entry));
  }

  void add_lora(const ConfigEntry& entry) {
    if (entry.key == "rank") return add_option(entry, "lora_rank", entry.value);
    if (entry.key == "scale") return add_option(entry, "lora_scale", entry.value);
    if (entry.key == "dropout") return add_option(entry, "lora_dropout", entry.value);
    if (entry.key != "keys") refuse(entry, "expected keys, rank, scale or dropout");
    Json::Array names;  // "self_attn.q_proj" is "q_proj"
    for (const JsonCursor& item : cursor(entry).items()) {
      const std::string module = item.string();
      const std::string name = module.substr(module.rfind('.') + 1);
      const bool is_expert = module.find("switch_mlp.") != module.npos;
      names.push_back(Json(is_expert ? "experts." + name : name));
    }
    add_option(entry, "target_modules", Json(std::move(names)));
  }

  void add_optimizer(const ConfigEntry& entry) {
    if (entry.table != fmt::format("{}.{}", kOptimizers, choices_.optimizer))
      return;  // another one's
    if (entry.key == "weight_decay") return add_option(entry, "weight_decay", entry.value);
    if (choices_.optimizer == "muon" && entry.key == "momentum") {
      return add_option(entry, "muon_momentum", entry.value);
    }
    if (choices_.optimizer == "adamw") {
      if (entry.key == "eps") return add_option(entry, "adam_epsilon", entry.value);
      if (entry.key == "betas") return add_betas(entry);
      if (entry.key == "bias_correction") {
        return require(entry, true, "AdamW's means are corrected here");
      }
    }
    refuse(entry, "leave it out");
  }

  // mlx_lm.tuner.utils.build_schedule: a line from warmup_init to the peak at step `warmup`, then
  // the schedule, which begins with the peak again.
  void add_schedule(const ConfigEntry& entry) {
    if (entry.key == "name") return add_schedule_name(entry);
    if (entry.key == "arguments") return add_schedule_arguments(entry);
    if (entry.key == "warmup") {
      add_option(entry, "warmup_steps", entry.value);
      if (choices_.warms_up) add_option(entry, "hold_steps", Json(int64_t{1}));
      return;
    }
    if (entry.key != "warmup_init") refuse(entry, "expected name, warmup, warmup_init, arguments");
    if (choices_.warms_up) add_option(entry, "warmup_init", entry.value);
  }

  void add_schedule_name(const ConfigEntry& entry) {
    const bool is_cosine = choices_.schedule == kCosine;
    if (!is_cosine && choices_.schedule != kLinear) {
      refuse(entry, fmt::format("found {}, expected {} or {}", shown_text(choices_.schedule),
                                kCosine, kLinear));
    }
    add_option(entry, "lr_schedule", Json(std::string(is_cosine ? "cosine" : "linear")));
  }

  // The peak, then cosine_decay's steps and last rate (0), or linear_schedule's last rate and
  // steps.
  void add_schedule_arguments(const ConfigEntry& entry) {
    const JsonCursor arguments = cursor(entry);
    const bool is_linear = choices_.schedule == kLinear;
    const size_t count = arguments.num_items();
    if (count != 3 && (is_linear || count != 2)) {
      arguments.mismatch(is_linear ? "[learning rate, last learning rate, steps]"
                                   : "[learning rate, steps] or [learning rate, steps, last rate]");
    }
    add_option(entry, "learning_rate", arguments.array()[0]);
    add_option(entry, "decay_steps", arguments.array()[is_linear ? 2 : 1]);
    if (count == 3) add_option(entry, "final_learning_rate", arguments.array()[is_linear ? 1 : 2]);
  }

  void add_betas(const ConfigEntry& entry) {
    const JsonCursor betas = cursor(entry);
    if (!betas.is_array() || betas.num_items() != 2) betas.mismatch("a list of two numbers");
    add_option(entry, "adam_beta1", betas.array()[0]);
    add_option(entry, "adam_beta2", betas.array()[1]);
  }

  std::string_view where_;
  Choices choices_;
  std::vector<ConfigEntry> entries_;
};

bool is_mlx_table(std::string_view name) {
  return name == kLora || name == kSchedule || name.starts_with(kOptimizers);
}

// A mapping in braces is a table, too.
void add_unfolded(ConfigEntry entry, std::vector<ConfigEntry>& unfolded) {
  const std::string path = entry.table.empty() ? entry.key : entry.table + "." + entry.key;
  if (!entry.value.is_object() || !is_mlx_table(path)) {
    unfolded.push_back(std::move(entry));
    return;
  }
  for (const auto& [key, value] : *entry.value.object()) {
    if (!value.is_null()) add_unfolded({path, key, value, entry.line}, unfolded);
  }
}

// What other entries depend on.
MlxTranslation::Choices choices_of(const std::vector<ConfigEntry>& entries,
                                   std::string_view where) {
  MlxTranslation::Choices choices;
  const ConfigEntry* schedule = nullptr;
  bool has_arguments = false;
  for (const ConfigEntry& entry : entries) {
    const std::string* const text = entry.value.string();
    if (entry.table.empty() && text != nullptr) {
      if (entry.key == "optimizer") choices.optimizer = *text;
      if (entry.key == "fine_tune_type") choices.is_full = *text == "full";
    }
    if (entry.table != kSchedule) continue;
    if (schedule == nullptr) schedule = &entry;
    if (entry.key == "name" && text != nullptr) choices.schedule = *text;
    if (entry.key == "warmup") choices.warms_up = entry.value.number().value_or(0) > 0;
    has_arguments = has_arguments || entry.key == "arguments";
  }
  if (schedule != nullptr && (choices.schedule.empty() || !has_arguments)) {
    throw error_of(ErrorCode::invalid,
                   "{}:{}: lr_schedule: {} missing, expected name and arguments", where,
                   schedule->line, choices.schedule.empty() ? "name" : "arguments");
  }
  return choices;
}

// mlx_lm's warm-up begins at 0 where nothing else is said.
void add_default_warmup(const MlxTranslation::Choices& choices, std::vector<ConfigEntry>& entries) {
  const auto sets = [](const ConfigEntry& entry, std::string_view key) {
    return entry.table == kSchedule && entry.key == key;
  };
  if (!choices.warms_up) return;
  const auto warmup = std::find_if(entries.begin(), entries.end(),
                                   [&](const auto& entry) { return sets(entry, "warmup"); });
  const bool has_first = std::any_of(entries.begin(), entries.end(),
                                     [&](const auto& entry) { return sets(entry, "warmup_init"); });
  if (has_first) return;
  entries.push_back({std::string(kSchedule), "warmup_init", Json(0.0), warmup->line});
}

}  // namespace

std::vector<ConfigEntry> translate_mlx_entries(std::vector<ConfigEntry> read,
                                               std::string_view where) {
  std::vector<ConfigEntry> entries;
  for (ConfigEntry& entry : read) add_unfolded(std::move(entry), entries);
  const MlxTranslation::Choices choices = choices_of(entries, where);
  add_default_warmup(choices, entries);
  MlxTranslation translation(where, choices);
  for (ConfigEntry& entry : entries) translation.add(std::move(entry));
  return translation.take();
}

}  // namespace paceline
