// QuantisedMatrix is a matrix that a checkpoint holds in a published format: what it is, and how it
// is read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tensor/grouped_rows.h"
#include "tensor/tensor.h"
#include "weights/module_parts.h"
#include "weights/published_quantisation.h"

namespace paceline {

struct QuantisedMatrix {
  std::string format;  // "4 bits in groups of 128"
  Extents shape;       // [rows, row length], or a stack of such matrices
  // At least one of them: the matrix packed, where kernels read the format, and its numbers. The
  // rows view the parts in the checkpoint. They throw Error corrupt naming the tensor when a value
  // makes no sense. Where there are both, `packed` may give none: for scales that kernels don't
  // read.
  std::function<std::shared_ptr<const GroupedRows>()> packed = nullptr;
  std::function<std::shared_ptr<const ValueRows>()> numbers = nullptr;

  std::shared_ptr<const ValueRows> open() const { return numbers ? numbers() : packed(); }
};

// The matrix of these parts; nothing where they are of no known format. Errors are those of
// ModuleParts.
std::optional<QuantisedMatrix> find_quantised_matrix(const ModuleParts& parts,
                                                     const PublishedQuantisation& settings);

// The formats, each of parts that are known by their names: `qweight` of GPTQ and of AWQ,
// `weight_packed` of compressed-tensors, ...
QuantisedMatrix gptq_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);
QuantisedMatrix awq_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);
QuantisedMatrix packed_integer_matrix(const ModuleParts& parts,
                                      const PublishedQuantisation& settings);
QuantisedMatrix byte_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);
QuantisedMatrix float8_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);
QuantisedMatrix e2m1_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);
QuantisedMatrix mlx_float_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);
QuantisedMatrix bitsandbytes_matrix(const ModuleParts& parts,
                                    const PublishedQuantisation& settings);
// By the class that the file's metadata names.
QuantisedMatrix torchao_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);
QuantisedMatrix hqq_matrix(const ModuleParts& parts, const PublishedQuantisation& settings);

}  // namespace paceline
