// Normalizers rewrite the text between added tokens before it is split into pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Immutable; any number of threads may use it at once.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // The normalised form of well-formed UTF-8: `text` itself when nothing changes, else a view of
  // `storage`.
  virtual std::string_view normalize(std::string_view text, std::string& storage) const = 0;
};

// Canonical composition (NFC) as HF tokenizers does it, whose tables are those of Unicode 9:
// characters that are newer take part in no reordering and no composition.
class NfcNormalizer final : public Normalizer {
 public:
  std::string_view normalize(std::string_view text, std::string& storage) const override;
};

// One after the other; none at all is the identity.
class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps);
  std::string_view normalize(std::string_view text, std::string& storage) const override;

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace paceline
