// AnswerReader takes HTTP/1.1 answers apart as they come in, byte by byte if need be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace paceline::traffic {

class AnswerReader {
 public:
  using Body = std::function<void(std::string_view piece)>;

  // The next answer's body goes to `on_body`.
  void begin(Body on_body);
  // Bytes off the wire, of one answer at most: throws Error corrupt when they aren't one.
  void feed(std::string_view bytes);

  bool is_done() const { return part_ == Part::done; }
  bool has_begun() const { return has_begun_; }  // some of it is here
  int status() const { return status_; }         // 0: not known yet
  bool closes() const { return closes_; }        // the connection, behind this answer

 private:
  enum class Part { head, body, chunk_size, chunk, chunk_end, trailer, done };

  bool take_line(std::string_view& bytes);
  void end_line();
  void end_head();
  void read_field(std::string_view line);
  void take_body(std::string_view& bytes, Part behind);

  Part part_ = Part::done;
  Body on_body_;
  std::string line_;  // as far as it is here
  bool is_first_line_ = true;
  bool has_begun_ = false;
  bool is_chunked_ = false;
  bool closes_ = false;
  int status_ = 0;
  int64_t num_left_ = 0;  // bytes of the body, or of the chunk
};

}  // namespace paceline::traffic
