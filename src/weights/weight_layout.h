// Names of weights in files of encoders and of older decoders, which differ in more than a prefix
// from the canonical ones.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weights/checkpoint.h"

namespace paceline {

// A part of a canonical name, and what files have in its place.
struct NamePart {
  std::string_view canonical;
  std::string_view in_files;
};

struct WeightLayout {
  std::string_view embedding;  // the name of the embedding in files
  std::string_view sign;       // a name that files with this layout have
  std::span<const NamePart> parts;
  // What may stand in place of "lm_head.", and what stands in place of "layers." in transformers'
  // class; empty of an encoder.
  std::string_view head = {};
  std::string_view layers_in_class = {};
  // Beginnings of names that a model of vectors doesn't need: what pre-training predicted with.
  std::span<const std::string_view> unneeded = {};
  // Ends of such names: masks of attention that old files hold.
  std::span<const std::string_view> unneeded_ends = {};
  // Beginnings of names without a prefix: of heads.
  std::span<const std::string_view> without_prefix = {};

  std::string in_files(std::string_view canonical) const;
};

// What may stand in front of names; the last is empty.
std::span<const std::string_view> layout_prefixes();

// The layout of a checkpoint; null: it has the canonical names.
const WeightLayout* find_layout(const Checkpoint& checkpoint);

}  // namespace paceline
