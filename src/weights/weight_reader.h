// WeightReader resolves a model's canonical weight names in a checkpoint and finds unused
// tensors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/weight_layout.h"

namespace paceline {

// Canonical names have no model prefix: "embed_tokens.weight", "layers.3.self_attn.q_proj.weight",
// "norm.weight", "lm_head.weight". Files write them with "model.", "language_model.model.",
// "model.language_model.", "model.text_model.", "model.decoder.", "language_model.", "backbone.",
// "decoder." or nothing in front;
// the prefix is found once, from the embedding's name, which may be "embeddings.weight".
// lm_head.weight and score.weight stand outside "model." in files ("lm_head.weight",
// "language_model.lm_head.weight"). Names of encoders and older decoders are those of a
// WeightLayout.
class WeightReader {
 public:
  explicit WeightReader(Checkpoint& checkpoint);

  bool contains(std::string_view name) const;
  std::optional<Extents> shape_of(std::string_view name) const;
  // Throws what Checkpoint::read throws, with the name in the file; unsupported when the elements
  // aren't floats.
  Tensor read(std::string_view name, const Extents& shape);
  // The same for a matrix that isn't to be quantised at load.
  Tensor read_as_stored(std::string_view name, const Extents& shape);
  // The quantised matrix, or null when it is stored as plain numbers.
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name, const Extents& shape);
  void release(std::string_view name);
  // Null: the checkpoint has canonical names.
  const WeightLayout* layout() const { return layout_; }
  // The checkpoint's name for a canonical name.
  std::string file_name(std::string_view name) const;

  // Tensors whose canonical names begin so needn't be read.
  void ignore(std::string_view beginning);

  // Throws Error corrupt naming up to eight unread tensors, and the number of others. Allowed are
  // tensors that a text model doesn't need: rotary inv_freq tables, a vision tower, a multi-modal
  // projector. lm_head.weight is read when it is present, also in a tied model.
  void expect_all_read() const;

  // Elements of all tensors read so far: the model's parameters once it is loaded.
  int64_t num_elements_read() const { return num_elements_read_; }
  // Whether any of them was quantised.
  bool has_read_grouped() const { return has_read_grouped_; }

 private:
  Tensor checked(const std::string& in_file, const Tensor& tensor);
  void note_read(std::string_view in_file, int64_t num_elements);

  Checkpoint& checkpoint_;
  const WeightLayout* layout_;  // null: canonical names
  std::string_view embedding_;  // its name in files
  std::string prefix_;          // of the decoder's weights, e.g. "model."
  std::string head_prefix_;     // of lm_head.weight
  std::string_view head_;       // in place of "lm_head."
  std::string score_prefix_;    // of score.weight
  std::vector<bool> read_;      // parallel to checkpoint_.entries()
  int64_t num_elements_read_ = 0;
  bool has_read_grouped_ = false;
};

// What may stand in front of a canonical name in files, a longer one before any prefix of it; the
// last is empty.
std::span<const std::string_view> decoder_prefixes();

// Whether a checkpoint's name belongs to a vision tower or a projector.
bool is_outside_the_decoder(std::string_view name);

}  // namespace paceline
