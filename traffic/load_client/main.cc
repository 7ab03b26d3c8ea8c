// Puts load on a paced server; exits with 1 when a token is wrong or an answer is missing.
#include <cstdio>
#include <exception>
#include <fstream>

#include "traffic/load_client/load.h"
#include "traffic/load_client/report.h"

int main(int argc, char** argv) {
  using namespace paceline::traffic;
  try {
    const LoadPlan plan = read_load_plan(argc, argv);
    Load load(plan);
    load.run();
    std::fputs(report_table(plan, load).c_str(), stdout);
    if (!plan.json.empty()) std::ofstream(plan.json) << report_json(plan, load) << '\n';
    return is_flawless(plan, load) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paceline_load_client: %s\n", error.what());
    return 1;
  }
}
