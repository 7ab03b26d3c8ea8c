// Normalizers rewrite the text between added tokens before it is split into pieces.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/text_store.h"

namespace paceline {

// Immutable; any number of threads may use it at once. Each must agree with the normalizer of its
// name of HF tokenizers.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // The normalised form of well-formed UTF-8: `text` itself when nothing changes, else a text of
  // `store`. `text` is a part of the input of `store` or was made in it.
  virtual std::string_view normalize(std::string_view text, TextStore& store) const = 0;
  // Whether it is Lowercase or has it among its steps.
  virtual bool lowers_case() const { return false; }
};

// Applies normalizers in order; without any it is the identity.
class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps);
  std::string_view normalize(std::string_view text, TextStore& store) const override;
  bool lowers_case() const override;

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace paceline
