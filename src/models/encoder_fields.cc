#include "models/encoder_fields.h"

namespace paceline {

void set_encoder(DecoderConfig& encoder) {
  encoder.bidirectional = true;
  encoder.has_head = false;
  encoder.tied_head = false;
  encoder.norm_kind = NormKind::layer;
  encoder.norm_bias = true;
}

void set_norms_behind(DecoderConfig& encoder) {
  encoder.norms_sums = true;
  encoder.norms = kNormsBehind;
  encoder.final_norm = "";
  encoder.embedding_norm = true;
}

void check_is_encoder(const HfConfig& config) {
  if (config.boolean("is_decoder", false)) {
    config.unsupported("is_decoder", "true isn't supported: this family is run as an encoder");
  }
}

}  // namespace paceline
