#include "cli/mlx_config.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/json_cursor.h"
#include "cli/words.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::string_view kLora = "lora_parameters";
constexpr std::string_view kOptimizers = "optimizer_config";

// Makes options of one file's entries.
class MlxTranslation {
 public:
  MlxTranslation(std::string_view where, std::string optimizer, bool is_full)
      : where_(where), optimizer_(std::move(optimizer)), is_full_(is_full) {}

  void add(ConfigEntry entry) {
    if (entry.table.empty()) return add_top(std::move(entry));
    if (entry.table == kLora && is_full_) return;  // of another kind of fine-tuning
    if (entry.table == kLora) return add_lora(entry);
    if (entry.table.starts_with(kOptimizers)) return add_optimizer(entry);
    if (entry.table == "lr_schedule") {
      refuse(entry, "write lr_schedule: cosine (or linear, wsd), learning_rate and warmup_steps");
    }
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
    if (entry.table != fmt::format("{}.{}", kOptimizers, optimizer_)) return;  // another one's
    if (entry.key == "weight_decay") return add_option(entry, "weight_decay", entry.value);
    if (optimizer_ == "muon" && entry.key == "momentum") {
      return add_option(entry, "muon_momentum", entry.value);
    }
    if (optimizer_ == "adamw") {
      if (entry.key == "eps") return add_option(entry, "adam_epsilon", entry.value);
      if (entry.key == "betas") return add_betas(entry);
      if (entry.key == "bias_correction") {
        return require(entry, true, "AdamW's means are corrected here");
      }
    }
    refuse(entry, "leave it out");
  }

  void add_betas(const ConfigEntry& entry) {
    const JsonCursor betas = cursor(entry);
    if (!betas.is_array() || betas.num_items() != 2) betas.mismatch("a list of two numbers");
    add_option(entry, "adam_beta1", betas.array()[0]);
    add_option(entry, "adam_beta2", betas.array()[1]);
  }

  std::string_view where_;
  std::string optimizer_;
  bool is_full_;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> translate_mlx_entries(std::vector<ConfigEntry> entries,
                                               std::string_view where) {
  std::string optimizer = "adamw";
  bool is_full = false;
  for (const ConfigEntry& entry : entries) {
    const std::string* const name = entry.value.string();
    if (!entry.table.empty() || name == nullptr) continue;
    if (entry.key == "optimizer") optimizer = *name;
    if (entry.key == "fine_tune_type") is_full = *name == "full";
  }
  MlxTranslation translation(where, std::move(optimizer), is_full);
  for (ConfigEntry& entry : entries) translation.add(std::move(entry));
  return translation.take();
}

}  // namespace paceline
