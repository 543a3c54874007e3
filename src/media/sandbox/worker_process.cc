#include "media/sandbox/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/clock.h"

namespace triptych::sandbox {
namespace {

constexpr double kHelloMs = 10'000;
// The engine's threads go first where cores are short, as PrepPool has it for threads.
constexpr int kNice = 10;
// On the clock, where processor time is short.
constexpr double kMostWaits = 5;
// Between two looks at the processor time of a worker that is late.
constexpr double kLookAgainMs = 10;
// Of values, between two pictures: those of 1.4 megapixels.
constexpr uint64_t kMostKeptBytes = uint64_t{16} << 20;

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(Zygote& zygote) {
  TRIPTYCH_ASSIGN_OR_RETURN(Zygote::Child child, zygote.spawn());
  std::unique_ptr<WorkerProcess> out(new WorkerProcess(child.pid, std::move(child.socket)));
  WorkerHello hello{};
  if (!wait_readable(out->socket(), kHelloMs) ||
      receive_message(out->socket(), writable_bytes_of(hello)) != sizeof hello) {
    (void)zygote.end(out->pid_);
    return Status(StatusCode::kUnavailable, "a picture's decoder did not get ready");
  }
  // From outside and now, so that nothing holds up its start.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(out->pid_), kNice);
  out->base_bytes_ = hello.address_bytes;
  out->filter_error_ = hello.filter_error;
  return out;
}

std::optional<double> WorkerProcess::cpu_ms() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    return std::nullopt;
  }
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) * 1e-6;
}

Status WorkerProcess::limit_memory(uint64_t n_bytes) {
  if (kSanitized) return Status::ok();
  rlimit limit{};
  if (base_bytes_ == 0 || ::prlimit(pid_, RLIMIT_AS, nullptr, &limit) != 0) {
    return {StatusCode::kUnavailable, "the memory of a picture's decoder cannot be read"};
  }
  limit.rlim_cur = std::min<rlim_t>(base_bytes_ + n_bytes, limit.rlim_max);
  if (::prlimit(pid_, RLIMIT_AS, &limit, nullptr) == 0) return Status::ok();
  return {
      StatusCode::kUnavailable,
      fmt::format("the memory of a picture's decoder cannot be limited: {}", std::strerror(errno))};
}

Result<const MemoryFile*> WorkerProcess::values(uint64_t n_bytes) {
  if (!values_ || n_value_bytes_ < n_bytes) {
    TRIPTYCH_ASSIGN_OR_RETURN(values_, MemoryFile::zeros(n_bytes));
    n_value_bytes_ = n_bytes;
  }
  return &*values_;
}

void WorkerProcess::tidy() {
  if (n_value_bytes_ <= kMostKeptBytes) return;
  values_.reset();
  n_value_bytes_ = 0;
}

bool WorkerProcess::ask(const PictureJob& job, std::span<const int> files) {
  ++n_pictures_;
  return send_message(socket(), bytes_of(job), files) == 0;
}

WorkerProcess::Answer WorkerProcess::answer(double limit_ms) {
  if (!is_answered_within(limit_ms)) return {Outcome::kTooSlow, {}};
  PictureReply reply;
  const size_t n = receive_message(socket(), writable_bytes_of(reply));
  std::optional<Status> status = read_reply(reply, n);
  if (!status) return {Outcome::kBroken, {}};
  return {Outcome::kDone, std::move(*status)};
}

bool WorkerProcess::is_answered_within(double limit_ms) const {
  const double start = steady_ms();
  const double cpu_start = cpu_ms().value_or(0);
  double patience = limit_ms;
  while (!wait_readable(socket(), patience)) {
    const double waited = steady_ms() - start;
    const std::optional<double> cpu = cpu_ms();
    const double left = limit_ms - (cpu.value_or(0) - cpu_start);
    if (!cpu || left <= 0 || waited >= kMostWaits * limit_ms || !wants_a_core()) return false;
    patience = std::min(std::max(left, kLookAgainMs), kMostWaits * limit_ms - waited);
  }
  return true;
}

/// Whether it runs or waits for a core, and not for anything else.
bool WorkerProcess::wants_a_core() const {
  const Descriptor file(::open(fmt::format("/proc/{}/stat", pid_).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  if (!file.is_open()) return false;
  const ssize_t n = ::read(file.get(), text.data(), text.size());
  const std::string_view line(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
  const size_t name_end = line.rfind(") ");  // the name in front of the state may hold anything
  return name_end != std::string_view::npos && line.substr(name_end + 2).starts_with('R');
}

}  // namespace triptych::sandbox
