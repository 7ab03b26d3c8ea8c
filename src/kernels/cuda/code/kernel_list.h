// Every kernel: X(name, type), the name as in the type's kName.
#pragma once

#include "kernels/cuda/code/add_norm.h"
#include "kernels/cuda/code/adjust_rows.h"
#include "kernels/cuda/code/apply_sinks.h"
#include "kernels/cuda/code/attention.h"
#include "kernels/cuda/code/attention_gradient.h"
#include "kernels/cuda/code/attention_groups.h"
#include "kernels/cuda/code/attention_tiles.h"
#include "kernels/cuda/code/ceilings.h"
#include "kernels/cuda/code/decay_gates.h"
#include "kernels/cuda/code/decode_step.h"
#include "kernels/cuda/code/delta_rule.h"
#include "kernels/cuda/code/draw_rows.h"
#include "kernels/cuda/code/drop_elements.h"
#include "kernels/cuda/code/element_gradients.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/embedding.h"
#include "kernels/cuda/code/expert_products.h"
#include "kernels/cuda/code/gather.h"
#include "kernels/cuda/code/gather_codes.h"
#include "kernels/cuda/code/lora.h"
#include "kernels/cuda/code/loss_gradients.h"
#include "kernels/cuda/code/matmul_codes.h"
#include "kernels/cuda/code/matmul_few.h"
#include "kernels/cuda/code/matmul_few_codes.h"
#include "kernels/cuda/code/matmul_float.h"
#include "kernels/cuda/code/matmul_tiles.h"
#include "kernels/cuda/code/mma_probe.h"
#include "kernels/cuda/code/norm_gradients.h"
#include "kernels/cuda/code/norms.h"
#include "kernels/cuda/code/pack_inputs.h"
#include "kernels/cuda/code/place_heads.h"
#include "kernels/cuda/code/pool_rows.h"
#include "kernels/cuda/code/rope.h"
#include "kernels/cuda/code/route.h"
#include "kernels/cuda/code/row_results.h"
#include "kernels/cuda/code/selective_scan.h"
#include "kernels/cuda/code/short_convolution.h"
#include "kernels/cuda/code/store_kv.h"
#include "kernels/cuda/code/transpose_panels.h"
#include "kernels/cuda/code/weight_gradient.h"

#define PACELINE_CUDA_USUAL_KERNELS(X)                     \
  X(activate, Activate)                                    \
  X(activate_gate, ActivateGate)                           \
  X(add, Add)                                              \
  X(add_rms_norm, AddRmsNorm)                              \
  X(add_scaled_rows, AddScaledRows)                        \
  X(apply_sinks, ApplySinks)                               \
  X(attention_bf16, Attention<Bf16>)                       \
  X(attention_bf16_128_decode, AttentionTiles<Bf16, 2, 1>) \
  X(attention_bf16_128_prompt, AttentionTiles<Bf16, 2, 4>) \
  X(attention_bf16_192_decode, AttentionTiles<Bf16, 3, 1>) \
  X(attention_bf16_192_prompt, AttentionTiles<Bf16, 3, 4>) \
  X(attention_bf16_256_decode, AttentionTiles<Bf16, 4, 1>) \
  X(attention_bf16_256_prompt, AttentionTiles<Bf16, 4, 4>) \
  X(attention_chunks_bf16, AttentionChunks<Bf16>)          \
  X(attention_chunks_f16, AttentionChunks<F16>)            \
  X(attention_chunks_f32, AttentionChunks<float>)          \
  X(attention_chunks_i8, AttentionChunks<int8_t>)          \
  X(attention_f16, Attention<F16>)                         \
  X(attention_f32, Attention<float>)                       \
  X(attention_i8, Attention<int8_t>)                       \
  X(attention_i8_128_decode, AttentionTiles<int8_t, 2, 1>) \
  X(attention_i8_128_prompt, AttentionTiles<int8_t, 2, 4>) \
  X(attention_i8_192_decode, AttentionTiles<int8_t, 3, 1>) \
  X(attention_i8_192_prompt, AttentionTiles<int8_t, 3, 4>) \
  X(attention_i8_256_decode, AttentionTiles<int8_t, 4, 1>) \
  X(attention_i8_256_prompt, AttentionTiles<int8_t, 4, 4>) \
  X(clear, Clear)                                          \
  X(codes_32_rows, MatmulCodes<4, false>)                  \
  X(codes_64_rows, MatmulCodes<8, false>)                  \
  X(combine_experts, CombineExperts)                       \
  X(convolve_rows, ConvolveRows)                           \
  X(copy_words, CopyWords)                                 \
  X(copy_heads, CopyHeads)                                 \
  X(count_tokens, CountTokens)                             \
  X(decay_gates, DecayGates)                               \
  X(delta_rule_of_long_keys, DeltaRuleOfLongKeys)          \
  X(embedding_bf16, EmbeddingRows<Bf16>)                   \
  X(embedding_f16, EmbeddingRows<F16>)                     \
  X(embedding_f32, EmbeddingRows<float>)                   \
  X(embedding_groups, EmbeddingGroups)                     \
  X(few_codes_1_segment, MatmulFewCodes<1, 8, 1>)          \
  X(few_codes_2_segments, MatmulFewCodes<1, 4, 2>)         \
  X(few_codes_4_segments, MatmulFewCodes<1, 2, 4>)         \
  X(few_codes_8_segments, MatmulFewCodes<1, 1, 8>)         \
  X(few_rows_1_segment, MatmulFewRows<1, 4, 1>)            \
  X(few_rows_2_segments, MatmulFewRows<1, 4, 2>)           \
  X(few_rows_4_segments, MatmulFewRows<1, 2, 4>)           \
  X(few_rows_8_segments, MatmulFewRows<1, 1, 8>)           \
  X(gated_codes_32_rows, MatmulCodes<4, true>)             \
  X(gated_codes_64_rows, MatmulCodes<8, true>)             \
  X(gated_few_codes_1_segment, MatmulFewCodes<2, 8, 1>)    \
  X(gated_few_codes_2_segments, MatmulFewCodes<2, 4, 2>)   \
  X(gated_few_codes_4_segments, MatmulFewCodes<2, 2, 4>)   \
  X(gated_few_rows_1_segment, MatmulFewRows<2, 4, 1>)      \
  X(gated_few_rows_2_segments, MatmulFewRows<2, 4, 2>)     \
  X(gated_few_rows_4_segments, MatmulFewRows<2, 2, 4>)     \
  X(gather_codes, GatherCodes)                             \
  X(gather_columns_bf16, GatherBf16Columns)                \
  X(gather_columns_2, GatherColumns<uint16_t>)             \
  X(gather_columns_4, GatherColumns<uint32_t>)             \
  X(gather_rows, GatherRows)                               \
  X(keep_delta_rows, KeepDeltaRows)                        \
  X(keep_inputs, KeepInputs)                               \
  X(keep_scan_rows, KeepScanRows)                          \
  X(layer_norm, LayerNorm)                                 \
  X(mask_rows, MaskRows)                                   \
  X(matmul_f16, MatmulFloat<F16>)                          \
  X(matmul_f32, MatmulFloat<float>)                        \
  X(merge_chunks, MergeChunks)                             \
  X(mma_probe, MmaProbe)                                   \
  X(mma_rate, MmaRate)                                     \
  X(multiply, Multiply)                                    \
  X(pack_code_inputs, PackCodeInputs)                      \
  X(pack_inputs, PackInputs)                               \
  X(penalise_rows, PenaliseRows)                           \
  X(place_heads_bf16, PlaceHeads<Bf16>)                    \
  X(place_heads_f16, PlaceHeads<F16>)                      \
  X(place_heads_f32, PlaceHeads<float>)                    \
  X(place_heads_i8, PlaceHeads<int8_t>)                    \
  X(pool_rows, PoolRows)                                   \
  X(rms_norm, RmsNorm)                                     \
  X(rope, RopeHeads)                                       \
  X(rope_table, RopeTable)                                 \
  X(route, RouteRows)                                      \
  X(scale, Scale)                                          \
  X(score_rows, ScoreRows)                                 \
  X(soft_cap, SoftCap)                                     \
  X(store_kv_bf16, StoreKv<Bf16>)                          \
  X(store_kv_f16, StoreKv<F16>)                            \
  X(store_kv_f32, StoreKv<float>)                          \
  X(store_kv_i8, StoreKv<int8_t>)                          \
  X(unpack_groups, UnpackGroups)

#define PACELINE_CUDA_EXPERT_KERNELS(X)                                         \
  X(expert_few_codes_2_segments, ExpertProducts<MatmulFewCodes<1, 4, 2>>)       \
  X(expert_few_rows_2_segments, ExpertProducts<MatmulFewRows<1, 4, 2>>)         \
  X(expert_gated_few_codes_2_segments, ExpertProducts<MatmulFewCodes<2, 4, 2>>) \
  X(expert_gated_few_rows_2_segments, ExpertProducts<MatmulFewRows<2, 4, 2>>)   \
  X(expert_matmul_f16, ExpertProducts<MatmulFloat<F16>>)                        \
  X(expert_matmul_f32, ExpertProducts<MatmulFloat<float>>)

#define PACELINE_CUDA_GRADIENT_KERNELS(X)          \
  X(activation_gradient, ActivationGradient)       \
  X(attention_output_means, AttentionOutputMeans)  \
  X(copy_rounded_bf16, CopyRounded<Bf16>)          \
  X(copy_rounded_f16, CopyRounded<F16>)            \
  X(copy_rounded_f32, CopyRounded<float>)          \
  X(cross_entropy_gradient, CrossEntropyGradient)  \
  X(drop_elements, DropElements)                   \
  X(embedding_gradient, EmbeddingGradient)         \
  X(gate_gradient, GateGradient)                   \
  X(key_gradient_64, KeyGradient<64>)              \
  X(key_gradient_128, KeyGradient<128>)            \
  X(key_gradient_256, KeyGradient<256>)            \
  X(norm_gradient, NormInputGradient)              \
  X(query_gradient_64, QueryGradient<64>)          \
  X(query_gradient_128, QueryGradient<128>)        \
  X(query_gradient_256, QueryGradient<256>)        \
  X(row_norm_numbers, RowNormNumbers)              \
  X(soft_cap_gradient, SoftCapGradient)            \
  X(sum_rows, SumRows)                             \
  X(transpose_groups, TransposeGroups)             \
  X(transpose_panels_2, TransposePanels<uint16_t>) \
  X(transpose_panels_4, TransposePanels<uint32_t>) \
  X(transpose_panels_bf16, TransposeBf16Panels)    \
  X(weight_gradient, MatmulWeightGradient)

// Those whose threads need more registers than the compiler would give them for several blocks on a
// multiprocessor.
#define PACELINE_CUDA_LARGE_KERNELS(X)                    \
  X(advance_slots, AdvanceSlots)                          \
  X(attention_bf16_64_decode, AttentionTiles<Bf16, 1, 1>) \
  X(attention_bf16_64_prompt, AttentionTiles<Bf16, 1, 4>) \
  X(attention_i8_64_decode, AttentionTiles<int8_t, 1, 1>) \
  X(attention_i8_64_prompt, AttentionTiles<int8_t, 1, 4>) \
  X(expand_lora, ExpandLora)                              \
  X(draw_rows, DrawRows)                                  \
  X(finite_rows, FiniteRows)                              \
  X(log_sum_exp, LogSumExp)                               \
  X(selective_scan, SelectiveScan)                        \
  X(shrink_lora, ShrinkLora)

#define PACELINE_CUDA_TILE_KERNELS(X)                        \
  X(attention_groups_bf16_64, AttentionGroups<Bf16, 1>)      \
  X(attention_groups_i8_64, AttentionGroups<int8_t, 1>)      \
  X(attention_groups_bf16_128, AttentionGroups<Bf16, 2>)     \
  X(attention_groups_i8_128, AttentionGroups<int8_t, 2>)     \
  X(attention_groups_bf16_192, AttentionGroups<Bf16, 3>)     \
  X(attention_groups_i8_192, AttentionGroups<int8_t, 3>)     \
  X(attention_groups_bf16_256, AttentionGroups<Bf16, 4>)     \
  X(attention_groups_i8_256, AttentionGroups<int8_t, 4>)     \
  X(delta_rule, DeltaRule)                                   \
  X(gated_tile_16_rows, MatmulTiles<1, 16, true>)            \
  X(gated_tile_32_rows, MatmulTiles<1, 32, true>)            \
  X(gated_tile_64_rows, MatmulTiles<2, 64, true>)            \
  X(gated_tile_128_rows, MatmulTiles<2, 128, true>)          \
  X(gated_tile_192_rows, MatmulTiles<2, 192, true>)          \
  X(matmul_64_columns_16_rows, MatmulTiles<1, 16, false>)    \
  X(matmul_64_columns_32_rows, MatmulTiles<1, 32, false>)    \
  X(matmul_64_columns_64_rows, MatmulTiles<1, 64, false>)    \
  X(matmul_128_columns_64_rows, MatmulTiles<2, 64, false>)   \
  X(matmul_128_columns_128_rows, MatmulTiles<2, 128, false>) \
  X(matmul_128_columns_192_rows, MatmulTiles<2, 192, false>)

#define PACELINE_CUDA_KERNELS(X)    \
  PACELINE_CUDA_TILE_KERNELS(X)     \
  PACELINE_CUDA_USUAL_KERNELS(X)    \
  PACELINE_CUDA_EXPERT_KERNELS(X)   \
  PACELINE_CUDA_GRADIENT_KERNELS(X) \
  PACELINE_CUDA_LARGE_KERNELS(X)
