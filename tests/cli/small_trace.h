// A handmade trace: three sequences on eight blocks of four tokens, with a preemption, two prefix
// hits and a cancellation.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/trace_file.h"

namespace paceline {

inline std::string request_line(int64_t id, int64_t step, int64_t prompt_tokens) {
  std::string ids;
  for (int64_t i = 0; i < prompt_tokens; ++i) ids += (i > 0 ? "," : "") + std::to_string(i);
  return R"({"type":"request","id":)" + std::to_string(id) + R"(,"step":)" + std::to_string(step) +
         R"(,"prompt_ids":[)" + ids + R"(],"prompt_tokens":)" + std::to_string(prompt_tokens) +
         R"(,"max_tokens":4,"temperature":0.5,"top_p":0.9,"top_k":5,"min_p":0.1,)"
         R"("repetition_penalty":1.1,"frequency_penalty":-1,"presence_penalty":2,)"
         R"("logit_bias":[[3,-1.5]],"seed":18446744073709551615,"stop_token_ids":[4],)"
         R"("stop":["a","b"],"eos_token_ids":[2,9],"ignore_eos":true,"priority":-1})";
}

inline std::vector<std::string> small_trace_lines() {
  return {
      R"({"type":"start","model":"tiny","block_size":4,"groups":[{"window":0,"blocks":8}],)"
      R"("max_num_seqs":4,"max_batched_tokens":16})",
      request_line(1, 0, 10),
      request_line(2, 0, 6),
      R"({"type":"step","step":0,"at_us":1000,"plan_us":3,"forward_us":450,"total_us":500,)"
      R"("num_rows":16,"num_waiting":0,"free_blocks":[3],"cached_blocks":[0],"admitted":[[1,0],[2,0]],"preempted":[],)"
      R"("slices":[[1,0,10],[2,0,6]],"blocks":[[1,3],[2,2]],"tokens":[[1,11],[2,12]],)"
      R"("finished":[]})",
      R"({"type":"step","step":1,"at_us":1600,"plan_us":2,"forward_us":90,"total_us":100,)"
      R"("num_rows":2,"num_waiting":0,"free_blocks":[3],"cached_blocks":[0],"admitted":[],"preempted":[],)"
      R"("slices":[[1,10,1],[2,6,1]],"blocks":[[1,3],[2,2]],"tokens":[[1,13],[2,14]],)"
      R"("finished":[]})",
      request_line(3, 2, 12),
      R"({"type":"step","step":2,"at_us":1700,"plan_us":7,"forward_us":180,"total_us":200,)"
      R"("num_rows":5,"num_waiting":1,"free_blocks":[4],"cached_blocks":[1],"admitted":[[3,8]],"preempted":[2],)"
      R"("slices":[[1,11,1],[3,8,4]],"blocks":[[1,3],[3,3]],"tokens":[[1,15],[3,16]],)"
      R"("finished":[[1,"stop"]]})",
      R"({"type":"cancel","id":3,"step":3})",
      R"({"type":"step","step":3,"at_us":2000,"plan_us":2,"forward_us":90,"total_us":100,)"
      R"("num_rows":4,"num_waiting":0,"free_blocks":[6],"cached_blocks":[4],"admitted":[[2,4]],"preempted":[],)"
      R"("slices":[[2,4,4]],"blocks":[[2,2]],"tokens":[[2,17]],"finished":[[3,"cancelled"]]})",
      R"({"type":"step","step":4,"at_us":2100,"plan_us":2,"forward_us":90,"total_us":100,)"
      R"("num_rows":1,"num_waiting":0,"free_blocks":[5],"cached_blocks":[3],"admitted":[],"preempted":[],)"
      R"("slices":[[2,8,1]],"blocks":[[2,3]],"tokens":[[2,18]],"finished":[[2,"length"]]})"};
}

// Reads the lines as a file whose name ends in trace.jsonl.
inline Trace read_lines(const std::vector<std::string>& lines) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("paceline_trace_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "trace.jsonl").string();
  {
    std::ofstream file(path, std::ios::binary);
    for (const std::string& line : lines) file << line << '\n';
  }
  struct Removal {
    std::filesystem::path folder;
    ~Removal() { std::filesystem::remove_all(folder); }
  } removal{folder};
  return read_trace(path);
}

}  // namespace paceline
