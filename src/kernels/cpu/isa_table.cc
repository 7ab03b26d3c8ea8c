// The table of one instruction set.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/isa_tables.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

KernelTable make_kernel_table() {
  KernelTable table = {};
  add_matmul_kernels(table);
  add_group_matmul_kernels(table);
  add_group_row_kernels(table);
  add_float8_kernels(table);
  add_transpose_kernels(table);
  add_embedding_kernels(table);
  add_norm_kernels(table);
  add_rope_kernels(table);
  add_kv_store_kernels(table);
  add_attention_kernels(table);
  add_attention_gradient_kernels(table);
  add_gradient_kernels(table);
  add_elementwise_kernels(table);
  add_log_sum_exp_kernels(table);
  add_routing_kernels(table);
  add_recurrent_kernels(table);
  add_recurrent_gradient_kernels(table);
  add_scan_gradient_kernels(table);
  add_roofline_kernels(table);
  add_tile_kernels(table);
  add_attention_tile_kernels(table);
  add_attention_gradient_tile_kernels(table);
  add_group_tile_kernels(table);
  return table;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
