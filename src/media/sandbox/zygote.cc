#include "media/sandbox/zygote.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace triptych::sandbox {
namespace {

// Forking and ending take milliseconds; a zygote that takes longer is not coming back.
constexpr double kAnswerMs = 10'000;

struct Order {
  enum class Kind : int32_t { kSpawn, kEnd };
  Kind kind;
  int32_t pid;  ///< of kEnd
};

/// The worker's socket goes with the answer to kSpawn.
struct Answer {
  int32_t error;  ///< an errno; 0: done
  int32_t pid;
  int32_t wait_status;  ///< of kEnd
};

/// What the zygote's process does.
class Forker {
 public:
  explicit Forker(PictureWork work) : work_(work) {}

  [[noreturn]] void serve() {
    Order order{};
    while (receive_message(kSocket, writable_bytes_of(order)) == sizeof order) {
      const bool answered = order.kind == Order::Kind::kSpawn ? spawn() : end(order.pid);
      if (!answered) break;
    }
    for (const pid_t worker : workers_) (void)kill_and_wait(worker);
    ::_exit(0);
  }

 private:
  bool spawn() {
    Result<SocketPair> sockets = make_socket_pair();
    if (!sockets.is_ok()) return say({EMFILE, 0, 0});
    const pid_t self = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return say({errno, 0, 0});
    if (pid == 0) run_worker(self, sockets->theirs.get(), work_);
    workers_.push_back(pid);
    return say({0, pid, 0}, std::array{sockets->ours.get()});
  }

  bool end(pid_t pid) {
    if (std::erase(workers_, pid) == 0) return say({ECHILD, pid, 0});
    return say({0, pid, kill_and_wait(pid)});
  }

  static int kill_and_wait(pid_t pid) {
    int status = 0;
    (void)::kill(pid, SIGKILL);
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  static bool say(const Answer& answer, std::span<const int> files = {}) {
    return send_message(kSocket, bytes_of(answer), files) == 0;
  }

  PictureWork work_;
  std::vector<pid_t> workers_;
};

Status gone() {
  return Status(StatusCode::kUnavailable, "the process that forks decoders is gone");
}

}  // namespace

Result<std::unique_ptr<Zygote>> Zygote::start(PictureWork work) {
  TRIPTYCH_ASSIGN_OR_RETURN(SocketPair sockets, make_socket_pair());
  const pid_t program = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return resource_exhausted(fmt::format("no process for decoders: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    if (!leave_program(program, sockets.theirs.get(), "decoder-zygote")) ::_exit(1);
    Forker(work).serve();
  }
  return std::unique_ptr<Zygote>(new Zygote(pid, std::move(sockets.ours)));
}

Zygote::~Zygote() {
  socket_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Zygote::Child> Zygote::spawn() {
  const std::lock_guard lock(mutex_);
  Answer answer{};
  std::array<Descriptor, 1> socket;
  if (send_message(socket_.get(), bytes_of(Order{Order::Kind::kSpawn, 0})) != 0 ||
      !wait_readable(socket_.get(), kAnswerMs) ||
      receive_message(socket_.get(), writable_bytes_of(answer), socket) != sizeof answer) {
    return gone();
  }
  if (answer.error != 0 || !socket[0].is_open()) {
    return resource_exhausted(
        fmt::format("no process for a picture's decoder: {}", std::strerror(answer.error)));
  }
  return Child{answer.pid, std::move(socket[0])};
}

Result<int> Zygote::end(pid_t worker) {
  const std::lock_guard lock(mutex_);
  Answer answer{};
  if (send_message(socket_.get(), bytes_of(Order{Order::Kind::kEnd, worker})) != 0 ||
      !wait_readable(socket_.get(), kAnswerMs) ||
      receive_message(socket_.get(), writable_bytes_of(answer)) != sizeof answer) {
    return gone();
  }
  if (answer.error != 0) return internal_error("a decoder that is to be ended was never forked");
  return answer.wait_status;
}

std::string death_of(const Result<int>& wait_status) {
  if (!wait_status.is_ok()) return wait_status.status().message();
  if (WIFSIGNALED(*wait_status)) {
    const int signal = WTERMSIG(*wait_status);
    return fmt::format("signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("its own exit with {}", WEXITSTATUS(*wait_status));
}

}  // namespace triptych::sandbox
