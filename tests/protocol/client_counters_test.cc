#include "protocol/client_counters.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

// As Claude Code 2.1 writes them.
TEST(ClientCounters, TheBillingLineEndsWithItsLine) {
  EXPECT_EQ(without_billing_line(
                "x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch=fa690;"),
            "");
  EXPECT_EQ(without_billing_line("x-anthropic-billing-header: cch=1;\nYou are"), "You are");
  EXPECT_EQ(without_billing_line("What is x-anthropic-billing-header:?"),
            "What is x-anthropic-billing-header:?");
}

TEST(ClientCounters, ACountdownAtTheEndIsLeftOut) {
  EXPECT_EQ(without_countdown("<total_tokens>14931235 tokens left</total_tokens>"), "");
  EXPECT_EQ(without_countdown("a\n\n<total_tokens>Infinite tokens left</total_tokens>\n"), "a");
  EXPECT_EQ(without_countdown("a\n<system-reminder>\n<total_tokens>14,999 tokens left"
                              "</total_tokens>\n</system-reminder>\n"),
            "a");
}

TEST(ClientCounters, OtherTextsStayAsTheyAre) {
  for (const char* text :
       {"a \n", "", "<total_tokens>5 tokens left</total_tokens> is what it appends.\n",
        "5 tokens left</total_tokens>", "<total_tokens>a <b> tokens left</total_tokens>",
        "a <total_tokens>5 tokens left</total_tokens>\n</system-reminder>",
        "<system-reminder>Be brief</system-reminder>"}) {
    EXPECT_EQ(without_countdown(text), text);
  }
}

}  // namespace
}  // namespace paceline
