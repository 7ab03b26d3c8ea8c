// RawHttpClient: a socket that says exactly what a test wants said, and reads answers back.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct RawAnswer {
  int status = 0;
  std::string head;  // with the empty line
  std::string body;  // unchunked
  bool is_whole = false;

  // Of the only line with this name; "" without one.
  std::string header(std::string_view name) const;
};

class RawHttpClient {
 public:
  explicit RawHttpClient(uint16_t port, const std::string& address = "127.0.0.1");
  static RawHttpClient to_unix(const std::string& path);
  RawHttpClient(RawHttpClient&& other) noexcept;
  RawHttpClient& operator=(RawHttpClient&&) = delete;
  ~RawHttpClient();

  int descriptor() const { return descriptor_; }
  bool is_connected() const { return descriptor_ >= 0; }

  // False once the server has closed.
  bool send(std::string_view bytes);
  // Reads one answer; what comes behind it is kept for the next. `to_head`: an answer without body.
  RawAnswer read_answer();
  RawAnswer read_answer_to_head();
  // The head of an answer, and its body as it comes: what has come by now, at least `at_least`
  // bytes.
  RawAnswer read_head();
  std::string read_some(size_t at_least = 1);
  // Nothing more comes: a FIN or RST within the time.
  bool is_closed(std::chrono::milliseconds within = std::chrono::milliseconds(900));

  void half_close();
  void close();
  void reset();  // RST

 private:
  explicit RawHttpClient(int descriptor) : descriptor_(descriptor) {}
  RawHttpClient() = default;
  bool receive();
  std::string take(size_t size);
  void read_chunks(RawAnswer& answer);

  int descriptor_ = -1;
  std::string input_;
};

}  // namespace paceline
