#include "media/sandbox/sandbox.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/log.h"
#include "media/sandbox/memory_file.h"
#include "media/sandbox/worker_pool.h"

namespace triptych {
namespace {

using sandbox::MemoryFile;
using sandbox::PictureJob;
using sandbox::WorkerPool;
using sandbox::WorkerProcess;

// A worker that has computed as long makes room for another, well before the system ends it in the
// middle of somebody's picture (RLIMIT_CPU in worker.cc).
constexpr double kMostCpuMs = 600'000;

/// What a picture may take, by its header.
struct Allowance {
  uint64_t memory_bytes = 0;
  double time_ms = 0;
};

Allowance allowance_of(const ImageHeader& header, const ImagePlan& plan, size_t n_file_bytes,
                       const SandboxOptions& options) {
  // Rows between the two passes of the resize, and both the resized bytes and their values.
  const int64_t resized = 3 * plan.resized_width * (plan.padded_height + plan.resized_height) +
                          3 * plan.width * plan.height * static_cast<int64_t>(sizeof(float));
  const auto megapixels = 1e-6 * static_cast<double>(header.width * header.height +
                                                     plan.resized_width * plan.resized_height);
  return {.memory_bytes = options.memory_bytes + n_file_bytes +
                          static_cast<uint64_t>(header.decoded_bytes + resized),
          .time_ms = options.time_ms + options.time_ms_per_megapixel * megapixels};
}

bool was_killed(const Result<int>& wait_status) {
  return wait_status.is_ok() && WIFSIGNALED(*wait_status) && WTERMSIG(*wait_status) == SIGKILL;
}

/// Replaces a worker that gave no answer, and says to whom the picture belongs what happened.
Status failure_of(WorkerProcess::Outcome outcome, WorkerPool::Lease& lease,
                  const ImageHeader& header, const Allowance& allowance) {
  const std::string_view format = image_format_name(header.format);
  const Result<WorkerProcess*> worker = lease.worker();
  const bool was_dead = worker.is_ok() && sandbox::has_hung_up((*worker)->socket());
  const Result<int> wait_status = lease.replace();
  if (outcome == WorkerProcess::Outcome::kTooSlow) {
    log_warning(
        fmt::format("a {} of {} x {} pixels took longer than {:.1f} s; its decoder was "
                    "killed and is replaced",
                    format, header.width, header.height, allowance.time_ms / 1e3));
    return out_of_range(fmt::format("{}: the picture took longer than {:.1f} s to decode", format,
                                    allowance.time_ms / 1e3));
  }
  if (was_dead && was_killed(wait_status)) {
    log_warning(
        "a decoder of pictures was killed from outside in the middle of one; it is replaced");
    return {StatusCode::kUnavailable,
            fmt::format("{}: the picture's decoder was killed from outside; try again", format)};
  }
  log_warning(fmt::format(
      "the decoder of a {} of {} x {} pixels {}; it is replaced", format, header.width,
      header.height,
      was_dead ? "died of " + sandbox::death_of(wait_status) : "said what a decoder does not say"));
  return data_loss(fmt::format("{}: the decoder crashed on this picture", format));
}

/// A worker that has been handed the picture. One that died while it was idle is no fault of the
/// picture: another gets it.
Result<WorkerProcess*> hand_over(WorkerPool::Lease& lease, const Allowance& allowance,
                                 const PictureJob& job, const MemoryFile& file) {
  Status why(StatusCode::kUnavailable, "the decoders of pictures die as soon as they start");
  for (int attempt = 0; attempt < 3; ++attempt) {
    TRIPTYCH_ASSIGN_OR_RETURN(WorkerProcess * worker, lease.worker());
    if (!sandbox::has_hung_up(worker->socket())) {
      TRIPTYCH_ASSIGN_OR_RETURN(const MemoryFile* values,
                                worker->values(job.n_values * sizeof(float)));
      const Status limited = worker->limit_memory(allowance.memory_bytes);
      const std::array files = {file.fd(), values->fd()};
      if (limited.is_ok() && worker->ask(job, files)) return worker;
      if (!limited.is_ok()) why = limited;
    }
    (void)lease.replace();
  }
  return why;
}

}  // namespace

Sandbox::Sandbox(const SandboxOptions& options) : options_(options) {}
Sandbox::~Sandbox() = default;

Result<std::shared_ptr<Sandbox>> Sandbox::start(const SandboxOptions& options) {
  std::shared_ptr<Sandbox> out(new Sandbox(options));
  TRIPTYCH_RETURN_IF_ERROR(out->begin());
  return out;
}

Status Sandbox::begin() {
  TRIPTYCH_ASSIGN_OR_RETURN(zygote_, sandbox::Zygote::start(options_.work));
  TRIPTYCH_ASSIGN_OR_RETURN(pool_, WorkerPool::start(*zygote_, options_.workers));
  WorkerPool::Lease lease = pool_->lease();
  TRIPTYCH_ASSIGN_OR_RETURN(WorkerProcess * worker, lease.worker());
  TRIPTYCH_RETURN_IF_ERROR(worker->limit_memory(options_.memory_bytes));
  filtered_ = worker->filter_error() == 0;
  if (worker->filter_error() > 0) {
    log_warning(
        fmt::format("the system refuses to filter system calls (seccomp: {}): pictures are decoded "
                    "in processes "
                    "of their own with limits of time and memory, but a hostile file may reach "
                    "what this user may",
                    std::strerror(worker->filter_error())));
  }
  return Status::ok();
}

Status Sandbox::preprocess(std::span<const std::byte> bytes, const ImageRecipe& recipe,
                           const DecodeOptions& options, std::span<float> values) {
  TRIPTYCH_ASSIGN_OR_RETURN(const ImageHeader header, probe_image(bytes, options.limits));
  TRIPTYCH_ASSIGN_OR_RETURN(const ImagePlan plan, plan_image(header.width, header.height, recipe));
  if (values.size() != static_cast<size_t>(3 * plan.width * plan.height)) {
    return internal_error("room for another number of pixel values than the plan has");
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const PictureJob job,
                            sandbox::make_job(recipe, options, bytes.size(), values.size()));
  TRIPTYCH_ASSIGN_OR_RETURN(const MemoryFile file, MemoryFile::filled(bytes));
  const Allowance allowance = allowance_of(header, plan, bytes.size(), options_);

  WorkerPool::Lease lease = pool_->lease();
  TRIPTYCH_ASSIGN_OR_RETURN(WorkerProcess * worker, hand_over(lease, allowance, job, file));
  const WorkerProcess::Answer answer = worker->answer(allowance.time_ms);
  if (answer.outcome != WorkerProcess::Outcome::kDone) {
    return failure_of(answer.outcome, lease, header, allowance);
  }
  Status status = answer.status;
  if (status.is_ok()) {
    TRIPTYCH_ASSIGN_OR_RETURN(const MemoryFile* room, worker->values(values.size_bytes()));
    status = room->read(std::as_writable_bytes(values));
  }
  worker->tidy();
  if (worker->n_pictures() >= options_.pictures_per_worker ||
      worker->cpu_ms().value_or(0) >= kMostCpuMs) {
    (void)lease.replace();
  }
  return status;
}

std::vector<pid_t> Sandbox::worker_pids() const { return pool_->pids(); }

}  // namespace triptych
