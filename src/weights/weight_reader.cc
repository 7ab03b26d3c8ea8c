#include "weights/weight_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kEmbedding = "embed_tokens.weight";
constexpr std::string_view kOtherEmbedding = "embeddings.weight";  // Mamba's name
constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kHeadParts = "lm_head.";  // its weight and its bias
constexpr std::string_view kScore = "score.weight";
constexpr std::string_view kUsualPrefix = "model.";

// Prefixes of the decoder's names in files; a longer one before any prefix of it.
constexpr std::array<std::string_view, 12> kPrefixes = {
    "model.language_model.", "model.text_model.", "model.decoder.", "language_model.model.",
    "language_model.",       kUsualPrefix,        "backbone.",      "decoder.",
    "transformer.",          "gpt_neox.",         "biogpt.",        ""};

// Towers of images and sound and their projectors; layers that predict several tokens.
constexpr std::array<std::string_view, 10> kOtherTowers = {
    "vision_tower", "vision_model", "visual",      "multi_modal_projector", "embed_vision",
    "connector",    "mtp",          "audio_tower", "embed_audio",           "vision_embedder"};

std::string_view find_embedding(const Checkpoint& checkpoint, const WeightLayout* layout) {
  if (layout != nullptr) return layout->embedding;
  const bool is_other = std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
    return checkpoint.contains(std::string(prefix).append(kOtherEmbedding));
  });
  return is_other ? kOtherEmbedding : kEmbedding;
}

// The prefix under which the checkpoint has `name`, or `otherwise`.
std::string find_prefix(const Checkpoint& checkpoint, std::string_view name,
                        std::string_view otherwise,
                        std::span<const std::string_view> prefixes = kPrefixes) {
  if (checkpoint.contains(std::string(otherwise).append(name))) return std::string(otherwise);
  for (const std::string_view prefix : prefixes) {
    if (checkpoint.contains(std::string(prefix).append(name))) return std::string(prefix);
  }
  return std::string(otherwise);
}

// What stands in place of "lm_head.": transformers' classes have renamed some heads.
std::string_view find_head(const Checkpoint& checkpoint, const WeightLayout* layout) {
  if (layout == nullptr || layout->head.empty()) return kHeadParts;
  return checkpoint.contains(std::string(layout->head) + "weight") ? layout->head : kHeadParts;
}

// The name in a file, which is another one where TensorFlow's names of a layer norm's weight and
// bias were kept.
std::string name_of_old_norm(const Checkpoint& checkpoint, std::string name) {
  for (const auto& [suffix, old] : {std::pair{"LayerNorm.weight", "LayerNorm.gamma"},
                                    std::pair{"LayerNorm.bias", "LayerNorm.beta"}}) {
    if (!name.ends_with(suffix) || checkpoint.contains(name)) continue;
    std::string other = name.substr(0, name.size() - std::string_view(suffix).size()) + old;
    if (checkpoint.contains(other)) return other;
  }
  return name;
}

// Whether pre-training alone needed it.
bool is_unneeded_in(const WeightLayout& layout, std::string_view prefix, std::string_view name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (std::ranges::any_of(layout.unneeded_ends, ends)) return true;
  return std::ranges::any_of(layout.unneeded, [&](std::string_view beginning) {
    return name.starts_with(beginning) ||
           (name.starts_with(prefix) && name.substr(prefix.size()).starts_with(beginning));
  });
}

bool is_unneeded(std::string_view name) {
  return name.find("rotary_emb.inv_freq") != name.npos ||
         name.ends_with("embed_positions.weights") ||  // XGLM's sinusoids
         is_outside_the_decoder(name);
}

}  // namespace

std::span<const std::string_view> decoder_prefixes() { return kPrefixes; }

bool is_outside_the_decoder(std::string_view name) {
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
    if (!name.starts_with(prefix)) return false;
    const std::string_view rest = name.substr(prefix.size());
    return std::ranges::find(kOtherTowers, rest.substr(0, rest.find('.'))) != kOtherTowers.end();
  });
}

WeightReader::WeightReader(Checkpoint& checkpoint)
    : checkpoint_(checkpoint),
      layout_(find_layout(checkpoint)),
      embedding_(find_embedding(checkpoint, layout_)),
      prefix_(layout_ != nullptr ? find_prefix(checkpoint, embedding_, "", layout_prefixes())
                                 : find_prefix(checkpoint, embedding_, kUsualPrefix)),
      head_prefix_(find_prefix(checkpoint, kHead,
                               prefix_ == "language_model.model." ? "language_model." : "")),
      head_(find_head(checkpoint, layout_)),
      score_prefix_(find_prefix(checkpoint, kScore, head_prefix_)),
      read_(checkpoint.entries().size()) {}

std::string WeightReader::file_name(std::string_view name) const {
  if (name == kEmbedding) name = embedding_;
  const bool is_head = name.starts_with(kHeadParts);
  const std::string& prefix = is_head ? head_prefix_ : (name == kScore ? score_prefix_ : prefix_);
  if (layout_ == nullptr) return prefix + std::string(name);
  if (is_head) return fmt::format("{}{}", head_, name.substr(kHeadParts.size()));
  const auto begins = [&](std::string_view beginning) { return name.starts_with(beginning); };
  if (std::ranges::any_of(layout_->without_prefix, begins)) return std::string(name);
  return name_of_old_norm(checkpoint_, prefix + layout_->in_files(name));
}

bool WeightReader::contains(std::string_view name) const {
  return checkpoint_.contains(file_name(name));
}

std::optional<Extents> WeightReader::shape_of(std::string_view name) const {
  return checkpoint_.shape_of(file_name(name));
}

Tensor WeightReader::read(std::string_view name, const Extents& shape) {
  const std::string in_file = file_name(name);
  return checked(in_file, checkpoint_.read(in_file, shape));
}

Tensor WeightReader::read_as_stored(std::string_view name, const Extents& shape) {
  const std::string in_file = file_name(name);
  return checked(in_file, checkpoint_.read_as_stored(in_file, shape));
}

Tensor WeightReader::checked(const std::string& in_file, const Tensor& tensor) {
  if (!is_float(tensor.dtype())) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: tensor {} holds {}, expected float32, float16 or bfloat16 "
                    "(packed weights need `quantization` in config.json)",
                    checkpoint_.origin(), quoted_name(in_file), dtype_name(tensor.dtype())));
  }
  note_read(in_file, tensor.num_elements());
  return tensor;
}

std::shared_ptr<const GroupedRows> WeightReader::read_grouped(std::string_view name,
                                                              const Extents& shape) {
  const std::string in_file = file_name(name);
  auto rows = checkpoint_.read_grouped(in_file, shape);
  if (rows != nullptr) {
    note_read(in_file, rows->num_rows() * rows->row_length());
    has_read_grouped_ = true;
  }
  return rows;
}

void WeightReader::note_read(std::string_view in_file, int64_t num_elements) {
  const auto& entries = checkpoint_.entries();
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), in_file,
      [](const CheckpointEntry& entry, std::string_view key) { return entry.name < key; });
  if (at != entries.end() && at->name == in_file) {
    const auto index = static_cast<size_t>(at - entries.begin());
    if (read_[index]) return;
    read_[index] = true;
  }
  num_elements_read_ += num_elements;
}

void WeightReader::release(std::string_view name) { checkpoint_.release(file_name(name)); }

void WeightReader::ignore(std::string_view beginning) {
  const std::string in_file = file_name(beginning);
  const auto& entries = checkpoint_.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name.starts_with(in_file)) read_[i] = true;
  }
}

void WeightReader::expect_all_read() const {
  constexpr size_t kMaxNamed = 8;
  const auto& entries = checkpoint_.entries();
  std::string named;
  size_t count = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (read_[i] || is_unneeded(entries[i].name)) continue;
    if (layout_ != nullptr && is_unneeded_in(*layout_, prefix_, entries[i].name)) continue;
    if (++count > kMaxNamed) continue;
    named += fmt::format("{}{}", count == 1 ? "" : ", ", quoted_name(entries[i].name));
  }
  if (count == 0) return;
  if (count > kMaxNamed) named += fmt::format(" and {} more", count - kMaxNamed);
  throw Error(ErrorCode::corrupt,
              fmt::format("{}: {} that this model doesn't use: {}", checkpoint_.origin(),
                          count == 1 ? "a tensor" : fmt::format("{} tensors", count), named));
}

}  // namespace paceline
