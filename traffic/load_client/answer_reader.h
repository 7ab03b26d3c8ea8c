// AnswerReader parses HTTP/1.1 answers incrementally, even byte by byte.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace paceline::traffic {

class AnswerReader {
 public:
  using Body = std::function<void(std::string_view piece)>;

  // Begins the next answer, with its body passed to `on_body`.
  void begin(Body on_body);
  // Takes received bytes of at most one answer. Throws Error corrupt when they are malformed.
  void feed(std::string_view bytes);

  bool is_done() const { return part_ == Part::done; }
  bool has_begun() const { return has_begun_; }  // some bytes were received
  int status() const { return status_; }         // 0: not known yet
  bool closes() const { return closes_; }        // whether the connection closes after this answer

 private:
  enum class Part { head, body, chunk_size, chunk, chunk_end, trailer, done };

  bool take_line(std::string_view& bytes);
  void end_line();
  void end_head();
  void read_field(std::string_view line);
  void take_body(std::string_view& bytes, Part behind);

  Part part_ = Part::done;
  Body on_body_;
  std::string line_;  // as far as received
  bool is_first_line_ = true;
  bool has_begun_ = false;
  bool is_chunked_ = false;
  bool closes_ = false;
  int status_ = 0;
  int64_t num_left_ = 0;  // bytes of the body, or of the chunk
};

}  // namespace paceline::traffic
