// WeightStack is the stack of checkpoints through which a model's weights are read.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/siphash.h"
#include "base/thread_pool.h"
#include "weights/checkpoint.h"
#include "weights/digested_checkpoint.h"
#include "weights/published_quantisation.h"
#include "weights/quantised_checkpoint.h"
#include "weights/quantizing_checkpoint.h"

namespace paceline {

// Layers over the stored tensors: a digest of the bytes read (optional), unpacking of matrices that
// tools have quantised, dividing of stacked experts, quantising of plain matrices (optional).
class WeightStack {
 public:
  struct Options {
    const Json& config;      // config.json; its `quantization` describes packed files
    std::string_view where;  // its name in errors
    bool digested = false;   // keep a digest of what is read
    bool is_dummy = false;   // dummy weights: nothing is packed
    LoadQuantization quantization = LoadQuantization::none;
    // How published files are quantised (PublishedQuantisation::find()).
    std::optional<PublishedQuantisation> published = {};
  };

  // `memory` and `threads` must outlive it. Errors are those of the checkpoints and their settings,
  // and invalid when packed weights are to be quantised.
  WeightStack(std::unique_ptr<Checkpoint> stored, const Options& options, Memory& memory,
              ThreadPool& threads);

  Checkpoint& top() const { return *top_; }
  // The matrices in published formats; null where the files aren't said to have some.
  const QuantisedCheckpoint* published() const { return published_.get(); }
  // The digest of the stored bytes of all tensors read so far; nothing unless Options::digested.
  std::optional<Hash128> digest() const;

 private:
  std::unique_ptr<Checkpoint> stored_;
  std::unique_ptr<DigestedCheckpoint> digested_;
  std::unique_ptr<QuantisedCheckpoint> published_;
  std::unique_ptr<Checkpoint> unpacked_;
  std::unique_ptr<Checkpoint> experts_;
  std::unique_ptr<Checkpoint> quantized_;
  Checkpoint* top_ = nullptr;
};

}  // namespace paceline
