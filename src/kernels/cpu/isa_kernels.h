// The kernels that the sources of one instruction set add to its table.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Each fills the part of the table that its source defines.
void add_matmul_kernels(KernelTable& table);
void add_group_matmul_kernels(KernelTable& table);
void add_group_row_kernels(KernelTable& table);
void add_float8_kernels(KernelTable& table);
void add_transpose_kernels(KernelTable& table);
void add_embedding_kernels(KernelTable& table);
void add_norm_kernels(KernelTable& table);
void add_rope_kernels(KernelTable& table);
void add_kv_store_kernels(KernelTable& table);
void add_attention_kernels(KernelTable& table);
void add_attention_gradient_kernels(KernelTable& table);
void add_gradient_kernels(KernelTable& table);
void add_elementwise_kernels(KernelTable& table);
void add_log_sum_exp_kernels(KernelTable& table);
void add_routing_kernels(KernelTable& table);
void add_recurrent_kernels(KernelTable& table);
void add_recurrent_gradient_kernels(KernelTable& table);
void add_scan_gradient_kernels(KernelTable& table);
void add_roofline_kernels(KernelTable& table);
// Replace others where the instruction set has tile registers.
void add_tile_kernels(KernelTable& table);
void add_attention_tile_kernels(KernelTable& table);
void add_attention_gradient_tile_kernels(KernelTable& table);
void add_group_tile_kernels(KernelTable& table);

// Quantised products in vector registers, for any number of rows.
void matmul_groups(const GroupTask& task);

// expand_panel and embedding_groups of E4M3.
void expand_float8(const GroupPanels& weights, int64_t panel, int64_t first, int64_t count,
                   void* bf16_panel);
void embed_float8(const GroupPanels& weights, int64_t row, float scale, float* out);

}  // namespace paceline::PACELINE_ISA_NAMESPACE
