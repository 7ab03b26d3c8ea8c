// XieluWeights are the numbers of an activation that has some of its own.
#pragma once

namespace paceline {

// xIELU (Huang and Schlag, "Deriving Activation Functions Using Integration", arXiv 2411.13010):
// positive x^2 + linear x of x above 0, else negative (exp(min(x, limit)) - 1 - x) + linear x.
struct XieluWeights {
  float positive = 0.0f;
  float negative = 0.0f;
  float linear = 0.0f;
  float limit = 0.0f;  // at most 0
};

}  // namespace paceline
