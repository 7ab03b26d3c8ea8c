// Draws the losses of a training run as SVG.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainer/metrics_file.h"

namespace paceline {

// The training loss of each report and the validation losses, over the steps.
std::string loss_plot(std::span<const TrainingPoint> points, std::string_view title);

}  // namespace paceline
