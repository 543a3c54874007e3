#include "media/sandbox/syscall_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace triptych::sandbox {
namespace {

// A list this short needs no library: a comparison a system call, from top to bottom.
using Program = std::vector<sock_filter>;

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;

// What decoders and the C library under them call, beside messages and mappings.
constexpr uint32_t kAllowed[] = {
    SYS_pwrite64,  // the pixels
    SYS_brk,           SYS_munmap,    SYS_mremap,      SYS_madvise,      SYS_close, SYS_futex,
    SYS_clock_gettime, SYS_getrandom, SYS_sched_yield, SYS_rt_sigreturn, SYS_exit,  SYS_exit_group,
};

void load(Program& program, size_t offset) {
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
}
void give(Program& program, uint32_t verdict) {
  program.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
}
/// Skips `n` steps unless what is loaded equals `value`.
void unless_equal_skip(Program& program, uint32_t value, uint8_t n) {
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n));
}

/// The low half of an argument; what is looked at here has no more.
constexpr size_t argument(size_t i) { return offsetof(seccomp_data, args) + i * sizeof(uint64_t); }

/// Only when the first argument, a descriptor, is `socket`.
void allow_on(Program& program, uint32_t call, int socket) {
  unless_equal_skip(program, call, 4);
  load(program, argument(0));
  unless_equal_skip(program, static_cast<uint32_t>(socket), 1);
  give(program, kAllow);
  give(program, kKill);
}

/// Only when the third argument does not ask for memory that can be executed.
void refuse_executable(Program& program, uint32_t call) {
  unless_equal_skip(program, call, 4);
  load(program, argument(2));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0));
  give(program, kAllow);
  give(program, kKill);
}

Program make_program(int socket) {
  Program out;
  load(out, offsetof(seccomp_data, arch));
  unless_equal_skip(out, AUDIT_ARCH_X86_64, 1);  // numbers of another architecture mean other calls
  out.push_back(BPF_STMT(BPF_JMP | BPF_JA, 1));
  give(out, kKill);
  load(out, offsetof(seccomp_data, nr));
  allow_on(out, SYS_recvmsg, socket);
  allow_on(out, SYS_sendmsg, socket);
  refuse_executable(out, SYS_mmap);
  refuse_executable(out, SYS_mprotect);
  for (const uint32_t call : kAllowed) {
    unless_equal_skip(out, call, 1);
    give(out, kAllow);
  }
  give(out, kKill);
  return out;
}

}  // namespace

int filter_system_calls(int socket) {
  Program program = make_program(socket);
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) return errno;
  return 0;
}

}  // namespace triptych::sandbox
