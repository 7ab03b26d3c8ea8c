// AdapterResult is the result of a run with LoRA: an adapter as PEFT reads it.
#pragma once

#include <string>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "train/lora_set.h"
#include "trainer/result_files.h"

namespace paceline {

// The matrices as they are served: rounded to their dtype. Their bytes are of `memory`.
Adapter trained_adapter(const LoraSet& loras, const std::string& base_name, Memory& memory);

class AdapterResult final : public ResultFiles {
 public:
  // `loras` and `memory` must outlive it.
  AdapterResult(const LoraSet& loras, AdapterBase base, std::string base_name, Memory& memory)
      : loras_(loras), base_(std::move(base)), base_name_(std::move(base_name)), memory_(memory) {}

  void write(const std::filesystem::path& directory) const override;

 private:
  const LoraSet& loras_;
  AdapterBase base_;
  std::string base_name_;
  Memory& memory_;
};

}  // namespace paceline
