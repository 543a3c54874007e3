#include "media/sandbox/worker.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "media/sandbox/channel.h"
#include "media/sandbox/memory_file.h"
#include "media/sandbox/picture_job.h"
#include "media/sandbox/syscall_filter.h"

namespace triptych::sandbox {
namespace {

// The parent ends a worker long before (Sandbox): this holds when the parent is stopped.
constexpr rlim_t kMostCpuSeconds = 1200;
// Standard streams, the socket, the two files of a picture, and one to spare.
constexpr rlim_t kMostDescriptors = 8;
// Freed memory that stays with the worker: enough that a picture of a few megapixels finds its
// buffers mapped already.
constexpr int kKeptBytes = 32 << 20;

void set_limit(__rlimit_resource_t resource, rlim_t most) {
  rlimit limit{};
  (void)::getrlimit(resource, &limit);
  limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(resource, &limit);
}

void write_text(const char* path, const char* text) {
  const Descriptor file(::open(path, O_WRONLY | O_CLOEXEC));
  if (file.is_open()) (void)!::write(file.get(), text, std::strlen(text));
}

/// Address space of this process, in bytes; 0 when /proc does not say.
uint64_t address_bytes() {
  const Descriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  if (!file.is_open() || ::read(file.get(), text.data(), text.size() - 1) <= 0) return 0;
  return std::strtoull(text.data(), nullptr, 10) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// A server that runs as root has decoders without root's powers.
void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  (void)::syscall(SYS_capset, &header, none.data());
}

WorkerHello confine() {
  WorkerHello hello{};
  // When memory runs out the system takes a decoder and not the server.
  write_text("/proc/self/oom_score_adj", "1000");
  (void)::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  (void)::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, kMostCpuSeconds);
  hello.address_bytes = address_bytes();
  if (kSanitized) {
    hello.filter_error = kNoFilter;
    return hello;
  }
  set_limit(RLIMIT_NOFILE, kMostDescriptors);
  set_limit(RLIMIT_NPROC, 0);
  (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // no other worker can look into this one
  drop_capabilities();
  hello.filter_error = filter_system_calls(kSocket);
  return hello;
}

/// The bytes of a picture, mapped to read.
class MappedPicture {
 public:
  MappedPicture(int file, uint64_t n_bytes)
      : size_(n_bytes), data_(::mmap(nullptr, n_bytes, PROT_READ, MAP_PRIVATE, file, 0)) {}
  ~MappedPicture() {
    if (is_mapped()) ::munmap(data_, size_);
  }
  MappedPicture(const MappedPicture&) = delete;
  MappedPicture& operator=(const MappedPicture&) = delete;

  bool is_mapped() const { return data_ != MAP_FAILED; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  uint64_t size_;
  void* data_;
};

/// Memory that a worker cannot have is over its limit: asking again would change nothing.
Status over_limit(const Status& status) {
  if (status.code() != StatusCode::kResourceExhausted) return status;
  return out_of_range(status.message() + ": it takes more than a picture's decoder may have");
}

Result<PixelTensor> pixels_of(const PictureJob& job, std::span<const std::byte> bytes,
                              PictureWork work, ThreadPool& pool) {
  TRIPTYCH_ASSIGN_OR_RETURN(const ImageRecipe recipe, recipe_of(job));
  try {
    Result<PixelTensor> pixels = work(bytes, recipe, job.decode, pool);
    if (!pixels.is_ok()) return over_limit(pixels.status());
    return pixels;
  } catch (...) {
    return over_limit(status_of_exception("decoding a picture"));
  }
}

Status process(const PictureJob& job, std::span<const Descriptor> files, PictureWork work,
               ThreadPool& pool) {
  const MappedPicture picture(files[0].get(), job.n_file_bytes);
  if (!picture.is_mapped()) return resource_exhausted("no memory for a picture's file");
  TRIPTYCH_ASSIGN_OR_RETURN(const PixelTensor pixels, pixels_of(job, picture.bytes(), work, pool));
  if (pixels.values.size() != job.n_values) return internal_error("a plan and its pixels differ");
  if (write_whole(files[1].get(), std::as_bytes(std::span(pixels.values))) != 0) {
    return resource_exhausted("no memory for a picture's pixels");
  }
  return Status::ok();
}

}  // namespace

bool leave_program(pid_t parent, int socket, const char* name) {
  (void)::prctl(PR_SET_NAME, name, 0, 0, 0);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || ::getppid() != parent) return false;
  // A terminal and some service managers signal all processes at once, but those in work are still
  // needed then: who ends them is the program.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0) return false;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (kSanitized && stream == STDERR_FILENO) continue;  // where their reports go
    if (stream != socket && ::dup2(null, stream) < 0) return false;
  }
  if (socket != kSocket && ::dup2(socket, kSocket) < 0) return false;
  return ::close_range(kSocket + 1, ~0U, 0) == 0;
}

void run_worker(pid_t parent, int socket, PictureWork work) {
  if (!leave_program(parent, socket, "picture-decoder")) ::_exit(1);
  ThreadPool pool(1);
  const WorkerHello hello = confine();
  if (send_message(kSocket, bytes_of(hello)) != 0) ::_exit(1);
  for (;;) {
    PictureJob job;
    std::array<Descriptor, kJobFiles> files;
    const size_t n = receive_message(kSocket, writable_bytes_of(job), files);
    if (n != sizeof job) ::_exit(n == 0 ? 0 : 1);
    size_t n_reply = 0;
    const PictureReply reply = make_reply(process(job, files, work, pool), n_reply);
    if (send_message(kSocket, bytes_of(reply).first(n_reply)) != 0) ::_exit(0);
  }
}

}  // namespace triptych::sandbox
