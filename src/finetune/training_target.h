// TrainingTarget is what a run trains, and what it leaves: an adapter or a model.
#pragma once

#include <memory>

#include "load/loaded_model.h"
#include "paceline/train_options.h"
#include "train/trained_set.h"
#include "trainer/result_files.h"

namespace paceline {

struct TrainingTarget {
  std::unique_ptr<TrainedSet> trained;
  std::unique_ptr<ResultFiles> result;  // refers to `trained`
  int64_t num_modules = 0;              // beside which LoRA matrices are trained
  DType dtype = DType::f32;             // of what is trained
};

// `model` must outlive it. Throws Error when the model can't be trained in this way.
TrainingTarget make_training_target(const TrainOptions& options, LoadedModel& model);

}  // namespace paceline
