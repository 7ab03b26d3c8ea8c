#include "dataset/fault_list.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline {

void FaultList::throw_if_any() const {
  if (messages_.empty()) return;
  if (messages_.size() == 1) throw Error(ErrorCode::invalid, messages_[0]);
  const std::string count =
      fmt::format("{}{} {} at fault", is_full() ? "the first " : "", messages_.size(), what_);
  throw Error(ErrorCode::invalid,
              fmt::format("{}: {}:\n  {}", file_, count, fmt::join(messages_, "\n  ")));
}

}  // namespace paceline
