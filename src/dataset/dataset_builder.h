// DatasetBuilder gathers examples, cuts those that are too long and keeps the account of it.
#pragma once

#include <string>
#include <string_view>

#include "dataset/dataset.h"
#include "dataset/example_text.h"

namespace paceline {

class DatasetBuilder {
 public:
  // `options` must outlive it. `options.now` must be set.
  DatasetBuilder(const std::string& file, std::string_view format, const DatasetOptions& options);

  // Throws Error invalid "WHERE: ..." when nothing of the example can be learnt, exhausted when the
  // limits of the options are reached.
  void add(EncodedExample encoded, std::string_view where);
  // Throws Error invalid when no example was kept.
  Dataset finish();

 private:
  const DatasetOptions& options_;
  Dataset dataset_;
};

}  // namespace paceline
