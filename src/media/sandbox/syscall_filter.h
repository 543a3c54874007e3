#pragma once

namespace triptych::sandbox {

/// From now on this process can compute, take and give memory, talk on `socket`, write to and close
/// what it has open, and end. Any other system call kills it. Never undone.
/// 0, or the errno with which the system refuses filters (EPERM or EACCES in some containers,
/// EINVAL where the kernel has none).
int filter_system_calls(int socket);

}  // namespace triptych::sandbox
