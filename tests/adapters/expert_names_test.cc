// Names of experts and routers: those of all files become one.
#include "adapters/expert_names.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(ExpertNames, RoutersAndExpertsHaveOneNameWhateverTheFilesCallThem) {
  for (const std::string part : {"mlp.gate", "block_sparse_moe.gate", "block_sparse_moe.router",
                                 "block_sparse_moe.router.layer", "feed_forward.gate"}) {
    EXPECT_EQ(canonical_expert_module("layers.7." + part), "layers.7.mlp.gate");
    EXPECT_TRUE(is_router_part(canonical_router_part(part)));
  }
  EXPECT_EQ(canonical_expert_module("layers.0.block_sparse_moe.experts.3.w1"),
            "layers.0.mlp.experts.3.gate_proj");
  EXPECT_EQ(canonical_expert_module("layers.12.feed_forward.experts.3.w2"),
            "layers.12.mlp.experts.3.down_proj");
  for (const std::string module :
       {"layers.0.mlp.router", "layers.0.mlp.gate_proj", "layers.0.feed_forward.w1",
        "layers.0.mlp.shared_expert_gate", "lm_head"}) {
    EXPECT_EQ(canonical_expert_module(module), module);
  }
  EXPECT_TRUE(is_router_part("mlp.router"));
  EXPECT_FALSE(is_router_part("mlp.gate_proj"));
}

}  // namespace
}  // namespace paceline
