// The loss of a decoder's last states: final norm, head and cross-entropy in chunks of rows, so
// that the logits of all rows never exist.
#pragma once

#include <vector>

#include "autodiff/array.h"
#include "models/decoder.h"
#include "train/decoder_training.h"
#include "train/train_batch.h"

namespace paceline {

// The sum of weights[r] * (log_sum_exp(logits[r]) - logits[r, targets[r]]) over the rows whose
// weight isn't 0, as one float32. Adds each row's loss (without its weight) to `losses`, in order.
// The gradients are computed with the loss: of the residual, of the final norm and of the head.
//                                                                    residual [rows, hidden]
autodiff::Array apply_head_loss(Backend& backend, const Decoder& decoder,
                                const DecoderTraining& training, const TrainBatch& batch,
                                std::vector<float>& losses, const autodiff::Array& residual);

}  // namespace paceline
