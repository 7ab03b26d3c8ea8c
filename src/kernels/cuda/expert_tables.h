// ExpertTables keep what kernels read of each mixture's experts in a device's memory.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/cuda/device.h"
#include "tensor/buffer.h"

namespace paceline::cuda {

class ExpertTables {
 public:
  struct Key {
    const void* experts;
    int part;
    int kernel;
    auto operator<=>(const Key&) const = default;
  };

  explicit ExpertTables(Memory& memory) : memory_(memory) {}

  // Where the table stands on the device. It is copied when it is new, or when what it was made of
  // has changed.
  const void* place(CudaDevice& device, const Key& key, std::span<const int64_t> made_of,
                    std::span<const std::byte> table) {
    Table& known = tables_[key];
    if (std::equal(made_of.begin(), made_of.end(), known.made_of.begin(), known.made_of.end())) {
      return known.on_device.get();
    }
    if (known.on_device.size_bytes() != table.size()) {
      known.on_device = Buffer();
      known.on_device = Buffer(memory_, table.size(), Contents::undefined);
    }
    device.copy_to_device(known.on_device.get(), table.data(), table.size());
    known.made_of.assign(made_of.begin(), made_of.end());
    return known.on_device.get();
  }

 private:
  struct Table {
    std::vector<int64_t> made_of;
    Buffer on_device;
  };

  Memory& memory_;
  std::map<Key, Table> tables_;
};

}  // namespace paceline::cuda
