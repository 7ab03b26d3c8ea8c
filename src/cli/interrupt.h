// Interrupt turns SIGINT and SIGTERM into a stop request, where the program supports one.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace paceline {

// Construct it before any other thread: threads inherit the blocked signals. Signals ignored at the
// start stay ignored.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // While one lives, the first signal requests a stop. Any other signal ends the process at once
  // (end()): so does one while a model is loaded.
  class Graceful {
   public:
    explicit Graceful(Interrupt& interrupt) : interrupt_(interrupt) { interrupt_.graceful_ = true; }
    ~Graceful() { interrupt_.graceful_ = false; }
    Graceful(const Graceful&) = delete;
    Graceful& operator=(const Graceful&) = delete;

   private:
    Interrupt& interrupt_;
  };

  // While one lives, a signal only calls `act` with its number, on the watcher's thread: for a
  // program that goes on after Ctrl-C, or has something to write before it calls end().
  class Handler {
   public:
    Handler(Interrupt& interrupt, std::function<void(int signal)> act);
    ~Handler();
    Handler(const Handler&) = delete;
    Handler& operator=(const Handler&) = delete;

   private:
    Interrupt& interrupt_;
  };

  // Says what the interruption leaves behind: the end of the line "interrupted; ...", called when
  // it is printed.
  void explain(std::function<std::string()> note);
  std::string line() const;  // "paceline: interrupted; NOTE\n"

  // Prints the line, removes temporary directories and exits with 128 + the number, without waiting
  // for other threads. For a Handler that is done.
  [[noreturn]] void end(int number);
  // Whether the process is about to exit by end(): an error that follows from it isn't shown.
  bool is_ending() const { return is_ending_; }

  std::stop_token stop_token() const { return stop_.get_token(); }
  // The signal that requested the stop, or 0.
  int signal() const { return signal_; }

 private:
  void watch();
  bool handled(int number);  // a Handler took it

  std::stop_source stop_;
  std::atomic<bool> graceful_ = false;
  std::atomic<int> signal_ = 0;
  std::mutex handler_mutex_;
  std::function<void(int signal)> handler_;  // guarded by handler_mutex_
  mutable std::mutex note_mutex_;
  std::function<std::string()> note_;  // guarded by note_mutex_; may be empty
  std::atomic<bool> is_ending_ = false;
  int signal_fd_ = -1;
  int wake_fd_ = -1;
  std::jthread watcher_;
};

}  // namespace paceline
