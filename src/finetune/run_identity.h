// What a resumed run must have in common with the one before.
#pragma once

#include "finetune/training_data.h"
#include "load/loaded_model.h"
#include "paceline/train_options.h"
#include "trainer/checkpoint_files.h"

namespace paceline {

RunIdentity identity_of(const TrainOptions& options, const LoadedModel& model,
                        const TrainingData& data);

}  // namespace paceline
